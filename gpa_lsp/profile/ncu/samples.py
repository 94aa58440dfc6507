"""Stall samples of one launch, taken from its per-instruction metrics into columns.

``smsp__pcsamp_warps_issue_stalled_<reason>`` counts every sample of a warp in that state at an instruction, and the same name with
``_not_issued`` the subset taken in cycles in which the scheduler issued nothing: the first includes the second. Reasons are taken from the names
present. Time series of the same data (``warpsampling:`` names) and lists of names (``group:``) are no samples.
"""

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.profile.model import Launch, StallSamples
from gpa_lsp.profile.ncu.columns import Columns, read_all_counts
from gpa_lsp.profile.ncu.metrics import LazyMetrics

_NAME = re.compile(r"smsp__pcsamp_warps_issue_stalled_([a-z0-9_]+?)(_not_issued)?")
_DEFAULT_BUFFER_BYTES = 33_554_432
_SATURATED_SAMPLES = 3_660_000
"""With the default buffer a launch stops at 3,669,964 to 3,670,012 samples without a word.

Source: 75 of 350 sampled launches in reports of 2020.3 to 2025.
"""

_Counts = dict[str, Columns]


@lru_cache(maxsize=1 << 13)
def _match_name(name: str) -> re.Match[str] | None:
    """The launches of a report have the same thousand metrics."""
    return _NAME.fullmatch(name)


def read_samples(metrics: LazyMetrics) -> tuple[StallSamples | None, list[str]]:
    """Gather the stall metrics of a launch.

    Returns:
        The samples (None when the launch has no stall metric that lists instructions), and a sentence for everything that was not as it should be.
    """
    all_counts: _Counts = {}
    latency_counts: _Counts = {}
    problems: list[str] = []
    matches = [match for name in metrics if (match := _match_name(name)) is not None]
    every = read_all_counts([metrics.find_encoded(match[0]) for match in matches])
    for match, counted in zip(matches, every, strict=True):
        name = match[0]
        if counted is None:
            problems.append(f"metric {name} does not hold counts per instruction and is left out")
            continue
        (latency_counts if match[2] else all_counts)[match[1]] = counted
    reasons = tuple(sorted(all_counts.keys() | latency_counts.keys()))
    lists = [*all_counts.values(), *latency_counts.values()]
    if not any(len(addresses) for addresses, _ in lists):
        return None, problems
    problems += _describe_missing(all_counts, latency_counts)
    addresses = _unite_addresses([addresses for addresses, _ in lists])
    latency_samples = _fill(latency_counts, reasons, addresses)
    # A reason of which only the subset was collected: the subset is a lower bound of the whole.
    all_samples = _fill({**latency_counts, **all_counts}, reasons, addresses)
    samples = StallSamples(
        addresses=addresses,
        reasons=reasons,
        all_samples=all_samples,
        latency_samples=None if _find_unsplit(all_counts, latency_counts) else latency_samples,
    )
    return samples, problems


def is_truncated(launch: Launch) -> bool:
    """Whether the sampling buffer ran full, so that the samples cover only the beginning of the launch.

    2026.1 and later say so (``smsp__pcsamp_buffer_overflow``). Before, only the count shows it: at the default buffer size, launches stop just
    above 3.66 million samples, while the metric of dropped bytes stays 0.
    """
    if (launch.read_number("smsp__pcsamp_dropped_bytes") or 0) > 0:
        return True
    overflow = launch.read_number("smsp__pcsamp_buffer_overflow")
    if overflow is not None:
        return overflow != 0
    buffer_bytes = launch.read_number("smsp__pcsamp_buffer_size_bytes")
    if buffer_bytes not in (None, _DEFAULT_BUFFER_BYTES):
        return False
    return launch.samples is not None and launch.samples.total_samples >= _SATURATED_SAMPLES


def _unite_addresses(lists: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    first = lists[0]
    # Every report seen lists the same instructions in the same order under every reason.
    if all(np.array_equal(first, other) for other in lists[1:]):
        lists = [first]
    return find_distinct(np.concatenate(lists))


def _fill(counts: _Counts, reasons: tuple[str, ...], addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    table = np.zeros((len(addresses), len(reasons)), np.int64)
    for column, reason in enumerate(reasons):
        if reason in counts:
            ids, values = counts[reason]
            if np.array_equal(ids, addresses):  # the usual case
                table[:, column] = values
                continue
            np.add.at(table[:, column], np.searchsorted(addresses, ids), values)
    return table


def _find_unsplit(all_counts: _Counts, latency_counts: _Counts) -> list[str]:
    """Reasons that were seen, but not told apart by whether the scheduler issued; what was selected was issued."""
    missing = all_counts.keys() - latency_counts.keys() - {"selected"}
    return sorted(reason for reason in missing if all_counts[reason][1].any())


def _describe_missing(all_counts: _Counts, latency_counts: _Counts) -> list[str]:
    problems = []
    if unsplit := _find_unsplit(all_counts, latency_counts):
        message = f"the report has no not-issued counts of {', '.join(unsplit)}, so its not-issued samples are unknown"
        problems.append(message)
    if only_latency := sorted(latency_counts.keys() - all_counts.keys()):
        problems.append(f"the report has only not-issued counts of {', '.join(only_latency)}")
    return problems
