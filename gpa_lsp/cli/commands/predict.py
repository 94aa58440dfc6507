"""``gpa-lsp predict``: what kernels do to memory and where their warps diverge, emulated; no GPU, no profile."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, judge_problems
from gpa_lsp.cli.options import Renamed, add_format_argument, add_limit_argument, add_output_argument, declare
from gpa_lsp.cli.outputs import write_answer
from gpa_lsp.cli.predictions import (
    add_prediction_arguments,
    assume_launches,
    complain_of,
    list_line_waits,
    make_settings,
    predict,
)
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.document.blocks import Block
    from gpa_lsp.execution.prediction.model import SourcePrediction

_SOURCE_HELP = (
    "a CUDA C++ source, a program, library, object, fat binary or cubin with PTX in it, a PTX file, a folder that gpa-lsp predict trace wrote, "
    "or a report: its launches are emulated with the code that was measured, and both counts stand side by side; "
    "or a .toml file of address expressions"
)
_EXPRESSIONS = ".toml"
_OUTPUT_HELP = (
    "write to FILE instead of standard output; where FILE ends in .gpa-profile.json, print, and write the simulated stalls to it as a profile "
    "that report, advise and check read"
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prediction_arguments(parser, _SOURCE_HELP)
    declare(
        parser,
        """
        --mode {corrected,paper}  the volume model: corrected (the default), or as published, for a V100, an A100 or what a file makes of them
        --cudaadvisor             also count by CUDAAdvisor's definitions, for comparison with its paper
        --stalls                  also tell which lines the kernel is stalled on, by a simulation of the launch; of a report, as it was measured
        """,
        mode="corrected",
    )
    parser.add_argument("--paper", nargs=0, action=Renamed, dest="cudaadvisor")
    add_format_argument(parser, "json", "html", page_help="a page that opens from disk without a network")
    add_output_argument(parser, _OUTPUT_HELP)
    add_limit_argument(parser, "text: at most N rows per table")
    declare(
        parser,
        """
        --details               text: every answer whole (default: of each launch one screen)
        --fail-on {none,fault}  exit with 1 when the emulated program faults (default: none)
        """,
        fail_on="none",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.profile.native import SUFFIX

    profile = None
    if arguments.output is not None and arguments.output.name.endswith(SUFFIX):
        profile, arguments.output, arguments.stalls = arguments.output, None, True
    if arguments.source.suffix.lower() == _EXPRESSIONS:
        return _run_expressions(arguments, terminal)
    if find_kind(arguments.source) is InputKind.TRACE:
        return _run_saved(arguments, terminal)
    assumed = assume_launches(arguments, terminal)
    settings = make_settings(arguments, is_paper=arguments.mode == "paper")
    prediction = predict(arguments, terminal, settings, assumed=assumed)
    code = complain_of(prediction, terminal)
    if prediction.statics.unit.has_failed:
        return code
    if arguments.stalls and prediction.kernels:
        prediction = _weigh(prediction, arguments, terminal, assumed, profile)
    _write_prediction(prediction, arguments, terminal)
    return code or (_judge(prediction, arguments.fail_on) if prediction.kernels else EXIT_BAD_INPUT)


def _weigh(
    prediction: "SourcePrediction",
    arguments: argparse.Namespace,
    terminal: Terminal,
    assumed: str | None,
    profile: Path | None,
) -> "SourcePrediction":
    """Add the stalls that each line causes, and keep the simulated ones as a profile; a kernel without samples is named."""
    from gpa_lsp.execution.prediction.simulation import SimulationSettings

    settings = SimulationSettings(machine=arguments.machine, seconds=arguments.seconds, memory_bytes=arguments.memory)
    waits = list_line_waits(arguments, settings, terminal, assumed, profile)
    if profile is not None:
        terminal.complain(f"note: simulated stalls are written to {profile}")
    unknown = {one.short_name for one in prediction.kernels if one.mangled_name not in waits}
    for name in sorted(unknown):
        terminal.complain(f"stalls unknown: there are no samples of {name}")
    return replace(
        prediction, kernels=tuple(replace(one, waits=waits.get(one.mangled_name)) for one in prediction.kernels)
    )


def _run_expressions(arguments: argparse.Namespace, terminal: Terminal) -> int:
    _refuse_choices(arguments, "describes one launch", ("blocks", "cudaadvisor", "stalls"))
    from gpa_lsp.document.prediction_json import make_expression_prediction
    from gpa_lsp.document.prediction_view import build_expression_prediction
    from gpa_lsp.execution.prediction.predict import predict_expressions
    from gpa_lsp.execution.volumes.model import VolumeMode  # these bring numpy, which --help does without
    from gpa_lsp.execution.volumes.written_expressions import read_expressions

    prediction = predict_expressions(
        read_expressions(arguments.source),
        machine=arguments.machine,
        compute_capability=arguments.arch,
        mode=VolumeMode(arguments.mode),
    )
    head = (arguments.source.name, "predicted from address expressions, not measured")
    value = partial(make_expression_prediction, prediction, str(arguments.source))
    _write(partial(build_expression_prediction, prediction), head, value, arguments, terminal)
    return 0


def _refuse_choices(arguments: argparse.Namespace, why: str, more: Iterable[str] = ()) -> None:
    for name in ("kernel", "launches", "launch", "sizes", "profile", *more):
        if getattr(arguments, name):
            message = f"{why}, so --{name} has nothing to choose"
            raise InputError(message, path=arguments.source, remedy=f"leave out --{name}")


def _run_saved(arguments: argparse.Namespace, terminal: Terminal) -> int:
    _refuse_choices(arguments, "is a trace of one launch", ("stalls",))
    from gpa_lsp.execution.prediction.trace_files import analyse_saved
    from gpa_lsp.execution.volumes.model import VolumeMode  # these bring numpy, which --help does without

    saved = analyse_saved(
        arguments.source,
        machine=arguments.machine,
        compute_capability=arguments.arch,
        mode=VolumeMode(arguments.mode),
        is_paper=arguments.cudaadvisor,
    )
    from gpa_lsp.document.prediction_json import make_saved_trace
    from gpa_lsp.document.prediction_view import build_saved_trace

    head = (f"Trace of {saved.short_name}", f"from a kept trace ({saved.origin}); predicted, not measured")
    _write(partial(build_saved_trace, saved, Path.cwd()), head, partial(make_saved_trace, saved), arguments, terminal)
    return judge_problems(saved.problems)


def _write_prediction(prediction: "SourcePrediction", arguments: argparse.Namespace, terminal: Terminal) -> None:
    from gpa_lsp.document.document_page import render_document_page
    from gpa_lsp.document.prediction_json import make_prediction
    from gpa_lsp.document.prediction_view import build_prediction, build_prediction_page

    write_answer(
        arguments,
        terminal,
        text=lambda: build_prediction(prediction, Path.cwd(), is_brief=not arguments.details),
        json=lambda: make_prediction(prediction),
        html=lambda: render_document_page(*build_prediction_page(prediction, Path.cwd())),
        max_rows=arguments.limit,
    )


def _write(
    build: "Callable[[], Sequence[Block]]",
    head: tuple[str, str],
    make_value: Callable[[], dict[str, Any]],
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> None:
    """Write a prediction in the format asked for; *head* is the title of a page and the sentence below it."""
    from gpa_lsp.document.document_page import render_document_page

    def draw() -> str:
        return render_document_page(*head, build())

    write_answer(arguments, terminal, text=build, json=make_value, html=draw, max_rows=arguments.limit)


def _judge(prediction: "SourcePrediction", fail_on: str) -> int:
    from gpa_lsp.execution.prediction.fault_answer import ENDINGS

    faults = [fault for kernel in prediction.kernels for fault in kernel.faults if fault.kind not in ENDINGS]
    return EXIT_FOUND if fail_on == "fault" and faults else 0


COMMAND = Command(
    summary="predict memory accesses, divergence, data volumes and limits of kernels, by emulation",
    description=(
        "Compile a source, emulate the launches described next to it, and print memory accesses and divergence by line, cache hits, faults, and the "
        "predicted data volumes and limits. Nothing is measured."
    ),
    purpose=Purpose.PREDICT,
    examples=(
        ("predict matmul.cu", "memory accesses and divergence by line"),
        ("predict stencil.expressions.toml --machine A100", "volumes and limits of address expressions alone"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
