"""The traces of a round of blocks on one SM: which transactions hit, and how long the round takes.

Both caches replace what was used longest ago (Section III-B3). The paper gives no order in which the warps of a round reach memory; here they take
turns, basic block by basic block of the trace.

A warp that comes to an operation locks what it needs, or waits until that is free (Section IV-B, Figure 2); who came first is first, which the paper
leaves open. Time goes on by the least that any warp has named, which is the next event of a queue: the same order, without asking every warp at
every step.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.accesses.references import find_hits
from gpa_lsp.execution.hybrid.lane_values import Integers, Marks
from gpa_lsp.execution.hybrid.operations import Arithmetic, Costs, Operation, Resource, Term, hoist_loads
from gpa_lsp.execution.hybrid.walk import Access, KernelTrace
from gpa_lsp.foundation.records import ColumnRecord


class L2Sharing(Struct, frozen=True, kw_only=True):
    """What an SM's use of L2 owes to the others."""

    # of what the SM reads first, what another one has brought into L2 (0 as printed)
    hit_ratio: float = 0.0
    # of what is stored, what has to leave for DRAM while the launch runs; None where a store is served as a load is, as printed
    written_ratio: float | None = None
    lines_ratio: float = 1.0  # of L2, what holds lines that the SM uses


class AccessOutcome(ColumnRecord, frozen=True, kw_only=True):
    """What one execution of an access finds: int64[warps] each."""

    near: Integers  # transactions with L1, or with shared memory
    hits: Integers  # with the cache behind it: L2, or that of constants
    misses: Integers  # with DRAM
    passes: Integers  # cycles of L1 or shared memory


def count_misses(
    trace: KernelTrace, costs: Costs, sharing: L2Sharing, warps: int
) -> list[tuple[AccessOutcome | None, ...]]:
    """What the accesses of the first so many warps find in every step; None for operations that are none."""
    made = [(operation, access) for step in trace.steps for operation, access in step.operations if access is not None]
    nothing = np.zeros(0, dtype=np.int64)
    parts = [access.places[: access.starts[warps]] for _, access in made]
    levels = _look_up(np.concatenate([nothing, *parts]), _list_roles(made, parts), costs, sharing)
    found = iter(np.split(levels, np.cumsum([len(one) for one in parts])[:-1]) if parts else ())
    return [
        tuple(None if access is None else _count(access, next(found), warps) for _, access in step.operations)
        for step in trace.steps
    ]


_LOAD, _STORE, _CONSTANT = range(3)


def _list_roles(made: Sequence[tuple[Operation, Access]], parts: Sequence[Integers]) -> Integers:
    """int64[transactions]."""
    roles = [_CONSTANT if one.resource is Resource.CONSTANT else _STORE if one.is_store else _LOAD for one, _ in made]
    return np.repeat(np.array(roles, dtype=np.int64), [len(one) for one in parts])


def _look_up(places: Integers, roles: Integers, costs: Costs, sharing: L2Sharing) -> Integers:
    """int64[transactions]: 0 for one that hits L1, 1 for one that hits behind it, 2 for one that goes to DRAM, at once or later.

    Caches of one SM and its part of L2, the least recently used first out. Source: reuse distance, as the paper's reference 23.
    """
    unit = costs.transaction_bytes
    levels = np.full(len(places), 2)
    constants, loads = np.flatnonzero(roles == _CONSTANT), np.flatnonzero(roles == _LOAD)
    levels[constants[find_hits(places[constants], max(1, costs.constant_bytes // unit))]] = 1
    levels[loads[find_hits(places[loads], costs.l1_bytes // unit)]] = 0
    behind = np.flatnonzero((roles == _STORE) | ((roles == _LOAD) & (levels > 0)))
    found = find_hits(places[behind], max(1, int(costs.l2_bytes * sharing.lines_ratio) // unit))
    levels[behind[found]] = 1
    if sharing.written_ratio is not None:  # stores go on to DRAM, once each and as far as they leave L2
        stores = np.flatnonzero(roles == _STORE)
        levels[stores] = 1
        first = stores[_find_first(places[stores])]
        levels[first[~_share_out(len(first), 1.0 - sharing.written_ratio)]] = 2
        behind = behind[roles[behind] == _LOAD]
    missed = behind[levels[behind] == 2]
    first = missed[_find_first(places[missed])]
    levels[first[_share_out(len(first), sharing.hit_ratio)]] = 1
    return levels


def _find_first(places: Integers) -> Integers:
    """Where each place is named first, ascending."""
    return np.sort(np.unique(places, return_index=True)[1])


def _share_out(count: int, ratio: float) -> Marks:
    """bool[count], such a part of them at even distances.

    >>> _share_out(5, 0.5).tolist()
    [False, True, False, True, False]
    """
    chosen, due = np.zeros(count, dtype=np.bool_), 0.0
    for place in range(count if ratio > 0 else 0):
        due += ratio
        chosen[place] = due >= 1.0
        due -= due >= 1.0
    return chosen


def _count(access: Access, levels: Integers, warps: int) -> AccessOutcome:
    starts = access.starts[: warps + 1]
    sums = [np.concatenate(([0], np.cumsum(levels == level))) for level in range(3)]
    near, hits, misses = (one[starts[1:]] - one[starts[:-1]] for one in sums)
    return AccessOutcome(near=near, hits=hits, misses=misses + access.unknown[:warps], passes=access.passes[:warps])


def find_hit_ratio(outcomes: Sequence[Sequence[AccessOutcome | None]]) -> float | None:
    """Of all transactions with constant and global memory, those that hit a cache; None where there are none."""
    known = [one for own in outcomes for one in own if one is not None]
    hits = sum(int(one.hits.sum() + one.near.sum()) for one in known)
    misses = sum(int(one.misses.sum()) for one in known)
    return hits / (hits + misses) if hits + misses else None


class Use(Struct, frozen=True):
    """What an instruction of a warp takes."""

    resource: Resource  # to be locked; a barrier is none, nor are registers
    before_cycles: float  # before it needs the resource (the paper's pre-waiting latency)
    locked_cycles: float  # for which it holds it (the delay)
    after_cycles: float  # until its result is there (the post-waiting latency)
    reads: tuple[int, ...] = ()  # registers that it waits for, where warps wait for operands
    writes: tuple[int, ...] = ()  # registers of its result


class _Pricer:
    """Prices each kind of use once."""

    def __init__(self, costs: Costs, warps: int) -> None:
        self._costs, self._warps = costs, warps
        self._by_operands = Term.OPERANDS in costs.terms

    def price(self, kind: Arithmetic | None, amount: float) -> tuple[float, float, float]:
        """Before, locked and after, in cycles, of what is no access."""
        if kind is None:
            return 0.0, 0.0, 0.0
        cost = self._costs.arithmetic[kind]
        interval = cost.interval_cycles * amount
        if self._by_operands:
            return 0.0, interval, max(0.0, cost.latency_cycles - interval)
        return 0.0, max(interval, cost.latency_cycles / self._warps), 0.0

    def price_access(
        self, resource: Resource, near: int, hits: int, misses: int, passes: int
    ) -> tuple[Resource, float, float, float]:
        """What is locked, and before, locked and after, in cycles."""
        costs = self._costs
        is_by_wavefront = Term.SECTORS in costs.terms
        if resource is Resource.SHARED or (not hits and not misses):
            is_shared = resource is Resource.SHARED
            latency = costs.shared.hit_cycles if is_shared else costs.l1_cycles
            first = costs.shared.hit_delay_cycles
            delay = max(first, float(passes)) if is_by_wavefront else first * (1 if is_shared else near)
            resource = resource if is_shared else Resource.L1
        else:
            cost = costs.constant if resource is Resource.CONSTANT else costs.global_memory
            latency = cost.miss_cycles if misses else cost.hit_cycles
            first = cost.miss_delay_cycles if misses else cost.hit_delay_cycles
            delay = hits * cost.hit_delay_cycles + misses * cost.miss_delay_cycles
            if is_by_wavefront:  # L2 hands on what it has while DRAM brings the rest
                delay = max(passes, (hits + misses) * cost.hit_delay_cycles, misses * cost.miss_delay_cycles)
        if self._by_operands:
            return resource, 0.0, delay, max(0.0, latency - first)
        waiting = max(0.0, latency - delay) / 2
        return resource, waiting, delay, waiting


def list_uses(
    trace: KernelTrace, outcomes: Sequence[Sequence[AccessOutcome | None]], costs: Costs, warps: int
) -> list[list[Use]]:
    """The operations of each of the first so many warps, priced; where warps wait for operands, also what hands registers on."""
    pricer = _Pricer(costs, warps)
    by_operands = Term.OPERANDS in costs.terms
    bodies = [hoist_loads(one) for one in trace.bodies] if by_operands else trace.bodies
    found: list[list[Use]] = [[] for _ in range(warps)]
    for step, own in zip(trace.steps, outcomes, strict=True):
        active = [one for one in step.warps.nonzero()[0].tolist() if one < warps]
        outcomes_of = {one.instruction: outcome for (one, _), outcome in zip(step.operations, own, strict=True)}
        for part in bodies[step.node]:
            operation, registers = part.operation, (part.reads, part.writes)
            outcome = None if operation is None else outcomes_of[operation.instruction]
            if outcome is not None and operation is not None:
                counts = (outcome.near, outcome.hits, outcome.misses, outcome.passes)
                known: dict[tuple[int, ...], Use] = {}
                for warp, key in zip(active, zip(*(one[active].tolist() for one in counts), strict=True), strict=True):
                    if any(key):
                        use = known.get(key)
                        if use is None:
                            use = known[key] = Use(*pricer.price_access(operation.resource, *key), *registers)
                        found[warp].append(use)
                continue
            kind = part.pruned if operation is None else operation.arithmetic
            resource = Resource.REGISTER if operation is None else operation.resource
            if resource in (Resource.REGISTER, Resource.LOCAL):  # a thread's own memory: registers, as the paper has it
                if not by_operands:
                    continue
                resource = Resource.REGISTER if kind is None else Resource.ARITHMETIC
            use = Use(resource, *pricer.price(kind, 1.0 if operation is None else operation.amount), *registers)
            for warp in active:
                found[warp].append(use)
    return found


def simulate_round(
    uses: Sequence[Sequence[Use]], warps_per_block: int, *, by_operands: bool = False, blocks: int | None = None
) -> float:
    """Cycles until the last warp has ended.

    Args:
        by_operands: a warp waits for the registers that it reads; else for the end of the operation before.
        blocks: to be executed one after the other in the places of those given, doing the same; None for those alone.

    >>> add = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0)
    >>> load = Use(Resource.GLOBAL, 10.0, 4.0, 10.0)
    >>> simulate_round([[add, load], [add, load]], 2)
    30.0
    """
    return _Round(uses, warps_per_block, by_operands, blocks or len(uses) // warps_per_block).run()


class _Round:
    def __init__(self, uses: Sequence[Sequence[Use]], warps_per_block: int, by_operands: bool, blocks: int) -> None:
        self._uses = uses
        self._warps_per_block = warps_per_block
        self._by_operands = by_operands
        self._blocks = blocks
        self._free: dict[Resource, float] = {}
        self._place = [0] * len(uses)
        self._ready: list[dict[int, float]] = [{} for _ in uses]
        self._end = [0.0] * len(uses)
        self._queue: list[tuple[float, int, int]] = []
        self._waiting: dict[int, list[int]] = {}
        self._left: dict[int, int] = {}

    def run(self) -> float:
        """Cycles of all."""
        now = 0.0
        for block in range(len(self._uses) // self._warps_per_block):
            self._begin(block, now)
        while self._queue:
            now, warp, phase = heappop(self._queue)
            block = warp // self._warps_per_block
            if self._place[warp] == len(self._uses[warp]):
                self._left[block] -= 1
                if self._left[block]:
                    self._open_barrier(block, now)
                else:
                    self._begin(block, now)
                continue
            use = self._uses[warp][self._place[warp]]
            if use.resource is Resource.BARRIER:
                self._place[warp] += 1
                self._waiting.setdefault(block, []).append(warp)
                self._open_barrier(block, now)
            elif not phase and use.before_cycles:
                heappush(self._queue, (now + use.before_cycles, warp, 1))
            else:
                begin = max(now, self._free.get(use.resource, 0.0))
                self._free[use.resource] = begin + use.locked_cycles
                done = begin + use.locked_cycles + use.after_cycles
                self._place[warp] += 1
                if self._by_operands:
                    self._finish(warp, use, done)
                    done = begin
                self._go_on(warp, done)
        return now

    def _begin(self, block: int, now: float) -> None:
        """Put the next block where one was, if there is one."""
        if not self._blocks:
            return
        self._blocks -= 1
        warps = range(block * self._warps_per_block, (block + 1) * self._warps_per_block)
        self._left[block] = sum(bool(self._uses[one]) for one in warps)
        for warp in warps:
            self._place[warp] = 0
            if self._uses[warp]:
                self._go_on(warp, now)

    def _finish(self, warp: int, use: Use, done: float) -> None:
        ready = self._ready[warp]
        for register in use.writes:
            ready[register] = done
        self._end[warp] = max(self._end[warp], done)

    def _go_on(self, warp: int, now: float) -> None:
        """Queue the next operation of a warp for when its operands are there."""
        if self._by_operands:
            uses, ready, place = self._uses[warp], self._ready[warp], self._place[warp]
            while place < len(uses):
                use = uses[place]
                latest = max((ready.get(one, 0.0) for one in use.reads), default=0.0)
                if use.resource is not Resource.REGISTER:
                    now = max(now, latest)
                    break
                for register in use.writes:
                    ready[register] = latest
                place += 1
            else:
                now = max(now, self._end[warp])
            self._place[warp] = place
        heappush(self._queue, (now, warp, 0))

    def _open_barrier(self, block: int, now: float) -> None:
        """Warps that have ended are not waited for."""
        own = self._waiting.get(block, [])
        if own and len(own) == self._left[block]:
            self._waiting[block] = []
            for one in own:
                self._go_on(one, now)
