"""The default blamer: scoreboard stalls by the scoreboards, ``wait`` by stall counts, other reasons by preceding control flow.

Long- and short-scoreboard samples are caused by the instructions that may hold a scoreboard the sampled one waits for.

The producers behind one scoreboard are one *group*: the hardware waits for all of them, so how a sample is divided among them is a convention.
Several scoreboards waited for at once are several groups; a sample does not say which of them was the last to be released.

Groups, and the producers of one, share by how often the sampled instruction waits for them: for a producer at most as often as either issues; for
a group as often as for any of its producers, where those of one basic block issue together and those of different blocks are added up. So loads
in front of a loop get the part of its first iteration, and an instruction that never issues gets none. Within a group, the sectors that each
producer asked of L2 are a factor where all of them have that counter. Where none issued, the parts are equal. Issues are exact where executions
were counted in the same run, else they are estimated from ``selected`` samples; ``IssueCounts`` says which, and reports print it.

The published rule (GPA, Equation 1) divides stalls by issue counts and by the inverse of the path length. Only issue counts matter for
scoreboards: a wait is over when the last of them is released, however near the others are.

One scoreboard may be held by instructions of both kinds, say by a load and by a conversion whose operand the load overwrites. The sampled reason
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

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import NO_BARRIER
from gpa_lsp.diagnosis.blame.blamers import Blamer, FunctionBlame
from gpa_lsp.diagnosis.blame.categories import SCOREBOARD_KINDS, find_category
from gpa_lsp.diagnosis.blame.edges import connect, join_edges, lose_samples
from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.issue_counts import count_waits, divide, weigh_groups
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency, Unattributed, UnattributedCause
from gpa_lsp.diagnosis.blame.pending import Pending, PendingSetters, find_pending
from gpa_lsp.diagnosis.blame.view import NOWHERE, Distance, FunctionView, WorkBudget
from gpa_lsp.diagnosis.blame.walk_back import find_other_causes
from gpa_lsp.foundation.distinct import find_distinct_rows
from gpa_lsp.gpu.arch.hazards import ProducerGroup
from gpa_lsp.gpu.arch.lookup import load_opcode_classes
from gpa_lsp.gpu.arch.sections import ScoreboardKind

MOST_COPIES = 64  # Copies of a group that are named, the nearest ones

MOST_BLOCKS = 64  # Blocks before its end that a group is looked for in


class CopyGroups:
    """Asynchronous copies of one function, and the instructions that tie groups of them to a scoreboard.

    ``LDGSTS`` copies from global to shared memory and sets no scoreboard for its arrival. ``LDGDEPBAR`` closes the group of the copies since the
    last such instruction, and sets one for all of them; a DEPBAR waits for it. What waits there waits for the copies.
    """

    def __init__(self, view: FunctionView, budget: WorkBudget) -> None:
        producers = list(map(load_opcode_classes().find_producer, view.instructions.mnemonics))
        is_mark = [one in (ProducerGroup.ASYNC_COPY, ProducerGroup.ASYNC_COPY_FENCE) for one in producers]
        self._view, self._blocks, self._budget = view, view.blocks, budget
        self._marks: list[int] = np.flatnonzero(np.array(is_mark)[view.instructions.mnemonic_index]).tolist()
        # Opcode of what closes a group; None for a copy
        self._closer_of = {
            row: None if producers[view.flow.mnemonic_of[row]] is ProducerGroup.ASYNC_COPY else view.opcode(row).name
            for row in self._marks
        }
        self._found: dict[int, dict[int, Distance]] = {}

    def closes_group(self, row: int) -> bool:
        """Whether an instruction ties a group of copies, perhaps an empty one, to its write barrier."""
        return self._closer_of.get(row) is not None and self._view.control.write_barrier[row] != NO_BARRIER

    def find(self, row: int) -> Mapping[int, Distance]:
        """The copies that an instruction ties to its write barrier, with their distances to it, nearest first."""
        if not self.closes_group(row):
            return {}
        if row not in self._found:
            self._found[row] = self._walk_back(row)
        return self._found[row]

    def _walk_back(self, fence: int) -> dict[int, Distance]:
        block = self._blocks.block_of[fence]
        found: dict[int, Distance] = {}
        heap: list[tuple[int, int, int]] = []
        if self._collect(found, fence, block, fence, NOWHERE):
            self._push_before(heap, block, self._blocks.from_start(fence))
        seen: set[int] = set()
        while heap and len(seen) < MOST_BLOCKS and self._budget.spend(1):
            *onward, block = heappop(heap)
            if block in seen:
                continue
            seen.add(block)
            if self._collect(found, fence, block, self._blocks.last[block] + 1, Distance(*onward)):
                self._push_before(heap, block, self._blocks.across(block).then(Distance(*onward)))
        return found

    def _collect(self, found: dict[int, Distance], fence: int, block: int, end: int, onward: Distance) -> bool:
        """Take the copies of a block before row ``end``, the last first; False when the group starts there, or is long enough."""
        first = self._blocks.first[block]
        for row in reversed(self._marks[bisect_left(self._marks, first) : bisect_left(self._marks, end)]):
            if self._closer_of[row] == self._closer_of[fence] or len(found) >= MOST_COPIES or not self._budget.spend(1):
                return False
            if self._closer_of[row] is None and row not in found:
                found[row] = self._blocks.straight(row, end).then(onward)
        return True

    def _push_before(self, heap: list[tuple[int, int, int]], block: int, onward: Distance) -> None:
        for before in self._blocks.predecessors[block]:
            heappush(heap, (*onward, before))


Groups = dict[int, dict[int, Pending]]  # Scoreboard → producer's row → how it holds the scoreboard


def blame_scoreboards(view: FunctionView, budget: WorkBudget) -> tuple[BlameEdges, Unattributed, list[tuple[int, int]]]:
    """The causes of long- and short-scoreboard samples.

    Candidates that cannot stall under the reason on this architecture are ruled out. Where that leaves none, all stay: 112 of 4.1 million samples
    contradict the table. Returns edges, whose groups count from 0; samples without a cause; and unique (use, def) rows of all instructions that
    sampled ones wait for, before any is ruled out.
    """
    pending = find_pending(view, view.is_sampled, budget)
    found = _Function(view, pending, CopyGroups(view, budget))
    for row in np.flatnonzero(view.is_sampled).tolist():
        found.blame_row(row)
    edges = BlameEdges.from_rows(found.edges).sort()
    return edges, lose_samples(view, found.lost), found.pending_pairs


class _Function:
    """Edges of one function, while they are collected."""

    def __init__(self, view: FunctionView, pending: PendingSetters, copies: CopyGroups) -> None:
        self.edges: list[tuple[float, ...]] = []
        self.lost: list[tuple[int, int, UnattributedCause]] = []
        self.pending_pairs: list[tuple[int, int]] = []
        self._view, self._pending, self._copies = view, pending, copies
        self._columns = [(number, name) for name in SCOREBOARD_KINDS if (number := view.reason_index(name)) is not None]
        self._all: list[list[int]] = view.all_samples.tolist()
        self._latency: list[list[int]] = view.latency_samples.tolist()
        sectors = view.counters.get("global_sectors")
        self._sectors: list[int] | None = None if sectors is None else sectors.tolist()
        self._issues: list[float] = view.issue_counts.tolist()
        self._group_count = 0

    def blame_row(self, row: int) -> None:
        groups = self._find_groups(row)
        self.pending_pairs += sorted((row, producer) for group in groups.values() for producer in group)
        for column, reason in self._columns:
            if self._all[row][column]:
                self._blame_reason(row, column, reason, _rule_out(self._view, groups, SCOREBOARD_KINDS[reason]))

    def _find_groups(self, row: int) -> Groups:
        """Collect what a row waits for: by its mask, and by the DEPBAR just before it, whose wait shows at the next instruction."""
        groups: Groups = {}
        self._add(groups, self._pending.at_masks.get(row, ()), NOWHERE)
        if self._pending.at_dependency_barriers:
            for before in self._view.graph.previous_instructions(row):
                further = self._view.blocks.straight(before, before + 1)
                self._add(groups, self._pending.at_dependency_barriers.get(before, ()), further)
        for group in groups.values():
            self._drop_empty(group)
        return _keep_results(groups)

    def _drop_empty(self, group: dict[int, Pending]) -> None:
        """Drop instructions that closed an empty group of copies, unless there are no others: they complete at once."""
        empty = [row for row in group if self._copies.closes_group(row)]
        if len(empty) < len(group):
            for row in empty:
                del group[row]

    def _add(self, groups: Groups, pending: Iterable[Pending], further: Distance) -> None:
        for one in pending:
            group = groups.setdefault(one.scoreboard, {})
            copies = self._copies.find(one.row)  # replace the instruction that ties them to the scoreboard
            holders = [one._replace(row=row, distance=before.then(one.distance)) for row, before in copies.items()]
            for holder in holders or [one]:
                known = group.get(holder.row)
                if known is None or holder.distance.then(further) < known.distance:
                    group[holder.row] = holder._replace(distance=holder.distance.then(further))

    def _blame_reason(self, row: int, column: int, reason: str, groups: Sequence[dict[int, Pending]]) -> None:
        if not groups:
            is_complete = self._pending.is_complete
            cause = UnattributedCause.NO_PRODUCER if is_complete else UnattributedCause.WORK_BOUND
            self.lost.append((row, column, cause))
            return
        for group, part in zip(groups, self._weigh_groups(row, groups), strict=True):
            producers = sorted(group.values())
            for producer, share in zip(producers, self._weigh(row, producers), strict=True):
                if part * share > 0:
                    self._add_edge(row, column, reason, producer, (part, share))
            self._group_count += part > 0

    def _weigh_groups(self, row: int, groups: Sequence[dict[int, Pending]]) -> list[float]:
        """The part of each group in a wait; they add up to 1."""
        if len(groups) == 1:
            return [1.0]
        causes = [(number, producer) for number, group in enumerate(groups) for producer in group]
        parts = weigh_groups(
            [number for number, _ in causes],
            [self._view.blocks.block_of[producer] for _, producer in causes],
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

    def _add_edge(self, row: int, column: int, reason: str, producer: Pending, parts: tuple[float, float]) -> None:
        dependency, resource = connect(
            self._view, producer.row, row, by_result=producer.by_result, by_operands=producer.by_operands
        )
        opcode = self._view.opcode(producer.row)
        category = find_category(opcode, dependency, reason, waits_for_operands=not producer.by_result)
        samples = self._all[row][column] * parts[0] * parts[1]
        latency = self._latency[row][column] * parts[0] * parts[1]
        blamed = (row, producer.row, column, samples, latency, category, dependency, resource)
        self.edges.append((*blamed, self._group_count, *producer.distance))


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


def _blame(view: FunctionView, budget: WorkBudget) -> FunctionBlame:
    """Find the causes of all samples of a function; conservation holds per row and reason with any budget.

    The dependency graph has the pairs of execution and memory dependences, as the published coverage counts them. Before pruning: all
    instructions that sampled ones wait for behind scoreboards, and those of fixed latency that make their values. After it: the pairs with
    samples of a scoreboard or of ``wait``. Barriers, branches and the issue cost of the preceding instruction are no dependences.
    """
    waits = find_wait_causes(view, budget)
    others, lost = find_other_causes(view, budget)
    scoreboard_edges, unattributed, pending_pairs = blame_scoreboards(view, budget)
    after = np.concatenate([_list_moved(scoreboard_edges), _list_moved(waits)])
    fixed = find_fixed_latency_defs(view, view.is_sampled)
    before = [np.array(pairs, np.int64).reshape(-1, 2) for pairs in (pending_pairs, fixed)]
    return FunctionBlame(
        edges=join_edges((one, 0) for one in (scoreboard_edges, waits, others)).sort(),
        unattributed=Unattributed.join([unattributed, lost]).sort_by("row", "reason"),
        before=find_distinct_rows(np.concatenate([*before, after])),
        after=find_distinct_rows(after),
    )


BLAMER = Blamer(
    name="scoreboard",
    description="Scoreboard stalls by the six scoreboards that instructions set and wait on, wait stalls by stall counts, others by control flow.",
    blame=_blame,
)


def _list_moved(edges: BlameEdges) -> npt.NDArray[np.int64]:
    """int64[m, 2], (use, def) of the edges between two instructions that depend on each other."""
    chosen = edges.is_moved & np.not_equal(edges.dependency, Dependency.ISSUE)
    return np.stack([edges.use_row, edges.def_row], axis=1).astype(np.int64)[chosen]


def find_fixed_latency_defs(view: FunctionView, is_use: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The (use, def) rows of values that come from instructions of fixed latency, in the order of uses.

    Values from before the block are left out: the stall counts since then cover their latency, or nearly so. So are values behind a scoreboard.
    ``is_use``: bool[n], the uses to look at.
    """
    has_scoreboard = (view.control.write_barrier != NO_BARRIER).tolist()
    found: list[tuple[int, int]] = []
    last_write: dict[int, int] = {}
    for row, wanted in enumerate(is_use.tolist()):
        if wanted:
            first = view.blocks.first[view.blocks.block_of[row]]
            sources = {last_write.get(number, -1) for number in view.flow.reads_of[row]}
            found += [(row, source) for source in sorted(sources) if source >= first]
        for number in view.flow.writes_of[row]:
            last_write[number] = -1 if has_scoreboard[row] else row
    return found
