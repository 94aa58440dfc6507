"""Annotated SASS: every instruction with its samples, their reasons, its scheduling bits and its source line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpa_lsp.locations import InlineChain
from gpa_lsp.render.kernel_tables import name_reasons, show_loop_lines
from gpa_lsp.render.layout import (
    EMPTY_LINE,
    GAP,
    Line,
    Span,
    Style,
    count_cells,
    cut,
    style_of_share,
    text_line,
)
from gpa_lsp.render.numbers import (
    draw_bar,
    format_count,
    format_count_of,
    format_duration_ns,
    format_percent,
    format_share,
)
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report.count import count_reasons
from gpa_lsp.report.model import FunctionRole, FunctionRow, InstructionColumns, KernelReport, LoopRow
from gpa_lsp.report.names import demangle, shorten_name

NO_BARRIER = 7
SCOREBOARDS = 6

_BAR_CELLS = 6
_FOREIGN_OFFSET = 1 << 32
_MAX_TEXT_CHARS = 64
_NO_TEXT = "(not disassembled)"
_ROLE_WORDS = {
    FunctionRole.KERNEL: "kernel",
    FunctionRole.DEVICE_FUNCTION: "device function",
    FunctionRole.SUB_FUNCTION: "local function",
    FunctionRole.OUTSIDE_MODULE: "outside this module",
}


def render_sass(kernel: KernelReport, places: PlaceNames, width: int | None = None) -> Iterator[Line]:
    """The listing of one kernel and the functions it calls.

    Args:
        kernel: what to list.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
    """
    yield text_line(shorten_name(kernel.name, 160), Style.TITLE)
    facts = [format_duration_ns(kernel.duration_ns), format_count_of(kernel.total_samples, "sample")]
    yield text_line("  " + " · ".join(facts), Style.DIM)
    if len(kernel.instructions) == 0:
        yield text_line("  no instructions: the profile holds no code of this kernel", Style.DIM)
        return
    listing = _Listing(kernel, places, width)
    for index in range(len(kernel.instructions.functions)):
        yield EMPTY_LINE
        yield from listing.render_function(index)


def describe_control(stall_cycles: int, yields: bool, write_barrier: int, read_barrier: int, wait_mask: int) -> str:
    """The scheduling bits in words.

    Args:
        stall_cycles: until the warp's next instruction may issue.
        yields: the scheduler may switch to another warp.
        write_barrier: scoreboard released when the result is written; 7 for none.
        read_barrier: scoreboard released when the operands are read; 7 for none.
        wait_mask: scoreboards waited for, one bit each.

    >>> describe_control(4, False, 0, 7, 0b000110)
    'stall 4 · write B0 · waits B1,B2'
    """
    words = [f"stall {stall_cycles}"]
    if yields:
        words.append("yield")
    if write_barrier != NO_BARRIER:
        words.append(f"write B{write_barrier}")
    if read_barrier != NO_BARRIER:
        words.append(f"read B{read_barrier}")
    if wait_mask:
        words.append("waits " + ",".join(f"B{bit}" for bit in range(SCOREBOARDS) if wait_mask >> bit & 1))
    return " · ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Widths:
    """Cells of each column, 0 for a column left out."""

    samples: int
    executions: int
    bar: int
    depth: int
    offset: int
    text: int
    reasons: int
    control: int


class _Listing:
    """The listing of one kernel: what holds for all its functions."""

    def __init__(self, kernel: KernelReport, places: PlaceNames, width: int | None) -> None:
        self._kernel = kernel
        self._places = places
        self._width = width
        self._columns = kernel.instructions
        self._samples = self._columns.all_samples.sum(axis=1)
        self._rows_of = {row.mangled_name: row for row in kernel.functions}
        self._reasons = [self._describe_reasons(index) for index in range(len(self._columns))]
        self._controls = _describe_controls(self._columns)
        self._widths = self._choose_widths()

    def render_function(self, number: int) -> Iterator[Line]:
        """One section: heading, then its instructions with loops and source lines between them."""
        name = self._columns.functions[number]
        indices = np.flatnonzero(self._columns.function_index == number).tolist()
        yield self._head_function(name, int(self._samples[indices].sum()), len(indices))
        loops = [loop for loop in self._kernel.loops if loop.function == name]
        starts: dict[int, list[LoopRow]] = {}
        for loop in sorted(loops, key=lambda loop: loop.depth):
            starts.setdefault(loop.header_pc_offset, []).append(loop)
        shown: int | None = None
        for index in indices:
            offset = int(self._columns.pc_offsets[index])
            for loop in starts.get(offset, ()):
                yield self._head_loop(loop)
            chain = int(self._columns.chain_index[index])
            if chain != shown:
                if chain >= 0 or shown is not None:
                    yield self._head_source(self._columns.chains[chain] if chain >= 0 else None)
                shown = chain
            depth = sum(loop.header_pc_offset <= offset <= loop.last_pc_offset for loop in loops)
            yield self._render_instruction(index, offset, depth)

    def _head_function(self, name: str, samples: int, instructions: int) -> Line:
        row: FunctionRow | None = self._rows_of.get(name)
        role = _ROLE_WORDS[row.role] if row is not None else "function"
        facts = [role, format_count_of(instructions, "instruction")]
        if row is not None and row.registers is not None:
            facts.append(f"{row.registers} registers")
        counted = format_count_of(samples, "sample")
        facts.append(f"{counted}, {format_share(self._kernel.share_of(samples))}" if samples else counted)
        return ((shorten_name(demangle(name), 100), Style.HEADING), ("  " + " · ".join(facts), Style.DIM))

    def _head_loop(self, loop: LoopRow) -> Line:
        share = self._kernel.share_of(loop.samples)
        lines = show_loop_lines(self._kernel, loop, self._places)
        where = f" · {lines}" if lines else ""
        lead = " " * self._text_start()
        head = f"{lead}loop, depth {loop.depth}{where} · "
        return self._fit([(head, Style.NOTE), (format_share(share), style_of_share(share.ratio))])

    def _head_source(self, chain: InlineChain | None) -> Line:
        lead = " " * self._text_start()
        if chain is None:
            return text_line(f"{lead}(no source line)", Style.DIM)
        inner = chain[0]
        spans: list[Span] = [(lead, Style.PLAIN)]
        spans.append((self._places.show_line(self._kernel, inner.file, inner.line), Style.PATH))
        text = self._places.read_line(self._kernel, inner.file, inner.line)
        if text:
            spans.append((f"  {text}", Style.CODE))
        if len(chain) > 1:
            outer = " < ".join(self._places.show_line(self._kernel, frame.file, frame.line) for frame in chain[1:])
            spans.append((f"  inlined at {outer}", Style.DIM))
        return self._fit(spans)

    def _render_instruction(self, index: int, offset: int, depth: int) -> Line:
        widths, samples = self._widths, int(self._samples[index])
        ratio = samples / self._kernel.total_samples if self._kernel.total_samples else 0.0
        heat = style_of_share(ratio) if samples else Style.DIM
        count = format_count(samples) if samples else ""
        percent = format_percent(ratio) if samples else ""
        spans: list[Span] = [(f"{percent:>7}  {count:>{widths.samples}}  ", heat)]
        if widths.executions:
            executed = int(self._columns.executions[index])
            spans.append((f"{format_count(executed) if executed >= 0 else '':>{widths.executions}}  ", Style.DIM))
        if widths.bar:
            spans.append((draw_bar(ratio, widths.bar) + "  ", Style.BAR))
        spans.append((("│" * depth).ljust(widths.depth) + (" " if widths.depth else ""), Style.DIM))
        spans.append((f"{offset:>{widths.offset}x}  ", Style.DIM))
        text = self._columns.texts[index] or _NO_TEXT
        body = Style.CODE if samples else Style.DIM
        is_last = not (widths.reasons or widths.control)
        spans.append((text if is_last else _pad(text, widths.text), body))
        if widths.reasons:
            spans.append(("  " + _pad(self._reasons[index], widths.reasons), body))
        if widths.control:
            spans.append(("  " + self._controls[index], Style.DIM))
        return self._fit(spans)

    def _describe_reasons(self, index: int) -> str:
        if not self._samples[index]:
            return ""
        counts = count_reasons(
            self._columns.reasons, self._columns.all_samples[index], self._columns.latency_samples[index]
        )
        return name_reasons(counts, 2)

    def _choose_widths(self) -> _Widths:
        """All columns where there is room; on a narrow terminal bars go first, then scheduling bits, then reasons."""
        columns = self._columns
        depth = _deepest(self._kernel.loops, columns)
        text = min(_MAX_TEXT_CHARS, max(count_cells(text or _NO_TEXT) for text in columns.texts))
        executed = int(columns.executions.max())
        widths = {
            "samples": max(7, len(format_count(int(self._samples.max())))),
            "executions": len(format_count(executed)) if executed >= 0 else 0,
            "bar": _BAR_CELLS,
            "depth": depth,
            "offset": max(4, len(f"{_largest_offset(columns):x}")),
            "text": text,
            "reasons": max(count_cells(reason) for reason in self._reasons),
            "control": max(count_cells(control) for control in self._controls),
        }
        for victim in ("executions", "bar", "control", "reasons"):
            used = 7 + sum(widths.values()) + GAP * sum(1 for cells in widths.values() if cells)
            if self._width is None or used <= self._width:
                break
            widths[victim] = 0
        return _Widths(**widths)

    def _text_start(self) -> int:
        widths = self._widths
        before = 7 + GAP + widths.samples + GAP
        before += sum(cells + GAP for cells in (widths.executions, widths.bar) if cells)
        return before + (widths.depth + 1 if widths.depth else 0)

    def _fit(self, spans: Sequence[Span]) -> Line:
        if self._width is None:
            return tuple(spans)
        fitted: list[Span] = []
        left = self._width
        for text, style in spans:
            if left <= 0:
                break
            fitted.append((cut(text, left), style))
            left -= count_cells(text)
        return tuple(fitted)


def _describe_controls(columns: InstructionColumns) -> list[str]:
    known: Mapping[tuple[int, ...], str]
    rows = list(
        zip(
            columns.stall_cycles.tolist(),
            columns.yield_flag.tolist(),
            columns.write_barrier.tolist(),
            columns.read_barrier.tolist(),
            columns.wait_mask.tolist(),
            strict=True,
        )
    )
    known = {row: describe_control(row[0], bool(row[1]), *row[2:]) for row in set(rows)}
    return [known[row] if has else "" for row, has in zip(rows, columns.has_control.tolist(), strict=True)]


def _deepest(loops: Sequence[LoopRow], columns: InstructionColumns) -> int:
    """Most loops any instruction is in, as their address ranges overlap."""
    deepest = 0
    for name in columns.functions:
        own = [loop for loop in loops if loop.function == name]
        deepest = max(
            [
                deepest,
                *(sum(o.header_pc_offset <= loop.header_pc_offset <= o.last_pc_offset for o in own) for loop in own),
            ]
        )
    return deepest


def _largest_offset(columns: InstructionColumns) -> int:
    """Of this module's code: absolute addresses of foreign code would widen the column for everybody."""
    own = columns.pc_offsets[columns.pc_offsets < _FOREIGN_OFFSET]
    return int(own.max()) if len(own) else 0


def _pad(text: str, cells: int) -> str:
    fitted = cut(text, cells)
    return fitted + " " * (cells - count_cells(fitted))
