"""Code as titles and explanations of rewrites name it."""

from collections.abc import Sequence

from gpa_lsp.foundation.prose import Code, Sentence, list_of

_LONGEST_EXPRESSION = 32
_MOST_NAMED = 3


def quote(code: str) -> Sentence:
    """A piece of code.

    >>> quote("a[i]")
    '`a[i]`'
    """
    return Sentence((Code(text=code),))


def shorten(expression: str) -> Sentence:
    """Code for a title: on one line, long code with an ellipsis.

    >>> shorten("a[i]\\n  / b"), len(shorten("a + " * 20))
    ('`a[i] / b`', 34)
    """
    words = " ".join(expression.split())
    return quote(words if len(words) <= _LONGEST_EXPRESSION else f"{words[: _LONGEST_EXPRESSION - 1]}…")


def join_code(expressions: Sequence[str]) -> Sentence:
    """A few pieces of code, as a title names them.

    >>> join_code(["a"]), join_code(["a", "b", "a"]), join_code(["a", "b", "c", "d"])
    ('`a`', '`a` and `b`', '`a`, `b`, `c` and others')
    """
    unique = [quote(one) for one in dict.fromkeys(expressions)]
    return list_of(unique if len(unique) <= _MOST_NAMED else [*unique[:_MOST_NAMED], "others"])
