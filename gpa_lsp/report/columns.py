"""What a report holds per instruction: the rows of a joined kernel as :class:`InstructionColumns` and :class:`KernelCode`."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.kernel.model import FunctionSamples, Kernel, KernelRows
from gpa_lsp.report.model import InstructionColumns, KernelCode, LoopRow

_MAX_DEPTH = (1 << 16) - 1


def list_loops(kernel: Kernel) -> tuple[LoopRow, ...]:
    """Every loop of the kernel's functions, by function and address; the jump to itself that fills a section's end is none."""
    rows: list[LoopRow] = []
    for function in kernel.functions:
        if function.graph is not None and function.graph.loops:
            rows.extend(_rows_of_function(function, function.graph))
    return tuple(rows)


def order_loops(graph: FlowGraph) -> tuple[int, ...]:
    """The numbers of a function's loops in the order of their rows; those that nothing leads to have none."""
    reachable = (number for number, loop in enumerate(graph.loops) if graph.is_reachable[loop.header])
    return tuple(sorted(reachable, key=lambda number: (graph.loops[number].header, graph.loops[number].depth)))


def measure_loop_depths(function: FunctionSamples) -> npt.NDArray[np.uint16]:
    """uint16[n], how many loops each instruction of a function is in."""
    graph = function.graph
    if graph is None or not graph.loops:
        return np.zeros(len(function.pc_offsets), dtype=np.uint16)
    depths = [min(loop.depth, _MAX_DEPTH) if graph.is_reachable[loop.header] else 0 for loop in graph.loops]
    by_loop = np.array([*depths, 0], dtype=np.uint16)  # the last one stands for no loop, number -1
    return by_loop[graph.innermost_loop[graph.block_of_instruction]]


def _rows_of_function(function: FunctionSamples, graph: FlowGraph) -> list[LoopRow]:
    samples = _sum_over_loops(graph, _sum_by_block(function.all_samples, graph))
    latency = function.latency_samples
    latency_samples = None if latency is None else _sum_over_loops(graph, _sum_by_block(latency, graph))
    last_instruction = _find_last_instructions(graph)
    rows = []
    for number in order_loops(graph):
        loop = graph.loops[number]
        lines = loop.lines
        rows.append(
            LoopRow(
                function=function.name,
                header_pc_offset=int(graph.first_instruction[loop.header]) * INSTRUCTION_BYTES,
                last_pc_offset=last_instruction[number] * INSTRUCTION_BYTES,
                depth=loop.depth,
                file=lines.frame.file if lines is not None else None,
                first_line=lines.first_line if lines is not None else None,
                last_line=lines.last_line if lines is not None else None,
                samples=samples[number],
                latency_samples=None if latency_samples is None else latency_samples[number],
            )
        )
    return rows


def _sum_by_block(samples: npt.NDArray[np.int64], graph: FlowGraph) -> npt.NDArray[np.int64]:
    """int64[b], samples of all reasons by basic block."""
    sums = np.zeros(graph.block_count, dtype=np.int64)
    np.add.at(sums, graph.block_of_instruction, samples.sum(axis=1))
    return sums


def _sum_over_loops(graph: FlowGraph, by_block: npt.NDArray[np.int64]) -> list[int]:
    """Per loop, inner loops included; loops come before the loops inside them, so one pass from the end adds each to its parent."""
    inside = graph.innermost_loop >= 0
    sums = np.zeros(len(graph.loops), dtype=np.int64)
    np.add.at(sums, graph.innermost_loop[inside], by_block[inside])
    totals: list[int] = sums.tolist()
    for number in range(len(totals) - 1, -1, -1):
        parent = graph.loops[number].parent
        if parent is not None:
            totals[parent] += totals[number]
    return totals


def _find_last_instructions(graph: FlowGraph) -> list[int]:
    """Highest instruction index of each loop, inner loops included."""
    inside = graph.innermost_loop >= 0
    highest = np.full(len(graph.loops), -1, dtype=np.int64)
    np.maximum.at(highest, graph.innermost_loop[inside], graph.last_instruction[inside])
    last: list[int] = highest.tolist()
    for number in range(len(last) - 1, -1, -1):
        parent = graph.loops[number].parent
        if parent is not None:
            last[parent] = max(last[parent], last[number])
    return last


_Numbers = npt.NDArray[np.int32]


def build_instruction_columns(kernel: Kernel) -> InstructionColumns:
    """All functions of a kernel, one after the other, with inline chains shared between them."""
    rows, control = kernel.rows, kernel.rows.control
    return InstructionColumns(
        functions=tuple(function.name for function in rows.functions),
        function_index=rows.function_index,
        pc_offsets=rows.pc_offsets,
        texts=rows.texts,
        chains=rows.chains,
        chain_index=rows.chain_index,
        reasons=rows.reasons,
        all_samples=rows.all_samples,
        latency_samples=rows.latency_samples,
        executions=rows.executions,
        loop_depths=np.concatenate([measure_loop_depths(function) for function in rows.functions]),
        stall_cycles=control.stall_cycles,
        yield_flag=control.yield_flag,
        write_barrier=control.write_barrier,
        read_barrier=control.read_barrier,
        wait_mask=control.wait_mask,
        has_control=rows.has_control,
    )


def build_kernel_code(kernel: Kernel) -> KernelCode:
    """What all functions of a kernel do, one after the other; rows, blocks and loops count through."""
    rows, blocks = kernel.rows, _Blocks(kernel.rows)
    return KernelCode(
        counters=rows.counters,
        mnemonics=rows.mnemonics,
        mnemonic_index=rows.mnemonic_index,
        reads=rows.reads,
        writes=rows.writes,
        guard=rows.guard,
        guard_negated=rows.guard_negated,
        flow=rows.flow,
        target_row=rows.target_row,
        block_of_row=blocks.find_block_of_row(len(rows)),
        first_row=blocks.join((graph.first_instruction for graph in blocks.graphs), blocks.first_rows),
        last_row=blocks.join((graph.last_instruction for graph in blocks.graphs), blocks.first_rows),
        predecessor_starts=blocks.join_starts(graph.predecessor_starts for graph in blocks.graphs),
        predecessors=blocks.join(graph.edge_source[graph.predecessor_edges] for graph in blocks.graphs),
        successor_starts=blocks.join_starts(graph.successor_starts for graph in blocks.graphs),
        successors=blocks.join(graph.edge_target for graph in blocks.graphs),
        loop_of_block=blocks.join(map(_number_loops, blocks.graphs), blocks.first_loops),
        header_of_block=blocks.join(map(_find_headers, blocks.graphs)),
        immediate_dominator=blocks.join(graph.immediate_dominator for graph in blocks.graphs),
        immediate_post_dominator=blocks.join(graph.immediate_post_dominator for graph in blocks.graphs),
        procedure_of_block=blocks.join((one.procedure_of_block for one in blocks.graphs), blocks.first_procedures),
        procedure_entry=blocks.join(map(_list_entries, blocks.graphs)),
        procedure_is_local=np.array(
            [place > 0 for graph in blocks.graphs for place in range(len(graph.procedures))], np.bool_
        ),
        is_reachable=_join_flags(graph.is_reachable for graph in blocks.graphs),
        reaches_end=_join_flags(graph.reaches_end for graph in blocks.graphs),
        may_end=_join_flags(graph.may_end for graph in blocks.graphs),
    )


class _Blocks:
    """The flow graphs of a kernel's functions, joined: what a graph numbers counts through all of them."""

    def __init__(self, rows: KernelRows) -> None:
        found = [
            (one.graph, first)
            for one, first in zip(rows.functions, rows.first_rows.tolist(), strict=False)
            if one.graph is not None
        ]
        self.graphs = [graph for graph, _ in found]
        self.first_rows: list[int] = [first for _, first in found]
        self.first_blocks = self._count(graph.block_count for graph in self.graphs)
        self.first_edges = self._count(len(graph.edge_source) for graph in self.graphs)
        self.first_procedures = self._count(len(graph.procedures) for graph in self.graphs)
        self.first_loops = self._count(len(order_loops(graph)) for graph in self.graphs)

    @staticmethod
    def _count(sizes: Iterable[int]) -> tuple[int, ...]:
        return tuple(accumulate(sizes, initial=0))

    def join(self, parts: Iterable[_Numbers], firsts: Sequence[int] | None = None) -> _Numbers:
        """Numbers of each graph's rows, blocks (unless said otherwise), loops or procedures; -1, which is none of them, stays so."""
        shifts = self.first_blocks if firsts is None else firsts
        shifted = [np.where(part < 0, -1, part + by) for part, by in zip(parts, shifts, strict=False)]
        return np.concatenate([np.zeros(0, dtype=np.int32), *shifted]).astype(np.int32)

    def join_starts(self, parts: Iterable[_Numbers]) -> _Numbers:
        """Starts of lists of edges: each graph's last one is the next one's first."""
        shifted = [part[:-1] + by for part, by in zip(parts, self.first_edges, strict=False)]
        return np.concatenate([*shifted, self.first_edges[-1:]]).astype(np.int32)

    def find_block_of_row(self, row_count: int) -> _Numbers:
        """int32[n]; -1 without code."""
        blocks = np.full(row_count, -1, dtype=np.int32)
        for graph, first, by in zip(self.graphs, self.first_rows, self.first_blocks, strict=False):
            blocks[first : first + len(graph.block_of_instruction)] = graph.block_of_instruction + np.int32(by)
        return blocks


def _join_flags(parts: Iterable[npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])


def _number_loops(graph: FlowGraph) -> _Numbers:
    """Each block's innermost loop as the number of its row in the report; -1 outside loops."""
    order = order_loops(graph)
    row_of = np.full(len(graph.loops) + 1, -1, dtype=np.int32)  # the last one stands for no loop, number -1
    row_of[list(order)] = np.arange(len(order), dtype=np.int32)
    return row_of[graph.innermost_loop]


def _list_entries(graph: FlowGraph) -> _Numbers:
    return np.array([procedure.entry_block for procedure in graph.procedures], dtype=np.int32)


def _find_headers(graph: FlowGraph) -> _Numbers:
    """Header of each block's innermost loop; -1 outside loops."""
    headers = np.array([*(loop.header for loop in graph.loops), -1], dtype=np.int32)  # the last one stands for no loop
    return headers[graph.innermost_loop]
