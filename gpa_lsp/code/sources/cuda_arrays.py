"""Where a function of a CUDA C++ text declares an array of its own."""

import re

from gpa_lsp.code.sources.cuda_declarations import Declaration, read_names
from gpa_lsp.code.sources.cuda_functions import find_functions_on_lines
from gpa_lsp.code.sources.trees import read_tree

_ELSEWHERE = frozenset({"__shared__", "__constant__", "static", "extern"})  # Arrays of these are not a thread's own

_NAME = re.compile(r"\b[A-Za-z_]\w*")


def find_array_declaration(file: str, text: str, line: int, name: str) -> int | None:
    """The line on which the array is declared that a name means on a line.

    Args:
        line: 1-based, where the name is used.

    Returns:
        1-based; None where no array of that name is in sight there, or several are, or it is shared or static.

    >>> text = "__global__ void k(int* x) {\\n  int counts[16];\\n  __shared__ int s[9];\\n  counts[*x] = s[*x];\\n}"
    >>> find_array_declaration("k.cu", text, 4, "counts"), find_array_declaration("k.cu", text, 4, "s"), find_array_declaration("k.cu", text, 4, "x")
    (2, None, None)
    """
    tree = read_tree(file, text)
    if tree is None:
        return None
    for function in find_functions_on_lines(tree, frozenset({line})):
        names = read_names(tree, function.node.start_byte)
        declared = () if names is None else names.by_name.get(name, ())
        found = [one for one in declared if one.is_array and _is_in_sight(one, line)]
        if len(found) == 1:
            is_elsewhere = bool(found[0].qualifiers & _ELSEWHERE) or any(
                child.type in _ELSEWHERE for child in found[0].node.children
            )
            return None if is_elsewhere else found[0].node.start_point[0] + 1
    return None


def list_line_arrays(file: str, text: str, line: int) -> tuple[tuple[int, str], ...]:
    """The arrays of its own that a function names on a line: the line of each one's declaration, and its name, in the order they stand there.

    Args:
        file: the text's name, for the language.
        text: of the whole file.
        line: 1-based.

    >>> list_line_arrays("k.cu", "__global__ void k(int* x) {\\n  int a[16], b[8];\\n  fill(a, b, x); // c\\n}", 3)
    ((2, 'a'), (2, 'b'))
    """
    lines = [] if read_tree(file, text) is None else text.split("\n")  # a text that is not parsed may be very long
    if not 0 < line <= len(lines):
        return ()
    names = dict.fromkeys(_NAME.findall(lines[line - 1].partition("//")[0]))
    found = ((find_array_declaration(file, text, line, name), name) for name in names)
    return tuple((declared, name) for declared, name in found if declared is not None)


def _is_in_sight(declaration: Declaration, line: int) -> bool:
    scope = declaration.scope
    first = declaration.node.start_point[0] + 1
    return first <= line and scope.start_point[0] + 1 <= line <= scope.end_point[0] + 1
