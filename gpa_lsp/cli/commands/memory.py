"""``gpa-lsp memory``: what kernels do to memory and where their warps part, emulated; no GPU, no profile."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.inputs import parse_count
from gpa_lsp.cli.predictions import add_prediction_arguments, complain_of, make_settings, predict
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.prediction.model import SourcePrediction

_EXIT_FOUND = 1


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prediction_arguments(parser)
    parser.add_argument(
        "--mode",
        choices=("corrected", "paper"),
        default="corrected",
        help="the volume model: corrected (the default), or as published, for a V100 or an A100",
    )
    parser.add_argument(
        "--format", choices=("text", "json", "html"), default="text", help="how to print (default: text)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to a file")
    parser.add_argument("--top", metavar="N", type=parse_count, help="text: no table longer than N rows (0 for all)")
    parser.add_argument(
        "--fail-on",
        choices=("none", "fault"),
        default="none",
        help="exit with 1 when the run shows a fault of the program (default: none)",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    prediction = predict(arguments, terminal, make_settings(arguments, is_paper=arguments.mode == "paper"))
    code = complain_of(prediction, terminal)
    if prediction.statics.unit.has_failed:
        return code
    if arguments.output is None:
        terminal.print_safely(lambda: _print(prediction, arguments, terminal))
    else:
        _write(prediction, arguments)
    return code or _judge(prediction, arguments.fail_on)


def _print(prediction: "SourcePrediction", arguments: argparse.Namespace, terminal: Terminal) -> None:
    if arguments.format != "text":
        if hasattr(terminal.out, "reconfigure"):
            terminal.out.reconfigure(encoding="utf-8")  # as the page says of itself, whatever the locale
        terminal.write_text(_render(prediction, arguments))
        return
    from gpa_lsp.render.prediction_text import render_prediction

    most = None if arguments.top is None else arguments.top or 1 << 30
    terminal.write_lines(render_prediction(prediction, terminal.width, max_rows=most, folder=Path.cwd()))


def _write(prediction: "SourcePrediction", arguments: argparse.Namespace) -> None:
    from gpa_lsp.whole_files import open_whole

    text = _render(prediction, arguments)
    try:
        with open_whole(arguments.output, errors="backslashreplace") as stream:
            stream.write(text)
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError(message, path=arguments.output, remedy="choose another file") from error


def _render(prediction: "SourcePrediction", arguments: argparse.Namespace) -> str:
    """Each format's renderer is loaded only when it is asked for."""
    if arguments.format == "json":
        from gpa_lsp.render.prediction_json import make_prediction

        return json.dumps(make_prediction(prediction), indent=2) + "\n"
    if arguments.format == "html":
        from gpa_lsp.render.prediction_page.page import render_prediction_page

        return render_prediction_page(prediction)
    from gpa_lsp.render.layout import join_lines
    from gpa_lsp.render.prediction_text import render_prediction

    most = None if arguments.top is None else arguments.top or 1 << 30
    return join_lines(render_prediction(prediction, max_rows=most, folder=Path.cwd()))


def _judge(prediction: "SourcePrediction", fail_on: str) -> int:
    from gpa_lsp.prediction.fault_answer import ENDINGS

    faults = [fault for kernel in prediction.kernels for fault in kernel.faults if fault.kind not in ENDINGS]
    return _EXIT_FOUND if fail_on == "fault" and faults else 0


COMMAND = Command(
    summary="say what kernels do to memory and where their warps part, without a GPU",
    description=(
        "Compile a source, execute its kernels by an emulator with the launches described beside it, and say what each line does to memory, "
        "where warps diverge, what the caches would hold, which faults were met, and what volumes and limits are predicted. Nothing is measured."
    ),
    add_arguments=_add_arguments,
    run=_run,
)
