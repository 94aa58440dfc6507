"""The :class:`~gpa_lsp.report.code.KernelCode` of a joined kernel."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.model import INSTRUCTION_BYTES, Flow, ResourceLists
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.program.model import FlowGraph
from gpa_lsp.report.code import KernelCode
from gpa_lsp.report.loops import order_loops

_Numbers = npt.NDArray[np.int32]


def build_kernel_code(kernel: Kernel) -> KernelCode:
    """What all functions of a kernel do, one after the other; rows, blocks and loops count through.

    Columns are joined as they are: 100,000 instructions take a few milliseconds.
    """
    rows = tuple(accumulate((len(function.pc_offsets) for function in kernel.functions), initial=0))
    return KernelCode(**_join_rows(kernel.functions, rows), **_join_blocks(kernel.functions, rows))


def _join_rows(functions: Sequence[FunctionSamples], rows: Sequence[int]) -> dict[str, Any]:
    """What has one value per instruction."""
    mnemonics: dict[str, int] = {}
    parts = tuple(zip(functions, rows, strict=False))
    every = [function.instructions for function in functions]
    sizes = [end - start for start, end in pairwise(rows)]

    def column(name: str, missing: int, kind: type[np.generic]) -> npt.NDArray[Any]:
        return _join(
            (
                np.full(size, missing, kind) if one is None else getattr(one, name)
                for one, size in zip(every, sizes, strict=True)
            ),
            kind,
        )

    return {
        "counters": _join_counters(functions, sizes),
        "mnemonic_index": _join((_number_mnemonics(function, mnemonics) for function in functions), np.int32),
        "mnemonics": tuple(mnemonics),
        "reads": _join_lists([None if one is None else one.reads for one in every], sizes),
        "writes": _join_lists([None if one is None else one.writes for one in every], sizes),
        "guard": column("guard", -1, np.int16),
        "guard_negated": column("guard_negated", False, np.bool_),
        "flow": column("flow", Flow.NONE, np.uint8),
        "target_row": _join((_find_targets(function, first) for function, first in parts), np.int32),
    }


def _join_blocks(functions: Sequence[FunctionSamples], rows: Sequence[int]) -> dict[str, Any]:
    """What has one value per block or edge, and the block of each instruction."""
    graphs = [function.graph for function in functions if function.graph is not None]
    starts = [first for function, first in zip(functions, rows, strict=False) if function.graph is not None]
    blocks = tuple(accumulate((graph.block_count for graph in graphs), initial=0))
    edges = tuple(accumulate((len(graph.edge_source) for graph in graphs), initial=0))
    procedures = tuple(accumulate((len(graph.procedures) for graph in graphs), initial=0))

    def column(name: str, shifts: Sequence[int]) -> _Numbers:
        """A column of rows, blocks or edges, counted through; what is none of them stays so."""
        return _join((_shift(getattr(graph, name), by) for graph, by in zip(graphs, shifts, strict=False)), np.int32)

    def starts_column(name: str) -> _Numbers:
        """Starts of lists: each function's last one is the next one's first."""
        found = (getattr(graph, name)[:-1] + np.int32(by) for graph, by in zip(graphs, edges, strict=False))
        return np.append(_join(found, np.int32), np.int32(edges[-1]))

    sources = (graph.edge_source[graph.predecessor_edges] for graph in graphs)
    block_of_row = np.full(rows[-1], -1, dtype=np.int32)
    for graph, first, by in zip(graphs, starts, blocks, strict=False):
        block_of_row[first : first + len(graph.block_of_instruction)] = graph.block_of_instruction + np.int32(by)
    return {
        "block_of_row": block_of_row,
        "first_row": column("first_instruction", starts),
        "last_row": column("last_instruction", starts),
        "predecessor_starts": starts_column("predecessor_starts"),
        "predecessors": _join((one + np.int32(by) for one, by in zip(sources, blocks, strict=False)), np.int32),
        "successor_starts": starts_column("successor_starts"),
        "successors": column("edge_target", blocks),
        "loop_of_block": _number_loops(graphs),
        "header_of_block": _join(
            (_shift(_find_headers(graph), by) for graph, by in zip(graphs, blocks, strict=False)), np.int32
        ),
        "immediate_dominator": column("immediate_dominator", blocks),
        "immediate_post_dominator": column("immediate_post_dominator", blocks),
        "procedure_of_block": column("procedure_of_block", procedures),
        "procedure_entry": np.array(
            [one.entry_block + by for graph, by in zip(graphs, blocks, strict=False) for one in graph.procedures],
            dtype=np.int32,
        ),
        "procedure_is_local": np.array(
            [place > 0 for graph in graphs for place in range(len(graph.procedures))], np.bool_
        ),
        "is_reachable": _join((graph.is_reachable for graph in graphs), np.bool_),
        "reaches_end": _join((graph.reaches_end for graph in graphs), np.bool_),
        "may_end": _join((graph.may_end for graph in graphs), np.bool_),
    }


def _join_counters(functions: Sequence[FunctionSamples], sizes: Sequence[int]) -> dict[str, npt.NDArray[np.int64]]:
    """Every counter that some function has."""
    names = dict.fromkeys(name for function in functions for name in function.counters)
    nothing = [np.full(size, -1, dtype=np.int64) for size in sizes]
    return {
        name: _join(
            (function.counters.get(name, empty) for function, empty in zip(functions, nothing, strict=True)), np.int64
        )
        for name in names
    }


def _join(parts: Iterable[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *parts]).astype(kind, copy=False)


def _shift(numbers: _Numbers, by: int) -> _Numbers:
    return np.where(numbers < 0, np.int32(-1), numbers + np.int32(by)).astype(np.int32)


def _number_mnemonics(function: FunctionSamples, mnemonics: dict[str, int]) -> _Numbers:
    """Each row's mnemonic, numbered over the whole kernel; -1 without code."""
    if function.instructions is None:
        return np.full(len(function.pc_offsets), -1, dtype=np.int32)
    own = [mnemonics.setdefault(mnemonic, len(mnemonics)) for mnemonic in function.instructions.mnemonics]
    return np.array(own, dtype=np.int32)[function.instructions.mnemonic_index]


def _join_lists(lists: Sequence[ResourceLists | None], sizes: Sequence[int]) -> ResourceLists:
    counts = (
        np.zeros(size, np.int32) if one is None else np.diff(one.starts) for one, size in zip(lists, sizes, strict=True)
    )
    starts = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(_join(counts, np.int32))])
    numbers = _join((one.numbers for one in lists if one is not None), np.int16)
    return ResourceLists(starts=starts.astype(np.int32), numbers=numbers)


def _find_targets(function: FunctionSamples, first: int) -> _Numbers:
    """Rows of branch, call and reconvergence targets; -1 for none, and for damaged ones that are no instruction."""
    instructions = function.instructions
    if instructions is None:
        return np.full(len(function.pc_offsets), -1, dtype=np.int32)
    index, rest = np.divmod(instructions.target, INSTRUCTION_BYTES)
    is_row = (instructions.target >= 0) & (rest == 0) & (index < len(instructions))
    return np.where(is_row, index + first, -1).astype(np.int32)


def _number_loops(graphs: Sequence[FlowGraph]) -> _Numbers:
    """Each block's innermost loop as the number of its row in the report; -1 outside loops."""
    columns, count = [], 0
    for graph in graphs:
        order = order_loops(graph)
        row_of = np.full(len(graph.loops) + 1, -1, dtype=np.int32)  # the last one stands for no loop, number -1
        row_of[list(order)] = np.arange(count, count + len(order), dtype=np.int32)
        columns.append(row_of[graph.innermost_loop])
        count += len(order)
    return _join(columns, np.int32)


def _find_headers(graph: FlowGraph) -> _Numbers:
    """Header of each block's innermost loop; -1 outside loops."""
    headers = np.array(
        [*(loop.header for loop in graph.loops), -1], dtype=np.int32
    )  # the last one stands for no loop, number -1
    return headers[graph.innermost_loop]
