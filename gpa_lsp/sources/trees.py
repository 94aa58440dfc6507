"""Syntax trees of source texts: parsed once, kept for the next question, and read without recursion."""

from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from gpa_lsp.sources.directives import hide_directives
from gpa_lsp.sources.languages import Language, find_language, load_parser

if TYPE_CHECKING:
    from tree_sitter import Node

LARGEST_SOURCE_BYTES = 4 << 20
"""Larger texts are not parsed: nobody wrote them, and a hint is not worth the time."""

MOST_NODES = 20_000
"""Nodes looked at for one question; code that is longer (generated tables) is read up to there."""

_KEPT_TREES = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceTree:
    """A text and its syntax tree. Two of them are equal when they are the same object, so that facts about one can be kept beside it.

    Attributes:
        language: of the text.
        content: the text in UTF-8; nodes count its bytes. Where the language has pragmas, the tree does not know them: there are blanks.
        root: the whole text's node.
    """

    language: Language
    content: bytes
    root: "Node"

    @property
    def line_count(self) -> int:
        """Lines, the empty one behind a last line end included."""
        return self.root.end_point[0] + 1


def read_tree(file: str, text: str) -> SourceTree | None:
    """The tree of a text; the last few are kept, because questions come for many lines of one file.

    Args:
        file: its name, for the language.
        text: of the whole file.

    Returns:
        None for a language without a grammar here, or whose grammar is not installed, and for a text that is too large. A text that does not
        parse is no error: its tree has nodes that say so (:func:`is_sound`).

    >>> read_tree("k.cu", "int a;").root.type, read_tree("k.unknown", "int a;")
    ('translation_unit', None)
    """
    language = find_language(file)
    if language is None or len(text) > LARGEST_SOURCE_BYTES:
        return None
    key = (language.name, text)
    with _LOCK:
        kept = _TREES.get(key)
        if kept is None:
            parser = load_parser(language)
            if parser is None:
                return None
            content = text.encode("utf-8", "replace")
            parsed = hide_directives(content) if language.has_pragmas else content
            kept = SourceTree(language=language, content=content, root=parser.parse(parsed).root_node)
            _TREES[key] = kept
        _TREES.move_to_end(key)
        while len(_TREES) > _KEPT_TREES:
            _TREES.popitem(last=False)
        return kept


def read_text(node: "Node | None") -> str:
    """The source text of a node; empty without one."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def walk(root: "Node", most: int = MOST_NODES) -> Iterator["Node"]:
    """A node and the named nodes below it, outermost first and in the order of the text; at most so many."""
    stack = [root]
    for _ in range(most):
        if not stack:
            return
        node = stack.pop()
        yield node
        stack.extend(reversed(node.named_children))


def walk_lines(root: "Node", lines: Collection[int]) -> Iterator["Node"]:
    """Nodes that begin on some lines (1-based), outermost first and in the order of the text. Other lines are passed over as a whole."""
    rows = sorted({line - 1 for line in lines})
    if not rows:
        return
    stack = [root]
    for _ in range(MOST_NODES):
        if not stack:
            return
        node = stack.pop()
        if node.start_point[0] + 1 in lines:
            yield node
        stack.extend(child for child in reversed(node.named_children) if _touches(child, rows))


def _touches(node: "Node", rows: list[int]) -> bool:
    first, last = node.start_point[0], node.end_point[0]
    return any(first <= row <= last for row in rows)


def list_ancestors(node: "Node") -> Iterator["Node"]:
    """The nodes around a node, innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def is_sound(node: "Node") -> bool:
    """The node parsed as a whole, and stands in nothing that did not.

    >>> [is_sound(read_tree("k.cu", text).root.children[0]) for text in ("int a;", "int a", "void f( {} }")]
    [True, False, False]
    """
    return not node.has_error and not any(around.is_error for around in list_ancestors(node))


_TREES: OrderedDict[tuple[str, str], SourceTree] = OrderedDict()
_LOCK = Lock()
