"""``gpa-lsp advise``: what to change, where, and how much it would gain."""

import argparse
import math
from functools import partial
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_FOUND, choose_exit_code, load_report, locate_sources, name_places, tell_problems
from gpa_lsp.cli.options import (
    Renamed,
    add_format_argument,
    add_input_arguments,
    add_limit_argument,
    add_mode_argument,
    add_output_argument,
    declare,
)
from gpa_lsp.cli.outputs import is_printed, write_answer, write_report_json
from gpa_lsp.cli.terminal import ProgressBar, Terminal
from gpa_lsp.diagnosis.blame import PAPER
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.document.blocks import Block
    from gpa_lsp.report.model import Report


_MOST_KERNELS = 10
_MOST_ADVICE = 5  # Of each category, with --details


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input_arguments(parser)
    add_format_argument(parser, "json", "markdown", "sarif", "github")
    add_output_argument(parser)
    declare(
        parser,
        """
        --expand
        --details  text and markdown: everything about each piece of advice: interval, bound, stalled lines, caveats and the basis of the estimate;
                   always in mode paper
        """,
    )
    add_limit_argument(
        parser,
        "text and markdown: at most N kernels, longest first, and with --details N pieces of advice of each category",
        default=f"{_MOST_KERNELS} and {_MOST_ADVICE}",
    )
    add_mode_argument(parser)
    parser.add_argument("--blamer", choices=("scoreboard", "paper"), action=Renamed, dest="mode")
    declare(
        parser,
        """
        --compile            compile the edits that advice asks for where sources (.cu) are here as they were measured: what compiles to the same
                             code gains nothing; where a launch is described beside the source, also simulate it with and without the edit
        --fail-on-speedup X  exit with 1 when any change of a kernel is estimated to speed it up by X or more, e.g. 1.2
        """,
        fail_on_speedup=_parse_speedup,
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.compile and arguments.mode == PAPER:
        raise InputError("--compile tries the edits of the default mode alone", remedy="leave out --mode paper")
    report = load_report(arguments, terminal, mode=arguments.mode)
    if arguments.compile:
        report = _try_advice(report, arguments, terminal)
    _write(report, arguments, terminal)
    if not is_printed(arguments.output):
        tell_problems(terminal, report)
    return choose_exit_code(report) or _judge(report, arguments.fail_on_speedup)


def _try_advice(report: "Report", arguments: argparse.Namespace, terminal: Terminal) -> "Report":
    from gpa_lsp.report.fixes.try_advice import try_advice  # it imports compilers and the simulator

    with ProgressBar(terminal) as progress:
        return try_advice(report, locate_sources(arguments), progress)


def _write(report: "Report", arguments: argparse.Namespace, terminal: Terminal) -> None:
    if arguments.format == "json":
        write_report_json(report, arguments.output, terminal, is_expanded=arguments.expand)
        return
    from gpa_lsp.document.advice_notices import list_advice_notices
    from gpa_lsp.document.advice_screen import build_screens
    from gpa_lsp.document.advice_view import build_advice

    places, limit = name_places(arguments), arguments.limit
    most_kernels, most_advice = (_MOST_KERNELS, _MOST_ADVICE) if limit is None else (limit, limit)
    # with pairs of def and use, as in the paper's report (GPA Figure 8)
    has_details = arguments.details or arguments.mode == PAPER

    def build() -> "list[Block]":
        if not has_details:
            return build_screens(report, places, max_kernels=most_kernels)
        has_table = arguments.format == "markdown"
        return build_advice(report, places, max_kernels=most_kernels, max_advice=most_advice, has_table=has_table)

    notices = partial(list_advice_notices, report, places)
    write_answer(arguments, terminal, text=build, notices=notices, places=places, folds=has_details)


def _judge(report: "Report", least: float | None) -> int:
    """Exit code of ``--fail-on-speedup``; advice outside of the kernel's code does not count, since an edit of the kernel cannot follow it."""
    if least is None:
        return 0
    from gpa_lsp.diagnosis.advice.model import Standing  # numpy would delay every other command

    estimates = [
        advice.speedup.estimate
        for kernel in report.kernels
        if kernel.advice is not None
        for advice in kernel.advice.advice
        if advice.standing is not Standing.OUTSIDE
    ]
    return EXIT_FOUND if any(estimate >= least for estimate in estimates) else 0


def _parse_speedup(text: str) -> float:
    try:
        factor = float(text.removesuffix("x").removesuffix("×"))
    except ValueError:
        factor = math.nan
    if not 1 <= factor < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speedup such as 1.2")
    return factor


COMMAND = Command(
    summary="print what to change in kernels, where, and how much it would gain",
    description=(
        "Print for each kernel, in at most twelve lines, what limits it, the line that causes most stalls, what to change and by how much that "
        "speeds it up, and what would not help. With --details: everything, with intervals, bounds, stalled lines and the basis of the estimates."
    ),
    purpose=Purpose.READ,
    examples=(
        ("advise matmul.ncu-rep", "what to change, in at most twelve lines per kernel"),
        ("advise matmul.ncu-rep --kernel matmul --details", "everything about the advice for one kernel"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
