"""``gpa-lsp profile --sampler cupti``: measure a program with a library of ours in it."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, judge_problems
from gpa_lsp.cli.options import Renamed, declare, parse_count, parse_whole
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.profile.collect.model import Explanation
    from gpa_lsp.profile.collector.choosing import Selection
    from gpa_lsp.profile.collector.run import CollectedRun, CollectorSettings

CUPTI_OUTPUT = Path("profile.gpa-profile.json")
_LEAST_EXPONENT = 5
# Arguments that mean nothing here
_NCU_ALONE = {
    "full": "--full", "roofline": "--roofline", "section": "--section", "metric": "--metric", "no_metrics": "--no-metrics",
    "nvtx": "--nvtx", "from_profiler_start": "--from-profiler-start", "ncu": "--ncu", "option": "--option",
    "source_folder": "--source-folder", "sampling_buffer_size": "--sampling-buffer-size", "print": "--print",
}  # fmt: skip


def add_cupti_arguments(group: "argparse._ArgumentGroup") -> None:
    """The arguments that choose and control this way of measuring."""
    declare(
        group,
        """
        --sampler {ncu,cupti}  ncu: Nsight Compute (default); cupti: a library in the program, which needs NVIDIA's CUPTI (the extra [cupti])
        --continuous           cupti: kernels run as they do without it, and samples are added up by kernel; else one kernel runs at a time, which
                               programs that wait for other processes (NCCL) may not bear
        --duty PERCENT         cupti, continuous: sample in this part of each second (default: %(default)s)
        --timing               cupti: time kernels, sample none; needs no permission
        --seconds S            cupti: end the program and all it started after so long; what was measured until then is kept
        """,
        sampler="ncu",
        duty=(parse_whole(1, 100), 100),
    )
    group.add_argument("--limit", type=parse_count, action=Renamed, dest="seconds")


def profile_with_cupti(arguments: argparse.Namespace, application: Sequence[str], terminal: Terminal) -> int:
    """Measure, and say where the profile is."""
    _refuse_others(arguments)
    if sys.platform != "linux":
        raise InputError("--sampler cupti works on Linux alone", remedy="measure with Nsight Compute: leave it out")
    from gpa_lsp.profile.collector.run import collect, find_cupti

    output = arguments.output or CUPTI_OUTPUT
    cupti = find_cupti()
    settings = _make_settings(arguments)
    if arguments.dry_run:
        words = shlex.join(application)
        library = cupti.library or "the program's own"
        terminal.print_safely(lambda: terminal.write_text(f"{settings.mode.name.lower()} with {library}: {words}\n"))
        return 0
    check_output(output)
    run = collect(
        application, settings, cupti, output, _make_selection(arguments),
        streams=(0, 1, 2), tell_ended=lambda: terminal.complain("gpa-lsp: the program has ended; reading what was measured"),
    )  # fmt: skip
    return _conclude(run, output, terminal)


def _refuse_others(arguments: argparse.Namespace) -> None:
    for name, option in _NCU_ALONE.items():
        if getattr(arguments, name, None):
            raise InputError(f"{option} is for Nsight Compute", remedy="leave it out, or leave out --sampler cupti")
    if arguments.duty != 100 and not arguments.continuous:
        raise InputError("--duty is for continuous sampling", remedy="add --continuous")
    if arguments.timing and arguments.continuous:
        raise InputError("--timing takes no samples", remedy="leave out --continuous")


def _make_settings(arguments: argparse.Namespace) -> "CollectorSettings":
    from gpa_lsp.profile.collector.records import Mode
    from gpa_lsp.profile.collector.run import NO_LIMIT_S, CollectorSettings

    mode = Mode.TIMING if arguments.timing else Mode.CONTINUOUS if arguments.continuous else Mode.SERIALIZED
    return CollectorSettings(
        mode=mode,
        duty_percent=arguments.duty,
        period_exponent=find_period(arguments),
        limit_s=float(arguments.seconds) if arguments.seconds else NO_LIMIT_S,
    )


def find_period(arguments: argparse.Namespace) -> int | None:
    """2 to its power are the cycles between two samples; None lets CUPTI choose."""
    return None if arguments.sampling_interval is None else _LEAST_EXPONENT + arguments.sampling_interval


def explain_forbidden(terminal: Terminal) -> None:
    """Say that the driver does not let us sample, and what helps."""
    from gpa_lsp.profile.collect.explain import find_explanation

    complain(find_explanation("counters-forbidden"), terminal)


def _make_selection(arguments: argparse.Namespace) -> "Selection":
    from gpa_lsp.profile.collector.choosing import Selection

    return Selection(kernel=arguments.kernel, launches=arguments.launch_count, skipped_launches=arguments.skip)


def _conclude(run: "CollectedRun", output: Path, terminal: Terminal) -> int:
    if run.is_forbidden:
        explain_forbidden(terminal)
    if run.profile is None or not run.profile.launches:
        return _explain_nothing(run, terminal)
    for problem in run.profile.problems:
        terminal.complain(f"gpa-lsp: {problem.message}")
    terminal.complain(f"gpa-lsp: the profile is {output}; next: gpa-lsp advise {shlex.quote(str(output))}")
    return judge_problems(run.profile.problems) if run.end.status == 0 else EXIT_FOUND


def _explain_nothing(run: "CollectedRun", terminal: Terminal) -> int:
    from gpa_lsp.foundation.processes.watched_command import Ending

    if run.end.ending is Ending.NOT_STARTED:
        terminal.complain(f"gpa-lsp: the program cannot be started: {run.end.words}")
        return EXIT_BAD_INPUT
    if run.profile is None:
        terminal.complain("gpa-lsp: no process of the program started CUDA; nothing was measured")
    else:
        for problem in run.profile.problems:
            terminal.complain(f"gpa-lsp: {problem.message}{f'; {problem.remedy}' if problem.remedy else ''}")
        terminal.complain("gpa-lsp: no launch of a kernel was seen; nothing was measured")
    return EXIT_FOUND


def complain(explanation: "Explanation", terminal: Terminal) -> None:
    """Say why something failed, and what helps."""
    terminal.complain(f"gpa-lsp: {explanation.summary}")
    for remedy in explanation.remedies:
        terminal.complain(f"  - {remedy}")
    if explanation.url is not None:
        terminal.complain(f"  see {explanation.url}")


def check_output(output: Path) -> None:
    """Better said before the measurement than after it."""
    folder = output.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        what = "cannot be written to" if folder.is_dir() else "is not a folder"
        raise InputError(what, path=folder, remedy="choose another place for the report with -o")
