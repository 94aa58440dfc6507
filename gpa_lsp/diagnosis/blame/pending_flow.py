"""Pending setters that cross from block to block: each block is reached by the nearest ones, in the order of their distance.

Setters that a block leaves pending travel in *bundles* (one release class, one age), along every path that lets them through, the shortest
first. A block takes the nearest bundles of each class and passes on those it took, so the work is bounded by blocks × classes × that number,
whatever the graph: nothing enumerates paths.

Calls inside the section are followed the way calls and returns can pair up. What was pending at the call enters the routine, but leaves it
only at that call, where it arrives if the routine lets it through; what the routine itself sets goes to all its callers. What a routine lets
through is found by sending an empty bundle through it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from msgspec import Struct, field

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.barriers import Setter, find_scoreboard, list_classes
from gpa_lsp.diagnosis.blame.block_scan import BlockScan
from gpa_lsp.diagnosis.blame.call_flow import CallFlow
from gpa_lsp.diagnosis.blame.distances import Distance, Distances
from gpa_lsp.diagnosis.blame.work import WorkBudget

MOST_BUNDLES = 64  # Bundles of one release class and age that a block takes at most, the nearest ones

LEAST_BUNDLES = 4  # Bundles it takes at least, if so many come, however large the function

MOST_ARRIVALS = 200_000  # Arrivals in a function, from which on blocks take fewer bundles

# What the arrival of a bundle at a block costs the budget: it takes about as long as sixteen steps along a list
STEPS_PER_ARRIVAL = 16


class Bundle(NamedTuple):
    """Setters of one block, release class and age that travel together."""

    block: int  # at whose end they are pending; for an empty bundle, the entry of the routine it is sent through
    release_class: int  # theirs
    age: int  # at the block's end; for an empty bundle, at the routine's entry
    setters: tuple[Setter, ...]  # oldest first
    procedure: int | None = None  # the routine an empty bundle is sent through; None for one with setters


# A bundle that is pending at the start of a block: cycles and instructions from the end of its block, its number, the age of its setters
Arrival = tuple[int, int, int, int]

# What a travelling bundle may do at a return. Its own: set in this routine or in one it called, it leaves to every caller. Inherited: pending when
# the routine was called, it stays; what the routine lets through goes on at the call. Empty: it finds out what that is.
_OWN, _INHERITED, _EMPTY = range(3)

# A bundle on its way: cycles and instructions so far, its number, the block it comes to, the age of its setters, its standing. Travellers compare
# like their distances, so the nearest moves on first.
_Traveller = tuple[int, int, int, int, int, int]

_Passage = tuple[int, int, int]  # A routine, a release class, and an age at its entry


class PendingFlow(Struct):
    """The travel of the bundles of one function."""

    scans: Mapping[int, BlockScan]  # of the blocks with any scoreboard traffic; the others let everything through
    graph: FlowGraph  # of the function
    flow: CallFlow  # steps between its blocks
    distances: Distances  # in the function
    oldest: Sequence[int]  # per scoreboard, the age beyond which all are alike
    budget: WorkBudget  # pays for arrivals and returns; what has arrived when it is spent are the nearest ones
    bundles: list[Bundle] = field(default_factory=list)  # by number
    # (block, release class) → what is pending at its start, nearest first
    arrivals: dict[tuple[int, int], list[Arrival]] = field(default_factory=lambda: defaultdict(list))
    _needed: Sequence[int] = ()
    _most: int = MOST_BUNDLES
    _heap: list[_Traveller] = field(default_factory=list)
    _taken: dict[tuple[int, int, int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    _passages: dict[_Passage, dict[int, Distance]] = field(default_factory=lambda: defaultdict(dict))
    _calling: dict[_Passage, list[_Traveller]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> None:
        """Send all that blocks leave pending to where some wait needs it."""
        present = 0
        for scan in self.scans.values():
            for release_class in scan.left:
                present |= 1 << release_class
        self._needed = find_needed(self.scans, self.graph, self.flow, present, self.budget)
        slots = sum(bits.bit_count() for bits in self._needed)
        self._most = min(MOST_BUNDLES, max(LEAST_BUNDLES, MOST_ARRIVALS // max(slots, 1)))
        for block, scan in self.scans.items():
            self._start_bundles(block, scan)
        self._start_empty_bundles()
        while self._heap and self.budget.spend(STEPS_PER_ARRIVAL):
            self._arrive(heappop(self._heap))

    def _start_bundles(self, block: int, scan: BlockScan) -> None:
        for release_class, pending in scan.left.items():
            oldest = self.oldest[find_scoreboard(release_class)]
            by_age: dict[int, list[Setter]] = defaultdict(list)
            for setter, age in pending:
                by_age[min(age, oldest)].append(setter)
            for age, setters in by_age.items():
                number = len(self.bundles)
                self.bundles.append(Bundle(block, release_class, age, tuple(setters)))
                self._leave((0, 0, number, block, age, _OWN), release_class)

    def _start_empty_bundles(self) -> None:
        for procedure in self.flow.callers_of:
            entry = self.graph.procedures[procedure].entry_block
            for release_class in list_classes(self._needed[entry]):
                for age in range(self.oldest[find_scoreboard(release_class)] + 1):
                    number = len(self.bundles)
                    self.bundles.append(Bundle(entry, release_class, age, (), procedure))
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
        bundle = self.bundles[number]
        release_class = bundle.release_class
        taken = self._taken[block, release_class, age, standing]
        if number in taken or (len(taken) >= self._most and standing != _EMPTY):
            return
        taken.add(number)
        if standing != _EMPTY:
            self.arrivals[block, release_class].append((cycles, instructions, number, age))
        scan = self.scans.get(block)
        if scan is not None:
            scoreboard = find_scoreboard(release_class)
            carried = scan.carry(release_class, scoreboard, age, self.oldest[scoreboard])
            if carried is None:
                return
            age = carried
        across = self.distances.across(block)
        self._leave((cycles + across[0], instructions + across[1], number, block, age, standing), release_class)

    def _leave(self, here: _Traveller, release_class: int) -> None:
        """Move on from the end of a block."""
        cycles, instructions, number, block, age, standing = here
        for step in self.flow.successors[block]:
            self._send((cycles, instructions, number, step, age, standing), release_class)
        if block in self.flow.callee_of:
            self._call(here, release_class, self.flow.callee_of[block])
        if block in self.flow.returns_from:
            self._return(here, release_class, self.flow.returns_from[block])

    def _call(self, here: _Traveller, release_class: int, procedure: int) -> None:
        """Enter a routine, and go on behind the call with what it is known to let through."""
        cycles, instructions, number, _, age, standing = here
        if standing != _EMPTY:
            entry = self.graph.procedures[procedure].entry_block
            self._send((cycles, instructions, number, entry, age, _INHERITED), release_class)
        passage = (procedure, release_class, age)
        self._calling[passage].append(here)
        for age_behind, distance in self._passages[passage].items():
            self._go_on(here, release_class, age_behind, distance)

    def _go_on(self, caller: _Traveller, release_class: int, age: int, distance: Distance) -> None:
        """Come to the place a call returns to."""
        cycles, instructions, number, block, _, standing = caller
        site = self.flow.site_of[block]
        self._send(
            (cycles + distance.cycles, instructions + distance.instructions, number, site, age, standing), release_class
        )

    def _return(self, here: _Traveller, release_class: int, procedure: int) -> None:
        cycles, instructions, number, _, age, standing = here
        if standing == _OWN and self.budget.spend(len(self.flow.return_sites_of[procedure])):
            for site in self.flow.return_sites_of[procedure]:
                self._send((cycles, instructions, number, site, age, _OWN), release_class)
        bundle = self.bundles[number]
        if standing != _EMPTY or bundle.procedure != procedure:
            return
        passage = (procedure, release_class, bundle.age)
        if age not in self._passages[passage] and self.budget.spend(len(self._calling[passage])):
            distance = self._passages[passage][age] = Distance(cycles, instructions)
            for caller in self._calling[passage]:
                self._go_on(caller, release_class, age, distance)


def find_needed(
    scans: Mapping[int, BlockScan], graph: FlowGraph, flow: CallFlow, present: int, budget: WorkBudget
) -> list[int]:
    """Per block, bits of the release classes that some wait in it or behind it waits for, so far as setters of them are about.

    Args:
        scans: as in :class:`PendingFlow`.
    """
    before: list[list[int]] = [[] for _ in range(graph.block_count)]
    for block in range(graph.block_count):
        for step in flow.steps_from(graph, block):
            before[step].append(block)
    needed = [0] * graph.block_count
    waiting = []
    for block, scan in scans.items():
        needed[block] = scan.exposed & present
        if needed[block]:
            waiting.append(block)
    while waiting and budget.spend(1 + len(before[waiting[-1]])):
        block = waiting.pop()
        for earlier in before[block]:
            released = scans[earlier].released if earlier in scans else 0
            more = needed[block] & ~released & ~needed[earlier]
            if more:
                needed[earlier] |= more
                waiting.append(earlier)
    return needed
