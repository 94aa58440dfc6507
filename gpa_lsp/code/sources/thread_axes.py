"""Which axes of the block an index of CUDA C++ depends on, as far as the spelling above its line tells."""

import re

_AXIS = re.compile(r"\bthreadIdx\s*\.\s*([xyz])\b")
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Up to the end of a statement or the next declarator of a declaration
_VALUE = r"((?:(?!,\s*\*?\s*[A-Za-z_]\w*\s*=(?!=))[^;])*)"

_MOST_NAMES = 64  # Looked at for one expression


def find_thread_axes(text: str, line: int, expression: str) -> frozenset[str]:
    """The axes of ``threadIdx`` in an expression, or in what its names were given before.

    Every value that a name was ever given above the line counts, whatever the path to it: rather an axis too many than one too few.

    Args:
        text: of the source.
        line: 1-based, of the expression.
        expression: e.g. ``a[row * n + k]``.

    Returns:
        Of ``x``, ``y`` and ``z``; empty where there are none, or where they come from what cannot be seen here.

    >>> source = "int row = threadIdx.y, i = threadIdx.x;\\nx = a[row * n + k] * b[k + threadIdx.x];"
    >>> sorted(find_thread_axes(source, 2, "a[row * n + k]")), sorted(find_thread_axes(source, 2, "b[k + threadIdx.x]"))
    (['y'], ['x'])
    """
    above = _COMMENT.sub(" ", "\n".join(text.splitlines()[:line]))
    axes: set[str] = set()
    asked, waiting = set[str](), [expression]
    while waiting and len(asked) < _MOST_NAMES:
        part = waiting.pop()
        axes.update(_AXIS.findall(part))
        for name in set(_NAME.findall(part)) - asked:
            asked.add(name)
            given = re.finditer(rf"(?<![.\w]){name}\s*(?:[-+*/%&|^]|<<|>>)?=(?!=){_VALUE}", above)
            waiting.extend(found[1] for found in given)
    return frozenset(axes)
