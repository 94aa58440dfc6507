"""Folds and outline follow the sections of the document."""

from lsprotocol import converters
from msgspec.structs import replace

from gpa_lsp.editor.sass.library import Section, SectionKind
from gpa_lsp.editor.sass.outline import list_folds, list_symbols
from tests.editor.sass.documents import LOOP, open_document, write_document


def test_the_outline_of_a_deep_nest_can_be_written_as_json() -> None:
    depth = 500
    heads = "\n".join(f"l{number}:\nIADD3 R0, R0, 0x1, RZ  # - | wait=9" for number in range(depth))
    backs = "\n".join(f"@P0 BRA l{number}" for number in reversed(range(depth)))
    symbols = list_symbols(open_document(write_document(f"{heads}\n{backs}\nEXIT")))
    assert str(converters.get_converter().unstructure(symbols)).count("loop .L_") == depth


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
