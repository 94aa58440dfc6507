"""Which rows of a kernel belong together: its functions, their loops, their basic blocks."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.sass.model import SectionKind
from gpa_lsp.report.model import FunctionRow, InstructionColumns, KernelCode, KernelReport

_ORDER = {SectionKind.FUNCTION: 0, SectionKind.LOOP: 1, SectionKind.BLOCK: 2}


class Part(Struct, frozen=True, kw_only=True):
    """Rows under one heading."""

    kind: SectionKind  # what they are
    first_row: int  # the first one
    last_row: int  # the last one, inclusive
    number: int = -1  # of the loop in the report, or of the block in its code; -1 for functions
    depth: int = 0  # of the loop, 1 for an outermost one; 0 for what is none
    function: FunctionRow | None = None  # the row of a function that the report knows; None for others


def find_parts(report: KernelReport) -> tuple[Part, ...]:
    """All parts, by first row, outer ones first. Two of them nest or are apart.

    A loop's part begins with the stretch of code its header is in, and goes on as long as what is not in the loop is shorter than what is:
    compilers put the rare parts of a loop behind everything else. Loops and blocks are known only where the code is.
    """
    functions = list(_find_functions(report))
    parts = list(functions)
    if report.code is not None:
        parts += _find_loops(report, report.code, [part.first_row for part in functions])
        rows = zip(report.code.first_row.tolist(), report.code.last_row.tolist(), strict=True)
        parts += [
            Part(kind=SectionKind.BLOCK, first_row=first, last_row=last, number=number)
            for number, (first, last) in enumerate(rows)
        ]
    parts.sort(key=lambda part: (part.first_row, _ORDER[part.kind], part.depth, -part.last_row))
    return tuple(_nest(parts))


def find_function_rows(columns: InstructionColumns) -> Mapping[str, range]:
    """Section → its rows."""
    if not len(columns):
        return {}
    starts = [0, *(np.flatnonzero(np.diff(columns.function_index)) + 1).tolist(), len(columns)]
    return {columns.functions[int(columns.function_index[start])]: range(start, end) for start, end in pairwise(starts)}


def _nest(parts: Sequence[Part]) -> Iterator[Part]:
    """Let every part end with the one it begins in."""
    around: list[Part] = []
    for part in parts:
        while around and around[-1].last_row < part.first_row:
            around.pop()
        kept = replace(part, last_row=around[-1].last_row) if around and around[-1].last_row < part.last_row else part
        around.append(kept)
        yield kept


def _find_functions(report: KernelReport) -> Iterator[Part]:
    columns = report.instructions
    known: dict[str, dict[int, FunctionRow]] = {}
    for row in report.functions:
        known.setdefault(row.section or row.mangled_name, {}).setdefault(row.start_offset, row)
    for name, rows in find_function_rows(columns).items():
        offsets = columns.pc_offsets[rows.start : rows.stop]
        starts: dict[int, FunctionRow | None] = {0: None}
        for offset, row in known.get(name, {}).items():
            position = int(np.searchsorted(offsets, offset))
            if position == 0 or (position < len(rows) and offsets[position] == offset):
                starts[position] = row
        ordered = sorted(starts)
        for start, end in zip(ordered, [*ordered[1:], len(rows)], strict=True):
            yield Part(
                kind=SectionKind.FUNCTION,
                first_row=rows.start + start,
                last_row=rows.start + end - 1,
                function=starts[start],
            )


class _Run(Struct):
    """Blocks in a row that are all in one loop."""

    loop: int
    depth: int
    first_block: int
    last_block: int = -1


def _find_loops(report: KernelReport, code: KernelCode, function_starts: Sequence[int]) -> Iterator[Part]:
    rows = find_function_rows(report.instructions)
    runs_of: dict[int, list[_Run]] = {}
    for run in _find_runs(report.instructions, code, frozenset(function_starts)):
        runs_of.setdefault(run.loop, []).append(run)
    first_row, last_row = code.first_row.tolist(), code.last_row.tolist()
    for number, loop in enumerate(report.loops):
        section = rows.get(loop.function, range(0))
        offsets = report.instructions.pc_offsets[section.start : section.stop]
        header = section.start + int(np.searchsorted(offsets, loop.header_pc_offset))
        bounds = [(first_row[run.first_block], last_row[run.last_block]) for run in runs_of.get(number, ())]
        found = _join_runs(sorted(bounds), header)
        if found is not None:
            yield Part(kind=SectionKind.LOOP, first_row=found[0], last_row=found[1], number=number, depth=loop.depth)


def _find_runs(columns: InstructionColumns, code: KernelCode, function_starts: frozenset[int]) -> Iterator[_Run]:
    """The stretches of code in each loop, those of inner loops within them included.

    An inner loop at the edge of a stretch is taken to be in the loop it touches.
    """
    depths = columns.loop_depths[code.first_row].tolist()
    open_runs: list[_Run] = []
    block = -1
    for block, (depth, loop, row) in enumerate(
        zip(depths, code.loop_of_block.tolist(), code.first_row.tolist(), strict=True)
    ):
        first = block
        if row in function_starts:
            yield from _close(open_runs, block - 1)
        while open_runs and (
            open_runs[-1].depth > depth or (open_runs[-1].depth == depth != 0 and open_runs[-1].loop != loop)
        ):
            run = open_runs.pop()
            run.last_block = block - 1
            first = run.first_block if run.depth > depth else block
            yield run
        if depth and (not open_runs or open_runs[-1].depth < depth):
            open_runs.append(_Run(loop, depth, first))
    yield from _close(open_runs, block)


def _close(open_runs: list[_Run], last_block: int) -> Iterator[_Run]:
    for run in open_runs:
        run.last_block = last_block
        yield run
    open_runs.clear()


def _join_runs(bounds: Sequence[tuple[int, int]], header: int) -> tuple[int, int] | None:
    """First and last row of a loop: the stretch with its header, and those behind it that are near."""
    found: tuple[int, int] | None = None
    inside = 0
    for first, last in bounds:
        if found is None:
            if first <= header <= last:
                found, inside = (first, last), last - first + 1
        elif first - found[1] - 1 <= inside:
            found, inside = (found[0], last), inside + last - first + 1
        else:
            break
    return found
