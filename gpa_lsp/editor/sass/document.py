"""Writes the SASS document of a kernel: a listing that is a language, made to be read.

saxpy:            // kernel · 40 instructions · 12 registers · 100 % · long_scoreboard

// loop saxpy.cu:4-5 · depth 1 · 96 % · long_scoreboard
.L_0040:          // 96 % · long_scoreboard · back from .L_0040
                  // saxpy.cu:5 | y[i] = a * x[i] + y[i];
/*0040*/  0.3 % │ LDG.E R2, [R4.64]    // 5                   sets SB0 · stall 2
/*0050*/   91 % │ FFMA R2, R2, R3, R6  // 5  long_scoreboard  waits SB0 · stall 4
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from textwrap import wrap

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.document.blame_words import describe_bounds
from gpa_lsp.document.layout import count_cells, cut
from gpa_lsp.document.sampling_words import describe_quiet, list_sampling_facts
from gpa_lsp.editor.kernel_page import describe_kernel_briefly
from gpa_lsp.editor.sass.columns import USUAL_COLUMNS, find_stall_columns
from gpa_lsp.editor.sass.document_rows import Layout, Part, Rows, build_rows, find_padding, find_parts
from gpa_lsp.editor.sass.library import SassDocument, Section, SectionKind
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.locations import Frame, InlineChain, shorten_paths
from gpa_lsp.foundation.numbers import format_count_of, format_dim3, format_percent
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.model import InstructionColumns, KernelCode, KernelReport

# The source lines between the instructions of a SASS document.
#
# Compilers mix the instructions of neighbouring lines; quoting a line wherever it changes would double the document. So a line is quoted where it
# begins and was not quoted on the screen above; every instruction carries its line's number.

_ROWS_REMEMBERED = 32
_LINE_CELLS = 140
_LEAST_CELLS = 48
_MOST_NAME_CELLS = 26
_MOST_FILE_CELLS = 48
_MOST_TEXT_CELLS = 40  # Of a line that was inlined: the reader wants to know into what

_ELLIPSIS = " in …"


def find_quotes(columns: InstructionColumns, write: Callable[[int], str]) -> Mapping[int, str]:
    """Row → the quote above it."""
    chains = columns.chain_index
    if not len(chains):
        return {}
    is_start = np.ones(len(chains), dtype=np.bool_)
    is_start[1:] = (chains[1:] != chains[:-1]) | (columns.function_index[1:] != columns.function_index[:-1])
    rows = np.flatnonzero(is_start & (chains >= 0))
    quoted: dict[str, int] = {}
    found: dict[int, str] = {}
    for row, chain in zip(rows.tolist(), chains[rows].tolist(), strict=True):
        quote = write(chain)
        if row - quoted.get(quote, -_ROWS_REMEMBERED) >= _ROWS_REMEMBERED:
            quoted[quote] = row
            found[row] = quote
    return found


class QuoteWriter:
    """Writes quotes: place, what it was inlined into, text.

    Args:
        shown: the kernel; its measured sources are quoted, as far as they are known.
        column: where quotes begin.
    """

    def __init__(self, shown: VisibleKernel, column: int) -> None:
        self._files = shown.profile.files
        self._chains = shown.kernel.report.instructions.chains
        self._cells = max(_LEAST_CELLS, _LINE_CELLS - column)
        self._indent = " " * column
        names = shorten_paths(dict.fromkeys(frame.file for chain in self._chains for frame in chain))
        self._names = {file: cut(make_one_line(name), _MOST_NAME_CELLS, keeps_end=True) for file, name in names.items()}
        self._written: dict[int, str] = {}

    def write(self, chain: int) -> str:
        """The quote of a chain as a line, e.g. ``// m.h:33 in k.cu:212 | return a * b;``."""
        known = self._written.get(chain)
        if known is None:
            known = self._written[chain] = self._indent + self._write(self._chains[chain])
        return known

    def name_lines(self, file: str, first: int, last: int) -> str:
        """A stretch of lines, by the shortest end of the path that says which file it is."""
        name = cut(self._names.get(file) or make_one_line(file), _MOST_FILE_CELLS, keeps_end=True)
        return f"{name}:{first}-{last}" if last > first else f"{name}:{first}"

    def _name(self, frame: Frame) -> str:
        name = cut(self._names[frame.file], _MOST_NAME_CELLS, keeps_end=True)
        return f"{name}:{frame.line}" if frame.line > 0 else name

    def _write(self, chain: InlineChain) -> str:
        head, text = f"// {self._name(chain[0])}", self._read(chain[0])
        if len(chain) > 1:
            text = cut(text, _MOST_TEXT_CELLS)
        tail = f" | {text}" if text else ""
        room = self._cells - count_cells(head) - count_cells(tail)
        for depth, frame in enumerate(chain[1:], start=1):
            step = f" in {self._name(frame)}"
            is_last = depth == len(chain) - 1
            if count_cells(step) + (0 if is_last else len(_ELLIPSIS)) > room:
                head += _ELLIPSIS
                break
            head += step
            room -= count_cells(step)
        return cut(head + tail, self._cells + len(_ELLIPSIS))

    def _read(self, frame: Frame) -> str:
        file = self._files.get(frame.file)
        if file is None or file.lines is None or not 1 <= frame.line <= len(file.lines):
            return ""
        return make_one_line(file.lines[frame.line - 1])


_LONGEST_FUNCTION = 80
_MOST_NAMED = 4
_HARDLY_ANY = "<"  # How a share that rounds to nothing begins


class HeadWriter:
    """Writes headings.

    Args:
        report: the kernel.
        layout: the columns of its instructions.
        quotes: names source lines.
    """

    def __init__(self, report: KernelReport, layout: Layout, quotes: QuoteWriter) -> None:
        self._report = report
        self._layout = layout
        self._quotes = quotes
        self._offsets = report.instructions.pc_offsets

    def name(self, part: Part) -> str:
        """Name a part."""
        if part.kind is SectionKind.FUNCTION:
            return self._name_function(part)
        if part.kind is SectionKind.LOOP:
            loop = self._report.loops[part.number]
            if loop.file is not None and loop.first_line:
                lines = self._quotes.name_lines(loop.file, loop.first_line, loop.last_line or loop.first_line)
                return f"loop {lines}"
            return f"loop {self._layout.show_label(loop.header_pc_offset)}"
        return self._layout.show_label(int(self._offsets[part.first_row]))

    def write(self, part: Part, name: str, detail: str) -> str:
        """The heading."""
        facts = [detail] if detail and not detail.startswith(_HARDLY_ANY) else []
        if part.kind is SectionKind.LOOP:
            return "// " + " · ".join([name, *self._describe_loop(part), *facts])
        if part.kind is SectionKind.FUNCTION:
            facts = [*self._describe_function(part), *facts]
        else:
            facts = [*facts, *self._describe_block(part)]
        label = f"{name}:"
        if not facts:
            return label
        return f"{label:<{self._layout.instruction_column - 1}} // {' · '.join(facts)}"

    def _name_function(self, part: Part) -> str:
        if part.function is not None:
            name = part.function.name
        else:
            columns = self._report.instructions
            name = columns.functions[int(columns.function_index[part.first_row])]
        return make_one_line(shorten_name(demangle(name), _LONGEST_FUNCTION)) or "function"

    def _describe_function(self, part: Part) -> list[str]:
        row = part.function
        facts = [] if row is None else [row.role.words]
        if row is not None and row.instruction_count:
            facts.append(format_count_of(row.instruction_count, "instruction"))
        if row is not None and row.registers is not None:
            facts.append(f"{row.registers} registers")
        return facts

    def _describe_loop(self, part: Part) -> list[str]:
        loop = self._report.loops[part.number]
        first = int(self._offsets[part.first_row])
        is_elsewhere = first != loop.header_pc_offset
        entry = [f"entered at {self._layout.show_label(loop.header_pc_offset)}"] if is_elsewhere else []
        return [f"depth {loop.depth}", *entry]

    def _describe_block(self, part: Part) -> list[str]:
        """Sources of control flow into a block, except from above."""
        code = self._report.code
        if code is None:
            return []
        block = part.number
        if not code.is_reachable[block]:
            return ["nothing leads here"]
        sources = code.predecessors[code.predecessor_starts[block] : code.predecessor_starts[block + 1]].tolist()
        above = [source for source in sources if source < block - 1]
        below = [source for source in sources if source >= block]
        return [
            f"{word} {self._name_blocks(code, blocks)}"
            for word, blocks in (("from", above), ("back from", below))
            if blocks
        ]

    def _name_blocks(self, code: KernelCode, blocks: Sequence[int]) -> str:
        named = [self._layout.show_label(int(self._offsets[code.first_row[block]])) for block in blocks[:_MOST_NAMED]]
        more = [f"{len(blocks) - _MOST_NAMED} more"] if len(blocks) > _MOST_NAMED else []
        return ", ".join([*named, *more])


def describe_samples(report: KernelReport, parts: Sequence[Part]) -> list[str]:
    """The samples of each part as a share of the kernel's, and their top stall reason; empty without samples."""
    columns = report.instructions
    if not report.total_samples or not parts or not columns.reasons:
        return [""] * len(parts)
    sums = np.zeros((len(columns) + 1, len(columns.reasons)), dtype=np.int64)
    np.cumsum(columns.all_samples, axis=0, out=sums[1:])
    ends = sums[[part.last_row + 1 for part in parts]] - sums[[part.first_row for part in parts]]
    stalls = ends * find_stall_columns(columns.reasons)
    totals, tops, most = ends.sum(axis=1).tolist(), stalls.argmax(axis=1).tolist(), stalls.max(axis=1).tolist()
    details: list[str] = []
    for part, own, top, stalled in zip(parts, totals, tops, most, strict=True):
        samples = _count_samples(report, part, own)
        reason = [make_one_line(columns.reasons[top])] if stalled else []
        share = format_percent(samples / report.total_samples)
        details.append(" · ".join([share, *reason]) if samples else "")
    return details


def _count_samples(report: KernelReport, part: Part, own_samples: int) -> int:
    """A loop has samples also where its section does not show them."""
    return report.loops[part.number].samples if part.kind is SectionKind.LOOP else own_samples


_WIDTH = 80  # Half a window: whoever reads SASS has the source beside it

_LONGEST_TEXT = 500  # Names of templates have thousands of characters; the report has them


def write_header(shown: VisibleKernel) -> Iterator[str]:
    """Comment lines."""
    report = shown.kernel.report
    for text in (
        describe_kernel_briefly(shown),
        report.name if report.name != shown.name else "",
        describe_bounds(report),
        " · ".join(_list_facts(shown)),
        " · ".join(_list_origin(shown)),
        "" if report.instructions.texts else "no instructions: the profile holds no code of this kernel",
    ):
        yield from wrap(
            make_one_line(text)[:_LONGEST_TEXT],
            _WIDTH,
            initial_indent="// ",
            subsequent_indent="//   ",
            break_on_hyphens=False,
        )


def _list_facts(shown: VisibleKernel) -> Iterator[str]:
    report = shown.kernel.report
    if report.total_samples:
        yield format_count_of(report.total_samples, "sample")
        if report.latency_samples is None:
            yield describe_quiet(report)
        yield from list_sampling_facts(report)
    if report.launches:
        yield f"grid {format_dim3(report.configuration.grid)}"
        yield f"block {format_dim3(report.configuration.block)}"
    if report.configuration.registers_per_thread is not None:
        yield f"{report.configuration.registers_per_thread} registers per thread"
    if report.device.name:
        yield report.device.name
    if report.device.compute_capability is not None:
        yield "compute capability {}.{}".format(*report.device.compute_capability)


def _list_origin(shown: VisibleKernel) -> Iterator[str]:
    yield shown.profile.path.name
    try:
        when = datetime.fromtimestamp(shown.kernel.measured_ns / 1e9, tz=UTC).astimezone()
    except (OverflowError, ValueError, OSError):  # a file can say any number
        return
    yield f"{'simulated' if shown.kernel.report.is_simulated else 'measured'} {when:%Y-%m-%d %H:%M}"


class _Head(Struct, kw_only=True):
    """Lines above an instruction, and which of them are headings of parts."""

    lines: list[str]
    headings: list[tuple[int, int]]  # Index into ``lines``, number of the part


def build_document(uri: str, shown: VisibleKernel, columns: Sequence[str] | None = None) -> SassDocument:
    """The document of a kernel. 22,000 instructions take a tenth of a second.

    Args:
        columns: names of those that were chosen, in their order; None for the usual ones.
    """
    report = shown.kernel.report
    rows = build_rows(shown, USUAL_COLUMNS if columns is None else columns)
    parts = find_parts(report)
    quotes = QuoteWriter(shown, rows.layout.instruction_column)
    writer = HeadWriter(report, rows.layout, quotes)
    names = [writer.name(part) for part in parts]
    details = describe_samples(report, parts)
    heads: dict[int, _Head] = {}
    for number, part in enumerate(parts):
        head = heads.setdefault(part.first_row, _Head(lines=[], headings=[]))
        if part.kind is SectionKind.FUNCTION or (part.kind is SectionKind.LOOP and not head.lines):
            head.lines.append("")  # loops that begin together stand together, and right below a function's label
        head.headings.append((len(head.lines), number))
        head.lines.append(writer.write(part, names[number], details[number]))
    for row, quote in find_quotes(report.instructions, quotes.write).items():
        heads.setdefault(row, _Head(lines=[], headings=[])).lines.append(quote)
    header = [*write_header(shown), *([rows.title] if rows.lines else [])]
    is_shown = _fold_padding(rows, find_padding(report), heads)
    lines, line_of_row, line_of_part = _join(header, rows.lines, is_shown, heads, len(parts))
    row_of_line = np.full(len(lines), -1, dtype=np.int32)
    row_of_line[line_of_row[is_shown] - 1] = np.flatnonzero(is_shown)
    return SassDocument(
        uri=uri,
        shown=shown,
        lines=tuple(lines),
        row_of_line=row_of_line,
        line_of_row=line_of_row,
        instruction_column=rows.layout.instruction_column,
        reason_offset=rows.reason_offset,
        sections=tuple(_make_sections(parts, names, details, line_of_part, line_of_row.tolist())),
    )


def _fold_padding(rows: Rows, is_padding: npt.NDArray[np.bool_], heads: Mapping[int, _Head]) -> npt.NDArray[np.bool_]:
    """Let one line stand for what fills a function up, and say so on it; bool[n], the instructions with a line of their own."""
    has_head = np.zeros(len(is_padding), dtype=np.bool_)
    has_head[list(heads)] = True
    is_hidden = is_padding & ~has_head
    is_hidden[1:] &= is_padding[:-1]
    is_hidden[:1] = False
    shown = np.flatnonzero(~is_hidden)
    counts = np.diff(np.append(shown, len(is_padding)))
    for row, count in zip(shown[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        line, column = rows.lines[row], rows.layout.instruction_column
        instruction = line[column:].partition(" ")[0]
        rows.lines[row] = f"{line[:column]}{instruction:<{rows.layout.text}}  // padding, {count} times"
    return ~is_hidden


def _join(
    header: Sequence[str],
    rows: Sequence[str],
    is_shown: npt.NDArray[np.bool_],
    heads: Mapping[int, _Head],
    part_count: int,
) -> tuple[list[str], npt.NDArray[np.int32], list[int]]:
    """All lines; the line of each row, and that of each part's heading, 1-based. A row that is not shown is on the line of the one before."""
    lines = list(header)
    line_of_part = [0] * part_count
    before = np.zeros(len(rows), dtype=np.int32)
    kept = is_shown.tolist()
    done = 0
    for row in sorted(heads):
        lines.extend(line for line, is_kept in zip(rows[done:row], kept[done:row], strict=True) if is_kept)
        done = row
        head = heads[row]
        for index, number in head.headings:
            line_of_part[number] = len(lines) + index + 1
        lines.extend(head.lines)
        before[row] = len(head.lines)
    lines.extend(line for line, is_kept in zip(rows[done:], kept[done:], strict=True) if is_kept)
    lines.append("")
    line_of_row = len(header) + np.cumsum(before) + np.cumsum(is_shown)
    return lines, line_of_row.astype(np.int32), line_of_part


def _make_sections(
    parts: Sequence[Part],
    names: Sequence[str],
    details: Sequence[str],
    line_of_part: Sequence[int],
    line_of_row: Sequence[int],
) -> Iterator[Section]:
    for part, name, detail, line in zip(parts, names, details, line_of_part, strict=True):
        yield Section(
            kind=part.kind,
            name=name,
            detail=detail,
            first_line=line,
            last_line=line_of_row[part.last_row],
            first_row=part.first_row,
        )
