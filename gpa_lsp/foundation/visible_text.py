r"""The characters that a text for people may hold: one definition for every sink.

Kernels, files, devices, metrics and rules are named by the maker of the profile. A name may drive a terminal (ESC, CSI), turn the direction of
writing, end a line and begin a heading, hide, or be no text at all (half a character). So whatever prints, draws or sends text to people passes
it through :func:`make_visible` last: what would act or not be seen is written out as Python writes it, ``\x1b`` or ``\u202e``, and all else
stays as it is, in every script. Doing it twice does no harm. JSON is not such a sink: it keeps the truth, escaped by its own rules.
"""

import re
from collections.abc import Callable
from typing import Any

_UNSEEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls of terminals, and ends of lines
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u3164\ufeff\uffa0"  # take no space, or look like one
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # direction of writing
    "\u2028\u2029\ufff9-\ufffb"  # ends of lines and of annotations
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # no characters
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # steer shorthand, music, tags
    "\u200c\u200d"
    "]"
)
# Zero-width joiners where they join: letters of Arabic and Indic scripts, and emoji. Compiled when a text has one, which is seldom.
_JOINED = "[\u0600-\u1cff\u2190-\u3299\ufe0f\U0001f000-\U0001faff][\u200c\u200d][\u0600-\u1cff\u2190-\u3299\U0001f000-\U0001faff]"

_WHITE_SPACE = re.compile(r"[ \t\n\v\f\r]+")
_LINE_ENDS = "\n\t"
_JOINERS = "\u200c\u200d"


_SEPARATOR = " · "
# What must not end a text that was cut: part of a number, and signs that wait for what follows
_BROKEN_END = re.compile(r"[\s·,;:(\[“]*(?:[≥≤~±+−-]?\d[\d.,:×–−%/-]*)?[\s·,;:(\[“]*$")


def shorten(text: str, room: int, keep: str = "") -> str:
    """A text in at most *room* characters. Whole parts between dots go first, from the end, then words; a number is never cut.

    Args:
        text: parts with " · " between them, or a sentence.
        room: characters at most, the kept part included.
        keep: a last part that is always there, such as one that says how far the others can be trusted.

    >>> shorten("predicted: DRAM limits · 8.0 B in, 4.0 B out · ≥12.3 µs", 40, "22 of 16,384 blocks")
    'predicted: DRAM… · 22 of 16,384 blocks'
    >>> shorten("8 kernels from 16,384 profiles", 18)
    '8 kernels from…'
    """
    tail = f"{_SEPARATOR}{keep}" if keep else ""
    left = room - len(tail)
    if len(text) <= left:
        return f"{text}{tail}"
    parts = text.split(_SEPARATOR)
    while len(parts) > 1 and len(_SEPARATOR.join(parts)) + len(_SEPARATOR) + 1 > left:
        parts.pop()
    whole = _SEPARATOR.join(parts)
    if len(whole) + len(_SEPARATOR) + 1 <= left:
        return f"{whole}{_SEPARATOR}…{tail}"
    head = whole[: max(left - 1, 0)]
    if whole[len(head) : len(head) + 1].strip() and " " in head:
        head = head[: head.rindex(" ")]
    return f"{_BROKEN_END.sub('', head) or head}…{tail}"


def make_visible(text: str) -> str:
    r"""A text for one line, in which nothing acts and nothing hides.

    >>> print(make_visible("k\x1b[2Jernel\n# heading\u202e\ud800"), make_visible("カーネル µ×é"))
    k\x1b[2Jernel\n# heading\u202e\ud800 カーネル µ×é
    """
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_write_out, text)


def make_lines_visible(text: str) -> str:
    r"""The same for a text of several lines: line ends and tabs stay.

    >>> make_lines_visible("a\tb\nc\x1b")
    'a\tb\nc\\x1b'
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(lambda found: found[0] if found[0] in _LINE_ENDS else _write_out(found), text)


def make_one_line(text: str) -> str:
    r"""The same for prose and source lines, whose white space means nothing but a gap: each run of it is one space.

    >>> print(make_one_line(" two\n\t lines\x1b"))
    two lines\x1b
    """
    return make_visible(_WHITE_SPACE.sub(" ", text).strip(" "))


def make_values_visible(value: Any, make: Callable[[str], str] = make_lines_visible) -> Any:
    r"""The same for every text in a JSON value, the names of members too.

    >>> make_values_visible({"a\x1b": [1, "b\u202e", None]})
    {'a\\x1b': [1, 'b\\u202e', None]}
    """
    if isinstance(value, str):
        return make(value)
    if isinstance(value, dict):
        return {make(name): make_values_visible(one, make) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [make_values_visible(one, make) for one in value]
    return value


def keep_length(text: str) -> str:
    r"""The same for a text whose columns are known: what would be written out is replaced by one character.

    >>> keep_length("A\nB")
    'A\ufffdB'
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(lambda found: found[0] if _joins(found) else "\N{REPLACEMENT CHARACTER}", text)


def _write_out(found: re.Match[str]) -> str:
    return found[0] if _joins(found) else ascii(found[0])[1:-1]


def _joins(found: re.Match[str]) -> bool:
    return found[0] in _JOINERS and re.compile(_JOINED).match(found.string, max(0, found.start() - 1)) is not None
