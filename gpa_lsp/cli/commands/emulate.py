"""``gpa-lsp emulate``: a whole CUDA program without a GPU: its own output, and what each of its kernels does."""

import argparse
import shlex
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_INCOMPLETE, find_exit_code, judge_problems
from gpa_lsp.cli.options import (
    add_application_argument,
    add_format_argument,
    add_output_argument,
    declare,
    read_application,
)
from gpa_lsp.cli.outputs import is_printed, write_answer
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.prediction.input_kinds import SUFFIXES
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.execution.programs.examine import Described, ExaminedKernel
    from gpa_lsp.execution.programs.model import ProgramRun

_KERNEL_SECONDS = 20.0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(
        parser,
        """
        --machine GPU      (default: %(default)s)
        --build COMMAND    build the program first, with what it needs to run here, e.g. --build "make -B"
        --each-kernel N    emulate the first N launches of each kernel; later ones do nothing
        --seconds S        end the program after S seconds of processor time (default: %(default)s)
        --memory SIZE      device memory the program may allocate (default: %(default)s)
        --races            look for races on shared memory in every launch; takes longer
        --record DIR       keep the heaviest launch of each kernel in this folder, for gpa-lsp predict and the editor
        --describe         describe the heaviest launch of each kernel, with its data, next to its source in this folder or below; editors then
                           emulate it on every save
        --record-launch N  analyse and keep launch N of each kernel instead of the heaviest
        --no-lines         only run the program: analyse neither the lines of the heaviest launches nor allocations
        --allocations      with --no-lines: analyse allocations all the same
        """,
        machine="A100 PCIe 40GB",
        seconds="600",
        memory="4GiB",
    )
    add_format_argument(parser, "json")
    add_output_argument(parser, "write the results to FILE instead of after the program's output")
    add_application_argument(parser, "run")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    application = read_application(arguments, "run", "emulate")
    if arguments.format == "json" and is_printed(arguments.output):
        raise InputError("standard output is the program's own", remedy="name a file for the JSON with -o FILE")
    with ExitStack() as stack:
        return _emulate(arguments, application, lambda: _make_folder(stack), terminal)


def _make_folder(stack: ExitStack) -> Path:
    """Temporary folder for launches that are analysed but not kept."""
    from gpa_lsp.foundation.processes.watched_command import TEMPORARY

    made = tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True)
    return Path(stack.enter_context(made))


def _emulate(
    arguments: argparse.Namespace,
    application: list[str],
    make_folder: Callable[[], Path],
    terminal: Terminal,
) -> int:
    from gpa_lsp.execution.programs.model import RunSettings
    from gpa_lsp.execution.programs.run import Surroundings, run_program

    @cache  # build and run may each compile a library of one title
    def tell(sentence: str) -> None:
        terminal.complain(f"gpa-lsp: {sentence}")

    if arguments.build is not None:
        from gpa_lsp.execution.programs.build import build_program

        build_program(
            arguments.build,
            machine=arguments.machine,
            folder=Path.cwd(),
            limit_s=arguments.seconds,
            take=terminal.pass_on,
            tell=tell,
        )
    elif application[0].lower().endswith(SUFFIXES) and Path(application[0]).is_file():
        from gpa_lsp.execution.programs.build import build_source

        built = build_source(
            Path(application[0]),
            make_folder(),
            machine=arguments.machine,
            limit_s=arguments.seconds,
            take=terminal.pass_on,
            tell=tell,
        )
        application = [str(built), *application[1:]]
    settings = RunSettings(
        machine=arguments.machine,
        limit_s=arguments.seconds,
        launches_per_kernel=arguments.each_kernel,
        memory_bytes=arguments.memory,
        checks_races=arguments.races,
        recorded_launch=arguments.record_launch,
        follows_memory=arguments.allocations or not arguments.no_lines,
    )
    surroundings = Surroundings(
        folder=Path.cwd(),
        streams=terminal.find_streams(),
        take=terminal.pass_on,
        tell=tell,
    )
    keeps = arguments.record is not None or arguments.describe or not arguments.no_lines
    run = run_program(
        application,
        settings,
        surroundings,
        records=(lambda: arguments.record or make_folder()) if keeps else None,
        others=None if arguments.no_lines else make_folder,
    )
    _keep_allocations(run)
    described = _describe(run) if arguments.describe else None
    kernels = _examine(run, arguments)
    _tell(run, kernels, described, arguments, terminal)
    if arguments.record is not None:
        _tell_records(run, terminal)
    if described is not None:
        _tell_described(described, terminal)
    sooner = "give the program less to do, raise --seconds, or emulate fewer launches with --each-kernel"
    status = find_exit_code(run.end, terminal, sooner=sooner, crash=run.crash)
    if status or run.has_faults or run.cut_short or run.refused or (described is not None and described.left_out):
        return status or EXIT_INCOMPLETE
    return judge_problems(problem for kernel in kernels for problem in kernel.problems)


def _keep_allocations(run: "ProgramRun") -> None:
    """Store findings on allocations, which editors show on their lines."""
    from gpa_lsp.document.program_view import list_source_allocations
    from gpa_lsp.report.saved.kept_allocations import keep_allocations

    if run.memory.sites:
        keep_allocations(list_source_allocations(run, Path.cwd()))


def _examine(run: "ProgramRun", arguments: argparse.Namespace) -> "tuple[ExaminedKernel, ...]":
    from gpa_lsp.execution.programs.examine import ExaminedKernel, examine_recorded

    if arguments.no_lines:
        return tuple(ExaminedKernel(runs=kernel, prediction=None) for kernel in run.kernels)
    from gpa_lsp.execution.emulator.model import Budget
    from gpa_lsp.execution.prediction.model import PredictionSettings

    budget = Budget(seconds=_KERNEL_SECONDS, memory_bytes=arguments.memory)
    return examine_recorded(run, PredictionSettings(machine=run.machine, budget=budget))


def _tell(
    run: "ProgramRun",
    kernels: "tuple[ExaminedKernel, ...]",
    described: "Described | None",
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> None:
    from gpa_lsp.document.prediction_json import make_program
    from gpa_lsp.document.program_view import build_program

    write_answer(
        arguments,
        terminal,
        text=lambda: build_program(run, kernels, Path.cwd()),
        json=lambda: make_program(run, kernels, described),
    )


def _tell_records(run: "ProgramRun", terminal: Terminal) -> None:
    """Print a command for each recorded launch."""
    for kernel in run.kernels:
        one = kernel.recorded
        if one is not None:
            words = ["gpa-lsp", "predict", str(one.module), "--launches", str(one.description)]
            terminal.complain(f"gpa-lsp: recorded {one.description}: {shlex.join(words)}")


def _describe(run: "ProgramRun") -> "Described":
    from gpa_lsp.execution.programs.examine import describe_beside

    try:
        return describe_beside(run, Path.cwd())
    except OSError as error:
        raise InputError(f"the launches cannot be described: {error.strerror or error}") from error


def _tell_described(found: "Described", terminal: Terminal) -> None:
    for path in found.written:
        terminal.complain(f"gpa-lsp: recorded {path}")
    for one in found.left_out:
        terminal.complain(f"gpa-lsp: not recorded: {one.name}: {one.reason}")
    if not found.written and not found.left_out:
        terminal.complain("gpa-lsp: nothing was recorded: no kernel was launched")


COMMAND = Command(
    summary="run a CUDA program without a GPU: its own output, then faults, memory and divergence of its kernels",
    description=(
        "Run a program and emulate its kernels from their PTX. A source that is a whole program is compiled first. A program must be linked with "
        "the shared runtime library and carry PTX: nvcc -cudart shared -lineinfo -gencode arch=compute_80,code=compute_80; --build sees to that. "
        "Its results are right; its timings are not. Exit code: the program's own; 3 when it succeeded but kernels had faults or were not emulated; "
        "2 when its lines could not be analysed; 130 after Ctrl-C."
    ),
    purpose=Purpose.PREDICT,
    examples=(
        ("emulate matmul.cu 64", "compile a source, run it, and print what its kernels do and their faults"),
        ("emulate --build make --record recorded -- ./matmul 64", "build a program, and keep its launches for predict"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
