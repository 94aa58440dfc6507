"""Repeatable benchmarks. They print figures and ratios and assert nothing about time: run one with ``python -m tests.bench.<name>``."""

import statistics
import time
from collections.abc import Callable


def time_work(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Smallest and median wall seconds, after one turn that warms up."""
    work()
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return min(spent), statistics.median(spent)
