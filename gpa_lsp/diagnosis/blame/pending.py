"""Instructions that may still hold a scoreboard when another one waits for it: reaching definitions of six counters.

Backward, this answers what a sample at a wait blames; it is found forward, for all sampled waits of a function at once: within blocks by
going through them (:class:`~gpa_lsp.diagnosis.blame.barriers.BlockScan`), between blocks by letting what is pending travel.

Setters that a block leaves pending travel in *bundles* (one release class, one age), along every path that lets them through, the shortest
first. A block takes the nearest bundles of each class and passes on those it took, so the work is bounded by blocks × classes × that number
for every graph: nothing enumerates paths.

Calls inside the section are followed the way calls and returns can pair up. What was pending at the call enters the routine, but leaves it
only at that call, where it arrives if the routine lets it through; what the routine itself sets goes to all its callers. What a routine lets
through is found by sending an empty bundle through it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.control_flow.model import EdgeKind
from gpa_lsp.diagnosis.blame.barriers import (
    Barriers,
    BlockScan,
    Setter,
    Wait,
    find_scoreboard,
    list_classes,
    read_barriers,
)
from gpa_lsp.diagnosis.blame.view import Distance, FunctionView, WorkBudget

# Setters a wait names at most, the nearest ones: a scoreboard counts to 63, so no wait waits for more of them at a time
MOST_SETTERS = 64

LEAST_SETTERS = 4  # Setters a wait names at least, if there are so many, however large the function

MOST_PAIRS = 200_000  # Pairs of waits and setters in a function, from which on the waits name fewer

MOST_BUNDLES = 64  # Bundles of one release class and age that a block takes at most, the nearest ones

LEAST_BUNDLES = 4  # Bundles it takes at least, if so many come, however large the function

MOST_ARRIVALS = 200_000  # Arrivals in a function, from which on blocks take fewer bundles

# What the arrival of a bundle at a block costs the budget: it takes about as long as sixteen steps along a list
STEPS_PER_ARRIVAL = 16


class Pending(NamedTuple):
    """An instruction that may still hold a scoreboard."""

    row: int  # it
    scoreboard: int  # which
    by_result: bool  # until its result is written
    by_operands: bool  # until its operands are read; both where both barriers are the same scoreboard
    # from its issue to that of the waiting instruction, on the shortest path on which it stays pending
    distance: Distance


class PendingSetters(Struct, frozen=True, kw_only=True):
    """The setters that are pending at waits; nearest first, by scoreboard."""

    at_masks: Mapping[int, tuple[Pending, ...]]  # instruction with a wait mask → what it waits for
    # DEPBAR → what it waits for besides its mask, which the next instruction suffers
    at_dependency_barriers: Mapping[int, tuple[Pending, ...]]
    is_complete: bool  # False when the work bound cut the search short


def find_pending(view: FunctionView, is_sampled: npt.NDArray[np.bool_], budget: WorkBudget) -> PendingSetters:
    """Find what the sampled waits of a function wait for.

    ``is_sampled``: bool[n], instructions that are asked about; a DEPBAR is when an instruction that can follow it is.
    """
    barriers = read_barriers(view)
    masks = {row for row in barriers.masks if is_sampled[row]}
    dependency_barriers = {
        row for row in barriers.dependency_barriers if is_sampled[list(view.graph.next_instructions(row))].any()
    }
    if not masks and not dependency_barriers:
        return PendingSetters(at_masks={}, at_dependency_barriers={}, is_complete=True)
    most = min(MOST_SETTERS, max(LEAST_SETTERS, MOST_PAIRS // (len(masks) + len(dependency_barriers))))
    rows_of: dict[int, list[int]] = {}
    for row in barriers.rows:
        rows_of.setdefault(view.blocks.block_of[row], []).append(row)
    scans = {block: BlockScan(most).scan(barriers, rows, masks, dependency_barriers) for block, rows in rows_of.items()}
    share = WorkBudget(remaining=budget.remaining // 2)
    before = share.remaining
    travel = _Travel(view, barriers, scans, share)
    travel.run()
    budget.spend(before - share.remaining)
    budget.is_exhausted |= share.is_exhausted
    at_masks: dict[int, tuple[Pending, ...]] = {}
    at_dependency_barriers: dict[int, tuple[Pending, ...]] = {}
    for block, scan in scans.items():  # bounded by MOST_PAIRS, so it needs no budget
        for wait in scan.waits:
            found = at_dependency_barriers if wait.is_dependency_barrier else at_masks
            found[wait.row] = found.get(wait.row, ()) + travel.resolve(wait, block, most)
    return PendingSetters(
        at_masks=at_masks, at_dependency_barriers=at_dependency_barriers, is_complete=not share.is_exhausted
    )


class _CallFlow:
    """Steps between the blocks of a function section, calls inside it followed: in at the callee's entry, back from its returns.

    A call whose callee is a routine of the section is no step to the next address, unless it is guarded; the callee's returns lead there.
    Calls of unknown or outside routines, and of routines that never return, are stepped over.

    Attributes:
        successors: per block, the blocks that can follow it other than by a call or a return.
        entry_of: procedure that is called → its first block.
        callee_of: block that ends in a followed call → procedure called.
        site_of: block that ends in a followed call → the block its callee returns to.
        returns_from: block that ends in RET → procedure that is called.
        return_sites_of: procedure → blocks that its returns lead to.

    Approximation: a RET belongs to the procedure it stands in, by address.
    """

    def __init__(self, view: FunctionView) -> None:
        graph = view.graph
        self.successors = list(view.blocks.successors)
        self.entry_of: dict[int, int] = {}
        self.callee_of: dict[int, int] = {}
        self.site_of: dict[int, int] = {}
        self.returns_from: dict[int, int] = {}
        self.return_sites_of: dict[int, list[int]] = defaultdict(list)
        if all(call.callee_procedure is None for call in graph.calls):
            return
        returns = np.flatnonzero(graph.terminator == Flow.RETURN)
        procedure_of = dict(zip(returns.tolist(), graph.procedure_of_block[returns].tolist(), strict=True))
        returning = set(procedure_of.values())
        edges = np.flatnonzero(graph.edge_kind == EdgeKind.CALL_RETURN)
        sites = dict(zip(graph.edge_source[edges].tolist(), graph.edge_target[edges].tolist(), strict=True))
        for call in graph.calls:
            callee, block = call.callee_procedure, view.blocks.block_of[call.instruction]
            if callee is None or callee not in returning or block not in sites:
                continue
            site = self.site_of[block] = sites[block]
            self.callee_of[block] = callee
            self.entry_of[callee] = graph.procedures[callee].entry_block
            self.return_sites_of[callee].append(site)
            if view.flow.guard_of[call.instruction] < 0:
                self.successors[block] = [other for other in self.successors[block] if other != site]
        self.returns_from = {block: callee for block, callee in procedure_of.items() if callee in self.entry_of}

    def list_steps(self, block: int) -> list[int]:
        """The blocks that can follow ``block``; a return leads back to every call of its routine."""
        steps = self.successors[block]
        if block in self.callee_of:
            steps = [*steps, self.entry_of[self.callee_of[block]]]
        if block in self.returns_from:
            steps = [*steps, *self.return_sites_of[self.returns_from[block]]]
        return steps


class _Bundle(NamedTuple):
    """Setters of one block, release class and age that travel together."""

    release_class: int  # theirs
    age: int  # at the block's end; for an empty bundle, at the routine's entry
    setters: tuple[Setter, ...]  # oldest first
    procedure: int | None = None  # the routine an empty bundle is sent through; None for one with setters


# A bundle that is pending at the start of a block: cycles and instructions from the end of its block, its number, the age of its setters
_Arrival = tuple[int, int, int, int]

# What a travelling bundle may do at a return. Its own: set in this routine or in one it called, it leaves to every caller. Inherited: pending when
# the routine was called, it stays; what the routine lets through goes on at the call. Empty: it finds out what that is.
_OWN, _INHERITED, _EMPTY = range(3)

# A bundle on its way: cycles and instructions so far, its number, the block it comes to, the age of its setters, its standing. Travellers compare
# like their distances, so the nearest moves on first.
_Traveller = tuple[int, int, int, int, int, int]

_Passage = tuple[int, int, int]  # A routine, a release class, and an age at its entry


class _Travel:
    """The travel of the bundles of one function: each block is reached by the nearest ones, in the order of their distance.

    Args:
        scans: of the blocks with any scoreboard traffic; the others let everything through.
        budget: pays for arrivals and returns; what has arrived when it is spent are the nearest ones.
    """

    def __init__(
        self, view: FunctionView, barriers: Barriers, scans: Mapping[int, BlockScan], budget: WorkBudget
    ) -> None:
        self._scans = scans
        self._blocks = view.blocks
        self._flow = _CallFlow(view)
        self._oldest = barriers.oldest
        self._budget = budget
        self._bundles: list[_Bundle] = []
        # (block, release class) → what is pending at its start, nearest first
        self._arrivals: dict[tuple[int, int], list[_Arrival]] = defaultdict(list)
        self._needed = [0] * len(view.blocks.first)
        self._most = MOST_BUNDLES
        self._heap: list[_Traveller] = []
        self._taken: dict[tuple[int, int, int, int], set[int]] = defaultdict(set)
        self._passages: dict[_Passage, dict[int, Distance]] = defaultdict(dict)
        self._calling: dict[_Passage, list[_Traveller]] = defaultdict(list)

    def run(self) -> None:
        """Send all that blocks leave pending to where some wait needs it."""
        left = [(block, *one) for block, scan in self._scans.items() for one in scan.list_left()]
        present = 0
        for _, release_class, _ in left:
            present |= 1 << release_class
        self._find_needed(present)
        slots = sum(bits.bit_count() for bits in self._needed)
        self._most = min(MOST_BUNDLES, max(LEAST_BUNDLES, MOST_ARRIVALS // max(slots, 1)))
        for block, release_class, pending in left:
            self._start_bundles(block, release_class, pending)
        self._start_empty_bundles()
        while self._heap and self._budget.spend(STEPS_PER_ARRIVAL):
            self._arrive(heappop(self._heap))

    def _find_needed(self, present: int) -> None:
        """Find for each block the release classes, as bits, that waits in it or behind it wait for, out of those with setters (``present``)."""
        needed = self._needed
        before: list[list[int]] = [[] for _ in needed]
        for block in range(len(needed)):
            for step in self._flow.list_steps(block):
                before[step].append(block)
        waiting = []
        for block, scan in self._scans.items():
            needed[block] = scan.exposed & present
            if needed[block]:
                waiting.append(block)
        while waiting and self._budget.spend(1 + len(before[waiting[-1]])):
            block = waiting.pop()
            for earlier in before[block]:
                released = self._scans[earlier].released if earlier in self._scans else 0
                more = needed[block] & ~released & ~needed[earlier]
                if more:
                    needed[earlier] |= more
                    waiting.append(earlier)

    def _start_bundles(self, block: int, release_class: int, pending: Iterable[tuple[Setter, int]]) -> None:
        oldest = self._oldest[find_scoreboard(release_class)]
        by_age: dict[int, list[Setter]] = defaultdict(list)
        for setter, age in pending:
            by_age[min(age, oldest)].append(setter)
        for age, setters in by_age.items():
            number = len(self._bundles)
            self._bundles.append(_Bundle(release_class, age, tuple(setters)))
            self._leave((0, 0, number, block, age, _OWN), release_class)

    def _start_empty_bundles(self) -> None:
        for procedure, entry in self._flow.entry_of.items():
            for release_class in list_classes(self._needed[entry]):
                for age in range(self._oldest[find_scoreboard(release_class)] + 1):
                    number = len(self._bundles)
                    self._bundles.append(_Bundle(release_class, age, (), procedure))
                    self._send((0, 0, number, entry, age, _EMPTY), release_class)

    def _send(self, there: _Traveller, release_class: int) -> None:
        """Let a bundle come to a block, if some wait needs it and the block does not have it or enough nearer ones."""
        _, _, number, block, age, standing = there
        if not self._needed[block] >> release_class & 1:
            return
        taken = self._taken[block, release_class, age, standing]
        if number not in taken and (len(taken) < self._most or standing == _EMPTY):
            heappush(self._heap, there)

    def _arrive(self, here: _Traveller) -> None:
        cycles, instructions, number, block, age, standing = here
        release_class = self._bundles[number].release_class
        taken = self._taken[block, release_class, age, standing]
        if number in taken or (len(taken) >= self._most and standing != _EMPTY):
            return
        taken.add(number)
        if standing != _EMPTY:
            self._arrivals[block, release_class].append((cycles, instructions, number, age))
        scan = self._scans.get(block)
        if scan is not None:
            scoreboard = find_scoreboard(release_class)
            carried = scan.carry(release_class, scoreboard, age, self._oldest[scoreboard])
            if carried is None:
                return
            age = carried
        across = self._blocks.across(block)
        self._leave((cycles + across[0], instructions + across[1], number, block, age, standing), release_class)

    def _leave(self, here: _Traveller, release_class: int) -> None:
        """Move on from the end of a block."""
        cycles, instructions, number, block, age, standing = here
        for step in self._flow.successors[block]:
            self._send((cycles, instructions, number, step, age, standing), release_class)
        if block in self._flow.callee_of:
            self._call(here, release_class, self._flow.callee_of[block])
        if block in self._flow.returns_from:
            self._return(here, release_class, self._flow.returns_from[block])

    def _call(self, here: _Traveller, release_class: int, procedure: int) -> None:
        """Enter a routine, and go on behind the call with what it is known to let through."""
        cycles, instructions, number, _, age, standing = here
        if standing != _EMPTY:
            entry = self._flow.entry_of[procedure]
            self._send((cycles, instructions, number, entry, age, _INHERITED), release_class)
        passage = (procedure, release_class, age)
        self._calling[passage].append(here)
        for age_behind, distance in self._passages[passage].items():
            self._go_on(here, release_class, age_behind, distance)

    def _go_on(self, caller: _Traveller, release_class: int, age: int, distance: Distance) -> None:
        """Come to the place a call returns to."""
        cycles, instructions, number, block, _, standing = caller
        site = self._flow.site_of[block]
        self._send(
            (cycles + distance.cycles, instructions + distance.instructions, number, site, age, standing), release_class
        )

    def _return(self, here: _Traveller, release_class: int, procedure: int) -> None:
        cycles, instructions, number, _, age, standing = here
        if standing == _OWN and self._budget.spend(len(self._flow.return_sites_of[procedure])):
            for site in self._flow.return_sites_of[procedure]:
                self._send((cycles, instructions, number, site, age, _OWN), release_class)
        bundle = self._bundles[number]
        if standing != _EMPTY or bundle.procedure != procedure:
            return
        passage = (procedure, release_class, bundle.age)
        if age not in self._passages[passage] and self._budget.spend(len(self._calling[passage])):
            distance = self._passages[passage][age] = Distance(cycles, instructions)
            for caller in self._calling[passage]:
                self._go_on(caller, release_class, age, distance)

    def resolve(self, wait: Wait, block: int, most: int) -> tuple[Pending, ...]:
        """The ``most`` nearest setters that a wait waits for: those of its block, then those that arrived there."""
        nearest: dict[int, Pending] = {}
        for setter in wait.setters:
            _add(nearest, setter, self._blocks.straight(setter.row, wait.row))
        to_row = self._blocks.from_start(wait.row)
        arrived = sorted(
            arrival
            for release_class in list_classes(wait.incoming)
            for arrival in self._arrivals.get((block, release_class), ())
            if wait.least_age <= arrival[-1] < wait.age_limit
        )
        for cycles, instructions, number, _ in arrived:
            if len(nearest) >= most:
                break
            for setter in reversed(self._bundles[number].setters):
                distance = self._blocks.to_end(setter.row).then(Distance(cycles, instructions)).then(to_row)
                _add(nearest, setter, distance)
        return tuple(sorted(nearest.values(), key=lambda pending: (pending.distance, pending.row))[:most])


def _add(nearest: dict[int, Pending], setter: Setter, distance: Distance) -> None:
    """Take a setter in, the nearest first; an instruction that holds the scoreboard in two ways is one."""
    known = nearest.get(setter.row)
    nearest[setter.row] = Pending(
        row=setter.row,
        scoreboard=find_scoreboard(setter.release_class),
        by_result=not setter.is_read or (known is not None and known.by_result),
        by_operands=setter.is_read or (known is not None and known.by_operands),
        distance=distance if known is None else known.distance,
    )
