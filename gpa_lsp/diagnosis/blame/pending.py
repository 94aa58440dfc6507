"""Which instructions may still hold a scoreboard when another one waits for it: reaching definitions of six counters.

Backward, this answers "whom does a sample at a wait blame?"; it is found forward, for all sampled waits of a function at once: within blocks by
going through them (:mod:`~gpa_lsp.diagnosis.blame.block_scan`), between blocks by letting what is pending travel
(:mod:`~gpa_lsp.diagnosis.blame.pending_flow`).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.blame.barriers import Barriers, Setter, list_classes, read_barriers
from gpa_lsp.diagnosis.blame.block_scan import BlockScan, Wait, scan_block
from gpa_lsp.diagnosis.blame.call_flow import CallFlow
from gpa_lsp.diagnosis.blame.distances import Distance, Distances
from gpa_lsp.diagnosis.blame.pending_flow import Arrival, PendingFlow
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget

# Setters a wait names at most, the nearest ones: a scoreboard counts to 63, so no wait waits for more of them at a time
MOST_SETTERS = 64

LEAST_SETTERS = 4  # Setters a wait names at least, if there are so many, however large the function

MOST_PAIRS = 200_000  # Pairs of waits and setters in a function, from which on the waits name fewer


class Pending(NamedTuple):
    """An instruction that may still hold a scoreboard."""

    row: int  # it
    scoreboard: int  # which
    by_result: bool  # until its result is written
    by_operands: bool  # until its operands are read; both where both barriers are the same scoreboard
    # from its issue to that of the waiting instruction, on the shortest path on which it stays pending
    distance: Distance


class PendingSetters(Struct, frozen=True, kw_only=True):
    """Who is pending where; nearest first, by scoreboard."""

    at_masks: Mapping[int, tuple[Pending, ...]]  # instruction with a wait mask → what it waits for
    # DEPBAR → what it waits for beside its mask, which the next instruction suffers
    at_dependency_barriers: Mapping[int, tuple[Pending, ...]]
    is_complete: bool  # False when the work bound cut the search short


def find_pending(
    view: FunctionView, is_sampled: npt.NDArray[np.bool_], budget: WorkBudget, distances: Distances | None = None
) -> PendingSetters:
    """Find what the sampled waits of a function wait for.

    Args:
        is_sampled: bool[n], instructions that are asked about; a DEPBAR is when an instruction that can follow it is.
    """
    barriers = read_barriers(view)
    masks, dependency_barriers = _find_wanted(view, barriers, is_sampled)
    if not masks and not dependency_barriers:
        return PendingSetters(at_masks={}, at_dependency_barriers={}, is_complete=True)
    most = min(MOST_SETTERS, max(LEAST_SETTERS, MOST_PAIRS // (len(masks) + len(dependency_barriers))))
    scans = {
        block: scan_block(barriers, rows, masks, dependency_barriers, most)
        for block, rows in _group_by_block(view, barriers.rows)
    }
    flow = CallFlow(view.graph, view.instructions)
    distances = distances or Distances(view)
    share = WorkBudget(remaining=budget.remaining // 2)
    before = share.remaining
    travel = PendingFlow(
        scans=scans,
        graph=view.graph,
        flow=flow,
        distances=distances,
        oldest=barriers.oldest,
        budget=share,
    )
    travel.run()
    budget.spend(before - share.remaining)
    budget.is_exhausted |= share.is_exhausted
    at_masks, at_dependency_barriers = _resolve_waits(scans, travel, distances, most)
    return PendingSetters(
        at_masks=at_masks, at_dependency_barriers=at_dependency_barriers, is_complete=not share.is_exhausted
    )


def _find_wanted(
    view: FunctionView, barriers: Barriers, is_sampled: npt.NDArray[np.bool_]
) -> tuple[set[int], set[int]]:
    """The instructions whose masks, and the DEPBARs that, are asked for."""
    masks = {row for row in barriers.masks if is_sampled[row]}
    dependency_barriers = {
        row
        for row in barriers.dependency_barriers
        if any(is_sampled[following] for following in view.graph.next_instructions(row))
    }
    return masks, dependency_barriers


def _group_by_block(view: FunctionView, rows: tuple[int, ...]) -> Iterable[tuple[int, tuple[int, ...]]]:
    """The blocks that hold some of ``rows``, ascending, each with its own."""
    blocks, firsts = np.unique(view.graph.block_of_instruction[list(rows)], return_index=True)
    bounds = [*firsts.tolist(), len(rows)]
    for number, block in enumerate(blocks.tolist()):
        yield block, rows[bounds[number] : bounds[number + 1]]


def _resolve_waits(
    scans: Mapping[int, BlockScan], travel: PendingFlow, distances: Distances, most: int
) -> tuple[dict[int, tuple[Pending, ...]], dict[int, tuple[Pending, ...]]]:
    """What wait masks wait for, and what DEPBARs do; bounded by :data:`MOST_PAIRS`, so it needs no budget."""
    at_masks: dict[int, tuple[Pending, ...]] = {}
    at_dependency_barriers: dict[int, tuple[Pending, ...]] = {}
    for block, scan in scans.items():
        for wait in scan.waits:
            found = at_dependency_barriers if wait.is_dependency_barrier else at_masks
            found[wait.row] = found.get(wait.row, ()) + _resolve(wait, block, travel, distances, most)
    return at_masks, at_dependency_barriers


def _resolve(wait: Wait, block: int, travel: PendingFlow, distances: Distances, most: int) -> tuple[Pending, ...]:
    """The ``most`` nearest setters a wait waits for: those of its block, then those that arrived there."""
    nearest: dict[int, Pending] = {}
    for setter in wait.setters:
        _add(nearest, setter, distances.straight(setter.row, wait.row))
    to_row = distances.from_start(wait.row)
    for cycles, instructions, number, _ in _list_arrivals(wait, block, travel):
        if len(nearest) >= most:
            break
        for setter in reversed(travel.bundles[number].setters):
            distance = distances.to_end(setter.row).then(Distance(cycles, instructions)).then(to_row)
            _add(nearest, setter, distance)
    return tuple(sorted(nearest.values(), key=lambda pending: (pending.distance, pending.row))[:most])


def _list_arrivals(wait: Wait, block: int, travel: PendingFlow) -> list[Arrival]:
    """What is pending at the block's start and old enough to be waited for, nearest first."""
    return sorted(
        arrival
        for release_class in list_classes(wait.incoming)
        for arrival in travel.arrivals.get((block, release_class), ())
        if wait.least_age <= arrival[-1] < wait.age_limit
    )


def _add(nearest: dict[int, Pending], setter: Setter, distance: Distance) -> None:
    """Take a setter in, the nearest first; an instruction that holds the scoreboard in two ways is one."""
    known = nearest.get(setter.row)
    nearest[setter.row] = Pending(
        row=setter.row,
        scoreboard=setter.scoreboard,
        by_result=not setter.is_read or (known is not None and known.by_result),
        by_operands=setter.is_read or (known is not None and known.by_operands),
        distance=distance if known is None else known.distance,
    )
