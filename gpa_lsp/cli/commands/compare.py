"""``gpa-lsp compare``: two measurements of one program, side by side."""

import argparse
import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.basis.errors import ProblemSeverity
from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.inputs import add_filter_arguments, choose_exit_code, load_report, name_places
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.report.comparison import Comparison
    from gpa_lsp.report.model import Report

_EXIT_SLOWER = 1


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", type=Path, help="a profile, or a report saved as JSON")
    parser.add_argument("after", metavar="AFTER", type=Path, help="the same program, measured after a change")
    add_filter_arguments(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print (default: text)")
    parser.add_argument(
        "--fail-on-slower", action="store_true", help="exit with 1 when a kernel is slower by more than the noise"
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.report.changes import Verdict
    from gpa_lsp.report.compare import compare_reports  # loads numpy, which --help and --version do without

    before, after = (_load(path, arguments, terminal) for path in (arguments.before, arguments.after))
    comparison = compare_reports(before, after)
    _say_errors((before, after), terminal)
    terminal.print_safely(lambda: _print(comparison, arguments, terminal))
    code = max(choose_exit_code(before), choose_exit_code(after))
    slower = any(found.verdict is Verdict.SLOWER for found in comparison.kernels)
    return code or (_EXIT_SLOWER if arguments.fail_on_slower and slower else 0)


def _load(path: Path, arguments: argparse.Namespace, terminal: Terminal) -> "Report":
    one = copy.copy(arguments)
    one.paths = [path]
    return load_report(one, terminal)


def _say_errors(reports: "tuple[Report, Report]", terminal: Terminal) -> None:
    for report in reports:
        for problem in report.problems:
            if problem.severity is ProblemSeverity.ERROR:
                terminal.complain(str(problem))


def _print(comparison: "Comparison", arguments: argparse.Namespace, terminal: Terminal) -> None:
    from gpa_lsp.render.comparison_text import make_comparison_document, render_comparison

    if arguments.format == "json":
        terminal.write_text(json.dumps(make_comparison_document(comparison), indent=2) + "\n")
        return
    terminal.write_lines(render_comparison(comparison, name_places(arguments), terminal.width))


COMMAND = Command(
    summary="print what changed between two measurements of one program",
    description="Print for each kernel whether it got faster, which advice was taken, and how estimated and achieved speedups compare.",
    add_arguments=_add_arguments,
    run=_run,
)
