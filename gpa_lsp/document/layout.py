"""Lines of styled text, and tables laid out in them. Writers decide about colour.

A :data:`Line` is a tuple of spans, a span a text and the role it plays. Roles and not colours, so that a plain file, a terminal and a test see
the same words in the same columns. What names may hold is written out where text enters a line's layout, so that columns count what is shown.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from msgspec import Struct

from gpa_lsp.foundation.prose import Code, Place, Sentence
from gpa_lsp.foundation.visible_text import make_visible

GAP = 2  # Spaces between columns

ELLIPSIS = "…"

# What follows a place inside a number, and the number before it.
_IN_NUMBER = re.compile(r"(?<=[\d.,])[\d.,]*\d")
_NUMBER_AT_END = re.compile(r"(?<!\w)\d[\d.,]*$")

_BLANKS = re.compile(r"[ \t\r\n]+(?!%)")  # a number keeps its percent sign
_SPACE = re.compile(r" (?!%)")
_NEVER = re.compile(r"(?!)")
# All but Latin letters, punctuation and signs of mathematics, each of which takes one cell
_UNUSUAL = re.compile("[^\x00-\u02ff\u2010-\u2064\u2190-\u2319]")

# Cells that a column of text shrinks to before titles take several lines.
_COMFORTABLE_CELLS = 24

# Lines that the title of a column may take.
_TITLE_LINES = 3

_EIGHTHS = " ▏▎▍▌▋▊▉"

UNBROKEN = "\u00a0"  # A space at which no line ends


class Style(Enum):
    """The role of a piece of text."""

    PLAIN = "plain"
    TITLE = "title"
    HEADING = "heading"
    DIM = "dim"
    PATH = "path"
    CODE = "code"
    BAR = "bar"
    HOT = "hot"  # At least a quarter of the kernel
    WARM = "warm"  # At least a twentieth
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


Span = tuple[str, Style]
Line = tuple[Span, ...]

EMPTY_LINE: Line = ()

HOT_RATIO = 0.25
WARM_RATIO = 0.05


def style_of_share(ratio: float) -> Style:
    """Style of a share of a kernel.

    >>> style_of_share(0.3).value, style_of_share(0.01).value
    ('hot', 'plain')
    """
    if ratio >= HOT_RATIO:
        return Style.HOT
    return Style.WARM if ratio >= WARM_RATIO else Style.PLAIN


def text_line(text: str, style: Style = Style.PLAIN) -> Line:
    """A line of one span."""
    return ((text, style),)


def read_plain(line: Line) -> str:
    """The words of a line without trailing space.

    >>> read_plain((("a ", Style.DIM), ("b  ", Style.PLAIN)))
    'a b'
    """
    return make_visible("".join(text for text, _ in line)).rstrip(" ")


class Align(Enum):
    """Alignment of a column."""

    LEFT = "left"
    RIGHT = "right"


class Column(Struct, frozen=True, kw_only=True):
    """A column of a table."""

    title: str  # shown above it; empty for none
    align: Align = Align.LEFT  # where its cells stand
    can_shrink: bool = False  # may be cut where the table is too wide; numbers may not
    min_chars: int = 12  # what a column that shrinks keeps
    keeps_end: bool = False  # cut at the front, for paths, whose end matters
    # 0 for a column that is always shown. Others are left out where the table is too wide even with every column at its least: those with the
    # smallest number first, of equal ones the left.
    drop_order: int = 0


def left(title: str = "", *, drop_order: int = 0) -> Column:
    """A column of texts that are never cut."""
    return Column(title=title, drop_order=drop_order)


def right(title: str = "", *, drop_order: int = 0) -> Column:
    """A column of numbers."""
    return Column(title=title, align=Align.RIGHT, drop_order=drop_order)


def flexible(title: str = "", min_chars: int = 12, *, keeps_end: bool = False, drop_order: int = 0) -> Column:
    """A column of texts that are cut where the table is too wide."""
    return Column(title=title, can_shrink=True, min_chars=min_chars, keeps_end=keeps_end, drop_order=drop_order)


def lay_out_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Span]], *, width: int | None, indent: int = 2
) -> Iterator[Line]:
    """A table as lines: titles, then rows.

    Args:
        columns: from left to right; one that is empty in every row is left out.
        rows: one span per column.
        width: characters per line; None for as many as it takes. Where there is too little, titles take several lines; then columns are
            left out, as :attr:`Column.drop_order` says, until the rest fits with columns that can shrink at their least, and a line below
            the table names them; then columns shrink, the widest first. Lines may still grow longer than ``width``: numbers are never cut.
        indent: spaces before the first column.
    """
    if not rows:
        return
    rows = [[(make_visible(text), style) for text, style in row] for row in rows]
    kept = [index for index in range(len(columns)) if any(row[index][0].strip() for row in rows)]
    columns, rows = [columns[index] for index in kept], [[row[index] for index in kept] for row in rows]
    of_cells = [max(count_cells(row[index][0]) for row in rows) for index in range(len(columns))]
    widths = [max(count_cells(column.title), cells) for column, cells in zip(columns, of_cells, strict=True)]
    dropped: list[str] = []
    if width is not None:
        _fold_titles(columns, of_cells, widths, width - indent - GAP * (len(columns) - 1))
        kept = _keep_columns(columns, widths, width - indent)
        dropped = [column.title for index, column in enumerate(columns) if column.title and index not in kept]
        columns, widths = [columns[index] for index in kept], [widths[index] for index in kept]
        rows = [[row[index] for index in kept] for row in rows]
        _shrink(columns, widths, width - indent - GAP * (len(columns) - 1))
    for titles in _break_titles(columns, widths):
        yield _lay_out_row(columns, widths, titles, indent)
    for row in rows:
        yield _lay_out_row(columns, widths, row, indent)
    if dropped:
        yield from wrap(f"not shown at this width: {', '.join(dropped)}", width, indent=indent, style=Style.DIM)


def _fold_titles(columns: Sequence[Column], of_cells: Sequence[int], widths: list[int], room: int) -> None:
    """Let titles take several lines, the one that saves most first, until the table fits."""
    least = [max(_fold(column.title), cells) for column, cells in zip(columns, of_cells, strict=True)]
    for index in sorted(range(len(columns)), key=lambda index: least[index] - widths[index]):
        comfortable = (
            min(width, _COMFORTABLE_CELLS) if column.can_shrink else width
            for column, width in zip(columns, widths, strict=True)
        )
        if sum(comfortable) <= room:
            return
        widths[index] = least[index]


def _fold(title: str) -> int:
    """Least number of cells of a title in at most :data:`_TITLE_LINES` lines."""
    words = [count_cells(word) for word in title.split()]
    fitting = (
        width
        for width in range(max(words, default=0), count_cells(title))
        if len(textwrap.wrap(title, width)) <= _TITLE_LINES
    )
    return next(fitting, count_cells(title))


def _break_titles(columns: Sequence[Column], widths: Sequence[int]) -> Iterator[list[Span]]:
    """The lines of titles, those of fewer lines at the bottom; none where no column has a title."""
    broken = [textwrap.wrap(column.title, width) for column, width in zip(columns, widths, strict=True)]
    height = max(map(len, broken), default=0)
    for line in range(height):
        yield [("" if line < height - len(own) else own[line - height + len(own)], Style.DIM) for own in broken]


def _keep_columns(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    least = [
        min(width, column.min_chars) if column.can_shrink else width
        for column, width in zip(columns, widths, strict=True)
    ]
    kept = list(range(len(columns)))
    order = [index for index in kept if columns[index].drop_order]
    for victim in sorted(order, key=lambda index: columns[index].drop_order):
        if sum(least[index] for index in kept) + GAP * (len(kept) - 1) <= room:
            break
        kept.remove(victim)
    return kept


def _shrink(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Take a cell at a time from the widest column that may shrink."""
    for _ in range(sum(widths) - room):
        able = [index for index, column in enumerate(columns) if column.can_shrink and widths[index] > column.min_chars]
        if not able:
            return
        widths[max(able, key=lambda index: widths[index])] -= 1


def _lay_out_row(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Span], indent: int) -> Line:
    spans: list[Span] = [(" " * indent, Style.PLAIN)] if indent else []
    for index, (column, width, (text, style)) in enumerate(zip(columns, widths, row, strict=True)):
        fitted = cut(text, width, keeps_end=column.keeps_end)
        padding = " " * (width - count_cells(fitted))
        if column.align is Align.RIGHT:
            spans.append((padding, Style.PLAIN))
        spans.append((fitted, style))
        if index < len(columns) - 1:
            spans.append(((padding if column.align is Align.LEFT else "") + " " * GAP, Style.PLAIN))
    return tuple(span for span in spans if span[0])


def count_cells(text: str) -> int:
    """Number of terminal cells of a text: two for wide characters of East Asian scripts, none for combining marks.

    >>> count_cells("abc"), count_cells("カーネル")
    (3, 8)
    """
    if _UNUSUAL.search(text) is None:
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def cut(text: str, cells: int, *, keeps_end: bool = False) -> str:
    """The text in at most ``cells`` cells, with an ellipsis where something is missing; words and numbers are left out whole.

    Only a word that takes most of the room is cut itself, and a file's name in its middle.

    >>> cut("long_scoreboard", 8), cut("/home/me/k.cu", 8, keeps_end=True)
    ('long_sc…', '…me/k.cu')
    >>> cut("22 of 16,384 blocks", 9), cut("loads: sectors of a warp", 17), cut("drain 98 %, wait 2 %", 11)
    ('22 of …', 'loads: sectors …', 'drain …')
    >>> cut("math_pipe_throttle 48 %", 22), cut("transpose.cu:4", 12, keeps_end=True)
    ('math_pipe_throttle …', 'trans…e.cu:4')
    """
    if count_cells(text) <= cells:
        return text
    kept: list[str] = []
    left = cells - 1
    for character in reversed(text) if keeps_end else text:
        left -= count_cells(character)
        if left < 0:
            break
        kept.append(character)
    if keeps_end:
        return _elide_path(text, "".join(reversed(kept)))
    shown = "".join(kept)
    words = shown[: shown.rfind(" ") + 1]
    ends_here = text[len(shown)] == " " and text[len(shown) + 1 : len(shown) + 2] != "%"  # a number goes with its sign
    if not ends_here and 3 * len(words.rstrip()) >= len(shown):
        is_unit = text[len(words)] == "%"
        return ((_NUMBER_AT_END.sub("", words.rstrip()) or words) if is_unit else words) + ELLIPSIS
    is_in_number = _IN_NUMBER.match(text, len(shown)) is not None
    return ((_NUMBER_AT_END.sub("", shown) or shown) if is_in_number else shown) + ELLIPSIS


def _elide_path(text: str, end: str) -> str:
    """The end of a path that fits, cut where a folder or file name begins; of a file name alone, its start and end."""
    if text[-len(end) - 1 :][:1] == "/" or not end:
        return ELLIPSIS + end
    if "/" in end:
        return ELLIPSIS + end[end.index("/") :]
    name = text[text.rfind("/") + 1 :]
    half = len(end) // 2 if count_cells(name) == len(name) else 0
    return name[:half] + ELLIPSIS + end[half:]


def join_facts(facts: Iterable[str]) -> str:
    """Facts on one line, which :func:`wrap` breaks only between them.

    >>> join_facts(["46 SMs", "1.73 GHz"]).replace(UNBROKEN, " ")
    '46 SMs · 1.73 GHz'
    """
    return f"{UNBROKEN}· ".join(fact.replace(" ", UNBROKEN) for fact in facts)


def wrap(text: str, width: int | None, *, indent: int = 2, style: Style = Style.PLAIN) -> Iterator[Line]:
    """Running text in lines; words longer than a line keep their length. Places and code in a sentence have their own styles.

    Args:
        width: characters per line; None for one line.
    """
    lead = (" " * indent, Style.PLAIN)
    words: list[Line] = []
    used = indent
    for word in [word for word in _split_words(text, style, _BLANKS) if word] or [()]:
        needed = _count_line(word) + (1 if words else 0)
        if words and width is not None and used + needed > width:
            yield (lead, *_break_freely(_join_words(words, style)))
            words, used, needed = [], indent, _count_line(word)
        words.append(word)
        used += needed
    yield (lead, *_break_freely(_join_words(words, style)))


def _break_freely(line: Line) -> Line:
    """Replace unbreakable spaces, once the line is broken."""
    return tuple((text.replace(UNBROKEN, " "), style) for text, style in line)


def _split_words(text: str, style: Style, between: re.Pattern[str]) -> Sequence[Line]:
    """The words of a text, each of one span or, where a value of a sentence ends or begins within it, of several."""
    parts = text.parts if isinstance(text, Sentence) else (text,)
    words: list[list[Span]] = [[]]
    for part in parts:
        own = Style.PATH if isinstance(part, Place) else Style.CODE if isinstance(part, Code) else style
        for position, piece in enumerate(between.split(str(part))):
            if position:
                words.append([])
            if piece:
                words[-1].append((make_visible(piece), own))
    return [tuple(word) for word in words]


def _join_words(words: Sequence[Line], style: Style) -> Line:
    """Words with spaces between them; neighbours of one style are one span."""
    joined: list[Span] = []
    for position, word in enumerate(words):
        gap: Line = (
            ((" ", word[0][1] if joined and word and joined[-1][1] is word[0][1] else style),) if position else ()
        )
        for text, own in (*gap, *word):
            before = joined.pop()[0] if joined and joined[-1][1] is own else ""
            joined.append((before + text, own))
    return tuple(joined) or (("", style),)


def _count_line(line: Line) -> int:
    return sum(count_cells(text) for text, _ in line)


def flow(line: Line, width: int | None, *, indent: int = 2, hanging: int = 4) -> Iterator[Line]:
    """Spans in lines of at most *width* characters, broken between words but not within code and paths.

    Args:
        line: what to say.
        width: characters per line; None for one line.
        indent: spaces before the first line.
        hanging: spaces before the others.
    """
    words: list[Line] = [()]
    for text, style in line:
        is_whole = style in (Style.CODE, Style.PATH) and not isinstance(text, Sentence)
        first, *others = _split_words(text, style, _NEVER if is_whole else _SPACE)
        words[-1] = (*words[-1], *first)
        words.extend(others)
    row: list[Line] = []
    used = indent
    for word in words:
        needed = _count_line(word) + (1 if row else 0)
        if any(row) and width is not None and used + needed > width:
            yield _end_row(row, indent)
            row, used, indent, needed = [], hanging, hanging, _count_line(word)
        if word or row or used != hanging:
            row.append(word)
            used += needed
    yield _end_row(row, indent)


def _end_row(words: Sequence[Line], indent: int) -> Line:
    lead = ((" " * indent, Style.PLAIN),) if indent else ()
    return (*lead, *_break_freely(_join_words(words, Style.PLAIN)))


def join_lines(lines: Iterable[Line]) -> str:
    """Lines as plain text, each ended by a line break."""
    return "".join(read_plain(line) + "\n" for line in lines)


def clamp_ratio(ratio: float) -> float:
    """A ratio as the length of a bar: counters of several passes exceed 1 by a little, and NaN has no length.

    >>> clamp_ratio(1.02), clamp_ratio(float("nan")), clamp_ratio(0.123456)
    (1.0, 0.0, 0.1235)
    """
    return round(min(1.0, ratio), 4) if ratio > 0 else 0.0  # NaN is not above 0


def draw_bar(ratio: float, cells: int) -> str:
    """A bar in eighths of a character; more than nothing shows at least the thinnest stroke.

    >>> draw_bar(0.5, 4), draw_bar(0.001, 4), draw_bar(0.0, 4)
    ('██  ', '▏   ', '    ')
    """
    eighths = min(8 * cells, round(8 * cells * ratio)) if ratio > 0 else 0
    if ratio > 0:
        eighths = max(1, eighths)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[part] if part else "")).ljust(cells)
