"""``gpa-lsp advise``: what to change, where, and how much it would gain."""

import argparse
import math
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import (
    EXIT_FOUND,
    Renamed,
    add_expand_argument,
    add_input_arguments,
    add_mode_argument,
    choose_exit_code,
    load_report,
    locate_sources,
    name_places,
    parse_count,
    tell_problems,
)
from gpa_lsp.cli.outputs import (
    add_format_argument,
    add_output_argument,
    is_printed,
    write_blocks,
    write_notices,
    write_output,
    write_report_json,
)
from gpa_lsp.cli.progress import ProgressBar
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.diagnosis.blame import PAPER
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.report.model import Report

_FORMATS = ("json", "markdown", "sarif", "github")
_DEFAULT_LIMIT = 5
_DEFAULT_TOP = 10


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input_arguments(parser)
    add_format_argument(parser, *_FORMATS)
    add_output_argument(parser, "write to FILE instead of standard output")
    add_expand_argument(parser)
    parser.add_argument(
        "--details",
        action="store_true",
        help="text and markdown: everything about each piece of advice: interval, bound, stalled lines, caveats and the basis of the estimate; "
        "always in mode paper",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=parse_count,
        default=_DEFAULT_LIMIT,
        help=f"with --details: at most N pieces of advice per kernel and category (default: {_DEFAULT_LIMIT}; 0 for all)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=parse_count,
        default=_DEFAULT_TOP,
        help=f"text and markdown: at most N kernels, longest first (default: {_DEFAULT_TOP}; 0 for all)",
    )
    add_mode_argument(parser)
    parser.add_argument("--blamer", choices=("scoreboard", "paper"), action=Renamed, dest="mode")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile the edits that advice asks for where sources (.cu) are here as they were measured: what compiles to the same code gains "
        "nothing; where a launch is described beside the source, also simulate it with and without the edit",
    )
    parser.add_argument(
        "--fail-on-speedup",
        metavar="X",
        type=_parse_speedup,
        help="exit with 1 when any change of a kernel is estimated to speed it up by X or more, e.g. 1.2",
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
    """Each format's renderer is loaded only when it is asked for."""
    form, output = arguments.format, arguments.output
    if form == "json":
        write_report_json(report, output, terminal, is_expanded=arguments.expand)
        return
    places, most = name_places(arguments), arguments.top or None
    if form in ("sarif", "github"):
        from gpa_lsp.document.advice_notices import list_advice_notices

        write_output(write_notices(list_advice_notices(report, places), places, form), output, terminal)
    elif (
        arguments.details or arguments.mode == PAPER
    ):  # with pairs of def and use, as in the paper's report (GPA Figure 8)
        from gpa_lsp.document.advice_view import build_advice

        limit = arguments.limit or None
        blocks = build_advice(report, places, max_kernels=most, max_advice=limit, has_table=form == "markdown")
        write_blocks(blocks, output, terminal, form=form, folds=True)
    else:
        from gpa_lsp.document.advice_screen import build_screens

        write_blocks(build_screens(report, places, max_kernels=most), output, terminal, form=form)


def _judge(report: "Report", least: float | None) -> int:
    """What is outside of the kernel's code fails no build: an edit of the kernel alone cannot do it."""
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
