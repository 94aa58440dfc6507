"""The cells of a notebook are found again in a report, and their hot lines marked."""

import json
from pathlib import Path

import msgspec.structs
import pytest

from gpa_lsp.notebook.cells import CellText, list_texts, read_cell
from gpa_lsp.notebook.marks import MarkedCell, mark_cells, read_report_file
from gpa_lsp.notebook.output import Shown, render_html, render_text
from gpa_lsp.report.model import Report
from tests.conftest import ROOT

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"
SOURCE = (ROOT / "fixtures" / "kernels" / "short_def_use" / "original.cu").read_text(encoding="utf-8")
CALL = "value = respond(value, in[step * n + i]);"
CELL = f'import cupy\nkernel = cupy.RawKernel(r"""{SOURCE}""", "short_def_use", options=("-lineinfo",))\n'


@pytest.fixture(scope="module")
def report() -> Report:
    return read_report_file(EXAMPLE, "short_def_use")


def texts_of(*cells: str) -> list[CellText]:
    read = [read_cell(number, text) for number, text in enumerate(cells, 1)]
    return [
        text for cell in reversed(read) for text in list_texts(cell, lambda text: f"/tmp/ipykernel_9/{len(text)}.py")
    ]


def find_marked(marked: MarkedCell, code: str) -> tuple[str, ...]:
    line = 1 + next(number for number, text in enumerate(marked.cell.text.split("\n")) if code in text)
    return next(mark.words for mark in marked.marks if mark.line == line)


def test_a_raw_kernel_is_found_by_its_text(report: Report) -> None:
    (marked,) = mark_cells(report, texts_of("x = 1", CELL))
    assert marked.cell.number == 2
    assert not marked.doubt
    said = find_marked(marked, CALL)
    assert any("long_scoreboard" in words for words in said)
    assert any("×" in words for words in said), "the best advice stands at the line it is about"


def test_lines_that_a_library_puts_before_a_kernel_are_not_counted(report: Report) -> None:
    kernels = tuple(
        msgspec.structs.replace(
            kernel,
            embedded_sources={file: f"#define A\n#define B\n{text}" for file, text in kernel.embedded_sources.items()},
        )
        for kernel in report.kernels
    )
    (marked,) = mark_cells(msgspec.structs.replace(report, kernels=kernels), texts_of(CELL))
    (before,) = mark_cells(report, texts_of(CELL))
    assert [mark.line + 2 for mark in marked.marks] == [mark.line for mark in before.marks]


def test_the_newest_of_two_equal_cells_is_marked(report: Report) -> None:
    assert [marked.cell.number for marked in mark_cells(report, texts_of(CELL, "x", CELL))] == [3]


def test_another_text_is_not_taken_for_what_was_compiled(report: Report) -> None:
    assert mark_cells(report, texts_of(CELL.replace("0.125f", "0.25f"))) == ()


def test_without_a_copy_a_string_is_found_by_the_kernel_it_defines_and_that_is_said(report: Report) -> None:
    kernels = tuple(msgspec.structs.replace(kernel, embedded_sources={}) for kernel in report.kernels)
    bare = msgspec.structs.replace(report, kernels=kernels)
    (marked,) = mark_cells(bare, texts_of(CELL))
    assert "by the kernel's name" in marked.doubt
    assert mark_cells(bare, texts_of(CELL.replace("short_def_use(", "other("))) == ()


def test_a_cell_is_found_by_the_file_name_it_was_compiled_under(tmp_path: Path) -> None:
    """Cells are found as Numba's and Triton's kernels are: in the report of another session, too."""
    from gpa_lsp.execution.compiler.compile import compile_source
    from tests.notebook.scripted_ncu import SOURCE as NUMBA
    from tests.notebook.scripted_ncu import make_profile

    cell = "from numba import cuda\n@cuda.jit(lineinfo=True)\ndef smooth(x, y, n):\n    y[i] = x[i * n] / 3"
    name = f"/tmp/ipykernel_4711/{len(cell)}.py"
    cubin = compile_source(tmp_path / "k.cu", text=NUMBA.format(line=3, file=name)).cubin
    assert cubin is not None
    path = tmp_path / "k.gpa-profile.json"
    path.write_text(json.dumps(make_profile(cubin, {}, "_Z6smoothPKfPfi")), encoding="utf-8")
    (marked,) = mark_cells(read_report_file(path, None), texts_of("y = 2", cell))
    assert marked.cell.number == 2
    assert {mark.line for mark in marked.marks} == {3, 4}
    assert marked.marks[-1].suffered_ratio > 0
    (stripped,) = mark_cells(read_report_file(path, None), texts_of(cell[:-1]))
    assert not stripped.doubt, "line ends behind a cell count for its name, and are not remembered"
    (kept,) = mark_cells(read_report_file(path, None), texts_of(cell + "\n\nsmooth[1, 1](x, y, 1)  # another day"))
    assert "by the kernel's name" in kept.doubt, "code that Triton keeps has the name of an earlier cell"
    assert mark_cells(read_report_file(path, None), texts_of(cell.replace("smooth", "other") + "  # another")) == ()


def test_html_shows_every_line_of_the_cell_and_escapes_it(report: Report) -> None:
    cell = CELL.replace("// Pattern", "// <script>alert(1)</script> Pattern", 1)
    assert mark_cells(report, texts_of(cell)) == ()
    (marked,) = mark_cells(report, texts_of(f"{CELL}note = '<script>alert(1)</script>'\n"))
    html = render_html(Shown(cells=(marked,), page="<p title='\"'>page</p>"))
    assert html.count('<td class="code">') == len(marked.cell.text.rstrip("\n").split("\n"))
    assert "<script>" not in html
    assert 'class="causes"' in html or 'class="suffers"' in html
    assert 'srcdoc="&lt;p title=&#x27;&quot;&#x27;&gt;page&lt;/p&gt;"' in html


def test_text_names_cell_line_and_code(report: Report) -> None:
    (marked,) = mark_cells(report, texts_of(CELL))
    lines = render_text(Shown(notes=("note",), cells=(marked,))).split("\n")
    assert lines[0] == "note"
    assert any(line.startswith("In [1]:") and line.endswith(CALL) for line in lines)
