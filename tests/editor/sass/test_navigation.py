"""Definitions and uses of values in SASS documents, beyond ``scenes/sass_questions.md``."""

import pytest

from gpa_lsp.editor.sass.jumps import find_definition, list_jumps
from tests.editor.sass.cursors import put_cursor, read_places
from tests.editor.sass.documents import LOOP, open_document, write_document


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_columns_are_counted_as_the_client_counts_them(encoding: str) -> None:
    view = open_document(write_document(LOOP), encoding=encoding)
    (found,) = find_definition(view, put_cursor(view, "FFMA R0, ^R2")) or ()
    assert read_places(view, [found.range]) == ["0020 R2"]


def test_many_equal_causes_are_no_choice() -> None:
    loads = "\n".join(f"B-:R-:W2:-:S02 LDG.E R{row}, [R90.64]" for row in range(30))
    store = "B2:R-:W-:-:S02 STG.E [R90.64], R0  # - | long_scoreboard=60"
    view = open_document(write_document(f"{loads}\n{store}\nEXIT"))
    assert len(list_jumps(view, 30, is_cause=True)) == 20
    (found,) = find_definition(view, put_cursor(view, "S^TG")) or ()
    assert read_places(view, [found.range]) == ["0000 LDG.E R0, [R90.64]"]
