"""The process that times launches, without a process: jobs are done here, by a driver that is given."""

from typing import Any

from gpa_lsp.execution.local_gpu import timing_worker
from tests.gpu.timed_driver import TimedDriver


class JobsHere:
    """Stands in for the pool of processes.

    Args:
        driver: that the jobs speak to.
    """

    def __init__(self, driver: TimedDriver) -> None:
        self._driver = driver
        self.jobs: list[Any] = []
        self.closed = 0

    def do(self, job: Any, **_: Any) -> object:
        self.jobs.append(job)
        return timing_worker.do_job(job, lambda _: 0, self._driver)

    def close(self) -> None:
        self.closed += 1
        timing_worker.forget_gpu()
