"""WRITER: blocks as lines of styled text, for a terminal or a file."""

from collections.abc import Iterator, Sequence

from gpa_lsp.document.blocks import Block, Figure, Item, Items, Part, Table, make_line
from gpa_lsp.document.layout import EMPTY_LINE, Column, Line, Span, Style, flow, lay_out_table, text_line, wrap
from gpa_lsp.foundation.numbers import format_count

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
    return _Terminal(width, max_rows).write(blocks, indent)


class _Terminal:
    def __init__(self, width: int | None, max_rows: int | None) -> None:
        self._width = width
        self._max_rows = max_rows

    def write(self, blocks: Sequence[Block], indent: int) -> Iterator[Line]:
        before: Block | None = None
        for block in blocks:
            if before is not None and _is_apart(before, block):
                yield EMPTY_LINE
            if isinstance(block, Part):
                if before is not None and block.style is Style.TITLE and not block.lead[0]:
                    yield EMPTY_LINE
                yield from self._write_part(block, indent)
            elif isinstance(block, Table):
                yield from self._write_table(block, indent)
            elif isinstance(block, Figure):
                yield from wrap(block.words, self._width, indent=indent, style=Style.DIM)
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
        yield from flow(make_line(part.title, part.style), self._width, indent=0)
        inner = indent or 2
        if part.summary:
            style = Style.PLAIN if part.is_known else Style.DIM
            yield from wrap(part.summary, self._width, indent=inner, style=style)
        yield from self.write(part.blocks, inner)

    def _write_items(self, items: Items, indent: int) -> Iterator[Line]:
        shown = items.choose_items(self._max_rows)
        cells = 0 if items.are_findings else max((len(item.lead[0]) for item in shown), default=0)
        for number, item in enumerate(shown, start=1):
            sign = _SIGNS[item.style] if items.are_findings else f"{number}. " if items.are_numbered else ""
            yield from self._write_item(item, ((sign, item.style),) if sign else (), cells, indent)
        yield from _count_rest(len(items.items) - len(shown), indent)

    def _write_item(self, item: Item, sign: Line, cells: int, indent: int) -> Iterator[Line]:
        """One item; what is behind its lead and below it stands further right, by the *cells* of the widest lead."""
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
    """Whether an empty line stands between two blocks: around parts, but for one of a list below the text that introduces it."""
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
