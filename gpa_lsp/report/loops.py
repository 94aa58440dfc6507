"""The loop rows of a kernel's report."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.report.model import LoopRow

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
