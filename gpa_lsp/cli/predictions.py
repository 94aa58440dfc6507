"""Arguments and steps that the predicting commands share."""

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, judge_problems
from gpa_lsp.cli.options import add_source_arguments, declare, parse_blocks, parse_number
from gpa_lsp.cli.outputs import write_file
from gpa_lsp.cli.terminal import ProgressBar, Terminal
from gpa_lsp.execution.prediction.input_kinds import SUFFIXES, InputKind, find_kind
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count_of

if TYPE_CHECKING:
    from gpa_lsp.execution.emulator.model import TraceSink
    from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
    from gpa_lsp.execution.prediction.model import PredictionSettings, SourcePrediction
    from gpa_lsp.execution.prediction.simulation import Simulation, SimulationSettings
    from gpa_lsp.kernel.line_waits import LineWait

_MOST_MESSAGES = 20  # Of the compiler
_INSTANTIATED = "during instantiation of"  # How a note about a library's templates begins
_FITTING_SECONDS = 8.0  # Processor time for choosing the unknown sizes of one kernel
_SOURCE_HELP = (
    "a CUDA C++ source, or a program, library, object, fat binary or cubin with PTX in it, or a file of PTX, "
    "or a report whose code was built with -lineinfo"
)


def add_prediction_arguments(parser: argparse.ArgumentParser, source_help: str = _SOURCE_HELP) -> None:
    """Source, kernel, launch, GPU and budget."""
    add_source_arguments(parser, source_help)
    declare(
        parser,
        """
        --launch N         only the Nth described launch of those kernels
        --sizes SIZES
        --profile FILE     emulate the launches of this profile, with the arguments of the description
        --machine GPU      (default: the first known GPU of --arch)
        --arch SM          (default: that of --machine or the oldest newer one the compiler supports, else that of the compile command, else sm_80)
        --seconds S        seconds of processor time for each launch (default: %(default)s)
        --memory SIZE      memory for each launch, such as 512MiB (default: %(default)s); filled arrays need theirs twice
        --blocks LIST      execute these blocks by linear index, such as 0,7,100-131 (default: all if that is quick, else one wave of the GPU)
        """,
        launch=parse_number,
        sizes="",
        seconds="20",
        memory="2GiB",
        blocks=(parse_blocks, ()),
    )


def make_settings(arguments: argparse.Namespace, *, is_paper: bool = False) -> "PredictionSettings":
    """Prediction settings of a command line."""
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
        is_paper=getattr(arguments, "cudaadvisor", False),
        traces_entries=getattr(arguments, "entries", False),
    )


def predict(
    arguments: argparse.Namespace,
    terminal: Terminal,
    settings: "PredictionSettings",
    sinks: "Iterable[TraceSink]" = (),
    *,
    assumed: str | None = None,
    is_single: bool = False,
) -> "SourcePrediction":
    """Compile or extract the code that a command line names, emulate and analyse it.

    Args:
        assumed: launches of a source without a description, as :func:`assume_launches` gives them.

    Raises:
        InputError: ``--kernel`` names no kernel, there is no such source or build, or no launch of its kernels is described.
    """
    kind = find_kind(arguments.source)
    if kind is InputKind.REPORT:
        refuse_for_report(arguments)
    from gpa_lsp.execution.prediction.predict import predict_code

    launches = choose_launches(arguments, assumed, is_single=is_single)
    with ProgressBar(terminal) as progress:
        prediction = predict_code(
            arguments.source,
            kernel=arguments.kernel,
            launches=launches,
            compute_capability=arguments.arch,
            settings=settings,
            sinks=sinks,
            progress=progress,
        )
    if kind is InputKind.REPORT:
        return prediction
    is_empty = not (prediction.kernels or prediction.undescribed or prediction.problems)
    if is_empty and arguments.kernel is not None and prediction.statics.unit.ptx is not None:
        message = f"no kernel in it has {arguments.kernel!r} in its name"
        raise InputError(message, path=arguments.source, remedy="leave out --kernel to see all of them")
    if prediction.undescribed and not (prediction.kernels or prediction.problems):
        from gpa_lsp.execution.launches.read_launches import explain_undescribed
        from gpa_lsp.kernel.names import demangle, shorten_name

        undescribed = () if prediction.launches_path is None else prediction.undescribed
        names = tuple(shorten_name(demangle(one)) for one in undescribed)
        raise explain_undescribed(arguments.source, names, prediction.launches_path)
    return prediction


def assume_launches(arguments: argparse.Namespace, terminal: Terminal, *, is_single: bool = False) -> str | None:
    """Launches assumed for a source without a description, small enough to emulate quickly; prints what they assume. None if described.

    Args:
        is_single: several kernels are refused before any is emulated, and a source that has none.

    Raises:
        InputError: sizes are given, and there is nothing that assumes any, or nothing of that name; or one kernel is asked for, and no one is meant.
    """
    from gpa_lsp.execution.launches.read_launches import find_launch_file, write_command

    source, sizes = arguments.source, arguments.sizes
    is_source = find_kind(source) is InputKind.SOURCE
    if not is_source or arguments.launches or getattr(arguments, "profile", None) or find_launch_file(source):
        if sizes:
            where = "its launches are described" if is_source else "is no source"
            raise InputError(f"{where}, so --sizes assumes nothing", path=source, remedy="leave out --sizes")
        return None
    try:
        text = write_source_templates(arguments, is_single=is_single)
    except InputError:
        if sizes or is_single:
            raise
        return None  # the prediction reports the errors of the source
    from gpa_lsp.execution.prediction.templates import describe_guesses

    guessed = describe_guesses(text)
    sizes = f', and {guessed} is assumed; give others with --sizes "{guessed}"' if guessed else ""
    terminal.complain(f"note: {source}: launches are as the source says{sizes}; describe them: {write_command(source)}")
    return text


def write_source_templates(arguments: argparse.Namespace, *, is_single: bool = False) -> str:
    """Launch descriptions for the undescribed kernels of a source, with sizes that emulate within seconds; *is_single* refuses several kernels."""
    from gpa_lsp.execution.emulator.model import Budget
    from gpa_lsp.execution.prediction.model import PredictionSettings
    from gpa_lsp.execution.prediction.templates import write_templates

    check_is_source(arguments.source)
    return write_templates(
        arguments.source,
        kernel=arguments.kernel,
        launches_path=arguments.launches,
        profile_path=getattr(arguments, "profile", None),
        compute_capability=arguments.arch,
        fits=PredictionSettings(budget=Budget(seconds=_FITTING_SECONDS)),
        told=arguments.sizes,
        is_single=is_single,
    )


def refuse_for_report(arguments: argparse.Namespace) -> None:
    """Refuse options that a report itself determines.

    Raises:
        InputError: it is.
    """
    for name, what in (("profile", "the launches are its own"), ("arch", "the code is that which was measured")):
        if getattr(arguments, name) is not None:
            raise InputError(f"is a report: {what}", path=arguments.source, remedy=f"leave out --{name}")


def simulate(
    arguments: argparse.Namespace, settings: "SimulationSettings", progress: ProgressBar, assumed: str | None = None
) -> "Simulation":
    """Simulate the launches that a command line names, those of a report with its GPU and clocks; *assumed* as for :func:`predict`."""
    from gpa_lsp.execution.prediction.simulation import simulate_code

    if find_kind(arguments.source) is InputKind.REPORT and arguments.arch is not None:
        remedy = "leave out --arch, or name another GPU with --machine"
        raise InputError("the code of a report is what it is", path=arguments.source, remedy=remedy)
    return simulate_code(
        arguments.source,
        kernel=arguments.kernel,
        launches=choose_launches(arguments, assumed),
        compute_capability=arguments.arch,
        settings=settings,
        progress=progress,
    )


def list_line_waits(
    arguments: argparse.Namespace,
    settings: "SimulationSettings",
    terminal: Terminal,
    assumed: str | None = None,
    kept: Path | None = None,
) -> "dict[str, tuple[LineWait, ...]]":
    """Stalled lines by linkage name, measured for a report, else simulated; *assumed* as for :func:`predict`.

    Args:
        kept: where the simulated profile is written; None keeps none, and simulates no report.
    """
    from gpa_lsp.execution.simulator.profile_document import make_document
    from gpa_lsp.foundation.processes.watched_command import TEMPORARY
    from gpa_lsp.profile.native import SUFFIX
    from gpa_lsp.report.kernel_lines import list_waits
    from gpa_lsp.report.pipeline import analyse

    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        profile = arguments.source
        is_measured = find_kind(profile) is InputKind.REPORT
        if not is_measured or kept is not None:
            with ProgressBar(terminal) as progress:
                simulation = simulate(arguments, settings, progress, assumed)
            for problem in simulation.problems:
                terminal.complain(f"{problem.severity.value}: {problem}")
            written = kept or Path(name) / f"stalls{SUFFIX}"
            write_file(json.dumps(make_document(simulation.launches, simulation.problems)) + "\n", written)
            profile = profile if is_measured else written
        sampled = analyse([profile], kernel_filter=arguments.kernel, answers=False).kernels
    return {one.mangled_name: list_waits(one) for one in sampled if one.total_samples}


def choose_launches(arguments: argparse.Namespace, assumed: str | None, *, is_single: bool = False) -> "LaunchChoice":
    """Launches chosen by a command line; *assumed* as for :func:`predict`."""
    from gpa_lsp.execution.prediction.launch_sources import LaunchChoice

    return LaunchChoice(
        path=arguments.launches,
        text=assumed,
        number=getattr(arguments, "launch", None),
        profile_path=getattr(arguments, "profile", None),
        is_single=is_single,
    )


def check_is_source(path: Path) -> None:
    """Refuse a path that is not a source.

    Raises:
        InputError: it is not.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            "is not a CUDA C++ source", path=path, remedy=f"give a file that ends in {', '.join(SUFFIXES)}"
        )


def complain_of(prediction: "SourcePrediction", terminal: Terminal) -> int:
    """Print the compiler's messages and the problems on standard error; return the exit code."""
    unit = prediction.statics.unit
    told = [one for one in unit.messages if one.path == prediction.path or not one.text.startswith(_INSTANTIATED)]
    for message in told[:_MOST_MESSAGES]:
        place = "" if message.path is None else f"{message.path}:" + (f"{message.line}:" if message.line else "")
        terminal.complain(f"{place} {message.severity.value}: {message.text}".strip())
    if len(told) > _MOST_MESSAGES:
        terminal.complain(f"and {format_count_of(len(told) - _MOST_MESSAGES, 'more message')} of the compiler")
    for note in unit.notes:
        terminal.complain(f"note: {note}")
    for problem in prediction.problems:
        terminal.complain(f"{problem.severity.value}: {problem}")
    if unit.ptx is not None and not (prediction.kernels or prediction.undescribed or prediction.problems):
        terminal.complain(f"note: {prediction.path}: no kernel in it")
    own = (problem for kernel in prediction.kernels for problem in kernel.problems)
    return EXIT_BAD_INPUT if unit.has_failed else judge_problems((*prediction.problems, *own))
