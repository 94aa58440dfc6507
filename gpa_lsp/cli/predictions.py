"""What the commands that emulate have in common: arguments, predicting with a progress bar, and what stops them."""

import argparse
import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, judge_problems
from gpa_lsp.cli.progress import ProgressBar
from gpa_lsp.cli.static_check import SUFFIXES, parse_architecture
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count_of, format_number

if TYPE_CHECKING:
    from gpa_lsp.execution.emulator.model import TraceSink
    from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
    from gpa_lsp.execution.prediction.model import PredictionSettings, SourcePrediction

_DEFAULT_SECONDS = 20.0
_DEFAULT_MEMORY = "2GiB"
_UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,15})\s*([a-z]*)")
_BLOCKS = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_MOST_BLOCKS = 1 << 20
_MOST_NUMBER = 1 << 32
_SOURCE_HELP = (
    "a CUDA C++ source, or a program, library, object, fat binary or cubin with PTX in it, or a file of PTX, "
    "or a report whose code was built with -lineinfo"
)


def add_source_arguments(parser: argparse.ArgumentParser, source_help: str) -> None:
    """Source, kernel and the description of launches."""
    parser.add_argument("source", metavar="SOURCE", type=Path, help=source_help)
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        help="only the kernel of this name, or else kernels whose name (readable or mangled) contains NAME",
    )
    parser.add_argument(
        "--launches",
        metavar="FILE",
        type=Path,
        help="the description of launches and arguments (default: SOURCE with .launch.toml in place of its suffix)",
    )


def add_prediction_arguments(parser: argparse.ArgumentParser, source_help: str = _SOURCE_HELP) -> None:
    """Source, kernel, launch, GPU and budget."""
    add_source_arguments(parser, source_help)
    parser.add_argument(
        "--launch", metavar="N", type=parse_number, help="only the Nth described launch of those kernels"
    )
    parser.add_argument(
        "--profile",
        metavar="FILE",
        type=Path,
        help="emulate the launches of this profile, with the arguments of the description",
    )
    parser.add_argument(
        "--machine",
        metavar="GPU",
        help="predict for this GPU, by name or by a .toml file that describes one (default: the first known GPU of --arch)",
    )
    parser.add_argument(
        "--arch",
        metavar="SM",
        type=parse_architecture,
        help="architecture to compile for, such as sm_86 (default: that of --machine or the oldest newer one the compiler supports, else that of the "
        "compile command, else sm_80)",
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=parse_seconds,
        default=_DEFAULT_SECONDS,
        help=f"seconds of processor time for each launch (default: {format_number(_DEFAULT_SECONDS)})",
    )
    add_memory_argument(parser, "each launch")
    parser.add_argument(
        "--blocks",
        metavar="LIST",
        type=parse_blocks,
        default=(),
        help="execute these blocks by linear index, such as 0,7,100-131 (default: all if that is quick, else one wave of the GPU)",
    )


def add_memory_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """``--memory``, of the commands that emulate."""
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=parse_size,
        default=_DEFAULT_MEMORY,
        help=f"memory for {what}, such as 512MiB (default: {_DEFAULT_MEMORY}); filled arrays need theirs twice",
    )


def make_settings(arguments: argparse.Namespace, *, is_paper: bool = False) -> "PredictionSettings":
    """The settings of a command line."""
    from gpa_lsp.execution.emulator.model import Budget
    from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
    from gpa_lsp.execution.volumes.model import VolumeMode  # brings numpy, which --help does without

    budget = Budget(
        seconds=arguments.seconds, memory_bytes=arguments.memory, trace_bytes=max(1 << 20, arguments.memory // 4)
    )
    return replace(
        DEFAULT_PREDICTION,
        machine=arguments.machine,
        mode=VolumeMode.PAPER if is_paper else VolumeMode.CORRECTED,
        budget=budget,
        blocks=arguments.blocks,
        is_paper=getattr(arguments, "paper", False),
        traces_entries=getattr(arguments, "entries", False),
    )


def predict(
    arguments: argparse.Namespace,
    terminal: Terminal,
    settings: "PredictionSettings",
    sinks: "Iterable[TraceSink]" = (),
    *,
    is_single: bool = False,
) -> "SourcePrediction":
    """Compile what a command line names, or take it out of what was built; emulate and analyse it.

    Raises:
        InputError: ``--kernel`` names no kernel, there is no such source or build, or no launch of its kernels is described.
    """
    kind = find_kind(arguments.source)
    from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
    from gpa_lsp.execution.prediction.predict import predict_build, predict_source

    launches = LaunchChoice(
        path=arguments.launches, number=arguments.launch, profile_path=arguments.profile, is_single=is_single
    )
    if kind is InputKind.REPORT:
        return _predict_report(arguments, terminal, launches, settings, sinks)
    with ProgressBar(terminal) as progress:
        prediction = (predict_build if kind is InputKind.BUILD else predict_source)(
            arguments.source,
            kernel=arguments.kernel,
            launches=launches,
            compute_capability=arguments.arch,
            settings=settings,
            sinks=sinks,
            progress=progress,
        )
    has_code = prediction.statics.unit.ptx is not None
    if (
        has_code
        and arguments.kernel is not None
        and not (prediction.kernels or prediction.undescribed or prediction.problems)
    ):
        message = f"no kernel in it has {arguments.kernel!r} in its name"
        raise InputError(message, path=arguments.source, remedy="leave out --kernel to see all of them")
    if prediction.undescribed and not (prediction.kernels or prediction.problems):
        from gpa_lsp.execution.launches.read_launches import explain_undescribed
        from gpa_lsp.kernel.names import shorten_name

        names = () if prediction.launches_path is None else tuple(map(shorten_name, prediction.undescribed))
        raise explain_undescribed(arguments.source, names, prediction.launches_path)
    return prediction


def _predict_report(
    arguments: argparse.Namespace,
    terminal: Terminal,
    launches: "LaunchChoice",
    settings: "PredictionSettings",
    sinks: "Iterable[TraceSink]",
) -> "SourcePrediction":
    refuse_for_report(arguments)
    from gpa_lsp.execution.prediction.predict_report import predict_report

    with ProgressBar(terminal) as progress:
        return predict_report(
            arguments.source,
            kernel=arguments.kernel,
            launches=launches,
            settings=settings,
            sinks=sinks,
            progress=progress,
        )


def refuse_for_report(arguments: argparse.Namespace) -> None:
    """Raise where something is chosen that a report itself says.

    Raises:
        InputError: it is.
    """
    for name, what in (("profile", "the launches are its own"), ("arch", "the code is that which was measured")):
        if getattr(arguments, name) is not None:
            raise InputError(f"is a report: {what}", path=arguments.source, remedy=f"leave out --{name}")


class InputKind(Enum):
    """What the first argument is."""

    SOURCE = "source"
    BUILD = "build"  # A program, library, object, fat binary or cubin, or a file of PTX
    REPORT = "report"  # A profile: the code that was measured, with the launches
    TRACE = "trace"  # A folder that ``gpa-lsp predict trace`` wrote


def find_kind(path: Path) -> InputKind:
    """What a path is.

    Raises:
        InputError: there is nothing, or something that is none of them.
    """
    if path.suffix.lower() in SUFFIXES:
        return InputKind.SOURCE
    if path.is_dir():
        return InputKind.TRACE
    if not path.is_file():
        raise InputError("there is no such file", path=path, remedy=f"give a source ({', '.join(SUFFIXES)})")
    from gpa_lsp.code.binary.containers import recognise_container
    from gpa_lsp.execution.compiler.ptx_files import is_ptx_file
    from gpa_lsp.profile.read import list_suffixes

    if path.name.lower().endswith(list_suffixes()):
        return InputKind.REPORT
    if recognise_container(path) is None and not is_ptx_file(path):
        message = "is neither a CUDA C++ source, nor compiled device code, nor a report"
        remedy = f"give a file that ends in {', '.join(SUFFIXES)}, an object, library, program, fat binary or cubin, a file of PTX, or a report"
        raise InputError(message, path=path, remedy=remedy)
    return InputKind.BUILD


def check_is_source(path: Path) -> None:
    """Raise unless a path is a source.

    Raises:
        InputError: it is not.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            "is not a CUDA C++ source", path=path, remedy=f"give a file that ends in {', '.join(SUFFIXES)}"
        )


def complain_of(prediction: "SourcePrediction", terminal: Terminal) -> int:
    """Print the compiler's messages and the problems on standard error; the exit code."""
    unit = prediction.statics.unit
    for message in unit.messages:
        place = "" if message.path is None else f"{message.path}:" + (f"{message.line}:" if message.line else "")
        terminal.complain(f"{place} {message.severity.value}: {message.text}".strip())
    for note in unit.notes:
        terminal.complain(f"note: {note}")
    for problem in prediction.problems:
        terminal.complain(f"{problem.severity.value}: {problem}")
    _complain_of_nothing(prediction, terminal)
    own = (problem for kernel in prediction.kernels for problem in kernel.problems)
    return EXIT_BAD_INPUT if unit.has_failed else judge_problems((*prediction.problems, *own))


def _complain_of_nothing(prediction: "SourcePrediction", terminal: Terminal) -> None:
    """Say that a source has no kernel; the rest is in what is printed."""
    if prediction.statics.unit.ptx is not None and not (
        prediction.kernels or prediction.undescribed or prediction.problems
    ):
        terminal.complain(f"note: {prediction.path}: no kernel in it")


def parse_size(text: str) -> int:
    """Bytes, for the parser of arguments.

    >>> parse_size("512MiB"), parse_size("2 gib"), parse_size("4096")
    (536870912, 2147483648, 4096)
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 512MiB")
    return int(match[1]) * _UNITS[match[2]]


def parse_blocks(text: str) -> tuple[int, ...]:
    """Linear indexes of blocks, ascending.

    >>> parse_blocks("7,0,3-5")
    (0, 3, 4, 5, 7)
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _BLOCKS.fullmatch(part.strip())
        if match is None:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of blocks such as 0,7,100-131")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= _MOST_BLOCKS:
            raise argparse.ArgumentTypeError(
                f"{part.strip()!r} is not a range of at most {format_count_of(_MOST_BLOCKS, 'block')}"
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def parse_seconds(text: str) -> float:
    """A time, for the parser of arguments."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds between 0.01 and 86,400")
    return seconds


def parse_number(text: str) -> int:
    """A number from 1 on, for the parser of arguments."""
    if not text.isdecimal() or not 1 <= int(text[:20]) <= _MOST_NUMBER:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
