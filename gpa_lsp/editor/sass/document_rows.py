"""The instructions of a SASS document, one line each, in fixed columns.

    /*0130*/   12 %  │ LDG.E.64.SYS R4, [R2]                  // 212  long_scoreboard  waits SB0 · sets SB1 · stall 4

address, the first number a person chose, a bar per loop around it, the instruction; then, as a remark, the other columns and what the compiler told
the scheduler. So the operands are seen in half a window, whatever was chosen. What is unknown or nothing is left blank.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.document.control_words import describe_controls
from gpa_lsp.editor.sass.columns import Column, fill_columns
from gpa_lsp.editor.sass.library import SectionKind
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.visible_text import keep_length
from gpa_lsp.report.model import FunctionRow, InstructionColumns, KernelCode, KernelReport

_MOST_BARS = 6
_LONGEST_TEXT = 52  # Where remarks begin; longer instructions push their own to the right

_USUAL_TEXT_RATIO = 0.98
_FOREIGN_OFFSET = 1 << 32
_NO_TEXT = "// not disassembled"
_LEAST_STALL_CYCLES = 2  # One cycle is what every instruction takes

_UP, _DOWN = "↑", "↓"
_REMARK = "// "
_GAP = "  "


class Layout(Struct, frozen=True, kw_only=True):
    """Characters of what stands before the remarks; 0 for what the kernel has nothing for."""

    address: int  # hexadecimal digits of an address
    number: int  # of the column before the instruction
    bars: int  # loops around an instruction that are shown
    text: int  # of most instructions

    @property
    def instruction_column(self) -> int:
        """Characters before the instruction."""
        number = self.number + 2 if self.number else 0
        return len(self.show_address(0)) + number + (self.bars + 2 if self.bars else 2)

    def show_address(self, offset: int) -> str:
        """An address as nvdisasm writes it."""
        return f"/*{offset:0{self.address}x}*/"

    def show_label(self, offset: int) -> str:
        """The name of the place at an address: what a branch goes to."""
        return f".L_{offset:0{self.address}x}"


class Rows(Struct, frozen=True, kw_only=True):
    """The instruction lines of a kernel."""

    layout: Layout  # their columns
    title: str  # what stands in the columns, as a comment
    lines: list[str]  # one per instruction
    # characters from the beginning of a remark to the stall reason in it; None where that is not shown
    reason_offset: int | None


def build_rows(shown: VisibleKernel, names: Sequence[str]) -> Rows:
    """The instruction lines of a kernel."""
    report = shown.kernel.report
    chosen = fill_columns(shown, names)
    front = next((column for column in chosen if column.values is not None), None)
    behind = [column for column in chosen if column is not front]
    widths = [max(column.width, len(column.kind.title)) for column in behind]
    layout = _choose_layout(report.instructions, front)
    heads = _join_heads(report.instructions, layout, front)
    remarks = _join_remarks(behind, widths, _list_tails(report, layout))
    lines = [
        f"{head}{text:<{layout.text}}  {_REMARK}{remark}" if remark else f"{head}{text or _NO_TEXT}"
        for head, text, remark in zip(heads, map(keep_length, report.instructions.texts), remarks, strict=True)
    ]
    place = next((index for index, column in enumerate(behind) if column.kind.name == "reason"), None)
    return Rows(
        layout=layout,
        title=_name_columns(layout, front, behind, widths),
        lines=lines,
        reason_offset=None if place is None else len(_REMARK) + sum(width + len(_GAP) for width in widths[:place]),
    )


def _name_columns(layout: Layout, front: Column | None, behind: Sequence[Column], widths: Sequence[int]) -> str:
    """The columns' titles, as a comment."""
    number = _GAP + front.kind.title.rjust(layout.number) if front is not None else ""
    head = ("// addr".ljust(len(layout.show_address(0))) + number).ljust(layout.instruction_column)
    titles = [_align(column, column.kind.title, width) for column, width in zip(behind, widths, strict=True)]
    return f"{head}{'instruction'.ljust(layout.text)}  {_REMARK}{_GAP.join([*titles, 'for the scheduler'])}"


def _align(column: Column, text: str, width: int) -> str:
    """Numbers, and the places of lines, to the right; words to the left."""
    return text.ljust(width) if column.kind.name == "reason" else text.rjust(width)


def _join_remarks(columns: Sequence[Column], widths: Sequence[int], tails: Sequence[str]) -> Iterator[str]:
    """Remarks behind the instructions: the cells, and the control code."""
    padded = [
        {cell: _align(column, cell, width) for cell in set(column.cells)}
        for column, width in zip(columns, widths, strict=True)
    ]
    cells = [[known[cell] for cell in column.cells] for column, known in zip(columns, padded, strict=True)]
    for row, tail in enumerate(tails):
        yield _GAP.join([*(column[row] for column in cells), tail]).rstrip()


def _choose_layout(columns: InstructionColumns, front: Column | None) -> Layout:
    own = columns.pc_offsets[columns.pc_offsets < _FOREIGN_OFFSET]
    lengths = sorted(len(text) for text in columns.texts)
    usual = lengths[int(_USUAL_TEXT_RATIO * len(lengths))] if lengths else 0
    return Layout(
        address=max(4, len(f"{int(own.max()):x}") if len(own) else 0),
        number=0 if front is None else max(front.width, len(front.kind.title)),
        bars=min(_MOST_BARS, int(columns.loop_depths.max())) if len(columns) else 0,
        text=min(_LONGEST_TEXT, max(usual, len("instruction"))),
    )


def _join_heads(columns: InstructionColumns, layout: Layout, front: Column | None) -> list[str]:
    """Text before the instructions; most of it is the same on many lines."""
    depths = np.minimum(columns.loop_depths, layout.bars).tolist()
    numbers = [""] * len(columns) if front is None else front.cells
    known: dict[tuple[str, int], str] = {}
    heads: list[str] = []
    blank = " " * len(layout.show_address(0))
    digits = layout.address
    for offset, *cells in zip(columns.pc_offsets.tolist(), numbers, depths, strict=True):
        key: tuple[str, int] = tuple(cells)
        middle = known.get(key)
        if middle is None:
            middle = known[key] = _join_middle(layout, *key)
        heads.append((f"/*{offset:0{digits}x}*/" if offset < _FOREIGN_OFFSET else blank) + middle)
    return heads


def _join_middle(layout: Layout, number: str, depth: int) -> str:
    cell = f"{_GAP}{number:>{layout.number}}" if layout.number else ""
    return cell + (f" {'│' * depth:<{layout.bars}} " if layout.bars else "  ")


def _list_tails(report: KernelReport, layout: Layout) -> list[str]:
    """Ends of remarks: branch target, control code, place of foreign code."""
    columns = report.instructions
    tails = describe_controls(columns, least_stall_cycles=_LEAST_STALL_CYCLES)
    offsets = columns.pc_offsets
    for row in np.flatnonzero(offsets >= _FOREIGN_OFFSET).tolist():
        tails[row] = f"code outside this module, at 0x{int(offsets[row]):x}"
    if report.code is None:
        return tails
    targets = report.code.target_row
    for row in np.flatnonzero(targets >= 0).tolist():
        target = int(targets[row])
        where = f"{_UP if target <= row else _DOWN} {layout.show_label(int(offsets[target]))}"
        tails[row] = f"{where} · {tails[row]}" if tails[row] else where
    return tails


def find_padding(report: KernelReport) -> npt.NDArray[np.bool_]:
    """bool[n], the instructions that fill functions up to where the next one may begin: ``NOP`` that nothing leads to and nobody was seen at."""
    columns = report.instructions
    is_nop = np.array([text.startswith("NOP") for text in columns.texts], dtype=np.bool_)
    if report.code is None or not len(columns):
        return np.zeros(len(columns), dtype=np.bool_)
    blocks = report.code.block_of_row
    is_reached = (blocks >= 0) & np.append(report.code.is_reachable, True)[blocks]
    is_seen = (columns.all_samples.sum(axis=1) > 0) | (columns.executions > 0)
    is_padding: npt.NDArray[np.bool_] = is_nop & ~is_reached & ~is_seen
    return is_padding


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
