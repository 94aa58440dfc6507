"""``gpa-lsp compare``: two measurements of one program, or two kernels, side by side."""

import argparse
import copy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, choose_exit_code, load_report, name_places
from gpa_lsp.cli.options import add_filter_arguments, add_format_argument, declare
from gpa_lsp.cli.outputs import write_answer
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError, ProblemSeverity

if TYPE_CHECKING:
    from gpa_lsp.report.compare import Comparison, LikelyPair
    from gpa_lsp.report.model import Report


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", type=Path, help="a profile, or a report saved as JSON")
    what = "the same program, measured after a change (default: BEFORE itself, whose kernels --pair names)"
    parser.add_argument("after", metavar="AFTER", nargs="?", type=Path, help=what)
    declare(
        parser,
        """
        --pair OLD=NEW...  compare only kernel OLD of BEFORE with kernel NEW of AFTER, by name or part of a name; repeatable
        --yes              also compare kernels of different names that look alike, without asking
        """,
    )
    add_filter_arguments(parser)
    add_format_argument(parser, "json")
    declare(parser, "--fail-on-slower  exit with 1 when a kernel is slower by more than the noise")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.report.changes import Verdict
    from gpa_lsp.report.compare import compare_reports  # loads numpy, which --help and --version do without

    if arguments.after is None and not arguments.pair:
        raise InputError(
            "one report alone cannot be compared", remedy="give a second one, or name two kernels: --pair OLD=NEW"
        )
    before = _load(arguments.before, arguments, terminal)
    is_one = arguments.after is None or arguments.after == arguments.before
    after = before if is_one else _load(arguments.after, arguments, terminal)
    comparison = compare_reports(before, after, arguments.pair, lambda pair: _accept(pair, arguments, terminal))
    _say_errors((before,) if is_one else (before, after), terminal)
    _print(comparison, arguments, terminal)
    is_compared = any(found.verdict is not Verdict.OTHER_WORK for found in comparison.kernels)
    code = choose_exit_code(before, after) if is_compared else EXIT_BAD_INPUT
    slower = any(found.verdict is Verdict.SLOWER for found in comparison.kernels)
    return code or (EXIT_FOUND if arguments.fail_on_slower and slower else 0)


def _accept(pair: "LikelyPair", arguments: argparse.Namespace, terminal: Terminal) -> bool:
    """Whether to compare two kernels that look alike: by ``--yes``, else by asking on the terminal."""
    from gpa_lsp.document.comparison_view import describe_likely_pair

    if arguments.yes:
        return True
    is_attended = terminal.is_interactive and sys.stdin is not None and sys.stdin.isatty()
    if arguments.format != "text" or not is_attended:
        return False
    terminal.complain(f"Compare {describe_likely_pair(pair)}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _load(path: Path, arguments: argparse.Namespace, terminal: Terminal) -> "Report":
    one = copy.copy(arguments)
    one.paths = [path]
    return load_report(one, terminal)


def _say_errors(reports: "tuple[Report, ...]", terminal: Terminal) -> None:
    for report in reports:
        for problem in report.problems:
            if problem.severity is ProblemSeverity.ERROR:
                terminal.complain(str(problem))


def _print(comparison: "Comparison", arguments: argparse.Namespace, terminal: Terminal) -> None:
    from gpa_lsp.document.comparison_view import build_comparison, make_comparison_document

    write_answer(
        arguments,
        terminal,
        text=lambda: build_comparison(comparison, name_places(arguments)),
        json=lambda: make_comparison_document(comparison),
    )


COMMAND = Command(
    summary="print what changed between two measurements of one program, or between two kernels",
    description=(
        "Print for each kernel whether it got faster, what changed in its launch, code and counters, what limits it before and after, "
        "which advice was taken, and how estimated and achieved speedups compare. Kernels are paired by name, or by --pair. "
        "The exit status is 2 when nothing could be compared."
    ),
    purpose=Purpose.COMPARE,
    examples=(
        ("compare before.ncu-rep after.ncu-rep", "what changed between two measurements"),
        ("compare before.ncu-rep after.ncu-rep --format json", "the same, for scripts"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
