"""A cell, measured: it runs again under Nsight Compute, in a process of its own, together with the earlier cells it needs."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from gpa_lsp.foundation.errors import GpaError, ToolError
from gpa_lsp.foundation.processes.python_children import isolate_module
from gpa_lsp.notebook.cell_runner import name_file
from gpa_lsp.notebook.cells import Cell
from gpa_lsp.profile.collect.allowance import Allowance
from gpa_lsp.profile.collect.command_run import run_in_foreground
from gpa_lsp.profile.collect.explain import explain, says_nothing_measured
from gpa_lsp.profile.collect.measured_reports import choose_output, find_written, keep_report
from gpa_lsp.profile.collect.recipe import Recipe, build_command, find_ncu

ALLOWED_COMMAND = ("%%gpa",)  # Stands among the commands of a folder that are allowed, and can be taken back with them

Ask = Callable[[str], str]  # Puts a question to the person; raises NotImplementedError where nobody can be asked


class NotAllowedError(GpaError):
    """The person was not asked, or said no."""


def require_consent(folder: Path, cells: Sequence[Cell], ask: Ask) -> None:
    """Go on only where the person agrees, now or earlier for every cell of this folder.

    Raises:
        NotAllowedError: with what to do.
    """
    allowance = Allowance()
    if allowance.is_allowed(folder, None, ALLOWED_COMMAND):
        return
    named = ", ".join(cell.label for cell in cells)
    question = (
        f"Run {named} again in a process of its own, under Nsight Compute? [y]es, [a]lways in this folder, [n]o: "
    )
    try:
        answer = ask(question).strip().lower()
    except NotImplementedError:
        raise NotAllowedError("not measured: nobody can be asked here; write %%gpa --measure to agree") from None
    if answer in ("a", "always"):
        allowance.allow(folder, None, ALLOWED_COMMAND)
    elif answer not in ("y", "yes"):
        raise NotAllowedError("not measured: you said no")


def measure_cells(cells: Sequence[Cell], folder: Path, out: TextIO, err: TextIO) -> Path:
    """Run cells under Nsight Compute.

    Raises:
        MissingToolError: Nsight Compute is not here.
        ToolError: it failed, or no kernel was launched.
    """
    ncu = str(find_ncu())
    output = choose_output(folder)
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-cells-") as place:
        for cell in cells:
            Path(place, name_file(cell.number)).write_text(f"{cell.python}\n", encoding="utf-8")
        program = isolate_module("gpa_lsp.notebook.cell_runner", place).words
        command = build_command(Recipe(output=output), program, ncu=ncu)
        result = run_in_foreground(command, out, err)
    written = find_written(output)
    if written is None or not result.is_success or says_nothing_measured(result):
        explanation = explain(result, program=ncu)
        if explanation is None:
            raise ToolError("ncu", "wrote no report")
        raise ToolError("ncu", "; ".join((explanation.summary, *explanation.remedies)))
    return keep_report(written, folder)
