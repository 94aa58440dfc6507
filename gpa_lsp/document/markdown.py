"""WRITER: blocks as Markdown, readable also as plain text: for pull requests and for pages of an editor. Then escaping of text and code."""

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from gpa_lsp.document.blocks import Block, Gauge, Item, Items, Paragraph, Part, Row, Rows, Table, make_line
from gpa_lsp.document.layout import UNBROKEN, Align, Column, Line, Style, count_cells, lay_out_table, read_plain
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import Code, Sentence, join
from gpa_lsp.foundation.visible_text import make_one_line, make_visible

_PADDED_CELLS = 40  # Of a column: cells of wider ones keep their own width

_FENCE_CELLS = 80  # Of a table without headings, which stands in letters of one width

_STRONG = (Style.TITLE, Style.ERROR, Style.WARNING, Style.HOT)
_CODE = (Style.CODE, Style.PATH)


def write_markdown(
    blocks: Sequence[Block],
    *,
    level: int = 2,
    max_rows: int | None = None,
    folds: bool = False,
) -> Iterator[str]:
    """All blocks, line by line, an empty line between any two.

    Args:
        blocks: what to show.
        level: of the first headings.
        max_rows: longest table; what is cut is counted. None for no limit.
        folds: fold away what can be, as GitHub does.
    """
    return _Markdown(max_rows, folds=folds).write(blocks, level)


class _Markdown:
    def __init__(self, max_rows: int | None, *, folds: bool) -> None:
        self._max_rows = max_rows
        self._folds = folds

    def write(self, blocks: Sequence[Block], level: int) -> Iterator[str]:
        is_first = True
        for block in blocks:
            lines = list(self._write_block(block, level))
            if lines:
                yield from lines if is_first else ("", *lines)
                is_first = False

    def _write_block(self, block: Block, level: int) -> Iterator[str]:
        if isinstance(block, Part):
            yield from self._write_part(block, level)
        elif isinstance(block, Table):
            yield from self._write_table(block)
        elif isinstance(block, Items):
            yield from self._write_items(block)
        elif isinstance(block, Rows):
            yield from (f"- {self._write_row(row)}" for row in block.rows)
        elif isinstance(block, Paragraph):  # the table beside a figure has its numbers
            yield write_line(block.text)

    def _write_part(self, part: Part, level: int) -> Iterator[str]:
        said = [text for text in (" · ".join(part.facts), part.summary) if text]
        blocks = [*(Paragraph(text=text) for text in said), *part.blocks]
        lead = part.lead[0]
        if part.folds and self._folds:
            words = make_one_line("".join(text for text, _ in make_line(part.title)))
            lead = f"<b>{html.escape(lead)}</b> " if lead else ""
            yield from (f"<details><summary>{lead}{html.escape(words, quote=False)}</summary>", "")
            yield from self.write(blocks, level)
            yield from ("", "</details>")
            return
        is_name = part.style is Style.TITLE and isinstance(part.title, str)
        title = mark_code(str(part.title)) if is_name else write_line(part.title)
        yield f"{'#' * level} {f'{lead} ' if lead else ''}{title}"
        inner = list(self.write(blocks, level + 1))
        yield from ("", *inner) if inner else ()

    def _write_row(self, row: Row) -> str:
        marked = " ".join(f"**{escape_markdown(one)}**" for one in (row.label, row.gain) if one)
        quoted = (quote_code(one) for one in (row.place, row.code) if one)
        return " ".join((marked, *quoted, write_sentence(join((row.text, *row.remarks.values()), "; "))))

    def _write_items(self, items: Items) -> Iterator[str]:
        shown = items.choose_items(self._max_rows)
        for number, item in enumerate(shown, start=1):
            sign = f"{number}. " if items.are_numbered else "- "
            first, *others = self._write_item(item, is_finding=items.are_findings)
            yield f"{sign}{first}"
            yield from (f"{' ' * len(sign)}{line}" for line in others)
        rest = len(items.items) - len(shown)
        yield from (f"- and {format_count(rest)} more",) if rest else ()

    def _write_item(self, item: Item, *, is_finding: bool) -> Iterator[str]:
        text = write_line(item.text)
        if is_finding and item.style is Style.WARNING:
            text = f"**{text}**"
        lead = escape_markdown(item.lead[0])
        yield f"{lead}{':' if is_finding else ''} {text}" if lead else text
        if item.remedy:
            yield f"- {write_sentence(item.remedy)}"
        for block in item.below:
            if isinstance(block, Items):
                yield from self._write_items(block)
            elif isinstance(block, Paragraph):
                yield f"- {write_line(block.text)}"

    def _write_table(self, table: Table) -> Iterator[str]:
        if not table.rows:
            return
        shown = table.choose_rows(self._max_rows)
        if table.title:
            yield from (f"**{escape_markdown(table.title)}**", "")
        if any(column.title for column in table.columns):
            rows = [
                [self._write_cell(*span, is_strong=number == table.current_row) for span in table.rows[number]]
                for number in shown
            ]
            yield from draw_table(table.columns, rows)
        else:
            bare = [[(_make_bare(text), style) for text, style in table.rows[number]] for number in shown]
            lines = lay_out_table(table.columns, bare, width=_FENCE_CELLS, indent=0)
            yield from ("```text", *map(read_plain, lines), "```")
        rest = len(table.rows) - len(shown)
        if rest:
            yield from ("", f"And {format_count(rest)} more.")
        if table.note:
            yield from ("", write_sentence(table.note))

    def _write_cell(self, text: str, style: Style, *, is_strong: bool) -> str:
        """A text in a table cell, where even a vertical bar within code would end the cell."""
        if not text.strip():
            return ""
        if style in _CODE:
            written = quote_code(text)
        elif isinstance(text, Sentence):
            written = write_cell(text)
        else:
            written = escape_markdown(text)
        return f"**{written}**" if is_strong or style in _STRONG else written


def write_line(text: str | Line) -> str:
    """A text, or spans with their roles, as one line."""
    if isinstance(text, str):
        return write_sentence(text).replace(UNBROKEN, " ")
    return "".join(_write_span(one, style) for one, style in text).strip().replace(UNBROKEN, " ")


def _write_span(text: str, style: Style) -> str:
    plain = text.strip()
    if not plain:
        return text
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    written = mark_code(plain) if style in _CODE else write_sentence(text)
    return f"{lead}{f'**{written}**' if style in _STRONG else written}{tail}"


def _make_bare(text: str) -> str:
    """A text inside a fence, without backticks that would end it."""
    return text if isinstance(text, Gauge) else " ".join(text.split()).replace("`", "'")


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


# What :func:`write_links` writes, as a pattern: these words run commands that show something, and no others do
_LINK = (
    r"\[(?:table|SASS|page|history)\]\(command:gpaLsp\.(?:showLine|openSass|showPage|showHistory)\?[A-Za-z0-9%._~-]*\)"
)
LINKS = rf"{_LINK}(?: · {_LINK})*"

# What to escape for that no address becomes a link although nothing marks it, as on GitHub and in editors, and no ``&#58;`` a character
ADDRESS = r":(?=//)|(?i:(?<=www)\.)|(?<=[\w.+-])@(?=\w)|&(?=[#A-Za-z0-9])"

_SPECIAL = re.compile(
    rf"[\\`*\[\]#|~$]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|\A>|{ADDRESS}"  # within a word a stroke below is one, and before a number a < is one
    r"|\A[-+=](?=[-+=\s]|\Z)"  # begins a list, or makes a heading of the line above
)
_NUMBERED = re.compile(r"\A(\d{1,9})([.)])(?=\s|\Z)")
_CODE_SPAN = re.compile(r"(`[^`]+`)")
_STROKE = re.compile(r"(?<!\\)\|")
_BACKTICKS = re.compile(r"`+")
_WHITE_SPACE = re.compile(r"[ \t\n\v\f\r]+")


def write_links(links: Iterable[tuple[str, str, Sequence[object]]]) -> str:
    """A line of links to commands: word, command, arguments of each.

    >>> write_links([("page", "gpaLsp.showPage", ("file:///k.cu", 4))])
    '[page](command:gpaLsp.showPage?%5B%22file%3A%2F%2F%2Fk.cu%22%2C%204%5D)'
    """
    return " · ".join(
        f"[{word}](command:{command}?{quote(json.dumps(list(arguments)), safe='')})"
        for word, command, arguments in links
    )


def escape_markdown(text: str) -> str:
    r"""Plain text that Markdown shows as it is, on one line.

    >>> escape_markdown("kernel<4>(float*) | a_b")
    'kernel<4>(float\\*) \\| a_b'
    >>> escape_markdown("1. see https://example.org"), escape_markdown("a &#35; b&c &")
    ('1\\. see https\\://example.org', 'a \\&\\#35; b\\&c &')
    """
    return _escape(make_one_line(text))


def write_sentence(text: str) -> str:
    r"""A sentence as Markdown: its words escaped, its code marked.

    In a plain text, from other packages or older files, text between single backticks is code.

    >>> from gpa_lsp.foundation.prose import say
    >>> write_sentence(say("Put {code} into a*b.", code=Code(text="a[i * n]")))
    'Put `a[i * n]` into a\\*b.'
    >>> write_sentence("put `a[i * n]` into a*b")
    'put `a[i * n]` into a\\*b'
    """
    if not isinstance(text, Sentence):
        return _escape_prose(make_one_line(text))
    written: list[str] = []
    words: list[str] = []
    for part in text.parts:
        if isinstance(part, Code):
            written.extend((_escape_words(words), mark_code(part.text)))
            words = []
        else:
            words.append(str(part))
    return "".join((*written, _escape_words(words))).strip(" ")


def write_cell(text: str) -> str:
    r"""A sentence in a table cell, where even a vertical bar within code would end the cell.

    >>> write_cell("a | `b|c`")
    'a \\| `b\\|c`'
    """
    return _STROKE.sub(r"\|", write_sentence(text))


def _escape_words(words: list[str]) -> str:
    return _escape_prose(make_visible(_WHITE_SPACE.sub(" ", "".join(words))))


def _escape_prose(line: str) -> str:
    parts = _CODE_SPAN.split(line)
    return "".join(part if position % 2 else _escape(part) for position, part in enumerate(parts))


def quote_code(text: str) -> str:
    r"""Code between as many backticks as it takes, fit for a table's cell.

    >>> quote_code("LDG.E R2, [R4.64]"), quote_code("a|b")
    ('`LDG.E R2, [R4.64]`', '`a\\|b`')
    """
    return mark_code(text.replace("|", "\\|"))


def mark_code(text: str) -> str:
    r"""Code between as many backticks as it takes, outside of tables.

    >>> mark_code("|R1|"), mark_code("a`b")
    ('`|R1|`', '`` a`b ``')
    """
    plain = make_visible(text).strip(" ")
    if "`" not in plain:
        return f"`{plain}`"
    fence = "`" * (1 + max(len(run) for run in _BACKTICKS.findall(plain)))
    return f"{fence} {plain} {fence}"


def _escape(line: str) -> str:
    return _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line))
