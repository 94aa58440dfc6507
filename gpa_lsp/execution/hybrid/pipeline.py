"""The traces of a round of blocks on one SM: which transactions hit, and what its operations cost.

Both caches replace what was used longest ago (Section III-B3). The paper gives no order in which the warps of a round reach memory; here they take
turns, basic block by basic block of the trace.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.accesses.references import find_hits
from gpa_lsp.execution.hybrid.contention import RoundUses, Use
from gpa_lsp.execution.hybrid.lane_values import Integers, Marks
from gpa_lsp.execution.hybrid.operations import Arithmetic, Costs, Resource, Term, hoist_loads
from gpa_lsp.execution.hybrid.walk import Access, KernelTrace
from gpa_lsp.foundation.records import ColumnRecord

_LOAD, _STORE, _CONSTANT = range(3)  # Roles of transactions


class L2Sharing(Struct, frozen=True, kw_only=True):
    """Effect of other SMs on an SM's use of L2."""

    hit_ratio: float = 0.0  # part of the SM's first reads that another SM has brought into L2 (0 as printed)
    # part of the stores that has to leave for DRAM while the launch runs; None where a store is served as a load is, as printed
    written_ratio: float | None = None
    lines_ratio: float = 1.0  # part of L2 that holds lines of the SM


class AccessOutcome(ColumnRecord, frozen=True, kw_only=True):
    """Hits and misses of one execution of an access: int64[warps] each."""

    near: Integers  # transactions with L1, or with shared memory
    hits: Integers  # with the cache behind it: L2, or that of constants
    misses: Integers  # with DRAM
    passes: Integers  # cycles of L1 or shared memory


def count_misses(
    trace: KernelTrace, costs: Costs, sharing: L2Sharing, warps: int
) -> list[tuple[AccessOutcome | None, ...]]:
    """Outcomes of the accesses of the first ``warps`` warps in every step; None for operations that are no access."""
    made = [(operation, access) for step in trace.steps for operation, access in step.operations if access is not None]
    nothing = np.zeros(0, dtype=np.int64)
    parts = [access.places[: access.starts[warps]] for _, access in made]
    roles = [_CONSTANT if one.resource is Resource.CONSTANT else _STORE if one.is_store else _LOAD for one, _ in made]
    of_each = np.repeat(np.array(roles, dtype=np.int64), [len(one) for one in parts])
    levels = _look_up(np.concatenate([nothing, *parts]), of_each, costs, sharing)
    found = iter(np.split(levels, np.cumsum([len(one) for one in parts])[:-1]) if parts else ())
    return [
        tuple(None if access is None else _count(access, next(found), warps) for _, access in step.operations)
        for step in trace.steps
    ]


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
    """Indexes at which each place is named first, ascending."""
    return np.sort(np.unique(places, return_index=True)[1])


def _share_out(count: int, ratio: float) -> Marks:
    """bool[count], True for a part of ``ratio`` at even distances.

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
    """Part of all transactions with constant and global memory that hit a cache; None where there are none."""
    known = [one for own in outcomes for one in own if one is not None]
    hits = sum(int(one.hits.sum() + one.near.sum()) for one in known)
    misses = sum(int(one.misses.sum()) for one in known)
    return hits / (hits + misses) if hits + misses else None


class _Pricer:
    """Prices each kind of use once."""

    def __init__(self, costs: Costs, warps: int) -> None:
        self._costs, self._warps = costs, warps
        self._by_operands = Term.OPERANDS in costs.terms

    def price(self, kind: Arithmetic | None, amount: float) -> tuple[float, float, float]:
        """Cycles before, locked and after, of an operation that is no access."""
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
        """Locked resource, and cycles before, locked and after, of an access."""
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
) -> RoundUses:
    """The priced operations of each of the first ``warps`` warps; where warps wait for operands, also what hands registers on."""
    pricer = _Pricer(costs, warps)
    by_operands = Term.OPERANDS in costs.terms
    bodies = [hoist_loads(one) for one in trace.bodies] if by_operands else trace.bodies
    known: dict[Use, int] = {}
    rows: list[npt.NDArray[np.int32]] = []
    for step, own in zip(trace.steps, outcomes, strict=True):
        is_active = step.warps[:warps]
        outcomes_of = {one.instruction: outcome for (one, _), outcome in zip(step.operations, own, strict=True)}
        for part in bodies[step.node]:
            operation, registers = part.operation, (part.reads, part.writes)
            outcome = None if operation is None else outcomes_of[operation.instruction]
            row = np.full(warps, -1, dtype=np.int32)
            if outcome is not None and operation is not None:
                counts = np.stack([outcome.near, outcome.hits, outcome.misses, outcome.passes], axis=1)
                keys, places = np.unique(counts[is_active], axis=0, return_inverse=True)
                priced = [
                    known.setdefault(Use(*pricer.price_access(operation.resource, *key), *registers), len(known))
                    if any(key)
                    else -1
                    for key in keys.tolist()
                ]
                row[is_active] = np.array(priced, dtype=np.int32)[places.reshape(-1)]
                rows.append(row)
                continue
            kind = part.pruned if operation is None else operation.arithmetic
            resource = Resource.REGISTER if operation is None else operation.resource
            if resource in (Resource.REGISTER, Resource.LOCAL):  # a thread's own memory: registers, as the paper has it
                if not by_operands:
                    continue
                resource = Resource.REGISTER if kind is None else Resource.ARITHMETIC
            use = Use(resource, *pricer.price(kind, 1.0 if operation is None else operation.amount), *registers)
            row[is_active] = known.setdefault(use, len(known))
            rows.append(row)
    return _join_rows(tuple(known), rows, warps)


def _join_rows(table: tuple[Use, ...], rows: Sequence[npt.NDArray[np.int32]], warps: int) -> RoundUses:
    """Uses one warp after the other, from those of all warps one after the other; -1 for none."""
    numbers = np.array(rows, dtype=np.int32).reshape(-1, warps).T
    is_used = numbers >= 0
    starts = np.concatenate(([0], np.cumsum(is_used.sum(axis=1)))).astype(np.int64)
    return RoundUses(table=table, numbers=np.ascontiguousarray(numbers[is_used]), starts=starts)
