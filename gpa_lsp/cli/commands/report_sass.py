"""``gpa-lsp report sass``: the instructions of kernels, annotated."""

import argparse
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import choose_exit_code, load_report, name_places
from gpa_lsp.cli.options import add_input_arguments
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.report.model import Report


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    report = load_report(arguments, terminal)
    terminal.print_safely(lambda: _print(report, arguments, terminal))
    return choose_exit_code(report)


def _print(report: "Report", arguments: argparse.Namespace, terminal: Terminal) -> None:
    from gpa_lsp.document.layout import EMPTY_LINE
    from gpa_lsp.document.notices import build_notices, list_problems
    from gpa_lsp.document.sass_listing import render_sass

    places = name_places(arguments)
    terminal.write_blocks(build_notices(list_problems(report.problems), places))
    for position, kernel in enumerate(report.kernels):
        if position or report.problems:
            terminal.write_lines([EMPTY_LINE])
        terminal.write_lines(render_sass(kernel, places, terminal.width))


COMMAND = Command(
    summary="print the SASS of kernels with samples, reasons, scheduling bits and source lines",
    description="Print every instruction of kernels and the functions they call, with its samples.",
    purpose=Purpose.READ,
    examples=(
        ("report sass matmul.ncu-rep --kernel matmul", "the instructions of one kernel with their samples"),
        ("report sass before.json", "the same from a report saved as JSON"),
    ),
    add_arguments=add_input_arguments,
    run=_run,
)
