"""WRITER: blocks as lines of styled text, for a terminal or a file."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gpa_lsp.document.blocks import Block, Figure, Item, Items, Part, Row, Rows, Table, make_line
from gpa_lsp.document.layout import (
    ELLIPSIS,
    EMPTY_LINE,
    Column,
    Line,
    Span,
    Style,
    count_cells,
    cut,
    flow,
    join_lines,
    lay_out_table,
    read_plain,
    text_line,
    wrap,
)
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import Sentence

_MOST_WORDS = 110  # Of rows to be read at a glance, where lines are wrapped at all; with their title they are 120
_MOST_WRAPPED = 2  # Lines that one of them may take
_LABEL_CELLS = 7
# Cells that a row leaves for its text beside the code of the line, and below which code is left out.
_LEAST_TEXT_CELLS, _LEAST_CODE_CELLS = 16, 16
_LEAST_NAME_CELLS = 20  # Of a heading's name beside its facts

_LAST_REMARK = re.compile(r" \((?:[^()]|\([^()]*\))*\)$")  # Of a sentence, in parentheses
_LAST_CLAUSE = re.compile(r"; (?:[^;()]|\((?:[^()]|\([^()]*\))*\))*$")

_SIGNS = {Style.WARNING: "! ", Style.PLAIN: "- ", Style.DIM: "+ "}


def write_terminal(
    blocks: Sequence[Block], width: int | None = None, *, max_rows: int | None = None, indent: int = 2
) -> Iterator[Line]:
    """All blocks; parts have empty lines between them.

    Args:
        blocks: what to show.
        width: characters per line; None for as many as it takes.
        max_rows: longest table; what is cut is counted. None for no limit.
        indent: spaces in front of what stands in no part.
    """
    terminal = _Terminal(width, max_rows)
    yield from terminal.write(blocks, indent)
    for words in terminal.said_of_cuts:
        yield from wrap(words, width, indent=indent, style=Style.DIM)


def write_plain(blocks: Sequence[Block], width: int | None = None, *, max_rows: int | None = None) -> str:
    """The blocks as plain text, each line ended by a line break."""
    return join_lines(write_terminal(blocks, width, max_rows=max_rows, indent=0))


class _Terminal:
    def __init__(self, width: int | None, max_rows: int | None) -> None:
        self._width = width
        self._max_rows = max_rows
        self.said_of_cuts: dict[str, None] = {}

    def write(self, blocks: Sequence[Block], indent: int) -> Iterator[Line]:
        before: Block | None = None
        for block in blocks:
            if isinstance(block, Figure):
                continue  # the table beside it has its numbers
            if before is not None and _is_apart(before, block):
                yield EMPTY_LINE
            if isinstance(block, Part):
                if before is not None and block.style is Style.TITLE and not block.lead[0] and not block.facts:
                    yield EMPTY_LINE
                yield from self._write_part(block, indent)
            elif isinstance(block, Table):
                yield from self._write_table(block, indent)
            elif isinstance(block, Rows):
                yield from self._write_rows(block)
            elif isinstance(block, Items):
                yield from self._write_items(block, indent)
            elif isinstance(block.text, str):
                yield from wrap(block.text, self._width, indent=indent, style=block.style)
            else:
                yield from flow(block.text, self._width, indent=indent)
            before = block

    def _write_part(self, part: Part, indent: int) -> Iterator[Line]:
        if part.lead[0]:
            item = Item(text=make_line(part.title, Style.TITLE), lead=part.lead, below=part.blocks)
            yield from self._write_item(item, (), len(part.lead[0]), indent)
            return
        title = make_line(part.title, part.style)
        yield from (self._head(title, part),) if part.facts else flow(title, self._width, indent=0)
        inner = indent or 2
        if part.summary:
            style = Style.PLAIN if part.is_known else Style.DIM
            yield from wrap(part.summary, self._width, indent=inner, style=style)
        yield from self.write(part.blocks, inner)

    def _head(self, title: Line, part: Part) -> Line:
        """A heading and its facts on one line; a long name is cut before the facts are."""
        facts = f"   {'   '.join(part.facts)}"
        if self._width is not None:
            name, style = read_plain(title), title[0][1]
            name = cut(name, max(_LEAST_NAME_CELLS, self._width - count_cells(facts)))
            title, facts = ((name, style),), cut(facts, max(1, self._width - count_cells(name)))
        return (*title, (facts, Style.DIM))

    def _write_items(self, items: Items, indent: int) -> Iterator[Line]:
        shown = items.choose_items(self._max_rows)
        cells = 0 if items.are_findings else max((len(item.lead[0]) for item in shown), default=0)
        for number, item in enumerate(shown, start=1):
            sign = _SIGNS[item.style] if items.are_findings else f"{number}. " if items.are_numbered else ""
            yield from self._write_item(item, ((sign, item.style),) if sign else (), cells, indent)
        yield from _count_rest(len(items.items) - len(shown), indent)

    def _write_item(self, item: Item, sign: Line, cells: int, indent: int) -> Iterator[Line]:
        """One item; text behind its lead and below it is indented by the *cells* of the widest lead."""
        text, style = item.lead
        lead = f"{text:>{cells}}  " if cells else f"{text}: " if text else ""
        spans = (*sign, (lead, style)) if lead else sign
        hanging = indent + (sum(len(one) for one, _ in sign) + (cells + 2 if cells else 0) or 2)
        line = (*spans, *make_line(item.text, item.style))
        yield from flow(line, self._width, indent=indent, hanging=hanging)
        if item.remedy:
            remedy = (("→ ", Style.DIM), (item.remedy, Style.PLAIN))
            yield from flow(remedy, self._width, indent=hanging, hanging=hanging + 2)
        yield from self.write(item.below, hanging)

    def _write_rows(self, block: Rows) -> Iterator[Line]:
        """Rows of two lines at most, the verdict whole; where lines or words are too many, rows are cut from the last one up."""
        every = [
            one
            for row in block.rows
            for one in (row, *(Row(label=label, text=text) for label, text in row.remarks.items()))
        ]
        gains = max((len(row.gain) for row in every), default=0)
        most = [block.most_lines, *[_MOST_WRAPPED] * (len(every) - 1)]
        rows = [self._fit_row(row, gains, lines) for row, lines in zip(every, most, strict=True)]
        for number, row in reversed([*enumerate(every)]):
            words = sum(len(read_plain(line).split()) for lines in rows for line in lines)
            if sum(map(len, rows)) <= block.most_lines and (self._width is None or words <= _MOST_WORDS):
                break
            rows[number] = self._fit_row(row, gains, 1)
        for line in (line for lines in rows for line in lines):
            if block.whole and read_plain(line).endswith(ELLIPSIS):
                self.said_of_cuts[block.whole] = None
            yield line

    def _fit_row(self, row: Row, gains: int, most: int) -> list[Line]:
        """A row in some lines: without its last remarks and clauses where it is too long, and cut where that is not enough."""
        whole = text = row.text
        while True:
            lines = list(self._write_row(replace(row, text=text), gains))
            if len(lines) <= most:
                return lines
            shorter = _LAST_REMARK.sub("", text, count=1) or text
            shorter = _LAST_CLAUSE.sub("", text, count=1) if shorter == text else shorter
            if shorter == text:
                break
            text = Sentence((shorter,))
        lines = list(self._write_row(replace(row, text=whole), gains))
        return [*lines[: most - 1], self._end_early(lines[most - 1])]

    def _write_row(self, row: Row, gains: int) -> Iterator[Line]:
        label = f"{row.label}: " if len(row.label) >= _LABEL_CELLS else f"{row.label:<{_LABEL_CELLS}}"
        spans: list[Span] = [(f"  {label}", Style.PLAIN if row.is_numbered else Style.DIM)]
        if row.is_numbered and gains:
            spans.append((f"{row.gain:<{gains + 2}}", Style.HOT if row.gain[:1].isdigit() else Style.PLAIN))
        if row.place:
            spans.append((f"{row.place}  ", Style.PATH))
        used = sum(count_cells(text) for text, _ in spans)
        room = count_cells(row.code) if self._width is None else self._width - used - _LEAST_TEXT_CELLS
        if row.code and room >= _LEAST_CODE_CELLS:
            spans.append((f"{cut(row.code, room)}  ", Style.CODE))
        yield from flow((*spans, (row.text, Style.PLAIN)), self._width, indent=0, hanging=2 + _LABEL_CELLS)

    def _end_early(self, line: Line) -> Line:
        """A line that ends with an ellipsis."""
        *others, (text, style) = line
        room = None if self._width is None else self._width - sum(count_cells(one) for one, _ in others)
        whole = f"{text} {ELLIPSIS}"
        return (*others, (whole if room is None else cut(whole, max(room, 1)), style))

    def _write_table(self, table: Table, indent: int) -> Iterator[Line]:
        """A table under its title, the row of the kernel as it is now marked; rows beyond the limit are counted."""
        if not table.rows:
            return
        if table.title:
            yield text_line(f"{' ' * indent}{table.title}", Style.DIM)
            indent += 2
        shown = table.choose_rows(self._max_rows)
        columns, rows = table.columns, [table.rows[number] for number in shown]
        if table.current_row is not None:
            columns = (Column(title=""), *columns)
            rows = [_mark(row, is_current=number == table.current_row) for number, row in zip(shown, rows, strict=True)]
        yield from lay_out_table(columns, rows, width=self._width, indent=indent)
        yield from _count_rest(len(table.rows) - len(shown), indent)
        if table.note:
            yield from wrap(table.note, self._width, indent=indent, style=Style.DIM)


def _is_apart(before: Block, block: Block) -> bool:
    """Whether an empty line separates two blocks: around parts, except for listed ones below their introduction."""
    if isinstance(block, Rows) or isinstance(before, Rows):
        return True
    if not isinstance(block, Part):
        return isinstance(before, Part) and not before.lead[0]
    return isinstance(before, Part) or not block.lead[0]


def _count_rest(count: int, indent: int) -> Iterator[Line]:
    if count:
        yield text_line(f"{' ' * indent}and {format_count(count)} more", Style.DIM)


def _mark(row: Sequence[Span], *, is_current: bool) -> Sequence[Span]:
    if not is_current:
        return (("", Style.PLAIN), *row)
    return (("→", Style.TITLE), *((text, Style.TITLE if style is Style.PLAIN else style) for text, style in row))
