"""What an estimate cannot exceed, and what sets it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gpa_lsp.advice.model import MemoryLevel, Speedup
from gpa_lsp.advice.roofs import measure_roofs, measure_sm_use
from gpa_lsp.advice.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A speedup that cannot be exceeded.

    Attributes:
        speedup: less than 1 counts as 1.
        reason: what sets it, one clause.
    """

    speedup: float
    reason: str


def find_roof(subject: Subject, relieved: Collection[MemoryLevel] = ()) -> tuple[Bound, ...]:
    """The bound that the memory sets on a kernel with unchanged traffic; empty where the profile measures no level of it.

    Args:
        subject: the kernel.
        relieved: levels whose traffic lessens with the time, and which set no bound. Memory measured only as a whole is relieved when all
            its levels are.
    """
    is_all_relieved = set(relieved) >= set(MemoryLevel) - {MemoryLevel.ANY}
    spared = {*relieved, MemoryLevel.ANY} if is_all_relieved else {*relieved}
    uses = [use for use in measure_roofs(subject).levels if use.level not in spared]
    use = min(uses, key=lambda one: one.largest_speedup, default=None)
    if use is None:
        return ()
    reason = (
        f"{use.level} runs at {100 * use.achieved_ratio:.1f} % of its peak and sustains {100 * use.ceiling_ratio:.0f} %, "
        "with the traffic as it is"
    )
    return (Bound(speedup=use.largest_speedup, reason=reason),)


def find_sm_roof(subject: Subject) -> tuple[Bound, ...]:
    """The bound that the SMs' busiest unit sets on a kernel that executes the same instructions; empty where it was not measured."""
    use = measure_sm_use(subject)
    if not use:
        return ()
    return (Bound(speedup=1 / use, reason=f"the busiest unit of the SMs is at {100 * use:.0f} % of its peak"),)


def cut_speedup(values: Sequence[float], published: float, bounds: Sequence[Bound]) -> Speedup:
    """An estimate cut at the smallest of some bounds; no part of it is below 1.

    Args:
        values: low end, estimate, high end.
        published: the formula's value without our clamps.
        bounds: at least one.

    >>> found = cut_speedup((1.2, 1.5, 2.0), 1.5, [Bound(speedup=1.8, reason="the roof"), Bound(speedup=3, reason="the grid")])
    >>> found.low, found.estimate, found.high, found.bound_reason
    (1.2, 1.5, 1.8, 'the roof')
    """
    bound = min(bounds, key=lambda one: one.speedup)
    most = max(1.0, bound.speedup)
    low, estimate, high = (min(max(1.0, value), most) for value in values)
    return Speedup(
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        bound=most,
        bound_reason=bound.reason,
        uncapped=published,
    )


def explain_cut(speedup: Speedup) -> tuple[str, ...]:
    """A clause about what a bound took away; empty where it took nothing.

    >>> explain_cut(cut_speedup((1, 3, 3), 3, [Bound(speedup=2, reason="the grid has no more blocks")]))
    ('cut from 3.00× to 2.00×: the grid has no more blocks',)
    """
    is_cut = speedup.estimate >= speedup.bound * (1 - 1e-9)
    if not is_cut or speedup.uncapped <= speedup.estimate * (1 + 1e-9):
        return ()
    return (f"cut from {speedup.uncapped:.2f}× to {speedup.estimate:.2f}×: {speedup.bound_reason}",)
