"""Markdown of advice: tables hold together whatever names and hints contain, and details are folded."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.document.advice_view import build_advice
from gpa_lsp.document.markdown import escape_markdown, quote_code, write_markdown, write_sentence
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.report.model import Report
from tests.conftest import examples
from tests.render.advice_examples import make_advice_example
from tests.report_builder import build_kernel, build_report


def show(report: Report, **limits: int) -> list[str]:
    chosen = {"max_kernels": None, "max_advice": None, **limits}
    return list(write_markdown(build_advice(report, PlaceNames(), has_table=True, **chosen), folds=True))


def count_cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row)) - 1


def check_tables(lines: list[str]) -> int:
    """Every row of a table has as many cells as its head; the number of tables."""
    tables = 0
    for position, line in enumerate(lines):
        if not re.match(r"\| :?--", line):
            continue
        tables += 1
        assert lines[position - 2 : position - 1] in ([""], [])
        width = count_cells(lines[position - 1])
        assert count_cells(line) == width
        for row in lines[position + 1 :]:
            if not row.startswith("|"):
                break
            assert count_cells(row) == width
    return tables


def test_tables_and_folds_are_well_formed() -> None:
    lines = show(make_advice_example())
    assert check_tables(lines) > 3
    opened = [line for line in lines if line.startswith("<details>")]
    assert len(opened) == lines.count("</details>") > 5
    for position, line in enumerate(lines):
        if line.startswith("<details>"):  # without the empty line what follows would be HTML
            assert lines[position + 1] == ""


def test_names_and_hints_cannot_break_out() -> None:
    advice = """
        loop_unrolling 1.5x
            title: <script>|title|
            hint: See `a|b` and <img src=x> and *this* | that.
            region line 0
            here: # not a heading
                0  wait # | note <b>
    """
    kernel = build_kernel("a|b<.cu:1  MOV R1|R2, `R3`  ; wait=9", name="k|<b>`", advice=advice)
    lines = show(build_report(kernel))
    text = "\n".join(lines)
    assert check_tables(lines) == 1
    assert "<summary><b>1.45–1.55×</b> &lt;script&gt;|title| loop_unrolling</summary>" in text
    assert "See `a|b` and \\<img src=x> and \\*this\\* \\| that." in lines
    assert "   - \\# not a heading" in lines
    assert "<script>" not in text.replace("\\<script>", "")
    assert "<img" not in text.replace("\\<img", "")


@examples(60)
@given(text=st.text())
def test_escaped_text_is_one_line_without_markup(text: str) -> None:
    escaped = escape_markdown(text)
    assert "\n" not in escaped
    assert re.sub(r"\\(.)", r"\1", escaped) == make_one_line(text)
    assert re.search(r"(?<!\\)(?:\\\\)*(?:[*|`\[]|<(?=[A-Za-z/!?])|\b_|_\b|\A>)", escaped) is None


@examples(60)
@given(text=st.text(alphabet="ab`|* \n<"))
def test_code_is_closed_and_cannot_end_a_cell(text: str) -> None:
    quoted = quote_code(text)
    fence = re.match(r"`+", quoted)
    assert fence is not None
    assert quoted.endswith(fence[0])
    assert fence[0] not in quoted[len(fence[0]) : -len(fence[0])]
    assert count_cells(f"| {quoted} |") == 1


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("`a*b` c*d", "`a*b` c\\*d"), ("open ` only *", "open \\` only \\*"), ("two\nlines", "two lines"), ("", "")],
)
def test_prose_keeps_its_code(text: str, escaped: str) -> None:
    assert write_sentence(text) == escaped
