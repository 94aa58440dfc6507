"""Price a change by what it leaves for each part of the GPU: :class:`UnitMatch` and :func:`price_units`.

A unit that is busy for a share b of the launch and keeps a part f of its work is busy for b · f of the old time whatever else happens: no change
is faster than the largest of these, which bounds it ("at most"). What is expected is that the kernel then runs at :data:`REACHED` of what that
unit sustains, and that the launch takes as long to begin and to end as before.

Of some changes nobody can say beforehand how far they will be taken (the size of a tile). They are priced as a part of the way, on a logarithmic
scale, to that bound.

Source: ours. What was fitted, and on what, stands beside each constant.
"""

from collections.abc import Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.limiter_rules import describe_unrelieved, relieves_unit
from gpa_lsp.diagnosis.advice.matches import EliminationRegion
from gpa_lsp.diagnosis.advice.model import Speedup
from gpa_lsp.diagnosis.advice.reliefs import Reliefs
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import Limit, Limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, percent, say

# Of what a unit sustains, kernels reach this much after such changes. Fitted on five edits of one matrix addition on a T4 that coalesced its accesses
# (errors of 0.4 to 5 %); it then holds for a convolution on an A100 within 9 %.
REACHED = 0.9

# Part of the way that tiling in registers or shared memory went. Fitted on two register tiles of a matrix product on an RTX 4090 (3.00× of 6.8× and
# 1.94× of 3.2×) and a shared-memory tile of a convolution on an A100 (1.69× of 2.5×): 0.57 to 0.58 each.
TILING_REACH = 0.57

LOW_REACH = 0.5  # The lower end of a range lies at this part of the expected way, on the same scale. Ours.

_LEAST_BUSY = 1e-3  # Of a unit: no speedup beyond a thousand is worth a number

_KEPT = 0.99  # From this part on a unit keeps its work

_GENERAL = frozenset({"sm", "memory", "other"})  # Limits that only sum up others


class UnitMatch(Struct, frozen=True, kw_only=True):
    """A change that takes work away from parts of the GPU."""

    leaves: Mapping[str, float]  # unit → the part of its work that stays, 0..1; units that are not named keep all of it
    hint: Sentence  # what to do
    caveats: tuple[Sentence, ...] = ()  # see :class:`~gpa_lsp.diagnosis.advice.model.Advice`
    reasons: tuple[Sentence, ...] = ()  # what the match rests on, one clause each
    regions: tuple[EliminationRegion, ...] = ()  # where; empty where it is about the whole kernel
    # the part of the way to the bound that such changes go; None where ``leaves`` is what the change does
    reach: float | None = None
    most: float = inf  # what the change itself cannot exceed, whatever the units allow
    # the most that can be expected by what warps are stalled on; cuts the estimate and the range, and is no bound
    likely: float = inf


def estimate_units(
    subject: Subject,
    leaves: Mapping[str, float],
    reach: float | None = None,
    most_speedup: float = inf,
    likely: float = inf,
) -> Speedup | None:
    """The gain of a change.

    Args:
        leaves: as in :class:`UnitMatch`.
        most_speedup: its ``most``.

    Returns:
        None where it is unknown how busy the units are.
    """
    limits = [limit for limit in find_limiter(subject).limits if limit.unit not in _GENERAL]
    if not limits:
        return None
    ends = measure_ends(subject)
    most = max(limits, key=lambda limit: limit.busy_ratio * leaves.get(limit.unit, 1.0))
    bound = min(most_speedup, 1 / max(most.busy_ratio * leaves.get(most.unit, 1.0), _LEAST_BUSY))
    if reach is None:
        nearest = max(limit.nearness * leaves.get(limit.unit, 1.0) for limit in limits)
        estimate = min(likely, 1 / (nearest / REACHED + ends))
    else:
        estimate = max(1.0, min(bound, likely)) ** reach
    estimate = min(max(1.0, estimate), max(1.0, bound))
    return Speedup(
        estimate=estimate,
        low=estimate**LOW_REACH if reach is not None else 1 + (estimate - 1) * LOW_REACH,
        high=max(estimate, min(bound, max(likely, 1 + 2 * (estimate - 1)))),
        bound=max(1.0, bound),
        bound_reason=_explain_bound(find_limiter(subject), most, leaves.get(most.unit, 1.0)),
        uncapped=estimate,
    )


def widen(subject: Subject, reliefs: Reliefs, speedup: Speedup) -> Speedup:
    """An estimate from samples with the range that its model deserves, and bounded by the units that keep their work.

    Sampling errors are the small part of what is not known: that stalls go when their cause goes is the large one. The range reaches from half of
    the gain to twice the gain. Ours: no edit of known effect says more. Nor is a unit that keeps its work expected to be busier than
    :data:`REACHED` of what it sustains: half of the divisions of a kernel on a V100 gone gained 1.78×, until DRAM was at 0.89 of that.
    """
    kept = [
        limit
        for limit in find_limiter(subject).limits
        if limit.unit not in _GENERAL and limit.busy_ratio > 0 and not relieves_unit(limit.unit, reliefs)
    ]
    if not kept:
        return replace(speedup, low=min(speedup.low, 1 + (speedup.estimate - 1) / 2))
    reached = max(1.0, REACHED / max(limit.nearness for limit in kept))
    speedup = replace(speedup, estimate=min(speedup.estimate, reached), low=min(speedup.low, reached))
    gain = speedup.estimate - 1
    most = max(kept, key=lambda limit: limit.busy_ratio)
    bound = max(speedup.estimate, min(1 / most.busy_ratio, 1 / _LEAST_BUSY))
    return replace(
        speedup,
        low=min(speedup.low, 1 + gain / 2),
        high=min(bound, max(speedup.high, 1 + 2 * gain)),
        bound=bound,
        bound_reason=_explain_bound(find_limiter(subject), most, 1.0),
    )


def measure_ends(subject: Subject) -> float:
    """Part of the launch before and after the SM that works longest; 0 where it was not collected, and never more than a tenth."""
    longest, elapsed = subject.metric("sm__cycles_active.max"), subject.elapsed_cycles
    return min(0.1, max(0.0, 1 - longest / elapsed)) if longest and elapsed else 0.0


def is_relieved(limiter: Limiter, leaves: Mapping[str, float]) -> bool:
    """Whether a change takes work from the unit that limits the kernel, as far as it is worth speaking of."""
    return leaves.get(limiter.unit, 1.0) < _KEPT


def _explain_bound(limiter: Limiter, limit: Limit, kept: float) -> Sentence:
    if kept >= 1:
        return describe_unrelieved(limiter, limit)
    return say(
        "{label} keeps {kept} of its work, which needs {busy} of the present time",
        label=limit.label,
        kept=percent(kept),
        busy=percent(limit.busy_ratio * kept),
    )
