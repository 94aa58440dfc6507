"""Annotated SASS: every instruction with its samples, their reasons, its scheduling bits and its source line."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from gpa_lsp.document.control_words import describe_controls
from gpa_lsp.document.kernel_view import name_reasons
from gpa_lsp.document.layout import (
    EMPTY_LINE,
    GAP,
    Column,
    Line,
    Span,
    Style,
    count_cells,
    cut,
    draw_bar,
    join_facts,
    lay_out_table,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sampling_words import describe_time
from gpa_lsp.foundation.locations import InlineChain, shorten_paths, write_place
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_percent, format_share
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.count import count_row
from gpa_lsp.report.model import FunctionRow, InstructionColumns, KernelReport, LoopRow

_PERCENT_CELLS = 7
_BAR_CELLS = 6
_MAX_TEXT_CELLS = 64
_MAX_DEPTH_CELLS = 16
_LEAST_CONTROL_CELLS = 24
_FOREIGN_OFFSET = 1 << 32
_NO_TEXT = "(not disassembled)"


class _Widths(Struct, kw_only=True):
    """Cells of each column, 0 for a column left out."""

    samples: int
    executions: int
    bar: int
    depth: int
    offset: int
    text: int
    reasons: int
    control: int

    def total(self) -> int:
        cells = (self.samples, self.executions, self.bar, self.offset, self.text, self.reasons, self.control)
        return _PERCENT_CELLS + sum(GAP + cell for cell in cells if cell) + (self.depth + 1 if self.depth else 0)


class SassColumns:
    """Layout of the instructions of a kernel in lines of *width* characters; None for as many as it takes."""

    def __init__(self, kernel: KernelReport, width: int | None) -> None:
        self._kernel = kernel
        self._width = width
        self._columns = kernel.instructions
        self.samples: list[int] = self._columns.all_samples.sum(axis=1).tolist()
        self._reasons = self._name_all_reasons(2)
        self._controls = describe_controls(self._columns)
        self._depths: list[int] = self._columns.loop_depths.clip(max=_MAX_DEPTH_CELLS).tolist()
        self._widths = self._choose_widths()

    @property
    def text_start(self) -> int:
        """Column of the loop marks, where headings between rows begin."""
        widths = self._widths
        return (
            _PERCENT_CELLS + GAP + sum(GAP + cell for cell in (widths.samples, widths.executions, widths.bar) if cell)
        )

    def render(self, index: int) -> Line:
        """The row of one instruction."""
        widths, samples = self._widths, self.samples[index]
        ratio = samples / self._kernel.total_samples if self._kernel.total_samples else 0.0
        heat, body = (style_of_share(ratio), Style.CODE) if samples else (Style.DIM, Style.DIM)
        percent, count = (format_percent(ratio), format_count(samples)) if samples else ("", "")
        spans: list[Span] = [(f"{percent:>{_PERCENT_CELLS}}  {count:>{widths.samples}}  ", heat)]
        if widths.executions:
            executed = int(self._columns.executions[index])
            spans.append((f"{format_count(executed) if executed >= 0 else '':>{widths.executions}}  ", Style.DIM))
        if widths.bar:
            spans.append((draw_bar(ratio, widths.bar) + "  ", Style.BAR))
        marks = ("│" * self._depths[index]).ljust(widths.depth) + (" " if widths.depth else "")
        spans.append((f"{marks}{int(self._columns.pc_offsets[index]):>{widths.offset}x}  ", Style.DIM))
        text = self._columns.texts[index] or _NO_TEXT
        spans.append((text if not (widths.reasons or widths.control) else _pad(text, widths.text), body))
        if widths.reasons:
            spans.append(("  " + _pad(self._reasons[index], widths.reasons), body))
        if widths.control:
            spans.append(("  " + self._controls[index], Style.DIM))
        return self.fit(spans)

    def fit(self, spans: Sequence[Span]) -> Line:
        """The spans, cut at the width."""
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

    def _name_all_reasons(self, limit: int) -> list[str]:
        columns = self._columns
        return [
            name_reasons(count_row(columns, index), limit) if samples else ""
            for index, samples in enumerate(self.samples)
        ]

    def _choose_widths(self) -> _Widths:
        """Widths of the columns; on a narrow terminal executions go first, then bars, second reasons, scheduling bits, reasons."""
        columns = self._columns
        executed = int(columns.executions.max())
        widths = _Widths(
            samples=max(7, len(format_count(max(self.samples)))),
            executions=len(format_count(executed)) if executed >= 0 else 0,
            bar=_BAR_CELLS if any(self.samples) else 0,
            depth=max(self._depths),
            offset=max(4, len(f"{_find_largest_offset(columns):x}")),
            text=min(_MAX_TEXT_CELLS, max(count_cells(text or _NO_TEXT) for text in columns.texts)),
            reasons=max(map(count_cells, self._reasons)),
            control=max(map(count_cells, self._controls)),
        )
        if self._width is None:
            return widths
        for victim in ("executions", "bar"):
            if widths.total() > self._width:
                setattr(widths, victim, 0)
        if widths.total() > self._width:
            self._reasons = self._name_all_reasons(1)
            widths.reasons = max(map(count_cells, self._reasons))
        room = widths.control - max(
            0, widths.total() - self._width
        )  # rows are cut at the width; few use all of this column
        if widths.control and room < _LEAST_CONTROL_CELLS:
            widths.control = 0
        if not widths.control and widths.total() > self._width:
            widths.reasons = 0
        return widths


def _find_largest_offset(columns: InstructionColumns) -> int:
    """Largest offset of this module's code; absolute addresses of foreign code would widen the column."""
    own = columns.pc_offsets[columns.pc_offsets < _FOREIGN_OFFSET]
    return int(own.max()) if len(own) else 0


def _pad(text: str, cells: int) -> str:
    fitted = cut(text, cells)
    return fitted + " " * (cells - count_cells(fitted))


_SOURCE_CELLS = 60


def render_sass(kernel: KernelReport, places: PlaceNames, width: int | None = None) -> Iterator[Line]:
    """The listing of one kernel and the functions it calls.

    Args:
        kernel: what to list.
        places: how sources are shown; within the listing by the end of their path, which is spelled out above it.
        width: characters per line; None for as many as it takes.
    """
    yield text_line(shorten_name(kernel.name, 160), Style.TITLE)
    yield from wrap(join_facts(_describe(kernel)), width, style=Style.DIM)
    if len(kernel.instructions) == 0:
        yield text_line("  no instructions: the profile has no code of this kernel", Style.DIM)
        return
    files = _name_files(kernel, places)
    yield from _render_files(files, width)
    listing = _Listing(kernel, places, files, width)
    for name in kernel.instructions.functions:
        yield EMPTY_LINE
        yield from listing.render_section(name)


def _describe(kernel: KernelReport) -> list[str]:
    if kernel.launches:
        return [describe_time(kernel, kernel.duration_ns), format_count_of(kernel.total_samples, "sample")]
    capability = kernel.device.compute_capability
    return ["not measured", *(() if capability is None else ("compute capability {}.{}".format(*capability),))]


def _name_files(kernel: KernelReport, places: PlaceNames) -> Mapping[str, tuple[str, str]]:
    """File as compiled → short name and path shown, in the order of their short names."""
    files = dict.fromkeys(frame.file for chain in kernel.instructions.chains for frame in chain)
    shown = {file: places.show_file(kernel, file) for file in files}
    short = shorten_paths(shown.values())
    return {file: (short[path], path) for file, path in sorted(shown.items(), key=lambda item: short[item[1]])}


def _render_files(files: Mapping[str, tuple[str, str]], width: int | None) -> Iterator[Line]:
    columns = (Column(title=""), Column(title="", can_shrink=True, keeps_end=True))
    rows = [((short, Style.DIM), (path, Style.PATH)) for short, path in files.values() if short != path]
    yield from lay_out_table(columns, rows, width=width)


class _Listing:
    """Listing of one kernel."""

    def __init__(
        self, kernel: KernelReport, places: PlaceNames, files: Mapping[str, tuple[str, str]], width: int | None
    ) -> None:
        self._kernel = kernel
        self._places = places
        self._files = files
        self._layout = SassColumns(kernel, width)

    def render_section(self, name: str) -> Iterator[Line]:
        """One section: its instructions, with functions, loops and source lines named where they start."""
        columns = self._kernel.instructions
        indices = np.flatnonzero(columns.function_index == columns.functions.index(name)).tolist()
        loops = sorted((loop for loop in self._kernel.loops if loop.function == name), key=lambda loop: loop.depth)
        functions = {row.start_offset: row for row in self._kernel.functions if row.section == name}
        if not any(row.mangled_name == name for row in functions.values()):
            yield self._layout.fit([(shorten_name(demangle(name), 100), Style.HEADING)])
        shown: int | None = None
        for index in indices:
            offset, chain = int(columns.pc_offsets[index]), int(columns.chain_index[index])
            if offset in functions or (index == indices[0] and 0 in functions):
                yield from self._head_function(
                    functions[offset if offset in functions else 0], is_first=index == indices[0]
                )
                shown = None
            for loop in loops:
                if loop.header_pc_offset == offset:
                    yield self._head_loop(loop)
            if chain != shown and not (chain < 0 and shown is None):
                yield self._head_source(columns.chains[chain] if chain >= 0 else None)
            shown = chain
            yield self._layout.render(index)

    def _head_function(self, row: FunctionRow, *, is_first: bool) -> Iterator[Line]:
        if not is_first:
            yield EMPTY_LINE
        counted = format_count_of(row.samples, "sample")
        share = f"{format_share(self._kernel.share_of(row.samples))}, " if row.samples else ""
        facts = [row.role.words, f"{share}{counted}"]
        if row.instruction_count:
            facts.append(format_count_of(row.instruction_count, "instruction"))
        if row.registers is not None:
            facts.append(format_count_of(row.registers, "register"))
        name = shorten_name(demangle(row.name), 100)
        yield self._layout.fit([(name, Style.HEADING), ("  " + " · ".join(facts), Style.DIM)])

    def _head_loop(self, loop: LoopRow) -> Line:
        share = self._kernel.share_of(loop.samples)
        head = f"{self._lead()}loop, depth {loop.depth}"
        if loop.file is not None and loop.first_line is not None:
            head += f" · {self._show_line(loop.file, loop.first_line, loop.last_line)}"
        if not loop.samples:
            return self._layout.fit([(head, Style.DIM)])
        return self._layout.fit([(f"{head} · ", Style.NOTE), (format_share(share), style_of_share(share.ratio))])

    def _head_source(self, chain: InlineChain | None) -> Line:
        if chain is None:
            return text_line(f"{self._lead()}(no source line)", Style.DIM)
        inner = chain[0]
        spans: list[Span] = [(self._lead(), Style.PLAIN), (self._show_line(inner.file, inner.line), Style.PATH)]
        text = self._places.read_line(self._kernel, inner.file, inner.line)
        if text:
            spans.append((f"  {cut(text, _SOURCE_CELLS)}", Style.CODE))
        if len(chain) > 1:
            outer = " < ".join(self._show_line(frame.file, frame.line) for frame in chain[1:])
            spans.append((f"  < {outer}", Style.DIM))
        return self._layout.fit(spans)

    def _show_line(self, file: str, line: int, last_line: int | None = None) -> str:
        name = self._files[file][0] if file in self._files else self._places.show_file(self._kernel, file)
        return write_place(name, line, last_line)

    def _lead(self) -> str:
        return " " * self._layout.text_start
