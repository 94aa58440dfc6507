"""Contents of a report about a joined kernel: samples by reason and line, :class:`InstructionColumns` and :class:`KernelCode`."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.model import NO_STALLS, BlameCategory
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.kernel.model import FunctionSamples, Kernel, KernelRows, number_lines
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.changes import Place, ReasonCount, ReasonCounts
from gpa_lsp.report.model import InstructionColumns, KernelCode, KernelReport, LineRow, LoopRow


def count_reasons(
    reasons: Sequence[str], all_samples: npt.NDArray[np.int64], latency_samples: npt.NDArray[np.int64] | None
) -> ReasonCounts:
    """Samples by reason, most first, reasons without any left out; latency samples are None when unknown.

    >>> count_reasons(("wait", "selected"), np.array([5, 9]), np.array([2, 0]))
    {'selected': ReasonCount(all_samples=9, latency_samples=0), 'wait': ReasonCount(all_samples=5, latency_samples=2)}
    """
    quiet = [None] * len(reasons) if latency_samples is None else latency_samples.tolist()
    return rank_reasons(reasons, all_samples.tolist(), quiet)


def rank_reasons(reasons: Sequence[str], every: Sequence[int], quiet: Sequence[int | None]) -> ReasonCounts:
    """Samples by reason, as :func:`count_reasons`, of lists."""
    rows = [row for row in zip(reasons, every, quiet, strict=True) if row[1]]
    rows.sort(key=lambda row: (-row[1], row[0]))
    return {reason: _make_count(every, latency) for reason, every, latency in rows}


@lru_cache(maxsize=1 << 12)
def _make_count(every: int, latency: int | None) -> ReasonCount:
    """A shared record: most counts of a report are small numbers that occur many times."""
    return ReasonCount(all_samples=every, latency_samples=latency)


def count_row(columns: InstructionColumns, row: int) -> ReasonCounts:
    """The samples of one instruction by reason, most first."""
    latency = columns.latency_samples
    return count_reasons(columns.reasons, columns.all_samples[row], None if latency is None else latency[row])


def sum_rows(
    latency_samples: npt.NDArray[np.int64] | None, rows: npt.NDArray[np.bool_] | slice = slice(None)
) -> npt.NDArray[np.int64] | None:
    """int64[k], the latency samples of some rows of int64[n, k], by reason; None when they are unknown."""
    return None if latency_samples is None else latency_samples[rows].sum(axis=0)


def sum_all(latency_samples: npt.NDArray[np.int64] | None) -> int | None:
    """Sum of latency samples; None when they are unknown."""
    return None if latency_samples is None else int(latency_samples.sum())


def find_top_stall(reasons: Sequence[str], samples: npt.NDArray[np.int64]) -> tuple[str, int] | None:
    """Stall reason with most samples, and their number; None without stalls.

    >>> find_top_stall(("long_scoreboard", "selected", "wait"), np.array([5, 9, 7]))
    ('wait', 7)
    """
    stalls = [
        (int(count), reason)
        for count, reason in zip(samples.tolist(), reasons, strict=True)
        if count and describe_stall_reason(reason).is_stall
    ]
    count, reason = max(stalls, key=lambda one: one[0], default=(0, ""))
    return (reason, count) if count else None


class MainStall(Struct, frozen=True, kw_only=True):
    """Largest category of the stalls that one line causes; without causes, largest reason of the stalls taken on one."""

    row: int  # the instruction with most of these stalls
    what: BlameCategory | str  # the kind of cause; the stall reason where causes are unknown
    samples: float  # of this kind alone
    line_samples: float  # all stalls that the line causes, of any kind


def find_main_stall(kernel: KernelReport) -> MainStall | None:
    """The main stall of the line that causes most; None without stalls."""
    columns = kernel.instructions
    if not kernel.total_samples or not len(columns):
        return None
    return _find_main_cause(kernel) or _find_main_reason(columns)


def _find_main_cause(kernel: KernelReport) -> MainStall | None:
    if kernel.blame is None or not len(kernel.blame.edges):
        return None
    edges = kernel.blame.edges
    stalls = np.where(np.isin(edges.category, NO_STALLS), 0.0, edges.all_samples)
    columns = kernel.instructions
    keys = number_lines(columns.chains, columns.chain_index)[edges.def_row]
    sums = np.bincount(keys, weights=stalls)
    line_samples = float(sums.max())
    if line_samples <= 0:
        return None
    inside = keys == int(sums.argmax())
    by_kind = np.bincount(edges.category[inside], weights=stalls[inside])
    rows = np.bincount(edges.def_row[inside], weights=stalls[inside])
    return MainStall(
        row=int(rows.argmax()),
        what=BlameCategory(int(by_kind.argmax())),
        samples=float(by_kind.max()),
        line_samples=line_samples,
    )


def _find_main_reason(columns: InstructionColumns) -> MainStall | None:
    is_stall = [describe_stall_reason(reason).is_stall for reason in columns.reasons]
    sums = np.where(is_stall, columns.all_samples, 0).sum(axis=1)
    lines = number_lines(columns.chains, columns.chain_index)
    inside = lines == int(np.bincount(lines, weights=sums).argmax())
    top = find_top_stall(columns.reasons, columns.all_samples[inside].sum(axis=0))
    if top is None:
        return None
    row = int(np.where(inside, sums, -1).argmax())
    return MainStall(row=row, what=top[0], samples=float(top[1]), line_samples=float(sums[inside].sum()))


class _LineSums(Struct):
    """Sums of one line."""

    own: npt.NDArray[
        np.int64
    ]  # int64[2, k], all samples and latency samples by reason, of instructions whose innermost frame it is
    inclusive: npt.NDArray[np.int64]  # int64[2, k], the same of all instructions
    called: float = 0.0
    functions: dict[str, int] = field(default_factory=dict)


def number_routines(kernel: Kernel) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The routines of all functions of a kernel, local ones inside a section told apart: mangled names, and int32[n] into them."""
    names: list[str] = []
    index: list[npt.NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)]
    for function in kernel.functions:
        index.append(function.routine_index + np.int32(len(names)))
        subs = function.function.sub_functions if function.function is not None else ()
        names += [function.name, *(sub.name for sub in subs)]
    return tuple(names), np.concatenate(index)


def list_lines(
    columns: InstructionColumns,
    called_samples: npt.NDArray[np.float64],
    routines: tuple[Sequence[str], npt.NDArray[np.int32]],
) -> tuple[LineRow, ...]:
    """One row per source line with samples, most inclusive samples first, and one per function for samples without a line.

    *Self* samples go to the innermost frame. *Inclusive* samples go to every distinct line of the inline chain, once per instruction even
    where a line occurs twice in it (recursive templates), so a line's inclusive samples never exceed the kernel's.

    Args:
        called_samples: float64[n], estimated samples of the functions each instruction calls; credited to every line of the call's chain.
        routines: as of :func:`number_routines`.
    """
    latency = columns.latency_samples
    samples = np.stack([columns.all_samples, np.zeros_like(columns.all_samples) if latency is None else latency], 1)
    placed = columns.chain_index >= 0
    numbers = columns.chain_index[placed]
    by_chain = np.zeros((len(columns.chains), *samples.shape[1:]), dtype=np.int64)
    np.add.at(by_chain, numbers, samples[placed])
    called_by_chain = np.bincount(numbers, weights=called_samples[placed], minlength=len(columns.chains))
    sums: dict[Place, _LineSums] = {}
    for index in np.flatnonzero(by_chain.any(axis=(1, 2)) | (called_by_chain > 0)).tolist():
        chain, found = columns.chains[index], by_chain[index]
        innermost = next(iter(chain), None)
        for frame in {(frame.file, frame.line): frame for frame in reversed(chain)}.values():
            line = sums.get((frame.file, frame.line))
            if line is None:
                nothing = np.zeros((2, *found.shape), dtype=np.int64)
                line = sums[frame.file, frame.line] = _LineSums(own=nothing[0], inclusive=nothing[1])
            if frame is innermost:
                line.own += found
            line.inclusive += found
            line.called += float(called_by_chain[index])
            name = frame.function or ""
            line.functions[name] = line.functions.get(name, 0) + int(found[0].sum())
    rows = [_make_row(columns, place, line) for place, line in sums.items()]
    rows.extend(_rows_without_line(columns, *routines))
    rows.sort(key=lambda row: (-row.inclusive_samples, -row.samples, row.file or "", row.line or 0, row.function))
    return tuple(rows)


def _make_row(columns: InstructionColumns, place: Place, line: _LineSums) -> LineRow:
    (own, own_latency), (inclusive, inclusive_latency) = (
        (found[0], None if columns.latency_samples is None else found[1]) for found in (line.own, line.inclusive)
    )
    return LineRow(
        file=place[0],
        line=place[1],
        function=min(line.functions, key=lambda name: (-line.functions[name], name)),
        samples=int(own.sum()),
        latency_samples=sum_all(own_latency),
        inclusive_samples=int(inclusive.sum()),
        inclusive_latency_samples=sum_all(inclusive_latency),
        called_samples=line.called,
        by_reason=count_reasons(columns.reasons, own, own_latency),
        inclusive_by_reason=count_reasons(columns.reasons, inclusive, inclusive_latency),
    )


def _rows_without_line(
    columns: InstructionColumns, names: Sequence[str], routine_index: npt.NDArray[np.int32]
) -> list[LineRow]:
    rows = []
    lost_routines = routine_index[(columns.chain_index < 0) & columns.all_samples.any(axis=1)]
    for index in find_distinct(lost_routines).tolist():
        lost = (routine_index == index) & (columns.chain_index < 0)
        every, latency = columns.all_samples[lost].sum(axis=0), sum_rows(columns.latency_samples, lost)
        counts = count_reasons(columns.reasons, every, latency)
        rows.append(
            LineRow(
                file=None,
                line=None,
                function=names[index],
                samples=int(every.sum()),
                latency_samples=sum_all(latency),
                inclusive_samples=int(every.sum()),
                inclusive_latency_samples=sum_all(latency),
                called_samples=0.0,
                by_reason=counts,
                inclusive_by_reason=counts,
            )
        )
    return rows


_MAX_DEPTH = (1 << 16) - 1


def list_loops(kernel: Kernel) -> tuple[LoopRow, ...]:
    """All loops of the kernel's functions, by function and address, without the padding jump at a section's end."""
    rows: list[LoopRow] = []
    for function in kernel.functions:
        if function.graph is not None and function.graph.loops:
            rows.extend(_rows_of_function(function, function.graph))
    return tuple(rows)


def order_loops(graph: FlowGraph) -> tuple[int, ...]:
    """Numbers of a function's reachable loops, in the order of their rows."""
    reachable = (number for number, loop in enumerate(graph.loops) if graph.is_reachable[loop.header])
    return tuple(sorted(reachable, key=lambda number: (graph.loops[number].header, graph.loops[number].depth)))


def measure_loop_depths(function: FunctionSamples) -> npt.NDArray[np.uint16]:
    """uint16[n], number of loops around each instruction of a function."""
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
    """Sums per loop, inner loops included."""
    return _join_over_loops(graph, by_block, np.add, 0)


def _join_over_loops(graph: FlowGraph, by_block: npt.NDArray[Any], join: np.ufunc, nothing: int) -> list[int]:
    inside = graph.innermost_loop >= 0
    own = np.full(len(graph.loops), nothing, dtype=np.int64)
    join.at(own, graph.innermost_loop[inside], by_block[inside])
    found: list[int] = own.tolist()
    for number in range(len(found) - 1, -1, -1):
        parent = graph.loops[number].parent
        if parent is not None:
            found[parent] = int(join(found[parent], found[number]))
    return found


def _find_last_instructions(graph: FlowGraph) -> list[int]:
    """Highest instruction index of each loop, inner loops included."""
    return _join_over_loops(graph, graph.last_instruction, np.maximum, -1)


_Numbers = npt.NDArray[np.int32]


def build_instruction_columns(kernel: Kernel) -> InstructionColumns:
    """Columns of all functions of a kernel, one after the other, with shared inline chains."""
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
    """Code of all functions of a kernel, one after the other; rows, blocks and loops are numbered across functions."""
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
        block_of_row=rows.block_numbers,
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
    """Flow graphs of a kernel's functions, joined and renumbered."""

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
        """Numbers of each graph's rows, blocks (the default), loops or procedures, renumbered; -1 (none) stays."""
        shifts = self.first_blocks if firsts is None else firsts
        shifted = [np.where(part < 0, -1, part + by) for part, by in zip(parts, shifts, strict=False)]
        return np.concatenate([np.zeros(0, dtype=np.int32), *shifted]).astype(np.int32)

    def join_starts(self, parts: Iterable[_Numbers]) -> _Numbers:
        """Starts of edge lists: the last of each graph is the first of the next."""
        shifted = [part[:-1] + by for part, by in zip(parts, self.first_edges, strict=False)]
        return np.concatenate([*shifted, self.first_edges[-1:]]).astype(np.int32)


def _join_flags(parts: Iterable[npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])


def _number_loops(graph: FlowGraph) -> _Numbers:
    """Row in the report of each block's innermost loop; -1 outside loops."""
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
