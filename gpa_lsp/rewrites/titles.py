"""Words that titles of rewrites share."""

from collections.abc import Sequence

_LONGEST_EXPRESSION = 32
_MOST_NAMED = 3


def shorten(expression: str) -> str:
    """Code for a title: on one line, long code with an ellipsis.

    >>> shorten("a[i]\\n  / b"), len(shorten("a + " * 20))
    ('a[i] / b', 32)
    """
    words = " ".join(expression.split())
    return words if len(words) <= _LONGEST_EXPRESSION else f"{words[: _LONGEST_EXPRESSION - 1]}…"


def join_code(expressions: Sequence[str]) -> str:
    """A few pieces of code, as a title names them.

    >>> join_code(["a"]), join_code(["a", "b", "a"]), join_code(["a", "b", "c", "d"])
    ('`a`', '`a` and `b`', '`a`, `b`, `c` and others')
    """
    unique = [f"`{one}`" for one in dict.fromkeys(expressions)]
    if len(unique) > _MOST_NAMED:
        return f"{', '.join(unique[:_MOST_NAMED])} and others"
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} and {unique[-1]}"
