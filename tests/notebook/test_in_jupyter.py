"""Magics, both of them, in a real kernel of Jupyter."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.conftest import ROOT
from tests.notebook.test_marks import CALL, CELL
from tests.patience import LIMIT_S

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"
RAW_KERNEL = '''\
class cupy:
    RawKernel = staticmethod(lambda *arguments, **options: arguments)
source = r"""
extern "C" __global__ void widen(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i * 8] * 0.7;
}
"""
kernel = cupy.RawKernel(source, "widen")
'''
LAUNCH = """\
[[launch]]
kernel = "widen"
block = 128
threads = 1024
arguments = [
  { name = "in", type = "float", count = 8192 },
  { name = "out", type = "float", count = 1024 },
  { name = "n", type = "int", value = 1024 },
]
"""
SMOOTH = "value = scale(9)\ndef smooth(x, y, n):\n    y[0] = x[0] / value"


class Notebook:
    """Runs cells in a kernel whose folder and environment are the test's."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GPA_LSP_NCU")},
            "PATH": os.path.dirname(sys.executable) + os.pathsep + "/usr/bin:/bin",  # noqa: PTH120
            "PYTHONPATH": str(ROOT),
            "GPA_LSP_CACHE_DIR": str(folder / "cache"),
            "GPA_LSP_DATA_DIR": str(folder / "data"),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            **variables,
        }

    def run(self, *cells: str) -> list[str]:
        """The text of each cell's outputs; the first loads the extension."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(text) for text in ("%load_ext gpa_lsp.notebook", *cells)]
        )
        self.notebook = notebook
        client = NotebookClient(
            notebook, timeout=int(LIMIT_S), kernel_name="python3", resources={"metadata": {"path": self.folder}}
        )
        client.execute(env=self.variables)
        return ["\n".join(map(read_output, cell.outputs)) for cell in notebook.cells[1:]]

    def read_html(self, cell: int) -> str:
        """HTML that a browser gets of a cell; 1 is the first after the one that loads the extension."""
        return "".join(
            output.data["text/html"]
            for output in self.notebook.cells[cell].outputs
            if "text/html" in output.get("data", {})
        )


def read_output(output: nbformat.NotebookNode) -> str:
    if "text" in output:
        return str(output.text)
    return str(output.data.get("text/plain", "")) if "data" in output else f"{output.ename}: {output.evalue}"


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


@pytest.fixture
def with_ncu(tmp_path: Path) -> Notebook:
    program = tmp_path / "ncu"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.notebook.scripted_ncu "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return Notebook(tmp_path, GPA_LSP_NCU=str(program))


def test_a_report_is_shown_with_the_lines_of_the_cell_it_is_about(notebook: Notebook) -> None:
    kernel = CELL.replace("import cupy", "class cupy: RawKernel = lambda *words, **options: words")
    _, said = notebook.run(kernel, f"%gpa_report '{EXAMPLE}' --kernel short_def_use")
    assert f": {CALL}" in said
    assert "long_scoreboard" in said
    html = notebook.read_html(2)
    assert "In [2]" in html
    assert '<iframe class="gpa-page"' in html
    assert "Content-Security-Policy" in html, "the page comes with its policy: no network"


def test_a_report_of_other_code_says_that_no_cell_is_in_it(notebook: Notebook) -> None:
    (said,) = notebook.run(f"%gpa_report {EXAMPLE}")
    assert "No cell of this notebook holds code of this report." in said
    assert "original.cu:22: info: " in said, "what there is, where no page is drawn"
    assert "<pre>" not in notebook.read_html(1)


def test_what_cannot_be_shown_is_said_in_one_line(notebook: Notebook) -> None:
    missing, wrong = notebook.run("%gpa_report missing.ncu-rep", "%%gpa --nonsense\n1")
    assert missing == "gpa-lsp: missing.ncu-rep: there is no such file; give a report or a profile\n"
    assert "unrecognized arguments: --nonsense" in wrong


def test_without_nsight_compute_strings_are_compiled_and_looked_at(notebook: Notebook) -> None:
    (said,) = notebook.run(f"%%gpa\n{RAW_KERNEL}print(kernel[1])")
    assert said.startswith("widen\n"), "the cell itself runs"
    assert "Not measured: ncu is not installed" in said
    assert "static: nothing was measured" in said
    line = 2 + RAW_KERNEL.split("\n").index("        out[i] = in[i * 8] * 0.7;")
    assert f"In [2]:{line}: out[i] = in[i * 8] * 0.7;" in said
    assert "0.7f" in said


def test_a_described_launch_is_emulated(notebook: Notebook) -> None:
    (notebook.folder / "widen.launch.toml").write_text(LAUNCH, encoding="utf-8")
    (said,) = notebook.run(f"%%gpa --launches widen.launch.toml\n{RAW_KERNEL}")
    assert "nothing was measured" in said
    assert "sectors" in said
    assert "<iframe" in notebook.read_html(1)


def test_a_cell_of_python_alone_is_told_what_to_do(notebook: Notebook) -> None:
    (said,) = notebook.run("%%gpa\n1 + 1")
    assert "Nothing in this cell can be looked at without a GPU" in said
    assert "%gpa_report FILE" in said


def test_a_cell_that_fails_is_not_measured(with_ncu: Notebook) -> None:
    with pytest.raises(CellExecutionError, match="the cell failed"):
        with_ncu.run("%%gpa --measure\n1 / 0")
    (cell,) = with_ncu.notebook.cells[1:]
    assert [output.ename for output in cell.outputs] == ["ZeroDivisionError", "FailedCellError"]
    assert not list(with_ncu.folder.glob("cache/**/*.ncu-rep"))


def test_nothing_is_measured_before_somebody_agrees(with_ncu: Notebook) -> None:
    _, said = with_ncu.run("def scale(x): return x / 3", f"%%gpa\n{SMOOTH}")
    assert "not measured: nobody can be asked here; write %%gpa --measure to agree" in said


def test_a_cell_is_measured_with_the_cells_it_needs_and_its_lines_are_marked(with_ncu: Notebook) -> None:
    _, _, said, again = with_ncu.run(
        "print('of no concern')",
        "def scale(x): return x / 3",
        f"%%gpa --measure\n{SMOOTH}",
        "report = max(__import__('pathlib').Path('cache/measured').rglob('*.ncu-rep'))\n%gpa_report $report",
    )
    assert "of no concern" not in said, "a cell that is not needed does not run again"
    assert "In [4]:3: def smooth(x, y, n):" in said
    assert "In [4]:4: y[0] = x[0] / value" in said
    assert "of smooth" in said
    assert "In [4]:4: y[0] = x[0] / value" in again, "the report is found, and the cell in it, later as well"
    assert "In [4]" in with_ncu.read_html(3)


def test_cells_that_do_not_exist_are_named(with_ncu: Notebook) -> None:
    (said,) = with_ncu.run("%%gpa --measure --cells 7\n1")
    assert "there is no Python cell In [7]" in said
