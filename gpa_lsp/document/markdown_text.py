"""What may stand in Markdown as text and as code, whatever names are in it."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import quote

from gpa_lsp.foundation.prose import Code, Place, Sentence
from gpa_lsp.foundation.visible_text import make_one_line, make_visible

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
_BLOCK = re.compile(r"\A(?:#{1,6}(?=\s|\Z)|[-+*](?=\s|\Z)|[>|]|={1,}\Z|-{2,}\Z|(?:[-*_]\s*){3,}\Z|`{3,}|~{3,})")
_NUMBERED = re.compile(r"\A(\d{1,9})([.)])(?=\s|\Z)")
_CODE = re.compile(r"(`[^`]+`)")
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


def write_sentence(text: str, link: Callable[[Place], str | None] | None = None) -> str:
    r"""A sentence as Markdown: its words escaped, its code marked, its places links.

    Of a plain text, as a package of others or an older file gives it, what stands between single backticks is code.

    Args:
        text: mostly a :class:`Sentence`.
        link: from a place to its URI; None, or a place it knows none of, leaves the words.

    >>> from gpa_lsp.foundation.prose import say
    >>> place = Place(file="/k.cu", line=3, shown_file="k.cu")
    >>> write_sentence(say("Put {code} into a*b at {place}.", code=Code(text="a[i * n]"), place=place), lambda place: "file:///k.cu#3")
    'Put `a[i * n]` into a\\*b at [line 3 of k.cu](file:///k.cu#3).'
    >>> write_sentence("put `a[i * n]` into a*b")
    'put `a[i * n]` into a\\*b'
    """
    if not isinstance(text, Sentence):
        return _escape_prose(make_one_line(text))
    written: list[str] = []
    words: list[str] = []
    for part in text.parts:
        marked = _mark_up(part, link) if isinstance(part, Code | Place) else None
        if marked is None:
            words.append(str(part))
            continue
        written.extend((_escape_words(words), marked))
        words = []
    return "".join((*written, _escape_words(words))).strip(" ")


def write_cell(text: str, link: Callable[[Place], str | None] | None = None) -> str:
    r"""A sentence in a cell of a table, where a stroke ends the cell even within code.

    >>> write_cell("a | `b|c`")
    'a \\| `b\\|c`'
    """
    return _STROKE.sub(r"\|", write_sentence(text, link))


def _mark_up(part: Code | Place, link: Callable[[Place], str | None] | None) -> str | None:
    """A value that is more than words; None for a place without an address."""
    if isinstance(part, Code):
        return mark_code(part.text)
    uri = None if link is None else link(part)
    return None if uri is None else f"[{escape_markdown(str(part))}]({uri.replace('(', '%28').replace(')', '%29')})"


def _escape_words(words: list[str]) -> str:
    return _escape_prose(make_visible(_WHITE_SPACE.sub(" ", "".join(words))))


def _escape_prose(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(part if position % 2 else _escape(part) for position, part in enumerate(parts))


def quote_code(text: str) -> str:
    r"""Code between as many backticks as it takes, fit for a table's cell.

    >>> quote_code("LDG.E R2, [R4.64]"), quote_code("a|b")
    ('`LDG.E R2, [R4.64]`', '`a\\|b`')
    """
    return mark_code(text.replace("|", "\\|"))


def mark_code(text: str) -> str:
    r"""The same outside of tables, or for a writer of tables that escapes the ends of cells itself.

    >>> mark_code("|R1|"), mark_code("a`b")
    ('`|R1|`', '`` a`b ``')
    """
    plain = make_visible(text).strip(" ")
    if "`" not in plain:
        return f"`{plain}`"
    fence = "`" * (1 + max(len(run) for run in _BACKTICKS.findall(plain)))
    return f"{fence} {plain} {fence}"


def begin_paragraph(text: str) -> str:
    r"""A line of ours that may begin with a name: no heading, list, quote, table or fence begins there. What is marked up in it stays so.

    >>> begin_paragraph("# k\n: **12 %**"), begin_paragraph("2. of 3"), begin_paragraph("-lineinfo")
    ('\\# k : **12 %**', '2\\. of 3', '-lineinfo')
    """
    return _NUMBERED.sub(r"\1\\\2", _BLOCK.sub(r"\\\g<0>", make_one_line(text)))


def _escape(line: str) -> str:
    return _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line))
