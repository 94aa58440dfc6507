"""Which transactions hit (Section III-B3): :func:`count_misses`.

Both caches replace what was used longest ago. The paper gives no order in which the warps of a round reach memory; here they take turns, block by
basic block of the trace.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.hybrid.costs import Costs
from gpa_lsp.hybrid.lane_values import Integers
from gpa_lsp.hybrid.operations import Resource
from gpa_lsp.hybrid.walk import Access, KernelTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOutcome:
    """The transactions of one execution of an instruction: int64[warps] each."""

    hits: Integers
    misses: Integers


class _RecentlyUsed:
    """A cache that holds the lines used last. Source: reuse distance, as the paper's reference 23."""

    def __init__(self, lines: int) -> None:
        self._lines = max(1, lines)
        self._held: OrderedDict[int, None] = OrderedDict()

    def touch(self, line: int) -> bool:
        """Whether it was there."""
        if line in self._held:
            self._held.move_to_end(line)
            return True
        self._held[line] = None
        if len(self._held) > self._lines:
            self._held.popitem(last=False)
        return False


def count_misses(trace: KernelTrace, costs: Costs) -> list[tuple[AccessOutcome | None, ...]]:
    """Hits and misses of every operation of every step; None for those whose memory has no cache."""
    caches = {
        Resource.GLOBAL: _RecentlyUsed(costs.l2_bytes // costs.line_bytes),
        Resource.CONSTANT: _RecentlyUsed(costs.constant_bytes // costs.line_bytes),
    }
    return [
        tuple(None if access is None else _count(access, caches[one.resource]) for one, access in step.operations)
        for step in trace.steps
    ]


def find_hit_ratio(outcomes: Sequence[Sequence[AccessOutcome | None]]) -> float | None:
    """Of all transactions, those that hit; None where there are none."""
    known = [one for own in outcomes for one in own if one is not None]
    hits = sum(int(one.hits.sum()) for one in known)
    misses = sum(int(one.misses.sum()) for one in known)
    return hits / (hits + misses) if hits + misses else None


def _count(access: Access, cache: _RecentlyUsed) -> AccessOutcome:
    is_hit = np.fromiter(map(cache.touch, access.lines.tolist()), dtype=np.int64, count=len(access.lines))
    before = np.concatenate(([0], np.cumsum(is_hit)))
    hits = before[access.starts[1:]] - before[access.starts[:-1]]
    return AccessOutcome(hits=hits, misses=np.diff(access.starts) - hits + access.unknown)
