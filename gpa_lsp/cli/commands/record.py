"""``gpa-lsp record``: launches of a program on a GPU, kept with their code and data."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_INCOMPLETE, find_exit_code
from gpa_lsp.cli.options import Renamed, add_application_argument, declare, parse_size, read_application
from gpa_lsp.cli.outputs import refuse_standard_output
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.execution.record.run import RecordedProgram


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "the folder for launches, code and data"
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help=what)
    declare(
        parser,
        """
        --launch N   keep launch N of each kernel, instead of the first with the most threads
        --size SIZE  data of one launch that is kept at most (default: %(default)s)
        --seconds S  end the program after so many seconds (default: %(default)s)
        """,
        size="256MiB",
        seconds="600",
    )
    parser.add_argument("--limit", type=parse_size, action=Renamed, dest="size")
    add_application_argument(parser, "run")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    refuse_standard_output(arguments.output, "a recording")
    application = read_application(arguments, "run", "record -o recorded")
    from gpa_lsp.execution.record.describe import RecordSettings
    from gpa_lsp.execution.record.run import record_program

    recorded = record_program(
        application,
        arguments.output,
        RecordSettings(limit_bytes=arguments.size, number=arguments.launch or 0),
        limit_s=arguments.seconds,
        streams=terminal.find_streams(),
        take=terminal.pass_on,
    )
    _tell(recorded, terminal)
    is_whole = bool(recorded.launches) and all(one.description is not None for one in recorded.launches)
    return find_exit_code(recorded.end, terminal) or (0 if is_whole else EXIT_INCOMPLETE)


def _tell(recorded: "RecordedProgram", terminal: Terminal) -> None:
    """Print a command for each recorded launch, and why others were not recorded."""
    for one in recorded.launches:
        if one.description is None:
            terminal.complain(f"gpa-lsp: not recorded: {one.kernel}: {one.problem}")
            continue
        code = one.module if one.has_ptx or one.source is None else one.source
        # machine code alone is not emulated
        command = ["predict"] if one.has_ptx or one.source is not None else ["predict", "stalls"]
        shown = shlex.join(["gpa-lsp", *command, str(code), "--launches", str(one.description)])
        terminal.complain(f"gpa-lsp: recorded {one.description}: {shown}")
        if one.variables:
            names = ", ".join(one.variables)
            terminal.complain(f"gpa-lsp: note: what the program wrote to the variables {names} is not in it")
    if not recorded.launches:
        terminal.complain("gpa-lsp: nothing was recorded: no kernel was launched through CUDA's driver")


COMMAND = Command(
    summary="run a program on a GPU and keep launches of its kernels, with their code and data",
    description=(
        "Run a program whose launches go through CUDA's driver, as those of Triton, Numba and C++ do, and write one launch of each kernel "
        "as a description with its code and data, which predict, its parts and the editor read. Needs Linux and a C compiler. "
        "Exit code: the program's own; 3 where it ended well, but a kernel was not recorded."
    ),
    purpose=Purpose.MEASURE,
    examples=(
        ("record -o recorded -- ./matmul 4096", "keep one launch of each kernel with its data"),
        ("record -o recorded --size 64MiB --seconds 30 -- ./matmul", "keep less, and end the program after 30 s"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
