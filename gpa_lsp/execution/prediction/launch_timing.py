"""Described launches, timed on a GPU of this computer: :func:`time_launches`.

No program of the user runs: code comes from a compiler, a build or a report, arguments from a description.
"""

import base64
import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.compiler.ptx_files import read_build
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import explain_undescribed
from gpa_lsp.execution.local_gpu.timing import (
    DEFAULT_TIMING,
    Greeting,
    LaunchTiming,
    TimingJob,
    TimingSettings,
    find_gpu,
    time_on_gpu,
)
from gpa_lsp.execution.local_gpu.timing_worker import LAUNCHES
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.launched_code import (
    CodeChoice,
    CodeModule,
    explain_no_launch,
    match_code,
    read_image_module,
    read_launched,
)
from gpa_lsp.execution.prediction.static_source import examine_unit
from gpa_lsp.foundation.errors import GpaError, Problem, spare_others
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.packed_records import pack_records
from gpa_lsp.foundation.processes.python_children import isolate_module
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, Ending
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.collector.choosing import Selection
from gpa_lsp.profile.collector.run import CollectedRun, CollectorSettings, Cupti, collect, find_cupti
from gpa_lsp.profile.native import FORMAT

TOOL = "gpa-lsp profile --launches"
_MEMORY_BYTES = 64 << 30  # Of arrays; how much the GPU has is asked there


class TimedLaunch(Struct, frozen=True, kw_only=True):
    """A launch and its times."""

    mangled_name: str  # of the kernel
    launch: LaunchDescription  # as it was launched
    image: bytes | None  # that was loaded; None where the driver assembled PTX
    timing: LaunchTiming  # of it
    job: TimingJob  # that was timed, as it can be launched again

    @property
    def name(self) -> str:
        """Name of the kernel for people, short enough for a line."""
        return shorten_name(demangle(self.mangled_name))


class LaunchTimings(Struct, frozen=True, kw_only=True):
    """Times of launches, and the launches that failed."""

    launches: tuple[TimedLaunch, ...]  # in the order of the description
    problems: tuple[Problem, ...] = ()  # of those that failed


class TimingWork(Struct, frozen=True, kw_only=True):
    """Settings and functions that launches are timed with."""

    settings: TimingSettings = DEFAULT_TIMING  # of each
    find: Callable[[], Greeting] = find_gpu  # looks for the GPU
    time: Callable[[TimingJob], LaunchTiming] = time_on_gpu  # times one launch
    memory_bytes: int = _MEMORY_BYTES  # of all arrays of a launch


DEFAULT_WORK = TimingWork()


def time_launches(
    path: Path,
    launches: LaunchChoice,
    *,
    kernel: str | None = None,
    text: str | None = None,
    work: TimingWork = DEFAULT_WORK,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
) -> LaunchTimings:
    """Time launches of a source, of what was built, or of a report, whose arguments are described.

    A source is compiled for the GPU there is; the driver assembles the PTX of what was built for another one.

    Args:
        path: of the code.
        launches: choice of launches.
        kernel: only kernels of this name, or else those whose name contains it; None for all.
        text: what an editor holds of a source; None to read the file.
        work: settings.
        compile_settings: of the compiler.

    Raises:
        InputError: it does not compile, or no launch of it is described.
        MissingToolError: there is no compiler, or no GPU.
        ToolError: the process that times did not start.
    """
    gpu = work.find()
    is_source = text is not None or find_kind(path) is InputKind.SOURCE
    choice = CodeChoice(
        kernel=kernel,
        launches=launches,
        text=text,
        compute_capability=gpu.compute_capability if is_source else None,
        compile_settings=compile_settings,
        newest=gpu.compute_capability,
        assembles=False,
    )
    problems: list[Problem] = []
    images = [] if is_source else _list_images_without_ptx(path, gpu)
    code = match_code(path, images, choice, problems) if images else read_launched(path, choice, problems)
    if not code.launches:
        raise explain_no_launch(path, code, problems, kernel)
    if any(one.measured for one in code.launches):
        problems += [
            Problem.warning(explain_undescribed(path, (demangle(name),), code.described).message)
            for name in code.undescribed
        ]
    done: list[TimedLaunch] = []
    for one in code.launches:
        name = one.function.name
        image = _choose_image(one.code.unit.cubin, gpu, path)
        job = TimingJob(
            image=image or one.code.module.text.encode(),
            ptx=one.code.module.text,
            function=name,
            launch=one.launch,
            settings=work.settings,
            memory_bytes=work.memory_bytes,
        )
        with spare_others(f"timing a launch of {shorten_name(demangle(name))}", problems, kernel=name):
            timing = work.time(job)
            done.append(TimedLaunch(mangled_name=name, launch=one.launch, image=image, timing=timing, job=job))
    return LaunchTimings(launches=tuple(done), problems=tuple(problems))


def _list_images_without_ptx(path: Path, gpu: Greeting) -> list[CodeModule]:
    """The images for a GPU of a build without any PTX, with their kernels' parameters; none where it has PTX."""
    if find_kind(path) is not InputKind.BUILD:
        return []
    units = read_build(path, assembles=False)
    if any(unit.ptx is not None for unit in units):
        return []
    found: list[CodeModule] = []
    for unit in units:
        if unit.cubin is not None and _choose_image(unit.cubin, gpu, path) is not None:
            cubin = read_cubin(unit.cubin, path=path)
            kernels = [name for name, function in cubin.functions.items() if function.is_entry]
            examine = partial(examine_unit, unit, path=path.absolute(), text="")
            found.append(CodeModule(unit, read_image_module(cubin, kernels), examine))
    return found


def _choose_image(image: bytes | None, gpu: Greeting, path: Path) -> bytes | None:
    """The image where the GPU runs it, that is, has its major and at least its minor number; else None."""
    if image is None:
        return None
    major, minor = divmod(read_cubin(image, path=path).sm, 10)
    own_major, own_minor = gpu.compute_capability
    return image if major == own_major and minor <= own_minor else None


def make_document(timings: LaunchTimings) -> dict[str, Any]:
    """The times as a native profile (``gpa-lsp/profile/2``): durations, and no samples."""
    images: dict[bytes, int] = {}
    for one in timings.launches:
        if one.image is not None:
            images.setdefault(one.image, len(images))
    return {
        "format": FORMAT,
        "tool_version": TOOL,
        "modules": [_make_module(number, image) for image, number in images.items()],
        "launches": [_make_launch(one, images) for one in timings.launches],
        "problems": [{"severity": "note", "message": "launches were timed; nothing was sampled or counted"}],
    }


def _make_module(number: int, image: bytes) -> dict[str, Any]:
    cubin = read_cubin(image)
    return {
        "id": number,
        "compute_capability": f"{cubin.sm // 10}.{cubin.sm % 10}",
        "cubin": {"base64": base64.b64encode(image).decode("ascii")},
        "functions": [{"name": name, "size_bytes": one.size_bytes} for name, one in cubin.functions.items()],
    }


def _make_launch(one: TimedLaunch, images: dict[bytes, int]) -> dict[str, Any]:
    timing = one.timing
    device: dict[str, Any] = {"name": timing.gpu, "compute_capability": "{}.{}".format(*timing.compute_capability)}
    if timing.sm_count is not None:
        device["sm_count"] = timing.sm_count
    return {
        "kernel": one.mangled_name,
        "demangled_name": demangle(one.mangled_name),
        **({} if one.image is None else {"module": images[one.image]}),
        "grid": list(one.launch.grid),
        "block": list(one.launch.block),
        "device": device,
        "duration_ns": round(timing.median_ns, 1),
        "metrics": {"launch__shared_mem_per_block_dynamic": one.launch.shared_bytes},
        "samples": [],
    }


# One more launch of each, with the collector in the process that launches: :func:`sample_launches`. Times are those
# without it.

SAMPLING_TOOL = "gpa-lsp profile --launches --sampler cupti"
_MODULE = "gpa_lsp.execution.local_gpu.timing_worker"
_ALL = Selection(launches=0)
_SPARE_S = 120.0  # For starting Python and CUPTI, loading code and filling arrays


class SampledTimings(Struct, frozen=True, kw_only=True):
    """Outcome of sampling; a profile was written in any case."""

    samples: tuple[int, ...]  # of each launch, in order; empty where none was sampled
    problems: tuple[Problem, ...]  # why not, and notes for the reader
    is_forbidden: bool = False  # the driver does not let us sample


def sample_launches(timings: LaunchTimings, output: Path, *, period_exponent: int | None = None) -> SampledTimings:
    """Launch each again, sampled, and write times and samples as one profile; times alone where nothing can be sampled.

    Args:
        timings: at least one.
        output: the profile.
        period_exponent: 2 to its power are the cycles between two samples; None lets CUPTI choose.

    Raises:
        GpaError: the profile cannot be written.
    """
    plain = make_document(timings)
    try:
        if sys.platform != "linux":
            raise GpaError("launches are sampled on Linux alone")
        run, words = _run(timings, output, find_cupti(), period_exponent)
    except GpaError as error:
        return _give_up(plain, output, str(error))
    document = json.loads(output.read_bytes()) if run.profile and run.profile.launches else {"launches": []}
    launches: list[dict[str, Any]] = document["launches"][LAUNCHES - 1 :: LAUNCHES]  # the last one of each
    problems = () if run.profile is None else run.profile.problems
    is_whole = [one["kernel"] for one in launches] == [one.mangled_name for one in timings.launches]
    if not is_whole or not all("samples" in one for one in launches):
        return _give_up(plain, output, _explain(run, words), is_forbidden=run.is_forbidden)
    document["tool_version"] = SAMPLING_TOOL
    document["launches"] = [_lay_over(one, timed) for one, timed in zip(launches, plain["launches"], strict=True)]
    message = "times are those of launches without a collector; samples are of one launch more"
    document["problems"] = [*document["problems"], {"severity": "note", "message": message}]
    _write(document, output)
    return SampledTimings(samples=tuple(_count(one) for one in launches), problems=problems)


def _run(timings: LaunchTimings, output: Path, cupti: Cupti, period_exponent: int | None) -> tuple[CollectedRun, str]:
    """Run the process that launches: its outcome, and its messages of errors."""
    jobs = [one.job for one in timings.launches]
    limit_s = _SPARE_S + sum(2 * LAUNCHES * one.settings.launch_seconds for one in jobs)
    settings = CollectorSettings(period_exponent=period_exponent, limit_s=limit_s)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        held, complaints = Path(name) / "jobs", Path(name) / "complaints"
        held.write_bytes(pack_records(tuple(jobs)))
        with Path(os.devnull).open("r+b") as nothing, complaints.open("wb") as errors:
            streams = (nothing.fileno(), nothing.fileno(), errors.fileno())
            run = collect(isolate_module(_MODULE, str(held)), settings, cupti, output, _ALL, streams=streams)
        return run, complaints.read_text(errors="replace").strip()


def _lay_over(sampled: dict[str, Any], timed: dict[str, Any]) -> dict[str, Any]:
    """A sampled launch with its time, and without its call stack, which is ours."""
    found = {**sampled, "duration_ns": timed["duration_ns"]}
    found.pop("call_stack", None)
    return found


def _count(launch: dict[str, Any]) -> int:
    return sum(counts["all"] for row in launch["samples"] for counts in row["by_reason"].values())


def _explain(run: CollectedRun, words: str) -> str:
    if run.profile is not None and run.profile.problems:
        first = run.profile.problems[0]
        return f"{first.message}{f'; {first.remedy}' if first.remedy else ''}"
    if words:
        return words.splitlines()[-1]
    return run.end.words or (run.end.ending.value if run.end.ending is not Ending.ENDED else "CUPTI gave no samples")


def _give_up(document: dict[str, Any], output: Path, reason: str, *, is_forbidden: bool = False) -> SampledTimings:
    _write(document, output)
    problem = Problem.warning(f"timed alone, not sampled: {reason}")
    return SampledTimings(samples=(), problems=(problem,), is_forbidden=is_forbidden)


def _write(document: dict[str, Any], output: Path) -> None:
    try:
        with atomic_write(output) as stream:
            json.dump(document, stream)
    except OSError as error:
        raise GpaError(f"{output} cannot be written: {error.strerror or error}") from error
