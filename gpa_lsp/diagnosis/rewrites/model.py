"""Rewrites: edits of one text that a person can take or leave (:class:`Rewrite`), and what they are made from."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.trees import SourceTree
from gpa_lsp.foundation.prose import Code, Sentence, list_of, say

if TYPE_CHECKING:
    from tree_sitter import Node


class TextPlace(Struct, frozen=True, kw_only=True, order=True):
    """A place between two characters."""

    line: int  # 1-based
    column: int  # characters (not bytes, not UTF-16 units) before it on its line


class TextEdit(Struct, frozen=True, kw_only=True, order=True):
    """Replacement of one piece of text by another."""

    start: TextPlace  # of the replaced text
    end: TextPlace  # of the replaced text; ``start`` for an insertion
    text: str  # the new text; its lines end as the document's do


class RewriteContext(Struct, frozen=True, kw_only=True):
    """Facts about the code to rewrite, besides its text. ``None`` is unknown."""

    optimizer: str  # that gave the advice; name in the catalogue of optimizers
    kernel: str = ""  # the kernel's own name, without namespaces, template arguments and parameters; empty when unknown
    unroll_copies: int | None = None  # the unroll factor that the loop should have
    threads_per_block: int | None = None  # the most that any launch has
    min_blocks: int | None = None  # blocks that an SM should hold at once
    max_registers: int | None = None  # per thread, with which it can


class Rewrite(Struct, frozen=True, kw_only=True):
    """Change of the source that the text proves applicable; its author decides whether it pays and whether its promises hold."""

    title: Sentence  # what it does, in the imperative, without a full stop
    explanation: Sentence  # what it gains and what it costs or promises, plain sentences
    edits: tuple[TextEdit, ...]  # in the order of the text, not overlapping
    changes_results: bool = False  # numbers may come out differently
    is_preferred: bool = False  # safe to take: no result changes, no promise is made
    # those of its kind, filled in by :mod:`gpa_lsp.diagnosis.rewrites.find`
    name: str = ""  # in the catalogue, e.g. ``unroll_loop``
    optimizers: tuple[str, ...] = ()  # names of optimizers whose advice it answers
    is_remedy: bool = True  # see :class:`RewriteKind`


class Site(Struct, frozen=True, kw_only=True):
    """Lines of a text for which rewrites are looked for."""

    tree: SourceTree  # the text
    lines: frozenset[int]  # the lines the advice is about, 1-based
    context: RewriteContext


class RewriteKind(Struct, frozen=True, kw_only=True):
    """One kind of rewrite, a member of the catalogue :mod:`gpa_lsp.diagnosis.rewrites.kinds`."""

    language: str  # of the texts it can change, as in ``languages.toml``
    optimizers: tuple[str, ...]  # names of optimizers whose advice it answers
    propose: Callable[[Site], Iterator[Rewrite]]  # finds what can be changed at a site
    # the edit is all that the advice asks for there; False where it only enables the compiler, and work by hand can still help
    is_remedy: bool = True


def replace_node(tree: SourceTree, node: "Node", text: str) -> TextEdit:
    """Replace a node by other text."""
    return TextEdit(start=_find_start(tree, node), end=_find_end(tree, node), text=text)


def replace_between(tree: SourceTree, before: "Node", behind: "Node", text: str) -> TextEdit:
    """Replace all text between two nodes."""
    return TextEdit(start=_find_end(tree, before), end=_find_start(tree, behind), text=text)


def insert_before(tree: SourceTree, node: "Node", text: str) -> TextEdit:
    """Insert text directly in front of a node."""
    start = _find_start(tree, node)
    return TextEdit(start=start, end=start, text=text)


def insert_behind(tree: SourceTree, node: "Node", text: str) -> TextEdit:
    """Insert text directly behind a node."""
    end = _find_end(tree, node)
    return TextEdit(start=end, end=end, text=text)


def insert_line_above(
    tree: SourceTree, node: "Node", text: str, *, indentation: bytes, row: int | None = None
) -> TextEdit:
    """Insert a line above the one on which a node begins.

    ``row``: 0-based line above which it is put instead; None for the node's own.
    """
    end = find_line_end(tree.content, node.start_byte - node.start_point[1])
    place = TextPlace(line=(node.start_point[0] if row is None else row) + 1, column=0)
    return TextEdit(start=place, end=place, text=f"{indentation.decode('utf-8', 'replace')}{text}{end}")


def read_indentation(tree: SourceTree, node: "Node") -> bytes | None:
    """The white space in front of a node; None where something else stands before it on its line."""
    before = tree.content[node.start_byte - node.start_point[1] : node.start_byte]
    return None if before.strip() else before


def find_line_end(content: bytes, position: int) -> str:
    r"""Line end of the line at a byte: ``\n`` or ``\r\n``; for the last line that of the first one.

    >>> find_line_end(b"a\r\nb", 0), find_line_end(b"a\r\nb", 3), find_line_end(b"a", 0)
    ('\r\n', '\r\n', '\n')
    """
    end = content.find(b"\n", position)
    if end < 0:
        end = content.find(b"\n")
    return "\r\n" if end > 0 and content[end - 1 : end] == b"\r" else "\n"


def _find_start(tree: SourceTree, node: "Node") -> TextPlace:
    return _place(tree, node.start_byte, node.start_point[0], node.start_point[1])


def _find_end(tree: SourceTree, node: "Node") -> TextPlace:
    return _place(tree, node.end_byte, node.end_point[0], node.end_point[1])


def _place(tree: SourceTree, position: int, row: int, column_bytes: int) -> TextPlace:
    before = tree.content[position - column_bytes : position]
    return TextPlace(line=row + 1, column=len(before.decode("utf-8", "replace")))


def apply_edits(text: str, edits: Sequence[TextEdit]) -> str:
    r"""The text with edits made.

    Args:
        text: lines end with ``\n`` or ``\r\n``.
        edits: not overlapping; those at one place are made in their order.

    Raises:
        ValueError: they overlap, or are not in the text.

    >>> place = TextPlace(line=2, column=1)
    >>> apply_edits("a\nbc\n", [TextEdit(start=place, end=place, text="-")])
    'a\nb-c\n'
    """
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    parts, position = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        start, end = (_find_offset(text, starts, place) for place in (edit.start, edit.end))
        if not position <= start <= end:
            raise ValueError(f"{edit} overlaps another edit")
        parts += [text[position:start], edit.text]
        position = end
    return "".join([*parts, text[position:]])


def _find_offset(text: str, starts: Sequence[int], place: TextPlace) -> int:
    if not 1 <= place.line < len(starts):
        raise ValueError(f"{place} is not in the text")
    offset = starts[place.line - 1] + place.column
    if not starts[place.line - 1] <= offset < starts[place.line]:
        raise ValueError(f"{place} is not on its line")
    return min(offset, len(text))


_LONGEST_EXPRESSION = 32
MOST_NAMED = 3  # Pieces of code that a title names


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
    return list_of(unique if len(unique) <= MOST_NAMED else [*unique[:MOST_NAMED], "others"])


def title_literals(literals: Sequence[str], *, is_rounded: bool) -> Sentence:
    """Title of a rewrite that writes literals in single precision.

    >>> title_literals(["0.1f"], is_rounded=True)
    'Write `0.1f` (rounds to float)'
    """
    rounds = " (rounds to float)" if is_rounded else ""
    return say("Write {literals}{rounds}", literals=join_code(literals), rounds=rounds)
