"""``%%gpa`` and ``%gpa_report``: :func:`register`."""

import argparse
import builtins
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gpa_lsp.foundation.errors import GpaError, InputError, MissingToolError
from gpa_lsp.notebook.cells import Cell, CellText, choose_needed, list_texts, read_cell
from gpa_lsp.notebook.output import Shown

Show = Callable[[Shown], None]  # Puts an output below the cell

NOTHING_WITHOUT_GPU = (
    "Nothing in this cell can be looked at without a GPU: CUDA C++ in a string is compiled, but kernels of Numba and Triton are compiled only when "
    "they are launched. Record a report where there is a GPU and show it here: %gpa_report FILE"
)


class _Parser(argparse.ArgumentParser):
    """Complains by an error of ours instead of ending the process, which is the notebook's."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message, remedy=self.format_usage().strip())


class FailedCellError(Exception):
    """The cell failed by itself, and has said so: it would fail under a profiler as well."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        return ["%%gpa: the cell failed, so there is nothing to look at"]


class NotebookMagics:
    """The two magics for an IPython shell, of any version with ``run_cell`` and ``history_manager``."""

    def __init__(self, shell: Any, show: Show) -> None:
        self._shell = shell
        self._show = show

    def gpa(self, line: str, cell: str) -> None:
        """Run the cell, then show why its kernels take their time: measured where Nsight Compute is, else what its code says by itself."""
        with _Complaining():
            options = _parse_gpa(line)
            here = read_cell(self._find_number(), f"%%gpa {line}\n{cell}")
            if not options.no_run and not self._shell.run_cell(cell, store_history=False).success:
                raise FailedCellError
            try:
                if options.static or options.launches is not None:
                    self._show_unmeasured(here, options.launches)
                else:
                    self._show_measured(here, options)
            except MissingToolError as error:
                if error.tool != "ncu":
                    raise
                self._show(Shown(notes=(f"Not measured: {error}",)))
                self._show_unmeasured(here, None)

    def gpa_report(self, line: str) -> None:
        """Show the page of a report, and the lines of this notebook's cells that it is about."""
        with _Complaining():
            options = _parse_report(line)
            self._show_report(options.file, options.kernel, self._list_cells())

    def _show_measured(self, here: Cell, options: argparse.Namespace) -> None:
        from gpa_lsp.notebook.measure import measure_cells, require_consent
        from gpa_lsp.profile.collect.recipe import find_ncu

        find_ncu()
        earlier = [cell for cell in self._list_cells() if cell.number < here.number]
        chosen = choose_needed(here, earlier) if options.cells is None else tuple(_pick(earlier, options.cells))
        cells, folder = (*chosen, here), Path.cwd()
        if not options.measure:
            require_consent(folder, cells, builtins.input)
        report = measure_cells(cells, folder, sys.stdout, sys.stderr)
        self._show_report(report, None, (*earlier, here))

    def _show_unmeasured(self, here: Cell, launches: Path | None) -> None:
        strings = [text for text in list_texts(here, self._name_cell) if text.is_string]
        if not strings:
            self._show(Shown(notes=(NOTHING_WITHOUT_GPU,)))
            return
        from gpa_lsp.notebook.unmeasured import examine_strings

        for shown in examine_strings(strings, launches):
            self._show(shown)

    def _show_report(self, path: Path, kernel: str | None, cells: Sequence[Cell]) -> None:
        from gpa_lsp.document.html_report.page import render_html_report
        from gpa_lsp.notebook.marks import list_findings, mark_cells, read_report_file

        report = read_report_file(path, kernel)
        marked = mark_cells(report, self._list_texts(cells))
        notes = ("No cell of this notebook holds code of this report.",) if report.kernels and not marked else ()
        page = render_html_report(report) if report.kernels else ""
        self._show(Shown(notes=notes, cells=marked, text=list_findings(report), page=page))

    def _list_cells(self) -> tuple[Cell, ...]:
        """Cells that were run in this session, oldest first, the present one among them."""
        texts = self._shell.history_manager.input_hist_raw
        return tuple(read_cell(number, text) for number, text in enumerate(texts) if number and text.strip())

    def _find_number(self) -> int:
        """Number of the present cell: the shell's own counter is of this or of the next one, as its version has it."""
        return len(self._shell.history_manager.input_hist_raw) - 1

    def _list_texts(self, cells: Sequence[Cell]) -> list[CellText]:
        return [text for cell in reversed(cells) for text in list_texts(cell, self._name_cell)]

    def _name_cell(self, text: str) -> str:
        python = self._shell.transform_cell(text)
        return str(self._shell.compile.get_code_name(text, python, self._shell.execution_count))


class _Complaining:
    """Prints our errors as one line of text, without a traceback: they are about what was asked for, not about this program."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, GpaError):
            return False
        sys.stderr.write(f"gpa-lsp: {error}\n")
        return True


def _parse_gpa(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%gpa", add_help=False)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--cells", type=_parse_numbers)
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--launches", type=Path)
    parser.add_argument("--no-run", action="store_true")
    return parser.parse_args(_split(line))


def _parse_report(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%gpa_report", add_help=False)
    parser.add_argument("file", type=Path)
    parser.add_argument("--kernel")
    return parser.parse_args(_split(line))


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise InputError(f"cannot be read: {error}", place=line, remedy="close the quotation") from error


def _parse_numbers(text: str) -> tuple[int, ...]:
    """Numbers of cells, for the parser of arguments.

    >>> _parse_numbers("1,3")
    (1, 3)
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of cells such as 1,3")
    return tuple(int(part) for part in parts)


def _pick(cells: Sequence[Cell], numbers: Sequence[int]) -> Iterator[Cell]:
    known = {cell.number: cell for cell in cells}
    for number in numbers:
        if number not in known or known[number].python is None:
            raise InputError(f"there is no Python cell In [{number}]", remedy="give numbers of cells that were run")
        yield known[number]


def register(shell: Any) -> None:
    """Give a shell the magics."""
    from IPython.display import display

    magics = NotebookMagics(shell, display)
    shell.register_magic_function(magics.gpa, magic_kind="cell", magic_name="gpa")
    shell.register_magic_function(magics.gpa_report, magic_kind="line", magic_name="gpa_report")
