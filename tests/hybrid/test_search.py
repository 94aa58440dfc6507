"""The search of a trace in random programs: every turn of every loop visits every block once, in an order that can be."""

import random
from collections import Counter
from math import prod

import pytest

from gpa_lsp.execution.hybrid.search import MOST_NODES, build_search_graph, search_trace
from gpa_lsp.foundation.errors import InputError


class ProgramMaker:
    """Makes the blocks of a structured program: sequences, branches with one or two sides, early ends, loops left at their header or at their end."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.successors: list[list[int]] = []
        self.turns: dict[int, tuple[int, ...]] = {}
        """Block → turns of the loops around it."""
        self.bounds: dict[int, int] = {}
        """Header → turns of its loop."""
        self.ends: set[int] = set()
        """Blocks that end the kernel early."""

    def make(self) -> None:
        entry = self._add(())
        last = self._make_sequence(entry, (), 3)
        self.successors[last] = []

    def _add(self, loops: tuple[int, ...]) -> int:
        self.successors.append([])
        self.turns[len(self.successors) - 1] = loops
        return len(self.successors) - 1

    def _make_sequence(self, begin: int, loops: tuple[int, ...], depth: int) -> int:
        for _ in range(self._random.randint(1, 3)):
            begin = self._make_part(begin, loops, depth)
        return begin

    def _make_part(self, begin: int, loops: tuple[int, ...], depth: int) -> int:
        choice = self._random.choice(("block", "if", "either", "return", "do", "while") if depth else ("block", "if"))
        if choice == "block":
            return self._follow([begin], loops)
        if choice == "if":
            side = self._follow([begin], loops)
            inner = self._make_sequence(side, loops, depth - 1) if depth else side
            return self._follow([begin, inner], loops)
        if choice == "either":
            sides = [self._follow([begin], loops) for _ in range(2)]
            return self._follow([self._make_sequence(one, loops, depth - 1) for one in sides], loops)
        if choice == "return":
            self.ends.add(self._follow([begin], ()))  # what ends a kernel is in no loop
            return self._follow([begin], loops)
        return self._make_loop(begin, loops, depth, is_tested_first=choice == "while")

    def _make_loop(self, begin: int, loops: tuple[int, ...], depth: int, *, is_tested_first: bool) -> int:
        turns = (*loops, self._random.randint(1, 3))
        header = self._follow([begin], turns)
        self.bounds[header] = turns[-1]
        if not is_tested_first:
            latch = self._make_sequence(header, turns, depth - 1)
            self.successors[latch].append(header)
            return self._follow([latch], loops)
        body = self._follow([header], turns)
        latch = self._make_sequence(body, turns, depth - 1)
        self.successors[latch].append(header)
        return self._follow([header], loops)

    def _follow(self, before: list[int], loops: tuple[int, ...]) -> int:
        new = self._add(loops)
        for one in before:
            self.successors[one].append(new)
        self._random.shuffle(self.successors[before[0]])
        return new


@pytest.mark.parametrize("seed", range(100))
def test_every_turn_visits_every_block_once(seed: int) -> None:
    maker = ProgramMaker(seed)
    maker.make()
    graph = build_search_graph(maker.successors)
    seen: list[int] = []
    bounds = [maker.bounds[header] for header in graph.headers]
    search_trace(graph, bounds.__getitem__, seen.append, most_visits=100_000)
    visits = Counter(seen[:-1])
    for node, turns in maker.turns.items():
        if node in maker.ends:
            assert visits[node] >= 1, "a loop may come to it in several turns"
        else:
            assert visits[node] == prod(turns)
    assert seen[-1] == graph.exit
    done: Counter[int] = Counter()
    for node in seen[:-1]:
        done[node] += 1
        for before, following in enumerate(graph.forward[: graph.exit]):
            if node in following and graph.loops[before] == graph.loops[node] and node not in graph.headers:
                assert done[before] == done[node], "a block comes behind all that lead to it in the same turn"


def test_a_bound_may_change_with_the_turn_of_the_outer_loop() -> None:
    graph = build_search_graph([[1], [2], [2, 3], [1, 4], []])
    bounds = iter([3, 1, 2, 3])  # of the outer loop, then of the inner one each time that it is entered
    seen: list[int] = []
    search_trace(graph, lambda _: next(bounds), seen.append, most_visits=100)
    assert seen == [0, 1, 2, 3, 1, 2, 2, 3, 1, 2, 2, 2, 3, 4, 5]


def test_a_long_trace_is_refused() -> None:
    with pytest.raises(InputError, match="longer than the 50 basic blocks"):
        search_trace(build_search_graph([[0, 1], []]), lambda _: 1000, lambda _: None, most_visits=50)


def test_a_loop_with_two_entries_is_refused() -> None:
    with pytest.raises(InputError, match="entered in its middle"):
        build_search_graph([[1, 2], [2], [1, 3], []])


def test_a_loop_without_end_is_refused() -> None:
    with pytest.raises(InputError, match="no way leads"):
        build_search_graph([[1], [1]])


def test_too_many_blocks_are_refused() -> None:
    with pytest.raises(InputError, match="basic blocks"):
        build_search_graph([*([one + 1] for one in range(MOST_NODES)), []])
