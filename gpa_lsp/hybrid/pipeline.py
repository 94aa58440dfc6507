"""The simulation of a round of blocks on one SM: :func:`simulate_round` (Section IV-B, Figure 2).

A warp that comes to an operation locks what it needs, or waits until that is free; who came first is first, which the paper leaves open. Time goes
on by the least that any warp has named, which is the next event of a queue: the same order, without asking every warp at every step.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.hybrid.caches import AccessOutcome
from gpa_lsp.hybrid.costs import Costs, MemoryCost
from gpa_lsp.hybrid.operations import Operation, Resource
from gpa_lsp.hybrid.walk import KernelTrace


@dataclass(frozen=True, slots=True)
class Use:
    """What an operation of a warp takes.

    Attributes:
        resource: to be locked; a barrier is none.
        before_cycles: before it needs the resource (the paper's pre-waiting latency).
        locked_cycles: for which it holds it (the delay).
        after_cycles: until the warp goes on (the post-waiting latency).
    """

    resource: Resource
    before_cycles: float
    locked_cycles: float
    after_cycles: float


_BARRIER = Use(Resource.BARRIER, 0.0, 0.0, 0.0)


def list_uses(
    trace: KernelTrace, outcomes: Sequence[Sequence[AccessOutcome | None]], costs: Costs, warps: int
) -> list[list[Use]]:
    """The operations of each warp, priced.

    Args:
        trace: of all warps.
        outcomes: of the transactions of its operations.
        costs: of the GPU.
        warps: active ones, which share the arithmetic units.
    """
    arithmetic = {
        kind: Use(Resource.ARITHMETIC, 0.0, max(cost.interval_cycles, cost.latency_cycles / warps), 0.0)
        for kind, cost in costs.arithmetic.items()
    }
    shared = _price(Resource.SHARED, costs.shared, 1, 0)
    found: list[list[Use]] = [[] for _ in trace.lengths]
    for step, own in zip(trace.steps, outcomes, strict=True):
        active = step.warps.nonzero()[0].tolist()
        for (operation, _), outcome in zip(step.operations, own, strict=True):
            if operation.arithmetic is not None:
                use = arithmetic[operation.arithmetic]
            elif operation.resource is Resource.BARRIER:
                use = _BARRIER
            elif operation.resource is Resource.SHARED:
                use = shared
            elif outcome is None:
                continue  # a thread's own memory: registers, as the paper has it
            else:
                _add_accesses(found, active, operation, outcome, costs)
                continue
            for warp in active:
                found[warp].append(use)
    return found


def _add_accesses(
    found: list[list[Use]], active: Sequence[int], operation: Operation, outcome: AccessOutcome, costs: Costs
) -> None:
    cost = costs.constant if operation.resource is Resource.CONSTANT else costs.global_memory
    hits, misses = outcome.hits.tolist(), outcome.misses.tolist()
    for warp in active:
        if hits[warp] or misses[warp]:
            found[warp].append(_price(operation.resource, cost, hits[warp], misses[warp]))


def _price(resource: Resource, cost: MemoryCost, hits: int, misses: int) -> Use:
    delay = hits * cost.hit_delay_cycles + misses * cost.miss_delay_cycles
    waiting = max(0.0, (cost.miss_cycles if misses else cost.hit_cycles) - delay) / 2
    return Use(resource, waiting, delay, waiting)


def simulate_round(uses: Sequence[Sequence[Use]], warps_per_block: int) -> float:
    """Cycles until the last warp has ended.

    Args:
        uses: of each warp.
        warps_per_block: of each block, which lie behind each other; its warps wait for each other at barriers.

    >>> add = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0)
    >>> load = Use(Resource.GLOBAL, 10.0, 4.0, 10.0)
    >>> simulate_round([[add, load], [add, load]], 2)
    30.0
    """
    free: dict[Resource, float] = {}
    place = [0] * len(uses)
    queue = [(0.0, warp, 0) for warp, own in enumerate(uses) if own]
    waiting: dict[int, list[int]] = {}
    left = [
        sum(bool(one) for one in uses[first : first + warps_per_block])
        for first in range(0, len(uses), warps_per_block)
    ]
    now = 0.0
    while queue:
        now, warp, phase = heappop(queue)
        if place[warp] == len(uses[warp]):
            left[warp // warps_per_block] -= 1
            _open_barrier(warp // warps_per_block, now, queue, waiting, left)
            continue
        use = uses[warp][place[warp]]
        if use.resource is Resource.BARRIER:
            place[warp] += 1
            waiting.setdefault(warp // warps_per_block, []).append(warp)
            _open_barrier(warp // warps_per_block, now, queue, waiting, left)
        elif not phase and use.before_cycles:
            heappush(queue, (now + use.before_cycles, warp, 1))
        else:
            free[use.resource] = max(now, free.get(use.resource, 0.0)) + use.locked_cycles
            place[warp] += 1
            heappush(queue, (free[use.resource] + use.after_cycles, warp, 0))
    return now


def _open_barrier(
    block: int, now: float, queue: list[tuple[float, int, int]], waiting: dict[int, list[int]], left: Sequence[int]
) -> None:
    """Warps that have ended are not waited for."""
    own = waiting.get(block, [])
    if own and len(own) == left[block]:
        for warp in own:
            heappush(queue, (now, warp, 0))
        waiting[block] = []
