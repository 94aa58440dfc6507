"""Longest paths between instructions: the path length of the published apportioning.

The longest *simple* path of a graph with cycles cannot be found in reasonable time, and the longest path of all is endless. So the loop nest
decides:

* A path stays in the innermost loop around both instructions, and in one turn of it. Only where the use comes before the def does it go over
  the loop's back edge, once: the turn on which the value travels.
* A loop inside that the path passes, leaves or enters counts each of its instructions once, as if its body ran one time from its first to
  its last instruction; so does a cycle with several entries.

What remains has no cycle, and its longest path is found in one pass. Without loops it is exactly the longest path.

Source: GPA section IV, "Attribute stalls", heuristic 2 ("if an instruction i has multiple paths to instruction j we use the longest one").
"""

from collections.abc import Mapping

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.graph_search import BlockLists, charge, find_components
from gpa_lsp.diagnosis.blame.work import WorkBudget

_NO_LOOP = -1
_STEPS_PER_PART = 3


class LongestPaths:
    """Longest paths of one function, in instructions; calls are stepped over.

    Args:
        graph: the function.
        blocks: its blocks.
        budget: pays for the searches.
    """

    __slots__ = ("_blocks", "_budget", "_depth", "_innermost", "_levels", "_parent")

    def __init__(self, graph: FlowGraph, blocks: BlockLists, budget: WorkBudget) -> None:
        self._blocks = blocks
        self._budget = budget
        self._innermost: list[int] = graph.innermost_loop.tolist()
        self._parent = [_NO_LOOP if loop.parent is None else loop.parent for loop in graph.loops]
        self._depth = [loop.depth for loop in graph.loops]
        self._levels = self._build_levels(graph)

    def find(self, def_row: int, use_row: int) -> int:
        """Instructions on the longest path from after a def up to and including a use that it reaches.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        blocks = self._blocks
        source, target = blocks.block_of[def_row], blocks.block_of[use_row]
        if source == target and def_row < use_row:
            return use_row - def_row
        loop = self._find_common_loop(source, target)
        tail = blocks.last[source] - def_row
        head = use_row - blocks.first[target] + 1
        sizes = blocks.count_instructions(source), blocks.count_instructions(target)
        return (
            tail
            + head
            + self._levels[loop].measure(
                self._find_part(source, loop), self._find_part(target, loop), sizes, self._budget
            )
        )

    def _find_common_loop(self, one: int, other: int) -> int:
        """The innermost loop around two blocks."""
        first, second = self._innermost[one], self._innermost[other]
        while first != second:
            if self._find_depth(first) >= self._find_depth(second):
                first = self._parent[first]
            else:
                second = self._parent[second]
        return first

    def _find_depth(self, loop: int) -> int:
        return 0 if loop == _NO_LOOP else self._depth[loop]

    def _find_part(self, block: int, loop: int) -> int:
        """The part of a loop that a block in it belongs to: itself, or the loop directly inside, numbered from -1 downwards."""
        inside = self._innermost[block]
        if inside == loop:
            return block
        while self._parent[inside] != loop:
            inside = self._parent[inside]
        return -1 - inside

    def _build_levels(self, graph: FlowGraph) -> Mapping[int, "_Level"]:
        """Loop → what is directly in it. Every edge belongs to the innermost loop around its ends, and connects parts of that."""
        levels = {
            loop: _Level(None if loop == _NO_LOOP else graph.loops[loop].header)
            for loop in [_NO_LOOP, *range(len(graph.loops))]
        }
        size = [0] * len(graph.loops)
        for block, loop in enumerate(self._innermost):
            levels[loop].sizes[block] = self._blocks.count_instructions(block)
            if loop != _NO_LOOP:
                size[loop] += self._blocks.count_instructions(block)
        for loop in reversed(range(len(graph.loops))):  # inner ones come later
            levels[self._parent[loop]].sizes[-1 - loop] = size[loop]
            if self._parent[loop] != _NO_LOOP:
                size[self._parent[loop]] += size[loop]
        for source, after in enumerate(self._blocks.successors):
            for target in after:
                loop = self._find_common_loop(source, target)
                levels[loop].connect(self._find_part(source, loop), self._find_part(target, loop))
        return levels


class _Level:
    """The parts of one loop, or of the function outside loops: blocks and loops directly inside.

    Attributes:
        sizes: part → instructions.
    """

    __slots__ = (
        "_after",
        "_before",
        "_from_header",
        "_header",
        "_latches",
        "_place",
        "_reached",
        "_to_latch",
        "_weights",
        "sizes",
    )

    def __init__(self, header: int | None) -> None:
        self.sizes: dict[int, int] = {}
        self._header = header
        self._latches: set[int] = set()
        self._after: dict[int, list[int]] = {}
        self._place: dict[int, int] = {}
        self._weights: list[int] = []
        self._before: list[set[int]] = []
        self._reached: dict[int, list[int | None]] = {}

    def connect(self, source: int, target: int) -> None:
        """Add an edge between two parts."""
        if target == self._header:
            self._latches.add(source)
        else:
            self._after.setdefault(source, []).append(target)

    def measure(self, source: int, target: int, sizes: tuple[int, int], budget: WorkBudget) -> int:
        """Instructions between two blocks: in the parts between, and in what is left of the blocks' own parts.

        Args:
            target: part of the second.
        """
        if not self._place:
            self._sort(budget)
        first, last = self._place[source], self._place[target]
        rest = self._weights[first] - sizes[0] + self._weights[last] - sizes[1]
        if first == last and source != target:
            return self._weights[first] - sum(sizes)
        between = self._reach(first, last, budget) if first < last else None
        if between is not None:
            return rest + between
        return rest + self._reach_latch(first, budget) + self._reach_from_header(last, budget)

    def _sort(self, budget: WorkBudget) -> None:
        """Put the parts in an order in which edges lead forwards; those on a cycle become one."""
        components = list(find_components(self.sizes, lambda part: self._after.get(part, ())))[::-1]
        charge(budget, _STEPS_PER_PART * len(self.sizes))
        self._place = {part: place for place, component in enumerate(components) for part in component}
        self._weights = [sum(self.sizes[part] for part in component) for component in components]
        self._before = [set() for _ in components]
        for source, after in self._after.items():
            for target in after:
                if self._place[source] != self._place[target]:
                    self._before[self._place[target]].add(self._place[source])

    def _reach(self, first: int, last: int, budget: WorkBudget) -> int | None:
        """The most instructions in the parts between two of them; None when no path leads there forwards."""
        reached = self._reached.setdefault(first, [0])  # of the parts from ``first`` on, as far as they were asked for
        charge(budget, _STEPS_PER_PART * max(last - first + 1 - len(reached), 0))
        for place in range(first + len(reached), last + 1):
            lengths = [
                self._weights[before] * (before != first) + length
                for before in self._before[place]
                if before >= first and (length := reached[before - first]) is not None
            ]
            reached.append(max(lengths, default=None))
        return reached[last - first]

    def _reach_latch(self, first: int, budget: WorkBudget) -> int:
        """The most instructions in the parts from behind one up to and including one that closes the loop."""
        lengths = [0]
        for latch in self._latches:
            last = self._place[latch]
            between = self._reach(first, last, budget) if last > first else None
            if between is not None:
                lengths.append(between + self._weights[last])
        return max(lengths)

    def _reach_from_header(self, last: int, budget: WorkBudget) -> int:
        """The most instructions in the parts from the loop's header, included, up to before one."""
        if self._header is None or self._place[self._header] >= last:
            return 0
        header = self._place[self._header]
        return self._weights[header] + (self._reach(header, last, budget) or 0)
