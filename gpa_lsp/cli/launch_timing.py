"""Described launches timed on a GPU of this computer: what ``gpa-lsp profile --launches`` and ``--replay`` do."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.cupti_profile import check_output, explain_forbidden, find_period
from gpa_lsp.cli.inputs import EXIT_FOUND, judge_problems
from gpa_lsp.cli.options import Renamed, declare
from gpa_lsp.cli.outputs import write_file
from gpa_lsp.cli.predictions import InputKind, find_kind
from gpa_lsp.cli.static_check import SUFFIXES
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count_of, format_dim3, format_timed_ns

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.launch_timing import LaunchTimings, TimedLaunch

_DESCRIPTION_SUFFIX = ".launch.toml"
_OUTPUT_SUFFIX = ".timed.gpa-profile.json"


def add_timing_arguments(group: "argparse._ArgumentGroup") -> None:
    """What says which launches are timed."""
    declare(
        group,
        """
        --launches FILE  time the launches that FILE describes (NAME.launch.toml); no program runs, and no permission is needed; with --sampler cupti
                         one launch more of each is sampled
        --of CODE        source or build of those launches (default: the source beside FILE)
        --replay REPORT  launch kernels of a report again here: its code, grid and block, with the arguments that --launches describes
        --repetitions N  times that each launch is timed (default: %(default)s)
        """,
        launches=_parse_description,
        of=Path,
        replay=Path,
        repetitions=30,
    )
    group.add_argument("--launch", type=Path, action=Renamed, dest="launches")


def _parse_description(text: str) -> Path:
    if text.isdecimal():
        raise argparse.ArgumentTypeError(
            "how many launches are measured is --launch-count N; --launches names a description"
        )
    return Path(text)


def wants_timing(arguments: argparse.Namespace) -> bool:
    """Whether launches are to be timed in place of a program's.

    Raises:
        InputError: there is code, and no description of its launches.
    """
    if arguments.of is not None and arguments.launches is None:
        from gpa_lsp.execution.launches.read_launches import word_undescribed

        raise InputError(word_undescribed(), path=arguments.of, remedy="name one with --launches FILE")
    return arguments.launches is not None or arguments.replay is not None


def run_timing(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Time them, say what came out, and write it as a profile.

    Raises:
        GpaError: nothing could be timed; says why.
    """
    if arguments.application:
        raise InputError("a program and a description", remedy="give -- APP ARGS or --launches FILE, not both")
    if arguments.print or arguments.dry_run:
        raise InputError(
            "there is no command to print: no Nsight Compute is run", remedy="leave out --print and --dry-run"
        )
    if arguments.continuous:
        raise InputError(
            "--continuous adds up launches of a program", remedy="leave it out: a described launch is sampled once"
        )
    if arguments.replay is not None and arguments.of is not None:
        raise InputError("a report and other code", remedy="leave out --of: the code of a report is its own")
    found = _time(arguments)
    for problem in found.problems:
        terminal.complain(f"{problem.severity.value}: {problem}")
    if not found.launches:
        return EXIT_FOUND
    output = _choose_output(arguments)
    samples = _write(found, output, arguments, terminal)
    lines = [_describe(one) + _describe_samples(samples, number) for number, one in enumerate(found.launches)]
    lines += [f"written to {output}", ""]
    terminal.print_safely(lambda: terminal.write_text("\n".join(lines)))
    return judge_problems(found.problems)


def _write(found: "LaunchTimings", output: Path, arguments: argparse.Namespace, terminal: Terminal) -> tuple[int, ...]:
    """Write them; how many samples there are of each, where they are wanted and can be taken."""
    if arguments.sampler != "cupti" or arguments.timing:
        from gpa_lsp.execution.prediction.launch_timing import make_document

        write_file(json.dumps(make_document(found)) + "\n", output)
        return ()
    from gpa_lsp.execution.prediction.launch_timing import sample_launches

    check_output(output)
    sampled = sample_launches(found, output, period_exponent=find_period(arguments))
    if sampled.is_forbidden:
        explain_forbidden(terminal)
    for problem in sampled.problems:
        terminal.complain(f"{problem.severity.value}: {problem}")
    return sampled.samples


def _describe_samples(samples: tuple[int, ...], number: int) -> str:
    return f"; {format_count_of(samples[number], 'sample')} of one launch more" if samples else ""


def _time(arguments: argparse.Namespace) -> "LaunchTimings":
    from gpa_lsp.execution.local_gpu.timing import TimingSettings
    from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
    from gpa_lsp.execution.prediction.launch_timing import TimingWork, time_build, time_report, time_source

    settings = TimingSettings(repetitions=max(1, arguments.repetitions), is_cold=arguments.cache_control != "none")
    choice, work = LaunchChoice(path=arguments.launches), TimingWork(settings=settings)
    kernel = arguments.kernel or None
    if arguments.replay is not None:
        return time_report(arguments.replay, choice, kernel=kernel, work=work)
    code = arguments.of or find_code(arguments.launches)
    time = time_build if find_kind(code) is InputKind.BUILD else time_source
    return time(code, choice, kernel=kernel, work=work)


def find_code(described: Path) -> Path:
    """The source that a description stands beside.

    Raises:
        InputError: there is none.
    """
    name = described.name.removesuffix(_DESCRIPTION_SUFFIX)
    found = next((one for suffix in SUFFIXES if (one := described.with_name(name + suffix)).is_file()), None)
    if found is None:
        message = "no source beside it that it could describe"
        raise InputError(message, path=described, remedy="name the source or the build with --of")
    return found


def _choose_output(arguments: argparse.Namespace) -> Path:
    if arguments.output is not None:
        output: Path = arguments.output
        return output
    named = arguments.launches or arguments.replay
    return Path(named.name.split(".")[0] + _OUTPUT_SUFFIX)


def _describe(one: "TimedLaunch") -> str:
    timing = one.timing
    caches = "L2 overwritten before each" if timing.is_cold else "caches as the launch before left them"
    return (
        f"{one.name} <<<{format_dim3(one.launch.grid)}, {format_dim3(one.launch.block)}>>> on {timing.gpu}: "
        f"{format_timed_ns(timing.median_ns, timing.error_ns)} (measured: median of {format_count_of(len(timing.times_ns), 'launch')}, {caches})"
    )
