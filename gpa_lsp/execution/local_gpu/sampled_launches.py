"""Process that launches timed launches again, for a collector in it: ``python -P -m gpa_lsp.execution.local_gpu.sampled_launches JOBS``.

Each launch is made :data:`LAUNCHES` times; the last one is what was asked for, and finds the GPU as a timed launch does.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.execution.local_gpu.local_gpu import LocalGpu
from gpa_lsp.execution.local_gpu.timing import TimingJob, find_flush
from gpa_lsp.execution.local_gpu.timing_worker import place_job
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.packed_records import read_records

LAUNCHES = 2
_NEEDED_FOR = "sampling a launch"


def make_launches(jobs: Sequence[TimingJob]) -> None:
    """Launch what each job describes.

    Raises:
        GpaError: there is no GPU, or a launch failed.
    """
    with LocalGpu(needed_for=_NEEDED_FOR) as gpu:
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
