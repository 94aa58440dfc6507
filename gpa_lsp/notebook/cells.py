"""The cells of a notebook as compilers see them: :class:`Cell`, and the texts in it that may be compiled, :class:`CellText`."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

_DEVICE_MARK = "__global__"
_MAGIC_LINE = re.compile(r"^(\s*)[%!]", re.MULTILINE)
_OUR_MAGIC = re.compile(r"\A%%gpa\b[^\n]*(?:\n|\Z)")

_MOST_STRIPPED = 3  # Line ends behind a cell: IPython names it with them, and remembers it without

NameCell = Callable[[str], str]  # Python text of a cell → the file name IPython compiles it under


class Cell(Struct, frozen=True, kw_only=True):
    """One cell that was run."""

    number: int  # of its execution, as in ``In [3]``
    text: str  # as it was written
    # the same lines with those of magics and shells taken out, so that Python reads it and lines keep their numbers; None for cells in another
    # language
    python: str | None

    @property
    def label(self) -> str:
        """Label as notebooks show it."""
        return f"In [{self.number}]"


class CellText(Struct, frozen=True, kw_only=True):
    """A text of a cell that a compiler may have been given."""

    cell: Cell  # where it stands
    text: str  # what the compiler got
    lines_before: int  # of the cell, before its first line
    # last parts of the names it may be compiled under; none for a string, whose file has a name of the library's
    file_names: frozenset[str]

    @property
    def is_string(self) -> bool:
        """Whether it is CUDA C++ in a string."""
        return not self.file_names


def read_cell(number: int, text: str) -> Cell:
    r"""A cell from its text.

    >>> read_cell(3, "%%gpa\nx = 1\n!ls").python
    '\nx = 1\npass'
    >>> read_cell(4, "%%bash\nls").python is None
    True
    """
    body = _OUR_MAGIC.sub("\n", text, count=1)
    python = None if body.startswith("%%") else _blank_magics(body)
    return Cell(number=number, text=text, python=python)


def _blank_magics(text: str) -> str:
    """Lines of magics become ``pass``, where Python does not read the text as it is: a ``%`` may begin a line of an expression."""
    if _parse(text) is not None:
        return text
    lines = [f"{found[1]}pass" if (found := _MAGIC_LINE.match(line)) else line for line in text.split("\n")]
    return "\n".join(lines)


def list_texts(cell: Cell, name_cell: NameCell) -> Iterator[CellText]:
    """List the texts that compilers may have been given: the whole cell, and each string with a kernel in it."""
    if cell.python is None:
        return
    ours = _OUR_MAGIC.match(cell.text)
    body, lines_before = (cell.text[ours.end() :], 1) if ours else (cell.text, 0)
    yield CellText(
        cell=cell,
        text=body,
        lines_before=lines_before,
        file_names=frozenset(
            PurePosixPath(name_cell(body + "\n" * more).replace("\\", "/")).name for more in range(_MOST_STRIPPED + 1)
        ),
    )
    tree = _parse(cell.python)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _DEVICE_MARK in node.value:
            lines = (node.end_lineno or node.lineno) - node.lineno
            if (
                node.value.count("\n") == lines
            ):  # else line ends are escaped, and lines of the text have none of the cell
                yield CellText(cell=cell, text=node.value, lines_before=node.lineno - 1, file_names=frozenset())


def list_functions(text: CellText) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line, 1-based, of the functions that Python code defines; decorators are part of them."""
    tree = _parse(_blank_magics(text.text))
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield node.name, first, node.end_lineno or node.lineno


def choose_needed(cell: Cell, earlier: Sequence[Cell]) -> tuple[Cell, ...]:
    """The earlier cells that a cell needs in order to run by itself: those that gave its names their values, and what these need in turn.

    They stand in that order, without ``cell``. A cell that changes an object and names none is not found.
    """
    wanted = set(_list_names(cell, ast.Load))
    chosen: list[Cell] = []
    for one in reversed(earlier):
        bound = set(_list_names(one, ast.Store))
        if one.python is not None and wanted & bound:
            chosen.append(one)
            wanted = (wanted - bound) | set(_list_names(one, ast.Load))
    return tuple(reversed(chosen))


def _list_names(cell: Cell, context: type[ast.expr_context]) -> Iterator[str]:
    tree = None if cell.python is None else _parse(cell.python)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            yield node.id
        elif context is ast.Store and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif context is ast.Store and isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
