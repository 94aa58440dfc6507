"""What searches over the blocks of one function share: the graph as plain lists, the price of a step, and strongly connected components.

Searches pay with :func:`charge` before they look at a block. When the function's budget is spent they stop with an :class:`OutOfWorkError`,
which never leaves this room: the blamer gives up on the instruction it was looking at and says so.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpa_lsp.blame.work import WorkBudget
from gpa_lsp.program.model import FlowGraph

Node = TypeVar("Node")

STEPS_PER_BLOCK = 12
"""What looking at one block costs a budget, where a step is some tenths of a microsecond."""

STEPS_PER_EDGE = 40
"""What finding and pruning one edge of the dependency graph costs."""


class OutOfWorkError(Exception):
    """The function's budget is spent."""


def charge(budget: WorkBudget, steps: int) -> None:
    """Take steps from a budget.

    Raises:
        OutOfWorkError: there are not so many left.
    """
    if not budget.spend(steps):
        raise OutOfWorkError


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLists:
    """A flow graph as lists, for loops that look at one block after the other.

    Attributes:
        first: first instruction of each block.
        last: last instruction of each block, inclusive.
        block_of: block of each instruction.
        successors: blocks that can follow each block, ascending.
        predecessors: blocks that each block can follow, ascending.
    """

    first: Sequence[int]
    last: Sequence[int]
    block_of: Sequence[int]
    successors: Sequence[Sequence[int]]
    predecessors: Sequence[Sequence[int]]

    def count_instructions(self, block: int) -> int:
        """Instructions of a block."""
        return self.last[block] - self.first[block] + 1


def list_blocks(graph: FlowGraph) -> BlockLists:
    """The lists of a flow graph."""
    successors: list[list[int]] = [[] for _ in range(graph.block_count)]
    predecessors: list[list[int]] = [[] for _ in range(graph.block_count)]
    for source, target in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        successors[source].append(target)
        predecessors[target].append(source)
    return BlockLists(
        first=graph.first_instruction.tolist(),
        last=graph.last_instruction.tolist(),
        block_of=graph.block_of_instruction.tolist(),
        successors=successors,
        predecessors=predecessors,
    )


def find_components(
    roots: Iterable[Node], successors: Callable[[Node], Iterable[Node]], is_done: Container[Node] = ()
) -> Iterator[list[Node]]:
    """The strongly connected components that some nodes reach, each after all those it leads to.

    Args:
        roots: where to start.
        successors: asked once per node.
        is_done: nodes that are not entered. It may be filled on the way with the nodes of components already handed out.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1 (1972), 146-160, with the recursion unrolled.

    >>> graph = {"a": "b", "b": "cd", "c": "b", "d": ""}
    >>> [sorted(component) for component in find_components("a", graph.__getitem__)]
    [['d'], ['b', 'c'], ['a']]
    """
    walk = _Walk[Node](is_done)
    for root in roots:
        if not walk.is_known(root):
            walk.enter(root, successors(root))
        while walk.stack:
            node, rest = walk.stack[-1]
            found = next((one for one in rest if walk.is_new(node, one)), None)
            if found is not None:
                walk.enter(found, successors(found))
                continue
            component = walk.leave()
            if component:
                yield component


class _Walk(Generic[Node]):
    """A depth-first walk on its way.

    Attributes:
        stack: the nodes from the root to the current one, each with its successors not looked at yet.
    """

    __slots__ = ("_closed", "_is_done", "_lowest", "_met", "_open", "stack")

    def __init__(self, is_done: Container[Node]) -> None:
        self.stack: list[tuple[Node, Iterator[Node]]] = []
        self._is_done = is_done
        self._met: dict[Node, int] = {}
        self._lowest: dict[Node, int] = {}
        self._open: list[Node] = []
        self._closed: set[Node] = set()

    def is_known(self, node: Node) -> bool:
        """Whether a node is not to be entered (again)."""
        return node in self._met or node in self._is_done

    def is_new(self, node: Node, successor: Node) -> bool:
        """Whether a successor of a node is to be entered; if it is on the stack's component, the node's reach is noted."""
        if successor not in self._met:
            return successor not in self._is_done
        if successor not in self._closed:
            self._lowest[node] = min(self._lowest[node], self._met[successor])
        return False

    def enter(self, node: Node, successors: Iterable[Node]) -> None:
        """Go on with a node."""
        self._met[node] = self._lowest[node] = len(self._met)
        self._open.append(node)
        self.stack.append((node, iter(successors)))

    def leave(self) -> list[Node]:
        """Go back from the current node; its component, where it is the first node of one, or nothing."""
        node, _ = self.stack.pop()
        if self._lowest[node] < self._met[node]:
            above = self.stack[-1][0]
            self._lowest[above] = min(self._lowest[above], self._lowest[node])
            return []
        component: list[Node] = []
        while not component or component[-1] != node:
            component.append(self._open.pop())
        self._closed.update(component)
        return component
