"""``gpa-lsp trace``: the memory accesses and branches of an emulated launch, into Parquet files."""

import argparse
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.basis.errors import InputError
from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT
from gpa_lsp.cli.predictions import (
    InputKind,
    add_prediction_arguments,
    check_is_source,
    complain_of,
    find_kind,
    make_settings,
    predict,
    refuse_for_report,
)
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.emulator.model import TraceSink
    from gpa_lsp.prediction.model import SourcePrediction


_FITTING_SECONDS = 8.0
"""For the sizes of one kernel that nobody knows."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prediction_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        help="where to write the trace (default: the source's name with .trace in place of its suffix)",
    )
    parser.add_argument("--entries", action="store_true", help="also keep the entries of warps into basic blocks")
    parser.add_argument(
        "--template",
        action="store_true",
        help="print a template of a launch description for each kernel without one, and trace nothing",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.template:
        return _print_templates(arguments, terminal)
    if find_kind(arguments.source) is InputKind.TRACE:
        message = "is a folder, not something to execute"
        raise InputError(message, path=arguments.source, remedy="give a source; gpa-lsp memory reads traces")
    from gpa_lsp.prediction.trace_files.write import TraceWriter

    folder = arguments.output or Path(arguments.source.with_suffix(".trace").name)
    with ExitStack() as stack:
        sinks: list[TraceSink] = [stack.enter_context(TraceWriter(folder))]
        prediction = predict(arguments, terminal, make_settings(arguments), sinks, is_single=True)
    code = complain_of(prediction, terminal)
    terminal.print_safely(lambda: _print(prediction, folder, terminal))
    return code if prediction.kernels else EXIT_BAD_INPUT


def _print(prediction: "SourcePrediction", folder: Path, terminal: Terminal) -> None:
    from gpa_lsp.render.answer_text import render_answer
    from gpa_lsp.render.layout import text_line
    from gpa_lsp.render.prediction_text import describe_execution, describe_launch, describe_undescribed, show_path

    here = Path.cwd()
    for kernel in prediction.kernels:
        terminal.write_lines([text_line(kernel.short_name), text_line(f"  {describe_launch(kernel)}")])
        terminal.write_lines([text_line(f"  {describe_execution(kernel.execution)}")])
        if kernel.faults:
            terminal.write_lines(render_answer(kernel.answers[0], None, None, terminal.width))
        terminal.write_lines([text_line(f"  trace: {show_path(folder, here)}")])
    if prediction.undescribed and not prediction.kernels:
        terminal.write_lines(describe_undescribed(prediction, terminal.width, here))


def _print_templates(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.emulator.model import Budget
    from gpa_lsp.prediction.model import PredictionSettings
    from gpa_lsp.prediction.templates import write_build_templates, write_report_templates, write_templates

    kind = find_kind(arguments.source)
    if kind is InputKind.REPORT:
        refuse_for_report(arguments)
        written = write_report_templates(arguments.source, kernel=arguments.kernel, launches_path=arguments.launches)
    else:
        is_built = kind is InputKind.BUILD
        if not is_built:
            check_is_source(arguments.source)
        fits = PredictionSettings(budget=Budget(seconds=_FITTING_SECONDS))
        written = (write_build_templates if is_built else partial(write_templates, fits=fits))(
            arguments.source,
            kernel=arguments.kernel,
            launches_path=arguments.launches,
            profile_path=arguments.profile,
            compute_capability=arguments.arch,
        )
    terminal.print_safely(lambda: terminal.write_text(written))
    return 0


COMMAND = Command(
    summary="execute a kernel in the emulator and keep its memory accesses and branches",
    description=(
        "Compile a source, execute one described launch in an emulator, and write its memory accesses and branches, warp by warp, into a folder of "
        "Parquet files. Needs no GPU."
    ),
    add_arguments=_add_arguments,
    run=_run,
)
