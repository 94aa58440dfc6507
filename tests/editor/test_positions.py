import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from gpa_lsp.editor.lines.positions import Positions, read_line, read_lines, span_line
from gpa_lsp.report.line_map import split_lines

TEXT = "float a;\n\tx[i] = 'é𝛼' + y;  // 😀  \r\nlast"


def columns(encoding: types.PositionEncodingKind) -> tuple[int, int]:
    positions = Positions(lines=split_lines(TEXT), units=PositionCodec(encoding))
    span = positions.find_text(2)
    assert (span.start.line, span.end.line) == (1, 1)
    assert positions.find_end(2) == span.end
    return span.start.character, span.end.character


def test_columns_are_counted_in_the_negotiated_encoding() -> None:
    line = "\tx[i] = 'é𝛼' + y;  // 😀"
    assert columns(types.PositionEncodingKind.Utf8) == (1, len(line.encode()))
    assert columns(types.PositionEncodingKind.Utf16) == (1, len(line.encode("utf-16-le")) // 2)
    assert columns(types.PositionEncodingKind.Utf32) == (1, len(line))


def test_an_empty_line_has_an_empty_range() -> None:
    positions = Positions(lines=("   ", ""), units=PositionCodec())
    assert positions.find_text(1) == types.Range(types.Position(0, 0), types.Position(0, 0))
    assert positions.find_text(2) == types.Range(types.Position(1, 0), types.Position(1, 0))


def test_lines_count_from_one() -> None:
    assert read_line(types.Position(0, 5)) == 1
    assert Positions(lines=("a",), units=PositionCodec()).find_start(1) == types.Position(0, 0)
    assert span_line(3).start == types.Position(2, 0)
    assert span_line(0).start == types.Position(0, 0)


@pytest.mark.parametrize(
    ("start", "end", "lines"), [((0, 0), (5, 3), (1, 6)), ((0, 0), (5, 0), (1, 5)), ((4, 0), (4, 0), (5, 5))]
)
def test_ranges_name_their_lines(start: tuple[int, int], end: tuple[int, int], lines: tuple[int, int]) -> None:
    assert read_lines(types.Range(types.Position(*start), types.Position(*end))) == lines


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_end_as_the_protocol_says(ending: str) -> None:
    assert split_lines(ending.join(["a\x0cb", "c\u2028d", ""])) == ("a\x0cb", "c\u2028d", "")
