"""``gpa-lsp profile``: measure a program, with Nsight Compute or with a collector of ours in it, asking for what the advisor reads; or time and
sample described launches.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, judge_problems
from gpa_lsp.cli.options import (
    Renamed,
    add_application_argument,
    add_output_argument,
    declare,
    parse_count,
    parse_whole,
    read_application,
)
from gpa_lsp.cli.outputs import refuse_standard_output, write_file
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.execution.prediction.input_kinds import SUFFIXES
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count_of, format_dim3, format_timed_ns

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.launch_timing import LaunchTimings, TimedLaunch
    from gpa_lsp.profile.collect.model import Explanation
    from gpa_lsp.profile.collect.recipe import Recipe
    from gpa_lsp.profile.collector.choosing import Selection
    from gpa_lsp.profile.collector.run import CollectedRun, CollectorSettings

_DEFAULT_OUTPUT = Path("profile.ncu-rep")
_HELP_TIMEOUT_S = 20


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser.add_argument_group("what is measured"), _SELECTION, kernel="", launch_count=3, skip=0)
    controls = {"replay_mode": "kernel", "clock_control": "none", "cache_control": "all"}
    group = parser.add_argument_group("how it is measured")
    declare(group, _CONTROL, sampling_interval=parse_whole(0, 31), sampling_buffer_size=parse_count, **controls)
    add_cupti_arguments(parser.add_argument_group("how it is measured without Nsight Compute"))
    add_timing_arguments(parser.add_argument_group("described launches, timed without Nsight Compute"))
    what = f"the report (default: {_DEFAULT_OUTPUT}; with --sampler cupti {CUPTI_OUTPUT}; with --launches or --replay their name with "
    add_output_argument(parser, f"{what}.timed.gpa-profile.json)", is_measurement=True)
    declare(
        parser,
        """
        --ncu PATH  Nsight Compute's program (default: $GPA_LSP_NCU, PATH, usual folders)
        --print     only print the command, for ssh, srun, docker or a script
        --dry-run   find Nsight Compute, print the command, and run nothing
        """,
        ncu=str,
    )
    add_application_argument(parser, "measure")


_SELECTION = """
    --kernel NAME          only kernels whose readable name contains NAME (mangled, when it starts with _Z)
    --launch-count N       launches to measure: per kernel and launch configuration, or with --kernel over all that match (default: %(default)s; 0 for
                           all)
    --skip N               matching launches to skip first
    --nvtx RANGE...        only launches in this NVTX range, e.g. step/
    --from-profiler-start  only between cudaProfilerStart and cudaProfilerStop
    --full                 everything Nsight Compute can collect; takes longer
    --roofline             also rooflines per data type and level of memory
    --section NAME...      one more section
    --metric NAME...       one more metric
    --no-metrics           only the metrics of sections, none of our own
"""

_CONTROL = """
    --replay-mode {kernel,application,range,app-range}  repeat each launch (default), the whole program, or ranges between cudaProfilerStart and
                                  cudaProfilerStop
    --clock-control {none,base,boost}  lock the GPU's clocks; none (default) needs no permission and measures the program's own times
    --cache-control {all,none}    empty the caches before each pass (default: all)
    --sampling-interval N         a sample every 2^(5+N) cycles, N from 0 to 31 (default: automatic)
    --sampling-buffer-size BYTES  buffer for samples on the GPU (default: 32 MiB, 3.7 million samples)
    --source-folder DIR...        folder of sources that moved since they were compiled; repeatable
    --option WORD...              passed to Nsight Compute unchanged
"""


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    refuse_standard_output(arguments.output, "a measurement")
    if wants_timing(arguments):
        return run_timing(arguments, terminal)
    from gpa_lsp.profile.collect.recipe import build_command

    application = read_application(arguments, "measure", "profile")
    if arguments.sampler == "cupti":
        return profile_with_cupti(arguments, application, terminal)
    arguments.output = arguments.output or _DEFAULT_OUTPUT
    recipe = _make_recipe(arguments)
    if arguments.print:
        command = build_command(recipe, application, ncu=arguments.ncu or "ncu")
        terminal.print_safely(lambda: terminal.write_text(f"{shlex.join(command)}\n"))
        return 0
    from gpa_lsp.profile.collect.recipe import find_ncu

    ncu = str(find_ncu(arguments.ncu))
    command = build_command(recipe, application, ncu=ncu, sampling_prefix=_find_sampling_prefix(ncu, recipe))
    check_output(arguments.output)
    if arguments.dry_run:
        terminal.print_safely(lambda: terminal.write_text(f"{shlex.join(command)}\n"))
        return 0
    return _measure(command, arguments.output, terminal)


def _make_recipe(arguments: argparse.Namespace) -> "Recipe":
    from gpa_lsp.profile.collect.recipe import Recipe

    return Recipe(
        output=arguments.output,
        kernel=arguments.kernel,
        launches=arguments.launch_count,
        skipped_launches=arguments.skip,
        is_full=arguments.full,
        has_rooflines=arguments.roofline,
        sections=tuple(arguments.section),
        metrics=tuple(arguments.metric),
        has_metrics=not arguments.no_metrics,
        replay_mode=arguments.replay_mode,
        clock_control=arguments.clock_control,
        cache_control=arguments.cache_control,
        sampling_interval=arguments.sampling_interval,
        sampling_buffer_bytes=arguments.sampling_buffer_size,
        source_folders=tuple(map(str, arguments.source_folder)),
        nvtx_ranges=tuple(arguments.nvtx),
        starts_enabled=not arguments.from_profiler_start,
        options=tuple(arguments.option),
    )


def _find_sampling_prefix(ncu: str, recipe: "Recipe") -> str:
    """Prefix of ncu's sampling options, read from ``ncu --help``, which is slow, only where such options are used."""
    from gpa_lsp.profile.collect.recipe import read_sampling_prefix

    if recipe.sampling_interval is None and recipe.sampling_buffer_bytes is None:
        return read_sampling_prefix("")
    try:
        done = subprocess.run(
            [ncu, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_HELP_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return read_sampling_prefix("")
    return read_sampling_prefix(done.stdout)


def _measure(command: tuple[str, ...], output: Path, terminal: Terminal) -> int:
    from gpa_lsp.profile.collect.command_run import run_in_foreground
    from gpa_lsp.profile.collect.explain import explain, says_nothing_measured
    from gpa_lsp.profile.collect.measured_reports import find_written

    before = _read_stamp(find_written(output))
    result = run_in_foreground(command, terminal.out, terminal.err)
    written = find_written(output)
    if written is not None and _read_stamp(written) == before:
        written = None  # what lies there is of another run
    is_well = result.is_success and written is not None and not says_nothing_measured(result)
    if not is_well:
        explanation = explain(result, program=command[0])
        if explanation is None:
            terminal.complain("gpa-lsp: Nsight Compute succeeded, but wrote no report")
        else:
            complain(explanation, terminal)
    if written is not None:
        terminal.complain(f"gpa-lsp: the report is {written}; next: gpa-lsp advise {shlex.quote(str(written))}")
    if is_well:
        return 0
    return EXIT_BAD_INPUT if result.ending.value == "not started" else EXIT_FOUND


def _read_stamp(path: Path | None) -> tuple[Path, int, int, int] | None:
    if path is None:
        return None
    status = path.stat()
    return path, status.st_size, status.st_mtime_ns, status.st_ino


COMMAND = Command(
    summary="measure a program with Nsight Compute, or without it: builds the command line, explains its errors",
    description=(
        "Measure the kernels of a program with Nsight Compute, collecting what the advisor reads: stall samples and counts by instruction, "
        "launch, occupancy, throughputs, roofline, sources. Compile the program with -lineinfo. With --sampler cupti a library is loaded into the "
        "program instead, which samples its kernels and notes where they were launched from; where counters may not be read, it times them. "
        "Exit codes: 0 a report was written, 1 the measurement failed, 2 it could not be started."
    ),
    purpose=Purpose.MEASURE,
    examples=(
        ("profile -o matmul.ncu-rep -- ./matmul 4096", "measure the kernels of a program"),
        (
            "profile --kernel matmul --skip 2 --launch-count 1 -- ./matmul 4096",
            "measure the third launch of one kernel",
        ),
    ),
    add_arguments=_add_arguments,
    run=_run,
)


CUPTI_OUTPUT = Path("profile.gpa-profile.json")
_TIMED_SUFFIX = ".timed.gpa-profile.json"
_LEAST_EXPONENT = 5
# Arguments that mean nothing here
_NCU_ALONE = {
    "full": "--full", "roofline": "--roofline", "section": "--section", "metric": "--metric", "no_metrics": "--no-metrics",
    "nvtx": "--nvtx", "from_profiler_start": "--from-profiler-start", "ncu": "--ncu", "option": "--option",
    "source_folder": "--source-folder", "sampling_buffer_size": "--sampling-buffer-size", "print": "--print",
}  # fmt: skip


def add_cupti_arguments(group: "argparse._ArgumentGroup") -> None:
    """Options of ``--sampler cupti``."""
    declare(
        group,
        """
        --sampler {ncu,cupti}  ncu: Nsight Compute (default); cupti: a library in the program, which needs NVIDIA's CUPTI (the extra [cupti])
        --continuous           cupti: kernels run as they do without it, and samples are added up by kernel; else one kernel runs at a time, which
                               programs that wait for other processes (NCCL) may not bear
        --duty PERCENT         cupti, continuous: sample in this part of each second (default: %(default)s)
        --timing               cupti: time kernels, sample none; needs no permission
        --seconds S            cupti: end the program and all it started after so many seconds; what was measured until then is kept
        """,
        sampler="ncu",
        duty=(parse_whole(1, 100), 100),
    )
    group.add_argument("--limit", type=parse_count, action=Renamed, dest="seconds")


def profile_with_cupti(arguments: argparse.Namespace, application: Sequence[str], terminal: Terminal) -> int:
    """Measure a program and print where the profile is."""
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
    """Binary logarithm of the cycles between two samples; None lets CUPTI choose."""
    return None if arguments.sampling_interval is None else _LEAST_EXPONENT + arguments.sampling_interval


def explain_forbidden(terminal: Terminal) -> None:
    """Print that the driver forbids sampling, and the remedy."""
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
    """Print why something failed, and the remedies."""
    terminal.complain(f"gpa-lsp: {explanation.summary}")
    for remedy in explanation.remedies:
        terminal.complain(f"  - {remedy}")
    if explanation.url is not None:
        terminal.complain(f"  see {explanation.url}")


def check_output(output: Path) -> None:
    """Check the output folder before the measurement."""
    folder = output.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        what = "cannot be written to" if folder.is_dir() else "is not a folder"
        raise InputError(what, path=folder, remedy="choose another place for the report with -o")


def add_timing_arguments(group: "argparse._ArgumentGroup") -> None:
    """Options that choose the launches to time."""
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
    """Whether described launches are timed instead of a program's.

    Raises:
        InputError: there is code, and no description of its launches.
    """
    if arguments.of is not None and arguments.launches is None:
        from gpa_lsp.execution.launches.read_launches import word_undescribed

        raise InputError(word_undescribed(), path=arguments.of, remedy="name one with --launches FILE")
    return arguments.launches is not None or arguments.replay is not None


def run_timing(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Time launches, print their times, and write them as a profile.

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
    samples = _write_timed(found, output, arguments, terminal)
    lines = [_describe_timed(one) + _describe_samples(samples, number) for number, one in enumerate(found.launches)]
    lines += [f"written to {output}", ""]
    terminal.print_safely(lambda: terminal.write_text("\n".join(lines)))
    return judge_problems(found.problems)


def _write_timed(
    found: "LaunchTimings", output: Path, arguments: argparse.Namespace, terminal: Terminal
) -> tuple[int, ...]:
    """Write the profile; return the number of samples per launch, empty where none were taken."""
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
    from gpa_lsp.execution.prediction.launch_timing import TimingWork, time_launches

    settings = TimingSettings(repetitions=max(1, arguments.repetitions), is_cold=arguments.cache_control != "none")
    choice, work = LaunchChoice(path=arguments.launches), TimingWork(settings=settings)
    kernel = arguments.kernel or None
    code = arguments.replay or arguments.of or find_code(arguments.launches)
    return time_launches(code, choice, kernel=kernel, work=work)


def find_code(described: Path) -> Path:
    """The source next to a launch description.

    Raises:
        InputError: there is none.
    """
    name = described.name.removesuffix(DESCRIPTION_SUFFIX)
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
    return Path(named.name.split(".")[0] + _TIMED_SUFFIX)


def _describe_timed(one: "TimedLaunch") -> str:
    timing = one.timing
    caches = "L2 overwritten before each" if timing.is_cold else "caches as the launch before left them"
    return (
        f"{one.name} <<<{format_dim3(one.launch.grid)}, {format_dim3(one.launch.block)}>>> on {timing.gpu}: "
        f"{format_timed_ns(timing.median_ns, timing.error_ns)} (measured: median of {format_count_of(len(timing.times_ns), 'launch')}, {caches})"
    )
