"""``gpa-lsp predict``: what kernels do to memory and where their warps diverge, emulated; no GPU, no profile."""

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, add_limit_argument, judge_problems
from gpa_lsp.cli.outputs import add_output_argument, is_printed, write_output
from gpa_lsp.cli.predictions import (
    InputKind,
    add_prediction_arguments,
    complain_of,
    find_kind,
    make_settings,
    predict,
)
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.document.layout import Line
    from gpa_lsp.execution.prediction.model import SourcePrediction
    from gpa_lsp.execution.prediction.predict_expressions import ExpressionPrediction
    from gpa_lsp.execution.prediction.saved_trace import SavedTrace

_SOURCE_HELP = (
    "a CUDA C++ source, a program, library, object, fat binary or cubin with PTX in it, a PTX file, a folder that gpa-lsp predict trace wrote, "
    "or a report: its launches are emulated with the code that was measured, and both counts stand side by side; "
    "or a .toml file of address expressions"
)
_EXPRESSIONS = ".toml"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prediction_arguments(parser, _SOURCE_HELP)
    parser.add_argument(
        "--mode",
        choices=("corrected", "paper"),
        default="corrected",
        help="the volume model: corrected (the default), or as published, for a V100, an A100 or what a file makes of them",
    )
    parser.add_argument(
        "--paper",
        action="store_true",
        help="also count by CUDAAdvisor's definitions, for comparison with its paper",
    )
    parser.add_argument(
        "--format", choices=("text", "json", "html"), default="text", help="how to print (default: text)"
    )
    add_output_argument(parser, "write to FILE instead of standard output")
    add_limit_argument(parser, "text: at most N rows per table")
    parser.add_argument(
        "--fail-on",
        choices=("none", "fault"),
        default="none",
        help="exit with 1 when the emulated program faults (default: none)",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.source.suffix.lower() == _EXPRESSIONS:
        return _run_expressions(arguments, terminal)
    if find_kind(arguments.source) is InputKind.TRACE:
        return _run_saved(arguments, terminal)
    prediction = predict(arguments, terminal, make_settings(arguments, is_paper=arguments.mode == "paper"))
    code = complain_of(prediction, terminal)
    if prediction.statics.unit.has_failed:
        return code
    _put(_renderers_of(prediction, arguments), arguments, terminal)
    return code or (_judge(prediction, arguments.fail_on) if prediction.kernels else EXIT_BAD_INPUT)


def _run_expressions(arguments: argparse.Namespace, terminal: Terminal) -> int:
    _refuse_choices(arguments, "describes one launch", ("blocks", "paper"))
    from gpa_lsp.execution.prediction.predict_expressions import predict_expressions
    from gpa_lsp.execution.volumes.model import VolumeMode  # these bring numpy, which --help does without
    from gpa_lsp.execution.volumes.written_expressions import read_expressions

    prediction = predict_expressions(
        read_expressions(arguments.source),
        machine=arguments.machine,
        compute_capability=arguments.arch,
        mode=VolumeMode(arguments.mode),
    )
    _put(_renderers_of_expressions(prediction, arguments), arguments, terminal)
    return 0


def _refuse_choices(arguments: argparse.Namespace, why: str, more: Iterable[str] = ()) -> None:
    for name in ("kernel", "launches", "launch", "profile", *more):
        if getattr(arguments, name):
            message = f"{why}, so --{name} has nothing to choose"
            raise InputError(message, path=arguments.source, remedy=f"leave out --{name}")


def _run_saved(arguments: argparse.Namespace, terminal: Terminal) -> int:
    _refuse_choices(arguments, "is a trace of one launch")
    from gpa_lsp.execution.prediction.saved_trace import analyse_saved
    from gpa_lsp.execution.volumes.model import VolumeMode  # these bring numpy, which --help does without

    saved = analyse_saved(
        arguments.source,
        machine=arguments.machine,
        compute_capability=arguments.arch,
        mode=VolumeMode(arguments.mode),
        is_paper=arguments.paper,
    )
    _put(_renderers_of_saved(saved, arguments), arguments, terminal)
    return judge_problems(saved.problems)


class _Renderers(Struct, frozen=True):
    """How a result is shown in each format; a renderer is loaded only when it is asked for."""

    lines: "Callable[[int | None], Iterable[Line]]"
    value: Callable[[], dict[str, Any]]
    page: Callable[[], str]


def _renderers_of(prediction: "SourcePrediction", arguments: argparse.Namespace) -> _Renderers:
    def lines(width: int | None) -> "Iterable[Line]":
        from gpa_lsp.document.prediction_text import render_prediction

        return render_prediction(prediction, width, max_rows=arguments.limit, folder=Path.cwd())

    def value() -> dict[str, Any]:
        from gpa_lsp.document.prediction_json import make_prediction

        return make_prediction(prediction)

    def page() -> str:
        from gpa_lsp.document.prediction_page import render_prediction_page

        return render_prediction_page(prediction)

    return _Renderers(lines, value, page)


def _renderers_of_saved(saved: "SavedTrace", arguments: argparse.Namespace) -> _Renderers:
    def lines(width: int | None) -> "Iterable[Line]":
        from gpa_lsp.document.prediction_text import render_saved_trace

        return render_saved_trace(saved, width, max_rows=arguments.limit, folder=Path.cwd())

    def value() -> dict[str, Any]:
        from gpa_lsp.document.prediction_json import make_saved_trace

        return make_saved_trace(saved)

    def page() -> str:
        from gpa_lsp.document.prediction_page import render_answers_page
        from gpa_lsp.document.prediction_text import describe_saved_trace

        return render_answers_page(f"Trace of {saved.short_name}", saved.answers, describe_saved_trace(saved))

    return _Renderers(lines, value, page)


def _renderers_of_expressions(prediction: "ExpressionPrediction", arguments: argparse.Namespace) -> _Renderers:
    def lines(width: int | None) -> "Iterable[Line]":
        from gpa_lsp.document.prediction_text import render_expression_prediction

        return render_expression_prediction(prediction, width, max_rows=arguments.limit)

    def value() -> dict[str, Any]:
        from gpa_lsp.document.prediction_json import make_expression_prediction

        return make_expression_prediction(prediction, str(arguments.source))

    def page() -> str:
        from gpa_lsp.document.prediction_page import render_answers_page
        from gpa_lsp.document.prediction_text import describe_expressions

        return render_answers_page(prediction.volumes.kernel, (prediction.answer,), describe_expressions(prediction))

    return _Renderers(lines, value, page)


def _put(renderers: _Renderers, arguments: argparse.Namespace, terminal: Terminal) -> None:
    if is_printed(arguments.output) and arguments.format == "text":
        terminal.print_safely(lambda: terminal.write_lines(renderers.lines(terminal.width)))
        return
    text = _render(renderers, arguments.format)
    write_output(text, arguments.output, terminal, is_page=arguments.format == "html")


def _render(renderers: _Renderers, name: str) -> str:
    if name == "json":
        return json.dumps(renderers.value(), indent=2) + "\n"
    if name == "html":
        return renderers.page()
    from gpa_lsp.document.layout import join_lines

    return join_lines(renderers.lines(None))


def _judge(prediction: "SourcePrediction", fail_on: str) -> int:
    from gpa_lsp.execution.prediction.fault_answer import ENDINGS

    faults = [fault for kernel in prediction.kernels for fault in kernel.faults if fault.kind not in ENDINGS]
    return EXIT_FOUND if fail_on == "fault" and faults else 0


COMMAND = Command(
    summary="predict what kernels do to memory, where their warps diverge, what they move and what limits them",
    description=(
        "Compile a source, execute its kernels in an emulator with the launches described beside it, and print what each line does to memory, "
        "where warps diverge, cache hits, faults, and the predicted volumes and limits. Nothing is measured."
    ),
    purpose=Purpose.PREDICT,
    examples=(
        ("predict matmul.cu", "memory accesses and divergence by line"),
        ("predict stencil.expressions.toml --machine A100", "volumes and limits of address expressions alone"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
