"""What more memory accesses in flight would gain: Little's law, where too few of them are what a kernel is short of.

Bytes in flight = bandwidth · latency. Where no level of the memory is busy and warps wait for global memory, loads that are issued before the
results of others have come move more bytes in the same time, until a level is full. They need no issue slots, so that the issuing cycles, which bound
what other instructions can fill (GPA Equations 4 and 5), do not bound them.
"""

from gpa_lsp.diagnosis.advice.estimators import dilute_speedup
from gpa_lsp.diagnosis.advice.limiter_rules import list_bandwidths
from gpa_lsp.diagnosis.advice.residency import measure_sampled_part
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import Limit, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject

WAITING = "long_scoreboard"  # What warps that wait for global memory are stalled on

# Part of the way, on a logarithmic scale, from what issuing cycles can fill to what memory parallelism allows: addresses and registers hold some
# loads back. Ours; no edit of known effect says more.
OVERLAP_REACH = 0.5

_BUSY_RATIO = 0.7  # Of what a level sustains: nearer, bytes in flight are not what is missing


def find_nearest_level(subject: Subject) -> Limit | None:
    """The level of the memory that is nearest to what it sustains; None where none was measured."""
    return max(list_bandwidths(find_limiter(subject)), key=lambda limit: limit.nearness, default=None)


def lacks_parallelism(subject: Subject) -> bool:
    """Whether a kernel waits for memory of which no level is busy."""
    limiter, nearest = find_limiter(subject), find_nearest_level(subject)
    is_waiting = limiter.kind is LimiterKind.LATENCY and limiter.unit in ("", WAITING)
    return is_waiting and nearest is not None and nearest.nearness < _BUSY_RATIO


def measure_overlap(stalled_ratio: float, times: float) -> float:
    """What so many times the accesses in flight gain a kernel that is stalled on them for a part of the time.

    >>> measure_overlap(0.5, 2.0), measure_overlap(0.0, 4.0)
    (1.3333333333333333, 1.0)
    """
    return 1 / (1 - min(1.0, stalled_ratio) * (1 - 1 / times))


def bound_overlap(subject: Subject, waits: float) -> float | None:
    """What a kernel gains if some of its waiting for global memory goes, up to what the levels of the memory sustain.

    Returns:
        None where memory parallelism is not what is missing.
    """
    total, nearest = subject.total_samples, find_nearest_level(subject)
    if not total or waits <= 0 or nearest is None or not lacks_parallelism(subject):
        return None
    gain = dilute_speedup(total / (total - min(waits, total - 1)), measure_sampled_part(subject))
    return min(gain, nearest.headroom)
