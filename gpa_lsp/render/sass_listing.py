"""Annotated SASS: every instruction with its samples, their reasons, its scheduling bits and its source line."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gpa_lsp.basis.locations import Frame, InlineChain, shorten_paths, write_place
from gpa_lsp.basis.numbers import format_count_of, format_share
from gpa_lsp.render.layout import (
    EMPTY_LINE,
    Column,
    Line,
    Span,
    Style,
    cut,
    join_facts,
    lay_out_table,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.render.sampling_words import describe_time
from gpa_lsp.render.sass_columns import SassColumns
from gpa_lsp.report.model import FunctionRole, FunctionRow, KernelReport, LoopRow
from gpa_lsp.report.names import demangle, shorten_name

_SOURCE_CELLS = 60

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
    """The listing of one kernel: what holds for all its sections."""

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
        facts = [_ROLE_WORDS[row.role], f"{share}{counted}"]
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
            spans.append((f"  < {self._show_chain(chain[1:])}", Style.DIM))
        return self._layout.fit(spans)

    def _show_chain(self, frames: Sequence[Frame]) -> str:
        return " < ".join(self._show_line(frame.file, frame.line) for frame in frames)

    def _show_line(self, file: str, line: int, last_line: int | None = None) -> str:
        name = self._files[file][0] if file in self._files else self._places.show_file(self._kernel, file)
        return write_place(name, line, last_line)

    def _lead(self) -> str:
        return " " * self._layout.text_start
