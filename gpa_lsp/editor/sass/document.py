"""Writes the SASS document of a kernel: a listing that is a language, made to be read.

saxpy:            // kernel · 40 instructions · 12 registers · 100 % · long_scoreboard

// loop saxpy.cu:4-5 · depth 1 · 96 % · long_scoreboard
.L_0040:          // 96 % · long_scoreboard · back from .L_0040
                  // saxpy.cu:5 | y[i] = a * x[i] + y[i];
/*0040*/  0.3 % │ LDG.E R2, [R4.64]    // 5                   sets SB0 · stall 2
/*0050*/   91 % │ FFMA R2, R2, R3, R6  // 5  long_scoreboard  waits SB0 · stall 4
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.editor.sass.columns import USUAL_COLUMNS
from gpa_lsp.editor.sass.document_header import write_header
from gpa_lsp.editor.sass.document_heads import HeadWriter, describe_samples
from gpa_lsp.editor.sass.document_parts import Part, find_parts
from gpa_lsp.editor.sass.document_quotes import QuoteWriter, find_quotes
from gpa_lsp.editor.sass.document_rows import Rows, build_rows, find_padding
from gpa_lsp.editor.sass.model import SassDocument, Section, SectionKind
from gpa_lsp.editor.snapshot import VisibleKernel


@dataclass(slots=True, kw_only=True)
class _Head:
    """Lines above an instruction, and which of them are headings of parts."""

    lines: list[str]
    headings: list[tuple[int, int]]
    """Index into ``lines``, number of the part."""


def build_document(uri: str, shown: VisibleKernel, columns: Sequence[str] | None = None) -> SassDocument:
    """The document of a kernel. 22,000 instructions take a tenth of a second.

    Args:
        uri: of the document.
        shown: the kernel.
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
        if part.kind is SectionKind.FUNCTION or (part.kind is SectionKind.LOOP and _needs_air(head)):
            head.lines.append("")
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


def _needs_air(head: _Head) -> bool:
    """Loops that begin together stand together, and right below a function's label."""
    return not head.lines


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
