"""Counts per instruction, from whichever reader a launch came through: addresses and counts as two columns."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.profile.model import Metric
from gpa_lsp.profile.ncu.columns import read_counts
from gpa_lsp.profile.ncu.metrics import LazyMetrics

# Absolute instruction addresses and the count of each; equally long, in file order
InstructionCounts = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]

_ADDRESS_LIMIT = 1 << 64
_COUNT_LIMIT = 1 << 53  # Larger numbers are no counts; below it, sums over launches stay inside 64 bits


def read_instruction_counts(metrics: Mapping[str, Metric], name: str) -> InstructionCounts | None:
    """The counts of one metric by instruction.

    Args:
        metrics: of a launch.
        name: of the metric.

    Returns:
        The columns, empty where the metric was collected and counted nothing; None when it was not collected or does not count by instruction
        (time series, fractions, text).

    >>> metric = Metric(name="inst_executed", value=7, instance_ids=(4096, 4112), instance_values=(3, 4))
    >>> [column.tolist() for column in read_instruction_counts({"inst_executed": metric}, "inst_executed")]
    [[4096, 4112], [3, 4]]
    """
    if name not in metrics:
        return None
    if isinstance(metrics, LazyMetrics):
        # A Python number per instruction would be what reading costs most; the encoded bytes become columns at once.
        return read_counts(metrics.find_encoded(name))
    return _collect(metrics[name])


def _collect(metric: Metric) -> InstructionCounts | None:
    if metric.over_time:
        return None
    if metric.instance_ids == (0,):
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)  # a scalar that repeats its value
    addresses: list[int] = []
    counts: list[int] = []
    for address, count in zip(metric.instance_ids, metric.instance_values, strict=True):
        if not isinstance(address, int) or isinstance(count, str) or count != count // 1:
            return None
        if not (0 <= address < _ADDRESS_LIMIT and 0 <= count < _COUNT_LIMIT):
            return None
        addresses.append(address)
        counts.append(int(count))
    return np.array(addresses, np.uint64), np.array(counts, np.int64)
