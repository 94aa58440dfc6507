"""WRITER: blocks as Markdown that reads as well where it is shown as it is: for pull requests and for pages of an editor."""

import html
from collections.abc import Callable, Iterator, Sequence

from gpa_lsp.document.blocks import Block, Figure, Gauge, Item, Items, Paragraph, Part, Table, make_line
from gpa_lsp.document.layout import Align, Column, Line, Style, count_cells, lay_out_table, read_plain
from gpa_lsp.document.markdown_text import escape_markdown, mark_code, quote_code, write_sentence
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import Place, Sentence
from gpa_lsp.foundation.visible_text import make_one_line

Link = Callable[[Place], str | None]  # from a place to its URI; None where there is none

_PADDED_CELLS = 40  # Of a column: cells of wider ones keep their own width

_FENCE_CELLS = 80  # Of a table without headings, which stands in letters of one width

_STRONG = (Style.TITLE, Style.WARNING, Style.HOT)
_CODE = (Style.CODE, Style.PATH)


def write_markdown(
    blocks: Sequence[Block], *, level: int = 2, max_rows: int | None = None, link: Link | None = None
) -> Iterator[str]:
    """All blocks, line by line, an empty line between any two.

    Args:
        blocks: what to show.
        level: of the first headings.
        max_rows: longest table; what is cut is counted. None for no limit.
        link: from a place in a sentence to its URI; None leaves its words.
    """
    is_first = True
    for block in blocks:
        lines = list(_write_block(block, level, max_rows, link))
        if lines:
            yield from lines if is_first else ("", *lines)
            is_first = False


def _write_block(block: Block, level: int, max_rows: int | None, link: Link | None) -> Iterator[str]:
    if isinstance(block, Part):
        yield from _write_part(block, level, max_rows, link)
    elif isinstance(block, Table):
        yield from _write_table(block, max_rows, link)
    elif isinstance(block, Figure):
        yield escape_markdown(block.words)
    elif isinstance(block, Items):
        shown = block.choose_items(max_rows)
        for item in shown:
            yield from _write_item(item, block.are_findings, level, max_rows, link)
        rest = len(block.items) - len(shown)
        yield from (f"- and {format_count(rest)} more",) if rest else ()
    else:
        yield write_line(block.text, link)


def _write_part(part: Part, level: int, max_rows: int | None, link: Link | None) -> Iterator[str]:
    lead = f"{part.lead[0]} " if part.lead[0] else ""
    blocks = (Paragraph(text=part.summary), *part.blocks) if part.summary else part.blocks
    if part.folds:
        words = "".join(text for text, _ in make_line(part.title))
        title = (
            f"{f'<b>{html.escape(lead.strip())}</b> ' if lead else ''}{html.escape(make_one_line(words), quote=False)}"
        )
        yield from (f"<details><summary>{title}</summary>", "")
        yield from write_markdown(blocks, level=level, max_rows=max_rows, link=link)
        yield from ("", "</details>")
        return
    yield f"{'#' * level} {lead}{write_line(part.title, link)}"
    inner = list(write_markdown(blocks, level=level + 1, max_rows=max_rows, link=link))
    yield from ("", *inner) if inner else ()


def _write_item(item: Item, is_finding: bool, level: int, max_rows: int | None, link: Link | None) -> Iterator[str]:
    text = write_line(item.text, link)
    if is_finding and item.style is Style.WARNING:
        text = f"**{text}**"
    lead = escape_markdown(item.lead[0])
    yield f"- {f'{lead}: ' if is_finding else f'**{lead}** '}{text}" if lead else f"- {text}"
    if item.remedy:
        yield f"  - {write_sentence(item.remedy, link)}"
    for block in item.below:
        is_list = isinstance(block, Items)
        lines = _write_block(block, level, max_rows, link)
        yield from (f"  {line}" if is_list or line.startswith("<") else f"  - {line}" for line in lines if line)


def write_line(text: str | Line, link: Link | None = None) -> str:
    """A text, or spans with their roles, as one line."""
    if isinstance(text, str):
        return write_sentence(text, link)
    return "".join(_write_span(one, style, link) for one, style in text).strip()


def _write_span(text: str, style: Style, link: Link | None) -> str:
    plain = text.strip()
    if not plain:
        return text
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    written = mark_code(plain) if style in _CODE else write_sentence(text, link)
    return f"{lead}{f'**{written}**' if style in _STRONG else written}{tail}"


def _write_table(table: Table, max_rows: int | None, link: Link | None) -> Iterator[str]:
    if not table.rows:
        return
    shown = table.choose_rows(max_rows)
    if table.title:
        yield from (f"**{escape_markdown(table.title)}**", "")
    if any(column.title for column in table.columns):
        rows = [
            [write_cell(*span, link=link, is_strong=number == table.current_row) for span in table.rows[number]]
            for number in shown
        ]
        yield from draw_table(table.columns, rows)
    else:
        bare = [[(_make_bare(text), style) for text, style in table.rows[number]] for number in shown]
        yield from (
            "```text",
            *map(read_plain, lay_out_table(table.columns, bare, width=_FENCE_CELLS, indent=0)),
            "```",
        )
    rest = len(table.rows) - len(shown)
    if rest:
        yield from ("", f"And {format_count(rest)} more.")
    if table.note:
        yield from ("", write_sentence(table.note, link))


def _make_bare(text: str) -> str:
    """A text in a fence, which nothing in it ends."""
    return text if isinstance(text, Gauge) else " ".join(text.split()).replace("`", "'")


def write_cell(text: str, style: Style = Style.PLAIN, *, link: Link | None = None, is_strong: bool = False) -> str:
    """A text in a cell, where a stroke ends the cell even within code."""
    if not text.strip():
        return ""
    if style in _CODE:
        written = quote_code(text)
    elif isinstance(text, Sentence):
        written = write_sentence(text, link).replace("\\|", "|").replace("|", "\\|")
    else:
        written = escape_markdown(text)
    return f"**{written}**" if is_strong or style is Style.TITLE else written


def draw_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of Markdown with its cells padded, so that it is one as plain text, too; columns that are empty everywhere are left out.

    >>> for line in draw_table([Column(title="reason"), Column(title="samples", align=Align.RIGHT)], [("wait", "12")]): print(line)
    | reason | samples |
    | :----- | ------: |
    | wait   |      12 |
    """
    kept = [number for number in range(len(columns)) if any(row[number] for row in rows)]
    heads = [escape_markdown(columns[number].title) for number in kept]
    table = [heads, *([row[number] for number in kept] for row in rows)]
    widths = [max(3, *(min(_PADDED_CELLS, count_cells(row[index])) for row in table)) for index in range(len(kept))]
    is_right = [columns[number].align is Align.RIGHT for number in kept]
    rule = [
        f"{'-' * (width - 1)}:" if right else f":{'-' * (width - 1)}"
        for width, right in zip(widths, is_right, strict=True)
    ]
    for position, cells in enumerate(table):
        padded = (_pad(cell, width, right) for cell, width, right in zip(cells, widths, is_right, strict=True))
        yield f"| {' | '.join(padded)} |"
        if not position:
            yield f"| {' | '.join(rule)} |"


def _pad(cell: str, width: int, is_right: bool) -> str:
    padding = " " * (width - count_cells(cell))
    return padding + cell if is_right else cell + padding
