"""Names and source lines as parts of one line of a document, whatever is in them."""

import re

_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""Characters that end a line somewhere, turn the direction of writing, or are no characters."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def make_plain(text: str) -> str:
    r"""The text with white space made single spaces and what would break a line replaced.

    >>> make_plain("\tint  i = 0;\x0b // a\u2028b")
    'int i = 0; // a b'
    >>> make_plain("evil\x00name")
    'evil\ufffdname'
    """
    return _BREAKING.sub(_REPLACEMENT, " ".join(text.split()))


def keep_length(text: str) -> str:
    r"""The same for a text whose columns are known: each such character is replaced by one.

    >>> keep_length("A\nB")
    'A\ufffdB'
    """
    return text if text.isascii() and text.isprintable() else _BREAKING.sub(_REPLACEMENT, text)
