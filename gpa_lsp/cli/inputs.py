"""Loading the paths of a command line as one report, and exit codes."""

import argparse
import copy
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gpa_lsp.cli.terminal import ProgressBar, Terminal
from gpa_lsp.foundation.errors import InputError, Problem, ProblemSeverity
from gpa_lsp.kernel.names import shorten_name

if TYPE_CHECKING:
    from gpa_lsp.document.places import PlaceNames
    from gpa_lsp.foundation.processes.watched_command import CommandEnd
    from gpa_lsp.report.model import Report
    from gpa_lsp.report.source_paths import SourceLocator

_LISTED_KERNELS = 20

# Bound of the search for moved sources; smaller than the server's, since a command should answer at once anywhere
_MAX_FILES = 50_000

EXIT_FOUND = 1
EXIT_BAD_INPUT = 2
EXIT_INCOMPLETE = 3
EXIT_CRASHED = 70
EXIT_INTERRUPTED = 130  # as shells have it of what Ctrl-C ended
EXIT_CODES = (
    "exit codes: 0 all that was asked for was done; 1 something was found that --fail-on or a budget names, or a measurement failed; "
    "2 bad input or bad usage, or a part of what was asked for is missing; 3 a program ended well, but not all of its kernels could be emulated "
    "or recorded; 130 interrupted; 70 a bug in gpa-lsp. emulate and record otherwise leave the code of the program they run."
)


def load_report(
    arguments: argparse.Namespace,
    terminal: Terminal,
    *,
    answers: bool = True,
    mode: str | None = None,
) -> "Report":
    """Analyse the profiles and read the saved reports of a command line.

    Args:
        arguments: with ``paths`` and ``kernel``.
        mode: method of finding causes and advice; None for the pipeline's default. Saved reports keep their own mode; a problem reports where that
            differs from *mode*.

    Raises:
        InputError: ``--kernel`` names no kernel there is.
    """
    options: dict[str, Any] = {"answers": answers} if mode is None else {"answers": answers, "mode": mode}
    report = _load(arguments, arguments.kernel, terminal, options)
    if arguments.kernel is not None and not report.kernels:
        everything = _load(arguments, None, terminal, {"disassemble": False, "mode": None})
        if everything.kernels:
            names = list(dict.fromkeys(shorten_name(kernel.name) for kernel in everything.kernels))
            listed = ", ".join(names[:_LISTED_KERNELS]) + (" and others" if len(names) > _LISTED_KERNELS else "")
            raise InputError(f"no kernel is named {arguments.kernel!r}", remedy=f"there are {listed}")
    return report if mode is None else _note_other_modes(report, mode)


def _note_other_modes(report: "Report", mode: str) -> "Report":
    """The report with a problem for each kernel that was saved in another mode."""
    others = [
        Problem.warning(
            f"shown are the causes and advice of mode {kernel.blame.blamer}, in which the report was saved",
            f"give the profile to analyse it in mode {mode}",
            kernel=kernel.mangled_name,
        )
        for kernel in report.kernels
        if kernel.blame is not None and kernel.blame.blamer != mode
    ]
    return replace(report, problems=(*report.problems, *others))


def load_before(arguments: argparse.Namespace, terminal: Terminal, mode: str | None = None) -> "Report | None":
    """The report named by ``--before``; None without one."""
    if arguments.before is None:
        return None
    earlier = copy.copy(arguments)
    earlier.paths = [arguments.before]
    return load_report(earlier, terminal, mode=mode)


def name_places(arguments: argparse.Namespace) -> "PlaceNames":
    """Places as commands show them: found from the current directory and by ``--map``."""
    from gpa_lsp.document.places import PlaceNames  # these imports bring numpy, which --help and --version do without

    return PlaceNames(locate_sources(arguments), _read_folder())


def find_exit_code(end: "CommandEnd", terminal: Terminal, *, sooner: str = "", crash: str = "") -> int:
    """Exit code after running a program: its own status; 2 if it was not started, 130 if the user ended it, 1 if we did."""
    from gpa_lsp.foundation.processes.watched_command import Ending, describe_signal

    if end.ending is Ending.NOT_STARTED:
        terminal.complain(f"gpa-lsp: the program was not started: {end.words}")
        return EXIT_BAD_INPUT
    if end.ending is not Ending.ENDED:
        more = f"; {sooner}" if sooner and end.ending is Ending.TIMED_OUT else ""
        terminal.complain(f"gpa-lsp: the program did not end by itself: {end.ending.value}{more}")
        return EXIT_INTERRUPTED if end.ending is Ending.CANCELLED else EXIT_FOUND
    if crash or (end.status is not None and end.status < 0):
        terminal.complain(f"gpa-lsp: {crash or f'the program was ended by {describe_signal(-(end.status or 0))}'}")
    return EXIT_FOUND if end.status is None else end.status if end.status >= 0 else 128 - end.status


def choose_exit_code(*reports: "Report | None") -> int:
    """2 when an input, or a kernel in one, could not be used, although the others were; else 0."""
    return judge_problems(problem for report in reports if report is not None for problem in report.problems)


def tell_problems(terminal: Terminal, *reports: "Report | None") -> None:
    """Print the problems of reports that were written to a file on standard error."""
    for problem in (problem for report in reports if report is not None for problem in report.problems):
        terminal.complain(f"{problem.severity.value}: {problem}")


def judge_problems(problems: Iterable[Problem]) -> int:
    """Exit code of an answer with these problems: 2 where a part of what was asked for is missing, else 0."""
    return EXIT_BAD_INPUT if any(problem.severity is ProblemSeverity.ERROR for problem in problems) else 0


def locate_sources(arguments: argparse.Namespace) -> "SourceLocator":
    """The command's source locator; there is one per command, since searching folders is slow."""
    from gpa_lsp.report.source_paths import SourceLocator

    known = getattr(arguments, "locator", None)
    if not isinstance(known, SourceLocator):
        known = arguments.locator = SourceLocator([_read_folder()], arguments.map, max_files=_MAX_FILES)
    return known


def _read_folder() -> Path:
    return Path(os.getcwd())  # noqa: PTH109 - the folder as the shell shows it, links unresolved


def _load(arguments: argparse.Namespace, kernel: str | None, terminal: Terminal, options: dict[str, Any]) -> "Report":
    from gpa_lsp.gpu.device.roofs_file import KeptRoofs
    from gpa_lsp.report.pipeline import load

    # a command with --roofs puts its kernels under those itself, saved ones too
    roofs = KeptRoofs() if getattr(arguments, "roofs", None) is None else None
    locator = locate_sources(arguments)
    with ProgressBar(terminal) as progress:
        return load(arguments.paths, kernel_filter=kernel, progress=progress, locator=locator, roofs=roofs, **options)
