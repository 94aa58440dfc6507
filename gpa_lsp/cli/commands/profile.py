"""``gpa-lsp profile``: measure a program, with Nsight Compute or with a collector of ours in it, asking for what the advisor reads."""

import argparse
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND
from gpa_lsp.cli.options import (
    add_application_argument,
    add_output_argument,
    declare,
    parse_count,
    parse_whole,
    read_application,
)
from gpa_lsp.cli.outputs import refuse_standard_output
from gpa_lsp.cli.own_measurement import (
    CUPTI_OUTPUT,
    add_cupti_arguments,
    add_timing_arguments,
    check_output,
    complain,
    profile_with_cupti,
    run_timing,
    wants_timing,
)
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.profile.collect.recipe import Recipe

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
