"""Code that makes warps arrive late at a block barrier: code since the barriers before it that only some warps execute.

The *interval* of a barrier is the code on paths to it that pass no other barrier; for a barrier in a loop, only inside the innermost one, because
executions before the loop cannot be compared with those in it. A warp that executes a part of it which others skip arrives later, and the others
wait. The number of such warps follows from the executions of the blocks that lead there: a loop multiplies the executions of its body, so the
fewest executions among the blocks that dominate a block, inside the interval, are the warps that reach it.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Synchronisation, describe_mnemonic
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.model import FunctionSamples, KernelRows

WAITING = "barrier"  # The stall reason of those that wait for the late ones
_MOST_WARPS = 0.9  # Code that a smaller part of the warps goes through makes them late
_WORK_PER_BLOCK = 64
_LEAST_WORK = 20_000  # Block visits a function may cost


class LateCode(ColumnRecord, frozen=True, kw_only=True):
    """Code before a barrier that only some warps execute."""

    barrier_row: int  # kernel row of the barrier
    rows: npt.NDArray[np.int64]  # int64[m], kernel rows of its instructions
    row: int  # the most sampled instruction of its most sampled line, a kernel row
    warps_ratio: float  # part of the warps that goes through it, 0..1, weighted by samples
    samples: int  # taken in it, waiting at barriers left out

    @property
    def explained_samples(self) -> float:
        """Barrier samples that the code explains: while one warp of n is in it, n − 1 wait."""
        return self.samples * (1.0 / self.warps_ratio - 1.0) if self.warps_ratio > 0 else 0.0


def find_late_code(kernel: KernelRows, barriers: Iterable[int]) -> dict[int, LateCode]:
    """Row of a barrier → the code that makes warps late for it; barriers without any are missing.

    Args:
        kernel: its rows.
        barriers: kernel rows of block barriers.
    """
    found: dict[int, LateCode] = {}
    by_function: dict[int, list[int]] = {}
    columns = np.array([reason != WAITING for reason in kernel.reasons], dtype=np.bool_)
    working = kernel.all_samples[:, columns].sum(axis=1)
    for row in barriers:
        by_function.setdefault(int(kernel.function_index[row]), []).append(row)
    for number, rows in by_function.items():
        function = kernel.functions[number]
        if function.graph is not None and function.instructions is not None:
            first = int(kernel.first_rows[number])
            search = _Search(function, function.graph, working[first : first + len(function.pc_offsets)])
            for row in rows:
                late = search.find(row - first)
                if late is not None:
                    inside = first + late[0]
                    hottest = kernel.find_heaviest(inside, working[inside])
                    found[row] = LateCode(
                        barrier_row=row, rows=inside, row=hottest, warps_ratio=late[1], samples=late[2]
                    )
    return found


class _Search:
    """The intervals of one function's barriers."""

    def __init__(self, function: FunctionSamples, graph: FlowGraph, samples: npt.NDArray[np.int64]) -> None:
        self._function, self._graph, self._samples = function, graph, samples
        self._work = max(_LEAST_WORK, _WORK_PER_BLOCK * graph.block_count)
        instructions = function.instructions
        marks = np.zeros(len(function.pc_offsets), dtype=np.bool_)
        if instructions is not None:
            waits = [describe_mnemonic(one).synchronises is Synchronisation.BLOCK for one in instructions.mnemonics]
            marks = np.array(waits, dtype=np.bool_)[instructions.mnemonic_index]
        self._barriers = np.flatnonzero(marks)

    def find(self, barrier: int) -> tuple[npt.NDArray[np.int64], float, int] | None:
        """Late instructions, part of the warps, samples; None when there are none or executions were not counted.

        The instructions are int64 and numbered from the function's first.
        """
        arrivals = int(self._function.executions[barrier])
        if arrivals <= 0:
            return None
        spans = self._walk_back(barrier)
        blocks = self._list_late_blocks(spans, barrier, arrivals)
        rows = [row for block in blocks for row in range(*spans[block])]
        samples = self._samples[rows] if rows else np.zeros(0, dtype=np.int64)
        total = int(samples.sum())
        if total == 0:
            return None
        ratios = np.concatenate([np.full(spans[block][1] - spans[block][0], ratio) for block, ratio in blocks.items()])
        return np.array(rows, dtype=np.int64), float((ratios * samples).sum() / total), total

    def _walk_back(self, barrier: int) -> dict[int, tuple[int, int]]:
        """Block → first and one past the last instruction of its part in the barrier's interval."""
        graph = self._graph
        home = int(graph.block_of_instruction[barrier])
        spans: dict[int, tuple[int, int]] = {}
        loop = int(graph.innermost_loop[home])
        within = None if loop < 0 else frozenset(graph.blocks_of_loop(loop).tolist())
        start = self._last_barrier(int(graph.first_instruction[home]), barrier)
        spans[home] = (start, barrier)
        frontier = self._predecessors(home) if start == graph.first_instruction[home] else []
        visited: set[int] = set()
        while frontier and self._work > 0:
            block = frontier.pop()
            if block in visited or (within is not None and block not in within):
                continue
            visited.add(block)
            self._work -= 1
            first, end = int(graph.first_instruction[block]), int(graph.last_instruction[block]) + 1
            start = self._last_barrier(first, end)
            if block != home:
                spans[block] = (start, end)
            if start == first:
                frontier.extend(self._predecessors(block))
        return spans

    def _predecessors(self, block: int) -> list[int]:
        return [int(one) for one in self._graph.predecessors(block)]

    def _last_barrier(self, first: int, end: int) -> int:
        """One past the last barrier among some instructions; ``first`` when there is none."""
        position = int(np.searchsorted(self._barriers, end)) - 1
        return int(self._barriers[position]) + 1 if position >= 0 and self._barriers[position] >= first else first

    def _list_late_blocks(self, spans: dict[int, tuple[int, int]], barrier: int, arrivals: int) -> dict[int, float]:
        """Block → part of the warps, for the blocks of the interval that fewer warps reach."""
        home = int(self._graph.block_of_instruction[barrier])
        reaching: dict[int, float] = {}
        for block in spans:
            self._count_reaching(block, spans, reaching)
        ratios = {block: reaching[block] / arrivals for block in spans if block != home}
        return {block: ratio for block, ratio in ratios.items() if 0 < ratio < _MOST_WARPS}

    def _count_reaching(self, block: int, spans: dict[int, tuple[int, int]], reaching: dict[int, float]) -> None:
        """Fewest executions among a block and its dominators in the interval, remembered for all on the way."""
        path: list[int] = []
        fewest = float("inf")
        for current in self._graph.dominators_of(block):
            if current not in spans or current in reaching:
                fewest = reaching.get(current, fewest)
                break
            path.append(current)
        for one in reversed(path):
            fewest = min(fewest, self._count_executions(spans[one]))
            reaching[one] = fewest

    def _count_executions(self, span: Sequence[int]) -> float:
        executed = self._function.executions[span[0] : span[1]]
        return float(executed.max()) if len(executed) and executed.max() >= 0 else float("inf")
