"""Worker that times launches. Keeps a context between jobs, and is ended if a kernel does not end.

As a process, ``python -P -m gpa_lsp.execution.local_gpu.timing_worker JOBS``, it launches timed launches again, for a collector in it: each one
:data:`LAUNCHES` times; the last is what was asked for, and finds the GPU as a timed launch does.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.local_gpu.local_gpu import LocalGpu, PlacedLaunch
from gpa_lsp.execution.local_gpu.timing import Greeting, Job, TimingAnswer, TimingJob, find_flush, time_launch
from gpa_lsp.foundation.errors import GpaError, MissingToolError, ToolError
from gpa_lsp.foundation.packed_records import read_records
from gpa_lsp.foundation.processes.worker import Tell, Work

NEEDED_FOR = "timing a launch"
_WRITES = frozenset({"st", "atom", "red", "cp", "call", "sust", "stmatrix", "multimem", "tensormap"})
_OWN_SPACES = frozenset({"shared", "local", "param"})
_COPIES = 2  # Of each array, that the limit of memory counts
_held: list[LocalGpu] = []


def do_job(job: Job, _: Tell, driver: Any = None) -> object:
    """Answer a job. ``driver`` is for tests: a scripted one."""
    try:
        if not _held:
            _held.append(LocalGpu(needed_for=NEEDED_FOR, driver=driver))
        gpu = _held[0]
    except GpaError as error:
        if isinstance(job, TimingJob):
            return TimingAnswer(failure=str(error))
        missing = (error.tool, error.needed_for, error.install) if isinstance(error, MissingToolError) else None
        return Greeting(failure=str(error), missing=missing)
    if not isinstance(job, TimingJob):
        return Greeting(name=gpu.facts.name, compute_capability=gpu.facts.compute_capability)
    try:
        return _time(job, gpu)
    except ToolError as error:
        return TimingAnswer(failure=str(error), is_spent=True)
    except GpaError as error:
        return TimingAnswer(failure=str(error))


def forget_gpu() -> None:
    """Release the GPU."""
    while _held:
        _held.pop().close()


def _time(job: TimingJob, gpu: LocalGpu) -> TimingAnswer:
    with gpu.borrowed():
        function, placed = place_job(job, gpu)
        timing = time_launch(gpu, placed, job.settings, keeps_inputs=not writes_memory(function))
    return TimingAnswer(timing=timing)


def place_job(job: TimingJob, gpu: LocalGpu) -> tuple[PtxFunction, PlacedLaunch]:
    """Kernel of a job, and its launch in the GPU's memory.

    Raises:
        GpaError: it cannot be loaded, or its arguments cannot be made.
    """
    module = parse_ptx(job.ptx, name=job.function)
    function = module.functions[job.function]
    limit = min(job.memory_bytes, _COPIES * gpu.read_free_bytes())
    inputs = build_inputs(module, function, job.launch, memory_limit_bytes=limit)
    return function, PlacedLaunch(gpu, gpu.load(job.image), function, job.launch, inputs)


def writes_memory(function: PtxFunction) -> bool:
    """Whether a kernel may write to what it is given."""
    return any(
        (one.opcode in _WRITES or (one.opcode == "wmma" and "store" in one.suffixes))
        and not _OWN_SPACES & set(one.suffixes)
        for one in function.instructions
    )


def _explain(job: Job, reason: str) -> object:
    return TimingAnswer(failure=reason, is_spent=True) if isinstance(job, TimingJob) else Greeting(failure=reason)


WORK = Work(do=do_job, explain=_explain)


LAUNCHES = 2  # Of each job in the process: the last one is what was asked for
_SAMPLING_NEEDS = "sampling a launch"


def make_launches(jobs: Sequence[TimingJob]) -> None:
    """Launch what each job describes.

    Raises:
        GpaError: there is no GPU, or a launch failed.
    """
    with LocalGpu(needed_for=_SAMPLING_NEEDS) as gpu:
        for job in jobs:
            with gpu.borrowed():
                _, placed = place_job(job, gpu)
                flush = find_flush(gpu) if job.settings.is_cold else None
                for _ in range(LAUNCHES):
                    placed.fill()
                    if flush is not None:
                        flush()
                    gpu.wait(job.settings.launch_seconds)
                    placed.start()
                    gpu.wait(job.settings.launch_seconds)


def main() -> int:
    """Do the jobs of the file that the command line names."""
    try:
        make_launches(read_records(Path(sys.argv[1]), tuple))
    except GpaError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
