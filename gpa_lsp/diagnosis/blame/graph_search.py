"""What searches over the blocks of one function share: the graph as plain lists, the price of a step, and strongly connected components.

Searches pay with :func:`charge` before they look at a block. When the function's budget is spent they stop with an :class:`OutOfWorkError`,
which never leaves this room: the blamer gives up on the instruction it was looking at and says so.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.work import WorkBudget

Node = TypeVar("Node")

STEPS_PER_BLOCK = 12  # What looking at one block costs a budget, where a step is some tenths of a microsecond

STEPS_PER_EDGE = 40  # What finding and pruning one edge of the dependency graph costs


class OutOfWorkError(Exception):
    """The function's budget is spent."""


def charge(budget: WorkBudget, steps: int) -> None:
    """Take steps from a budget.

    Raises:
        OutOfWorkError: there are not so many left.
    """
    if not budget.spend(steps):
        raise OutOfWorkError


class BlockLists(Struct, frozen=True, kw_only=True):
    """A flow graph as lists, for loops that look at one block after the other."""

    first: Sequence[int]  # first instruction of each block
    last: Sequence[int]  # last instruction of each block, inclusive
    block_of: Sequence[int]  # block of each instruction
    successors: Sequence[Sequence[int]]  # blocks that can follow each block, ascending
    predecessors: Sequence[Sequence[int]]  # blocks that each block can follow, ascending

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
