"""WRITER: blocks as lines of styled text, for a terminal or a file."""

from collections.abc import Iterator, Sequence

from gpa_lsp.document.blocks import Block, Figure, Item, Items, Part, Table, make_line
from gpa_lsp.document.layout import EMPTY_LINE, Column, Line, Span, Style, flow, lay_out_table, text_line, wrap
from gpa_lsp.foundation.numbers import format_count

_SIGNS = {Style.WARNING: "! ", Style.PLAIN: "- ", Style.DIM: "+ "}


def write_terminal(
    blocks: Sequence[Block], width: int | None = None, *, max_rows: int | None = None, indent: int = 2
) -> Iterator[Line]:
    """All blocks; parts have an empty line between them.

    Args:
        blocks: what to show.
        width: characters per line; None for as many as it takes.
        max_rows: longest table; what is cut is counted. None for no limit.
        indent: spaces in front.
    """
    for number, block in enumerate(blocks):
        if isinstance(block, Part):
            if number and (not block.lead[0] or isinstance(blocks[number - 1], Part)):
                yield EMPTY_LINE
            yield from _write_part(block, width, max_rows, indent)
        elif isinstance(block, Table):
            yield from _write_table(block, width, max_rows, indent)
        elif isinstance(block, Figure):
            yield from wrap(block.words, width, indent=indent, style=Style.DIM)
        elif isinstance(block, Items):
            shown = block.choose_items(max_rows)
            for item in shown:
                sign = _SIGNS[item.style] if block.are_findings else ""
                yield from _write_item(item, sign, width, max_rows, indent)
            yield from _count_rest(len(block.items) - len(shown), indent)
        elif isinstance(block.text, str):
            yield from wrap(block.text, width, indent=indent, style=block.style)
        else:
            yield from flow(block.text, width, indent=indent)


def _write_part(part: Part, width: int | None, max_rows: int | None, indent: int) -> Iterator[Line]:
    if part.lead[0]:
        title = make_line(part.title, Style.TITLE)
        yield from _write_item(Item(text=title, lead=part.lead, below=part.blocks), "", width, max_rows, indent)
        return
    line = make_line(part.title, part.style)
    yield from flow(line, width, indent=0, hanging=4) if len(line) > 1 else (line,)
    if part.summary:
        style = Style.PLAIN if part.is_known else Style.DIM
        yield from wrap(part.summary, width, indent=indent, style=style)
    yield from write_terminal(part.blocks, width, max_rows=max_rows, indent=indent)


def _write_item(item: Item, sign: str, width: int | None, max_rows: int | None, indent: int) -> Iterator[Line]:
    lead, style = item.lead
    spans = [
        span for span in ((sign, item.style), (f"{lead}{': ' if sign else '  '}" if lead else "", style)) if span[0]
    ]
    hanging = indent + (2 if sign or not lead else len(lead) + 2)
    yield from flow((*spans, *make_line(item.text, item.style)), width, indent=indent, hanging=hanging)
    if item.remedy:
        yield from flow((("→ ", Style.DIM), (item.remedy, Style.PLAIN)), width, indent=hanging, hanging=hanging + 2)
    yield from write_terminal(item.below, width, max_rows=max_rows, indent=hanging)


def _write_table(table: Table, width: int | None, max_rows: int | None, indent: int) -> Iterator[Line]:
    """A table under its title, the row of the kernel as it is now marked; rows beyond the limit are counted."""
    if not table.rows:
        return
    if table.title:
        yield text_line(f"{' ' * indent}{table.title}", Style.DIM)
        indent += 2
    shown = table.choose_rows(max_rows)
    columns, rows = table.columns, [table.rows[number] for number in shown]
    if table.current_row is not None:
        columns = (Column(title=""), *columns)
        rows = [_mark(row, is_current=number == table.current_row) for number, row in zip(shown, rows, strict=True)]
    yield from lay_out_table(columns, rows, width=width, indent=indent)
    yield from _count_rest(len(table.rows) - len(shown), indent)
    if table.note:
        yield from wrap(table.note, width, indent=indent, style=Style.DIM)


def _count_rest(count: int, indent: int) -> Iterator[Line]:
    if count:
        yield text_line(f"{' ' * indent}and {format_count(count)} more", Style.DIM)


def _mark(row: Sequence[Span], *, is_current: bool) -> Sequence[Span]:
    if not is_current:
        return (("", Style.PLAIN), *row)
    return (("→", Style.TITLE), *((text, Style.TITLE if style is Style.PLAIN else style) for text, style in row))
