"""Processes that time and sample launches. One compiles; the GPU's context is held by a process of its own, which stays with it. The other
one samples, so that it can be ended without that.
"""

import hashlib
from pathlib import Path

from gpa_lsp.editor.timed.view import (
    Job,
    LaunchTime,
    LookJob,
    LookResult,
    SampleJob,
    SampleResult,
    TimedJob,
    TimedResult,
)
from gpa_lsp.execution.compiler.model import choose_compile_settings
from gpa_lsp.execution.local_gpu.timing import find_gpu
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.launch_timing import LaunchTimings, TimedLaunch, TimingWork, time_launches
from gpa_lsp.foundation.errors import GpaError, MissingToolError
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.numbers import format_dim3
from gpa_lsp.foundation.packed_records import pack_records, read_records
from gpa_lsp.foundation.processes.worker import Tell, Work


def do_job(job: Job, _: Tell) -> object:
    """The result of a job."""
    if isinstance(job, LookJob):
        return _look()
    return _time(job) if isinstance(job, TimedJob) else _sample(job)


def _look() -> LookResult:
    try:
        return LookResult(gpu=find_gpu().name)
    except MissingToolError as error:
        return LookResult(reason=f"{error.tool} is not installed")
    except GpaError as error:
        return LookResult(reason=str(error))


def _time(job: TimedJob) -> TimedResult:
    base = job.base
    try:
        found = time_launches(
            base.path,
            LaunchChoice(path=base.launches_path, text=base.launches_text),
            text=base.text,
            work=TimingWork(memory_bytes=base.memory_bytes),
            compile_settings=choose_compile_settings(base.path, base.roots, base.limit_s),
        )
        _keep(found, job.kept)
    except (GpaError, OSError) as error:
        return TimedResult(job=job, failure=str(error))
    return TimedResult(
        job=job,
        times=tuple(map(_describe, found.launches)),
        problems=tuple(map(str, found.problems)),
        failure="" if found.launches else "; ".join(map(str, found.problems)),
    )


def _describe(one: TimedLaunch) -> LaunchTime:
    timing, launch = one.timing, one.launch
    return LaunchTime(
        mangled_name=one.mangled_name,
        name=one.name,
        shape=f"<<<{format_dim3(launch.grid)}, {format_dim3(launch.block)}>>>",
        gpu=timing.gpu,
        median_ns=timing.median_ns,
        error_ns=timing.error_ns,
        launches=len(timing.times_ns),
        code=_digest(one.job.image),
        launch=_digest(repr((launch.grid, launch.block, launch.shared_bytes, launch.arguments)).encode()),
    )


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _keep(timings: LaunchTimings, path: Path) -> None:
    with atomic_write(path, encoding=None) as stream:
        stream.write(pack_records(timings))


def _sample(job: SampleJob) -> SampleResult:
    from gpa_lsp.execution.prediction.launch_timing import sample_launches

    try:
        found = sample_launches(read_records(job.kept, LaunchTimings), job.target)
    except (GpaError, OSError) as error:
        return SampleResult(reason=str(error))
    return SampleResult(samples=sum(found.samples), reason="; ".join(one.message for one in found.problems))


def _explain(job: Job, reason: str) -> object:
    if isinstance(job, LookJob):
        return LookResult(reason=reason)
    return TimedResult(job=job, failure=reason) if isinstance(job, TimedJob) else SampleResult(reason=reason)


WORK = Work(do=do_job, explain=_explain)
