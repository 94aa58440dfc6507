"""``gpa-lsp predict trace``: the memory accesses and branches of an emulated launch, into Parquet files."""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT
from gpa_lsp.cli.options import declare
from gpa_lsp.cli.outputs import is_printed, refuse_standard_output, write_output
from gpa_lsp.cli.predictions import (
    add_prediction_arguments,
    assume_launches,
    choose_launches,
    complain_of,
    make_settings,
    predict,
    refuse_for_report,
    write_source_templates,
)
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.document.blocks import Part
    from gpa_lsp.execution.emulator.model import TraceSink
    from gpa_lsp.execution.prediction.gpu_trace import GpuTrace
    from gpa_lsp.execution.prediction.model import SourcePrediction


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prediction_arguments(parser)
    declare(
        parser,
        """
        -o, --output PATH    the folder for the trace (default: the source's name with .trace in place of its suffix), or the file for templates
                             (default: standard output)
        --entries            also keep the entries of warps into basic blocks
        --on {emulator,gpu}  where to execute it: in the emulator, or on a GPU of this computer by PTX that records itself (default: emulator)
        --template           print a template of a launch description for each kernel without one, and trace nothing
        """,
        on="emulator",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.template:
        return _print_templates(arguments, terminal)
    if find_kind(arguments.source) is InputKind.TRACE:
        message = "is a folder, not something to execute"
        raise InputError(message, path=arguments.source, remedy="give a source; gpa-lsp predict reads traces")
    from gpa_lsp.execution.prediction.trace_files import TraceWriter

    refuse_standard_output(arguments.output, "a trace")
    folder = arguments.output or Path(arguments.source.with_suffix(".trace").name)
    if arguments.on == "gpu":
        return _trace_on_gpu(arguments, folder, terminal)
    with ExitStack() as stack:
        sinks: list[TraceSink] = [stack.enter_context(TraceWriter(folder))]
        prediction = predict(
            arguments,
            terminal,
            make_settings(arguments),
            sinks,
            assumed=assume_launches(arguments, terminal),
            is_single=True,
        )
    code = complain_of(prediction, terminal)
    _print(prediction, folder, terminal)
    return code if prediction.kernels else EXIT_BAD_INPUT


def _print(prediction: "SourcePrediction", folder: Path, terminal: Terminal) -> None:
    from gpa_lsp.document.answer_view import build_answer
    from gpa_lsp.document.blocks import Paragraph, Part
    from gpa_lsp.document.layout import Style
    from gpa_lsp.document.places import show_path
    from gpa_lsp.document.prediction_view import build_launch_head, explain_missing

    kept = Paragraph(text=f"trace: {show_path(folder, Path.cwd())}")
    for kernel in prediction.kernels:
        faults = [build_answer(kernel.answers[0])] if kernel.faults else []
        head = [*build_launch_head(kernel), kept]
        terminal.write_blocks([Part(title=kernel.short_name, style=Style.TITLE, blocks=[*head, *faults])])
    if not prediction.kernels:
        terminal.write_blocks(explain_missing(prediction, Path.cwd()))


def _trace_on_gpu(arguments: argparse.Namespace, folder: Path, terminal: Terminal) -> int:
    kind = find_kind(arguments.source)
    for name in ("profile", "machine"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name} is for the emulator", remedy=f"leave it out, or leave out --on {arguments.on}")
    if kind is InputKind.REPORT:
        message = "is a report, whose code is not instrumented"
        raise InputError(message, path=arguments.source, remedy="give a source, or device code with PTX in it")
    from gpa_lsp.execution.local_gpu.local_gpu import LocalGpu
    from gpa_lsp.execution.prediction.gpu_trace import NEEDED_FOR, GpuTraceSettings, trace_on_gpu
    from gpa_lsp.execution.prediction.trace_files import TraceWriter

    with LocalGpu(needed_for=NEEDED_FOR) as gpu, TraceWriter(folder) as writer:
        traced = trace_on_gpu(
            arguments.source,
            gpu,
            kernel=arguments.kernel,
            launches=choose_launches(arguments, assume_launches(arguments, terminal), is_single=True),
            compute_capability=arguments.arch,
            settings=GpuTraceSettings(
                blocks=arguments.blocks,
                entries=arguments.entries,
                record_bytes=arguments.memory,
                seconds=arguments.seconds,
            ),
            sinks=[writer],
        )
    terminal.write_blocks([_describe_gpu_trace(traced, folder)])
    return 0


def _describe_gpu_trace(traced: "GpuTrace", folder: Path) -> "Part":
    from math import prod

    from gpa_lsp.document.blocks import Paragraph, Part
    from gpa_lsp.document.layout import Style
    from gpa_lsp.document.places import show_path
    from gpa_lsp.document.prediction_view import build_remarks
    from gpa_lsp.execution.prediction.fault_answer import note_guesses
    from gpa_lsp.foundation.numbers import format_bytes, format_count, format_count_of, format_dim3, format_seconds

    launch, blocks = traced.launch, format_count_of(prod(traced.launch.grid), "block")
    room = format_bytes(traced.record_bytes)
    said = [
        f"grid {format_dim3(launch.grid)}, block {format_dim3(launch.block)}, on the {traced.gpu}",
        f"{format_count(traced.traced_blocks)} of {blocks} traced: {format_count_of(traced.records, 'row')}, "
        f"in {format_seconds(traced.seconds)} with what records them",
    ]
    lost = f"{format_count_of(traced.dropped, 'record')} found no room in {room}: trace fewer --blocks, or give more --memory"
    rest = [
        lost if traced.dropped else "",
        f"not recorded: {', '.join(traced.unrecorded)}" if traced.unrecorded else "",
        f"trace: {show_path(folder, Path.cwd())}",
    ]
    return Part(
        title=traced.name,
        style=Style.TITLE,
        blocks=[
            *(Paragraph(text=text) for text in said),
            *build_remarks(list(note_guesses(launch))),
            *(Paragraph(text=text) for text in rest if text),
        ],
    )


def _print_templates(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.execution.prediction.templates import write_templates

    kind = find_kind(arguments.source)
    if arguments.sizes and kind is not InputKind.SOURCE:
        message, remedy = "--sizes is for a source", "write the sizes into the description that --template prints"
        raise InputError(message, path=arguments.source, remedy=remedy)
    if kind is InputKind.REPORT:
        refuse_for_report(arguments)
    if kind in (InputKind.REPORT, InputKind.BUILD):
        written = write_templates(
            arguments.source,
            kernel=arguments.kernel,
            launches_path=arguments.launches,
            profile_path=arguments.profile,
            compute_capability=arguments.arch,
        )
    else:
        written = write_source_templates(arguments)
    output = arguments.output
    if is_printed(output):
        write_output(written, output, terminal)
        return 0
    if output.is_file() and output.stat().st_size:
        message, remedy = "holds something already", "name another file, or append to it with >>"
        raise InputError(message, path=output, remedy=remedy)
    write_output(written, output, terminal)
    return 0


COMMAND = Command(
    summary="execute a kernel in the emulator, or on a GPU, and keep its memory accesses and branches",
    description=(
        "Compile a source, execute one described launch in an emulator, and write its memory accesses and branches, warp by warp, into a folder of "
        "Parquet files. Needs no GPU; with --on gpu a GPU of this computer executes it, and the trace is exact."
    ),
    purpose=Purpose.PREDICT,
    examples=(
        ("predict trace matmul.cu -o traced", "keep the accesses and branches of a launch"),
        ("predict trace matmul.cu -o traced --entries", "also keep the entries into basic blocks"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
