"""Who is blamed for long- and short-scoreboard samples: the instructions that may hold a counter the sampled one waits for.

The producers behind one counter are one *group*: the hardware waits for all of them, so how a sample is divided among them is a convention.
Several counters waited for at once are several groups; a sample does not say which of them was the last to be released.

Groups, and the producers of one, share by how often they are waited for there: a producer at most as often as it issues, and at most as often
as the waiting instruction does; a group as often as any of its producers, where those of one basic block issue together and those of different
blocks count each for itself. So the loads in front of a loop have the part of its first iteration, and an instruction that never issues has
none. Within a group, the sectors that each producer asked of L2 come in as a factor where all of them have that counter. Where nobody issued,
the parts are equal. Issues are exact where executions were counted in the same run, else they are estimated from ``selected`` samples;
``IssueCounts`` says which, and reports print it.

The published rule (GPA, Equation 1) divides stalls by issue counts, too, and by the inverse of the length of the path. Only the first holds for
counters: a wait is over when the last of them is released, whoever is nearest.

One counter may be held by instructions of both kinds, say by a load and by a conversion whose operand the load overwrites. The sampled reason
tells them apart: of 2.7 million samples at waits for short kinds alone none are long, of 29.5 million at waits for long kinds alone 135 are
short, and waits for both show both. So the group of a reason holds the producers of that kind only.

Nothing is pruned by distance or latency: under load a memory access takes many times its unloaded latency (means of 4,900 cycles per
execution were measured), while the nearest producer was at most 300 encoded cycles away.

Sources: blame measured on real reports, section 1: 99.97 % of 4.1 million samples explained; reason and opcode agree in all but 112 of them.
GPA section IV, "Attribute stalls".
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.control_code import NO_BARRIER
from gpa_lsp.diagnosis.blame.apportioning import count_waits, divide, weigh_groups
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD, SHORT_SCOREBOARD, find_category
from gpa_lsp.diagnosis.blame.distances import NOWHERE, Distance, Distances
from gpa_lsp.diagnosis.blame.edges import EdgeBuilder, lose_samples
from gpa_lsp.diagnosis.blame.model import BlameEdges, Unattributed, UnattributedCause
from gpa_lsp.diagnosis.blame.operands import RegisterUses
from gpa_lsp.diagnosis.blame.pending import Pending, PendingSetters, find_pending
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.gpu.arch.hazards import ProducerGroup
from gpa_lsp.gpu.arch.lookup import load_opcode_classes
from gpa_lsp.gpu.arch.sections import ScoreboardKind

# Asynchronous copies and the instruction that ties them to a scoreboard.
#
# ``LDGSTS`` copies from global to shared memory and sets no scoreboard for its arrival. ``LDGDEPBAR`` closes the group of the copies since the
# last such instruction, and sets one for all of them; a DEPBAR waits for it. Who waits there waits for the copies.

MOST_COPIES = 64  # Copies of a group that are named, the nearest ones

MOST_BLOCKS = 64  # Blocks before its end that a group is looked for in


class CopyGroups:
    """The groups of asynchronous copies of one function."""

    __slots__ = ("_budget", "_distances", "_found", "_marks", "_name_of", "_view")

    def __init__(self, view: FunctionView, distances: Distances, budget: WorkBudget) -> None:
        classes = load_opcode_classes()
        groups = [classes.find_producer(mnemonic) for mnemonic in view.instructions.mnemonics]
        is_mark = np.isin([str(group) for group in groups], [ProducerGroup.ASYNC_COPY, ProducerGroup.ASYNC_COPY_FENCE])
        self._view = view
        self._distances = distances
        self._budget = budget
        self._marks: list[int] = np.flatnonzero(is_mark[view.instructions.mnemonic_index]).tolist()
        self._name_of = {
            row: None
            if classes.find_producer(view.mnemonic(row)) == ProducerGroup.ASYNC_COPY
            else view.opcode(row).name
            for row in self._marks
        }
        """Copies and what closes their groups; None for a copy."""
        self._found: dict[int, dict[int, Distance]] = {}

    def closes_group(self, row: int) -> bool:
        """Whether an instruction ties a group of copies, perhaps an empty one, to its write barrier."""
        return self._name_of.get(row) is not None and self._view.control.write_barrier[row] != NO_BARRIER

    def find(self, row: int) -> Mapping[int, Distance]:
        """The copies that an instruction ties to its write barrier, with their distances to it, nearest first.

        Nothing for an instruction that ties none, and where no copy is found.
        """
        if not self.closes_group(row):
            return {}
        if row not in self._found:
            self._found[row] = self._walk_back(row)
        return self._found[row]

    def _walk_back(self, fence: int) -> dict[int, Distance]:
        graph = self._view.graph
        block = int(graph.block_of_instruction[fence])
        found: dict[int, Distance] = {}
        heap: list[tuple[int, int, int]] = []
        if self._collect(found, fence, block, fence, NOWHERE):
            self._push_before(heap, block, self._distances.from_start(fence))
        seen: set[int] = set()
        while heap and len(seen) < MOST_BLOCKS and self._budget.spend(1):
            cycles, instructions, block = heappop(heap)
            if block in seen:
                continue
            seen.add(block)
            end = int(graph.last_instruction[block]) + 1
            if self._collect(found, fence, block, end, Distance(cycles, instructions)):
                self._push_before(heap, block, self._distances.across(block).then(Distance(cycles, instructions)))
        return found

    def _collect(self, found: dict[int, Distance], fence: int, block: int, end: int, onward: Distance) -> bool:
        """Take the copies of a block before row ``end``, the last first; False when the group starts there, or is long enough."""
        first = int(self._view.graph.first_instruction[block])
        for row in reversed(self._marks[bisect_left(self._marks, first) : bisect_left(self._marks, end)]):
            if self._name_of[row] == self._name_of[fence] or len(found) >= MOST_COPIES or not self._budget.spend(1):
                return False
            if self._name_of[row] is None and row not in found:
                found[row] = self._distances.straight(row, end).then(onward)
        return True

    def _push_before(self, heap: list[tuple[int, int, int]], block: int, onward: Distance) -> None:
        for before in self._view.graph.predecessors(block).tolist():
            heappush(heap, (*onward, before))


_KIND_OF_REASON = {LONG_SCOREBOARD: ScoreboardKind.LONG, SHORT_SCOREBOARD: ScoreboardKind.SHORT}
_SECTORS = "global_sectors"

Groups = dict[int, dict[int, Pending]]  # Scoreboard → producer's row → how it holds the scoreboard


class ScoreboardBlame(NamedTuple):
    """What was found for the scoreboard samples of a function."""

    edges: BlameEdges  # groups count from 0
    unattributed: Unattributed  # samples without a cause
    # (use, def) rows: whatever sampled instructions wait for, before anybody is ruled out; unique
    pending_pairs: list[tuple[int, int]]


class _Column(NamedTuple):
    """A scoreboard reason and its column of samples."""

    number: int
    name: str


def blame_scoreboards(view: FunctionView, budget: WorkBudget) -> ScoreboardBlame:
    """The causes of long- and short-scoreboard samples.

    Candidates that the reason cannot mean on this architecture are ruled out. Where that leaves nobody, all stay: 112 of 4.1 million samples
    contradict the table, and the instruction waits for nothing else.
    """
    is_sampled: npt.NDArray[np.bool_] = view.all_samples.sum(axis=1) > 0
    distances = Distances(view)
    pending = find_pending(view, is_sampled, budget, distances)
    found = _Function(view, pending, CopyGroups(view, distances, budget))
    for row in np.flatnonzero(is_sampled).tolist():
        found.blame_row(row)
    return found.finish()


class _Function:
    """One function on its way."""

    def __init__(self, view: FunctionView, pending: PendingSetters, copies: CopyGroups) -> None:
        self._edges = EdgeBuilder()
        self._lost: list[tuple[int, int, UnattributedCause]] = []
        self._pending_pairs: list[tuple[int, int]] = []
        self._view = view
        self._pending = pending
        self._copies = copies
        self._uses = RegisterUses(view.instructions)
        self._columns = [
            _Column(number, name) for name in _KIND_OF_REASON if (number := view.reason_index(name)) is not None
        ]
        self._all: list[list[int]] = view.all_samples.tolist()
        self._latency: list[list[int]] = view.latency_samples.tolist()
        sectors = view.counters.get(_SECTORS)
        self._sectors: list[int] | None = None if sectors is None else sectors.tolist()
        self._issues: list[float] = view.issue_counts.tolist()
        self._block_of: list[int] = view.graph.block_of_instruction.tolist()
        self._group_count = 0

    def finish(self) -> ScoreboardBlame:
        return ScoreboardBlame(self._edges.build(), lose_samples(self._view, self._lost), self._pending_pairs)

    def blame_row(self, row: int) -> None:
        groups = self._find_groups(row)
        self._pending_pairs += sorted((row, producer) for group in groups.values() for producer in group)
        for column in self._columns:
            if self._all[row][column.number]:
                self._blame_reason(row, column, _rule_out(self._view, groups, _KIND_OF_REASON[column.name]))

    def _find_groups(self, row: int) -> Groups:
        """What a row waits for: its mask, and the DEPBAR right before it, whose wait the next instruction suffers."""
        groups: Groups = {}
        self._add(groups, self._pending.at_masks.get(row, ()), NOWHERE)
        if self._pending.at_dependency_barriers:
            for before in self._view.graph.previous_instructions(row):
                further = Distance(int(self._view.stall_cycles[before]), 1)
                self._add(groups, self._pending.at_dependency_barriers.get(before, ()), further)
        for group in groups.values():
            self._drop_empty(group)
        return _keep_results(groups)

    def _drop_empty(self, group: dict[int, Pending]) -> None:
        """Leave out what closed a group of copies without any, unless there is nothing else: it is over at once."""
        empty = [row for row in group if self._copies.closes_group(row)]
        if len(empty) < len(group):
            for row in empty:
                del group[row]

    def _add(self, groups: Groups, pending: Iterable[Pending], further: Distance) -> None:
        for one in pending:
            group = groups.setdefault(one.scoreboard, {})
            for holder in self._list_holders(one):
                known = group.get(holder.row)
                if known is None or holder.distance.then(further) < known.distance:
                    group[holder.row] = holder._replace(distance=holder.distance.then(further))

    def _list_holders(self, pending: Pending) -> list[Pending]:
        """The copies that an instruction ties to the scoreboard in its place, or itself."""
        copies = self._copies.find(pending.row)
        if not copies:
            return [pending]
        return [pending._replace(row=row, distance=before.then(pending.distance)) for row, before in copies.items()]

    def _blame_reason(self, row: int, column: _Column, groups: Sequence[dict[int, Pending]]) -> None:
        samples, latency = float(self._all[row][column.number]), float(self._latency[row][column.number])
        if not groups:
            is_complete = self._pending.is_complete
            cause = UnattributedCause.NO_PRODUCER if is_complete else UnattributedCause.WORK_BOUND
            self._lost.append((row, column.number, cause))
            return
        for group, part in zip(groups, self._weigh_groups(row, groups), strict=True):
            producers = sorted(group.values())
            for producer, share in zip(producers, self._weigh(row, producers), strict=True):
                if part * share > 0:
                    self._add_edge(row, column, producer, samples * part * share, latency * part * share)
            self._group_count += part > 0

    def _weigh_groups(self, row: int, groups: Sequence[dict[int, Pending]]) -> list[float]:
        """The part of each group in a wait; they add up to 1."""
        if len(groups) == 1:
            return [1.0]
        causes = [(number, producer) for number, group in enumerate(groups) for producer in group]
        parts = weigh_groups(
            [number for number, _ in causes],
            [self._block_of[producer] for _, producer in causes],
            [self._issues[producer] for _, producer in causes],
            self._issues[row],
        )
        return list(parts.values())

    def _weigh(self, row: int, producers: Sequence[Pending]) -> list[float]:
        """The part of each producer of a group; they add up to 1."""
        if len(producers) == 1:
            return [1.0]
        use_issues = self._issues[row]
        waits = [count_waits(self._issues[producer.row], use_issues) for producer in producers]
        if self._sectors is not None:
            sectors = [self._sectors[producer.row] for producer in producers]
            if min(sectors) >= 0 and sum(sectors) > 0:
                return divide(
                    one * often / self._issues[producer.row] if often else 0.0
                    for one, often, producer in zip(sectors, waits, producers, strict=True)
                )
        return divide(waits)

    def _add_edge(self, row: int, column: _Column, producer: Pending, samples: float, latency: float) -> None:
        connection = self._uses.connect(
            producer.row, row, by_result=producer.by_result, by_operands=producer.by_operands
        )
        category = find_category(
            self._view.opcode(producer.row),
            connection.dependency,
            column.name,
            waits_for_operands=not producer.by_result,
        )
        self._edges.add(
            use_row=row,
            def_row=producer.row,
            reason=column.number,
            all_samples=samples,
            latency_samples=latency,
            category=category,
            dependency=connection.dependency,
            resource=connection.resource,
            group=self._group_count,
            distance_cycles=producer.distance.cycles,
            distance_instructions=producer.distance.instructions,
        )


def _keep_results(groups: Groups) -> Groups:
    """Leave out instructions that are waited for to read their operands where their results are waited for as well."""
    if len(groups) < 2:
        return groups
    place: dict[int, int] = {}
    for scoreboard, group in sorted(groups.items()):
        for row, one in group.items():
            if row not in place or (one.by_result and not groups[place[row]][row].by_result):
                place[row] = scoreboard
    kept = {
        scoreboard: {row: one for row, one in group.items() if place[row] == scoreboard}
        for scoreboard, group in groups.items()
    }
    return {scoreboard: group for scoreboard, group in kept.items() if group}


def _rule_out(view: FunctionView, groups: Groups, kind: ScoreboardKind) -> list[dict[int, Pending]]:
    """The groups with only those producers whose scoreboard counts under a reason, or is not known to count under another."""
    kept = []
    for _, group in sorted(groups.items()):
        possible = {row: one for row, one in group.items() if view.scoreboard(row) in (kind, None)}
        if possible:
            kept.append(possible)
    return kept or [group for _, group in sorted(groups.items())]
