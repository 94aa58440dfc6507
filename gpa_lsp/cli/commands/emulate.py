"""``gpa-lsp emulate``: a whole CUDA program without a GPU: its own output, and what each of its kernels does."""

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.basis.errors import InputError
from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, parse_count
from gpa_lsp.cli.predictions import parse_size
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.programs.examine import ExaminedKernel
    from gpa_lsp.programs.model import ProgramRun

_EXIT_FAULTS = 3
_DEFAULT_MACHINE = "A100 PCIe 40GB"
_DEFAULT_SECONDS = 600.0
_DEFAULT_MEMORY = "4GiB"
_KERNEL_SECONDS = 20.0
_TEMPORARY = "gpa-lsp-"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--machine", metavar="GPU", default=_DEFAULT_MACHINE, help=f"the GPU the program sees (default: {_DEFAULT_MACHINE})"
    )
    parser.add_argument(
        "--build",
        metavar="COMMAND",
        help='build the program first, with what it needs to run here, e.g. --build "make -B"',
    )
    parser.add_argument(
        "--each-kernel", metavar="N", type=parse_count, help="emulate the first N launches of each kernel; later ones do nothing"
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        default=_DEFAULT_SECONDS,
        help=f"end the program after so many seconds (default: {_DEFAULT_SECONDS:.0f})",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=parse_size,
        default=_DEFAULT_MEMORY,
        help=f"device memory the program may allocate (default: {_DEFAULT_MEMORY})",
    )
    parser.add_argument("--races", action="store_true", help="look for races on shared memory in every launch; takes longer")
    parser.add_argument(
        "--record",
        metavar="DIR",
        type=Path,
        help="keep the heaviest launch of each kernel in this folder, for gpa-lsp memory and the editor",
    )
    parser.add_argument("--no-lines", action="store_true", help="run only: do not look at the lines of the heaviest launches")
    parser.add_argument(
        "application", metavar="-- APP ARGS", nargs=argparse.REMAINDER, help="the program to run, and its arguments"
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    application = arguments.application[1:] if arguments.application[:1] == ["--"] else arguments.application
    if not application:
        raise InputError("no program to run", remedy="give it after two dashes: gpa-lsp emulate -- ./app")
    if arguments.record is not None:
        return _emulate(arguments, application, arguments.record, terminal)
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY, ignore_cleanup_errors=True) as name:
        return _emulate(arguments, application, Path(name), terminal)


def _emulate(arguments: argparse.Namespace, application: list[str], records: Path, terminal: Terminal) -> int:
    from gpa_lsp.programs.model import RunSettings
    from gpa_lsp.programs.run import run_program

    if arguments.build is not None:
        from gpa_lsp.programs.build import build_program

        build_program(arguments.build, folder=Path.cwd(), limit_s=arguments.seconds, take=terminal.pass_on)
    settings = RunSettings(
        machine=arguments.machine,
        limit_s=arguments.seconds,
        launches_per_kernel=arguments.each_kernel,
        memory_bytes=arguments.memory,
        checks_races=arguments.races,
    )
    keeps = arguments.record is not None or not arguments.no_lines
    run = run_program(
        application, settings, folder=Path.cwd(), take=terminal.pass_on, records=records if keeps else None
    )
    kernels = _examine(run, arguments, terminal)
    _print(run, kernels, terminal)
    if arguments.record is not None:
        for one in run.kernels:
            if one.recorded is not None:
                terminal.complain(f"gpa-lsp: recorded {one.recorded.description}")
    return _judge(run, terminal)


def _examine(run: "ProgramRun", arguments: argparse.Namespace, terminal: Terminal) -> "tuple[ExaminedKernel, ...]":
    from gpa_lsp.programs.examine import ExaminedKernel, examine_recorded

    if arguments.no_lines:
        return tuple(ExaminedKernel(runs=kernel, prediction=None) for kernel in run.kernels)
    from gpa_lsp.emulator.model import Budget
    from gpa_lsp.prediction.model import PredictionSettings

    settings = PredictionSettings(
        machine=run.machine, budget=Budget(seconds=_KERNEL_SECONDS, memory_bytes=arguments.memory)
    )
    return examine_recorded(run, settings)


def _print(run: "ProgramRun", kernels: "tuple[ExaminedKernel, ...]", terminal: Terminal) -> None:
    from gpa_lsp.render.program_text import render_program

    terminal.print_safely(
        lambda: terminal.write_lines(render_program(run, kernels, terminal.width, folder=Path.cwd()))
    )


def _judge(run: "ProgramRun", terminal: Terminal) -> int:
    """The program's own status; 3 where it was well, and kernels were not."""
    end = run.end
    if end.ending.value == "not started":
        terminal.complain(f"gpa-lsp: the program was not started: {end.words}")
        return EXIT_BAD_INPUT
    if end.ending.value != "ended":
        terminal.complain(f"gpa-lsp: the program was ended: {end.ending.value}")
        return 1
    status = 1 if end.status is None else end.status if end.status >= 0 else 128 - end.status
    return status or (_EXIT_FAULTS if run.has_faults else 0)


COMMAND = Command(
    summary="run a CUDA program without a GPU: its own output, then faults, memory and divergence of its kernels",
    description=(
        "Run a program whose kernels are emulated from their PTX. It must be linked with the shared runtime library and carry PTX: nvcc -cudart shared "
        "-lineinfo -gencode arch=compute_80,code=compute_80. What it computes is right; what it times is not. Exit code: the program's own; 3 where it "
        "ended well and kernels did something wrong."
    ),
    add_arguments=_add_arguments,
    run=_run,
)
