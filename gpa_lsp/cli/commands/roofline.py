"""``gpa-lsp roofline``: how close kernels are to the ceilings of their GPU."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import choose_exit_code, load_before, load_report, name_places, tell_problems
from gpa_lsp.cli.options import add_input_arguments, add_limit_argument, add_output_argument, declare
from gpa_lsp.cli.outputs import is_printed, write_file
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.gpu.device.model import Machine
    from gpa_lsp.report.model import KernelReport, Report

_SUFFIXES = (".html", ".svg", ".png")
_DEFAULT_TOP = 10
_HERE = "here"  # The name of the GPU of this computer, whatever it is


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input_arguments(parser)
    what = "write an interactive page (.html) or a picture (.svg, .png) instead of printing"
    add_output_argument(parser, what, suffixes=_SUFFIXES)
    declare(
        parser,
        """
        --before PATH              the same program before a change; arrows show how kernels moved
        --view {time,instructions}  axes: operations per second over operations per byte (the default), or warp instructions over those per
                                   transaction
        --dark                     pictures: dark background (pages follow the reader's system)
        --roofs FILE               measured ceilings in place of theoretical ones, from gpa-lsp roofline calibrate
        --machine GPU              (default: that of the report), at its boost clock; 'here' is this computer's
        """,
        view="time",
    )
    add_limit_argument(parser, "text: at most N kernels, longest first", _DEFAULT_TOP)


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    choose_machine = _choose_roofs(arguments)  # a bad name or file is told before the work, not after it
    report = _put_under(load_report(arguments, terminal), choose_machine)
    before = load_before(arguments, terminal)
    before = None if before is None else _put_under(before, choose_machine)
    if is_printed(arguments.output):
        _print(report, before, arguments, terminal)
    else:
        write_file(_draw(report, before, arguments), arguments.output)
        tell_problems(terminal, report, before)
    return choose_exit_code(report, before)


def _print(report: "Report", before: "Report | None", arguments: argparse.Namespace, terminal: Terminal) -> None:
    from gpa_lsp.document.charts.roofline_chart import (
        RooflineView,  # loads numpy, which --help and --version do without
    )
    from gpa_lsp.document.roofline_view import build_rooflines

    blocks = build_rooflines(
        report,
        name_places(arguments),
        before=before,
        view=RooflineView(arguments.view),
        max_kernels=arguments.limit,
    )
    terminal.write_blocks(blocks)


def _draw(report: "Report", before: "Report | None", arguments: argparse.Namespace) -> bytes:
    from gpa_lsp.document.charts.roofline_chart import RooflineView, build_roofline_chart

    view = RooflineView(arguments.view)
    suffix = arguments.output.suffix.lower()
    if suffix == ".html":
        from gpa_lsp.document.roofline_page import render_roofline_page

        return render_roofline_page(report, before=before, view=view).encode("utf-8", errors="backslashreplace")
    from gpa_lsp.document.charts.pictures import draw_png, draw_svg  # brings a JavaScript engine

    spec = build_roofline_chart(report.kernels, before=() if before is None else before.kernels, view=view)
    if suffix == ".svg":
        return draw_svg(spec, dark=arguments.dark).encode("utf-8", errors="backslashreplace")
    return draw_png(spec, dark=arguments.dark)


def _choose_roofs(arguments: argparse.Namespace) -> "Callable[[Machine], Machine] | None":
    """Function from a kernel's machine to the one whose ceilings were asked for; None without ``--machine`` and ``--roofs``."""
    if arguments.machine is None and arguments.roofs is None:
        return None
    from gpa_lsp.gpu.device.empirical import apply_roofs
    from gpa_lsp.gpu.device.roofs_file import read_roofs

    other = None if arguments.machine is None else _find_machine(arguments.machine)
    measured = None if arguments.roofs is None else read_roofs(arguments.roofs)

    def choose(machine: "Machine") -> "Machine":
        chosen = machine
        if other is not None:
            doubt = f"These are the ceilings of {other.name} at its boost clock; the kernel ran on {machine.name}."
            chosen = replace(other, doubts=(doubt, *other.doubts))
        return chosen if measured is None else apply_roofs(chosen, measured, any_device=True)

    return choose


def _find_machine(name: str) -> "Machine":
    from gpa_lsp.gpu.device.find import find_attached_machine, find_machine_by_name

    return find_attached_machine() if name == _HERE else find_machine_by_name(name)


def _put_under(report: "Report", choose_machine: "Callable[[Machine], Machine] | None") -> "Report":
    if choose_machine is None:
        return report
    return replace(report, kernels=tuple(_put_kernel_under(kernel, choose_machine) for kernel in report.kernels))


def _put_kernel_under(kernel: "KernelReport", choose_machine: "Callable[[Machine], Machine]") -> "KernelReport":
    from gpa_lsp.diagnosis.analyses.roofline.place import place_under

    if kernel.analyses is None or kernel.analyses.roofline is None:
        return kernel
    roofline = place_under(kernel.analyses.roofline, choose_machine)
    # The arrows of suggestions end under the old ceilings.
    answers = tuple(replace(answer, movements=()) for answer in kernel.analyses.answers)
    return replace(kernel, analyses=replace(kernel.analyses, roofline=roofline, answers=answers))


COMMAND = Command(
    summary="show how close kernels are to the ceilings of their GPU",
    description=(
        "Show for each kernel the nearest ceiling, its operational intensity and rate per type of operation and level of the memory, and what was "
        "not measured. Prints text, or writes an interactive page or a picture."
    ),
    purpose=Purpose.READ,
    examples=(
        ("roofline matmul.ncu-rep", "the nearest ceiling of each kernel"),
        ("roofline after.ncu-rep --before before.ncu-rep -o moved.html", "a page with arrows from before to after"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
