"""Folds and outline follow the sections of the document."""

from collections.abc import Sequence

from lsprotocol import converters
from lsprotocol.types import DocumentSymbol, FoldingRangeKind, Range
from msgspec.structs import replace

from gpa_lsp.editor.sass.library import Section, SectionKind
from gpa_lsp.editor.sass.outline import list_folds, list_symbols
from tests.editor.sass.documents import LOOP, URI, find_line, open_document, show_report, write_document
from tests.report_builder import build_kernel

NEST = """
    MOV R0, RZ                  # - | wait=2
outer:
    MOV R1, RZ                  # - | wait=1
inner:
    IADD3 R1, R1, 0x1, RZ       # - | wait=90
    @P0 BRA inner
    IADD3 R0, R0, 0x1, RZ       # - | wait=7
    @P1 BRA outer
    EXIT
"""


def list_outline(text: str) -> list[str]:
    found: list[str] = []

    def walk(symbols: Sequence[DocumentSymbol], indent: str, outside: Range | None) -> None:
        for symbol in symbols:
            assert symbol.range.start.line <= symbol.selection_range.start.line <= symbol.range.end.line
            assert outside is None or outside.start.line <= symbol.range.start.line
            assert outside is None or symbol.range.end.line <= outside.end.line
            found.append(f"{indent}{symbol.kind.name.lower()} {symbol.name}: {symbol.detail}")
            walk(symbol.children or (), indent + "  ", symbol.range)

    walk(list_symbols(open_document(write_document(text))), "", None)
    return found


def test_the_outline_has_functions_loops_and_hot_blocks() -> None:
    assert list_outline(NEST) == [
        "function kernel: 100 % · wait",
        "  key .L_0000: 2.0 % · wait",
        "  event loop .L_0010: 98 % · wait",
        "    key .L_0010: 1.0 % · wait",
        "    event loop .L_0020: 90 % · wait",
        "      key .L_0020: 90 % · wait",
        "    key .L_0040: 7.0 % · wait",
    ]


def test_the_outline_of_a_deep_nest_can_be_written_as_json() -> None:
    depth = 500
    heads = "\n".join(f"l{number}:\nIADD3 R0, R0, 0x1, RZ  # - | wait=9" for number in range(depth))
    backs = "\n".join(f"@P0 BRA l{number}" for number in reversed(range(depth)))
    symbols = list_symbols(open_document(write_document(f"{heads}\n{backs}\nEXIT")))
    assert str(converters.get_converter().unstructure(symbols)).count("loop .L_") == depth


def test_an_outline_without_samples_has_no_blocks_and_no_details() -> None:
    assert list_outline("MOV R0, RZ\nl:\n@P0 BRA l\nEXIT") == ["function kernel: None", "  event loop .L_0010: None"]


def test_folds_nest_and_begin_on_headings() -> None:
    document = write_document(LOOP)
    folds = list_folds(document)
    shown = [
        (document.lines[fold.start_line].split(" ")[0], fold.kind, fold.end_line - fold.start_line) for fold in folds
    ]
    comment, region = FoldingRangeKind.Comment, FoldingRangeKind.Region
    assert shown == [
        ("//", comment, 5), ("kernel:", region, 19), (".L_0000:", region, 3), ("//", region, 8), (".L_0020:", region, 7),
        (".L_0060:", region, 4),
    ]  # fmt: skip
    assert folds[3].start_line + 1 == find_line(document, "// loop")
    assert [line for line in document.lines[: folds[0].end_line + 1] if not line.startswith("//")] == []


def test_of_too_many_blocks_the_longest_can_be_folded() -> None:
    document = write_document(LOOP)
    blocks = tuple(
        Section(
            kind=SectionKind.BLOCK, name="", detail="", first_line=10 * number + 1, last_line=10 * number + 2 + number % 7,
            first_row=0,
        )
        for number in range(9000)
    )  # fmt: skip
    folds = list_folds(replace(document, sections=(document.sections[0], *blocks)))
    assert 4000 < len(folds) <= 4901
    assert [fold.start_line for fold in folds] == sorted(fold.start_line for fold in folds)
    assert all(fold.end_line - fold.start_line >= 3 for fold in folds[2:])


def test_a_kernel_without_instructions_folds_its_header() -> None:
    from gpa_lsp.editor.sass.document import build_document

    document = build_document(URI, show_report(build_kernel("")))
    assert [(fold.kind, fold.start_line) for fold in list_folds(document)] == [(FoldingRangeKind.Comment, 0)]
