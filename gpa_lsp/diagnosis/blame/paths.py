"""Paths between instructions of one function, calls stepped over: the shortest, the longest, those past dominators, and those round cycles.

The longest *simple* path of a graph with cycles cannot be found in reasonable time, and the longest path of all is endless. So the loop nest
decides:

* A path stays in the innermost loop around both instructions, and in one turn of it. Only where the use comes before the def does it go over
  the loop's back edge, once: the turn on which the value travels.
* A loop inside that the path passes, leaves or enters counts each of its instructions once, as if its body ran one time from its first to
  its last instruction; so does a cycle with several entries.

What remains has no cycle, and its longest path is found in one pass. Without loops it is exactly the longest path.

Source: GPA section IV, "Attribute stalls", heuristic 2 ("if an instruction i has multiple paths to instruction j we use the longest one").
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeVar

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.view import STEPS_PER_BLOCK, Blocks, Distance, WorkBudget

Node = TypeVar("Node")

_NO_LOOP = -1
_STEPS_PER_PART = 3


def find_components(
    roots: Iterable[Node], successors: Callable[[Node], Iterable[Node]], is_done: Container[Node] = ()
) -> Iterator[list[Node]]:
    """The strongly connected components that some nodes reach, each after all those it leads to.

    Source: H. N. Gabow, "Path-based depth-first search for strong and biconnected components", Inf. Process. Lett. 74 (2000), 107-114, with
    the recursion unrolled.

    >>> graph = {"a": "b", "b": "cd", "c": "b", "d": ""}
    >>> [sorted(component) for component in find_components("a", graph.__getitem__)]
    [['d'], ['b', 'c'], ['a']]
    """
    numbers: dict[Node, int] = {}  # in the order in which nodes are met; -1 once their component is handed out
    members: list[Node] = []  # of components that are not complete
    starts: list[int] = []  # numbers of the nodes that may be the first of a component
    walk: list[tuple[Node, Iterator[Node]]] = []  # from the root to the current node, with successors not looked at yet

    def enter(node: Node) -> None:
        starts.append(len(numbers))
        numbers[node] = len(numbers)
        members.append(node)
        walk.append((node, iter(successors(node))))

    for root in roots:
        if root not in numbers and root not in is_done:
            enter(root)
        while walk:
            node, rest = walk[-1]
            for one in rest:
                number = numbers.get(one)
                if number is None:
                    if one not in is_done:
                        enter(one)
                        break
                elif number >= 0:
                    while starts[-1] > number:
                        starts.pop()
            else:
                walk.pop()
                if starts[-1] == numbers[node]:
                    starts.pop()
                    component: list[Node] = []
                    while not component or component[-1] != node:
                        component.append(members.pop())
                        numbers[component[-1]] = -1
                    yield component


class ShortestPaths:
    """Shortest paths of one function: fewest instructions, and of those fewest encoded cycles.

    Source: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1 (1959), 269-271, over blocks.
    """

    def __init__(self, blocks: Blocks, budget: WorkBudget) -> None:
        self._blocks = blocks
        self._budget = budget
        # Searches from the end of a block, kept so that they go on for a use farther away: a heap of (instructions, cycles, block, block before it),
        # seen from there up to their first instruction, and block → (instructions, cycles, block before it) of those that are settled
        self._heaps: dict[int, list[tuple[int, int, int, int]]] = {}
        self._settled: dict[int, dict[int, tuple[int, int, int]]] = {}

    def find(self, def_row: int, use_row: int, limit: float = float("inf")) -> Distance | None:
        """The shortest path from a def to a use, which may be the same instruction one turn of a loop later.

        Returns None when there is no path, or only ones of more than ``limit`` instructions.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        blocks = self._blocks
        source, target = blocks.block_of[def_row], blocks.block_of[use_row]
        if source == target and def_row < use_row:
            straight = blocks.straight(def_row, use_row)
            return straight if straight.instructions <= limit else None
        ends = blocks.last[source] - def_row + use_row - blocks.first[target] + 1
        between = self._settle(source, target, limit - ends) if ends <= limit else None
        if between is None:
            return None
        return Distance(between[1], between[0]).then(blocks.to_end(def_row)).then(blocks.from_start(use_row))

    def find_blocks_between(self, def_row: int, use_row: int) -> list[int]:
        """The blocks that a path found before passes from end to end, in its order; empty within one block.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        source, target = self._blocks.block_of[def_row], self._blocks.block_of[use_row]
        if source == target and def_row < use_row:
            return []
        settled = self._settled[source]
        passed: list[int] = []
        block = settled[target][2]
        while block != source:
            self._budget.charge(1)
            passed.append(block)
            block = settled[block][2]
        return passed[::-1]

    def _settle(self, source: int, target: int, limit: float) -> tuple[int, int, int] | None:
        heap, settled = self._heaps.setdefault(source, []), self._settled.get(source)
        if settled is None:
            settled = self._settled[source] = {}
            for block in self._blocks.successors[source]:
                heappush(heap, (0, 0, block, source))
        found = settled.get(target)
        if found is not None:
            return found if found[0] <= limit else None
        while heap and heap[0][0] <= limit:
            self._budget.charge(STEPS_PER_BLOCK + len(self._blocks.successors[heap[0][2]]))
            instructions, cycles, block, before = heappop(heap)
            if block in settled:
                continue
            settled[block] = (instructions, cycles, before)
            self._expand(source, block)
            if block == target:
                return settled[block]
        return None

    def _expand(self, source: int, block: int) -> None:
        """Paths that come back to the first block end there: going through it again leads nowhere new."""
        if block == source:
            return
        heap, settled = self._heaps[source], self._settled[source]
        instructions, cycles, _ = settled[block]
        across = self._blocks.across(block)
        instructions, cycles = instructions + across.instructions, cycles + across.cycles
        for successor in self._blocks.successors[block]:
            if successor not in settled:
                heappush(heap, (instructions, cycles, successor, block))


class DominatorDistances:
    """Distances between blocks and the blocks that dominate them; every path to a block passes all its dominators in order."""

    def __init__(self, blocks: Blocks, dominator: Sequence[int], paths: ShortestPaths) -> None:
        self._blocks, self._dominator, self._paths = blocks, dominator, paths
        self._depth = {-1: 0}

    def measure(self, block: int, above: int) -> int:
        """Instructions on the shortest way from the end of a dominator to the end of a block; 0 for the block itself.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        return self._find_depth(block) - self._find_depth(above)

    def _find_depth(self, block: int) -> int:
        """Instructions on the shortest way through all dominators of a block, up to its end."""
        passed = []
        while block not in self._depth:
            passed.append(block)
            block = self._dominator[block]
        for one in reversed(passed):
            self._depth[one] = self._depth[block] + self._find_gap(block, one) + self._blocks.count_instructions(one)
            block = one
        return self._depth[block]

    def _find_gap(self, dominator: int, block: int) -> int:
        """Instructions on the shortest way between a block and its immediate dominator."""
        if dominator < 0 or self._blocks.predecessors[block] == [dominator]:
            return 0
        found = self._paths.find(self._blocks.last[dominator], self._blocks.first[block])
        return 0 if found is None else found.instructions - 1


class LongestPaths:
    """Longest paths of one function, in instructions."""

    def __init__(self, graph: FlowGraph, blocks: Blocks, budget: WorkBudget) -> None:
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
        parts = self._find_part(source, loop), self._find_part(target, loop)
        return tail + head + self._levels[loop].measure(*parts, sizes, self._budget)

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

        ``target``: part of the second.
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
        budget.charge(_STEPS_PER_PART * len(self.sizes))
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
        budget.charge(_STEPS_PER_PART * max(last - first + 1 - len(reached), 0))
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
