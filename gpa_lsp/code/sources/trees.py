"""Syntax trees of source texts: parsed once, kept for the next question, and read without recursion."""

import importlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from posixpath import splitext
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct, convert

from gpa_lsp.code.sources.directives import hide_directives
from gpa_lsp.foundation.toml_tables import read_own_table

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

logger = logging.getLogger(__name__)


class Language(Struct, frozen=True, kw_only=True):
    """Node types and names of a language's grammar; see the head of ``languages.toml``."""

    name: str  # as in the table
    suffixes: tuple[str, ...]  # of file names, lower case
    module: str  # Python package of the grammar
    subscripts: frozenset[str] = frozenset()  # node types of an indexed access
    pointers: frozenset[str] = frozenset()  # node types of a pointer operation
    dereference: str = ""  # how a pointer operation begins that dereferences; empty where there is none
    assignments: frozenset[str] = frozenset()  # node types of an assignment
    compound: frozenset[str] = frozenset()  # of those, the ones that read what they write
    compound_operator: str = ""  # field whose text other than ``=`` says the same; empty where there is none
    declarations: frozenset[str] = frozenset()  # node types of a variable with a value
    binary: frozenset[str] = frozenset()  # node types of a binary operation
    calls: frozenset[str] = frozenset()  # node types of a call
    load_calls: frozenset[str] = frozenset()  # functions that load
    store_calls: frozenset[str] = frozenset()  # functions that store
    floats: frozenset[str] = frozenset()  # node types of a floating-point literal
    # what a double-precision literal looks like; None where literals say nothing about precision
    double_pattern: str | None = None
    loops: frozenset[str] = frozenset()  # node types of a loop
    functions: frozenset[str] = frozenset()  # names of functions that look like arrays
    has_pragmas: bool = False  # lines that begin with ``#pragma`` may stand anywhere, and are not part of the grammar


def find_language(file: str) -> Language | None:
    """The language of a file by its suffix; None for one without a grammar here.

    >>> find_language("/src/k.cu").name, find_language("k.F90").name, find_language("k.ptx") is None
    ('cuda', 'fortran', True)
    """
    return _languages_by_suffix().get(splitext(file.replace("\\", "/"))[1].lower())


@cache
def load_parser(language: Language) -> "Parser | None":
    """A parser of the language; None where its grammar is not installed, or does not match the parser's version: hints then name lines only.

    The grammar is imported here, not at start: most runs show no hint that needs one.
    """
    try:
        from tree_sitter import Language as Grammar  # see above
        from tree_sitter import Parser

        return Parser(Grammar(importlib.import_module(language.module).language()))
    except (ImportError, ValueError) as error:
        logger.warning("sources in %s are not parsed: %s", language.name, error)
        return None


@cache
def _languages_by_suffix() -> dict[str, Language]:
    table = read_own_table(Path(__file__).with_name("languages.toml"))
    languages = [convert({**row, "name": name}, Language) for name, row in table.items()]
    return {suffix: language for language in languages for suffix in language.suffixes}


# Larger texts are not parsed: most are generated, and a hint is not worth the time
LARGEST_SOURCE_BYTES = 512 << 10

# Without a statement's or a block's end: the grammars go into nested expressions by recursion, and a text made of one long expression would end the
# process. Source: a cast in a cast in a cast, in C++, needs about 400,000 bytes for that with a stack of 8 MiB.
_LONGEST_STRETCH_BYTES = 200_000

_MOST_PARSE_S = 0.5
_CERTAIN_BYTES = 4096  # Texts up to here are parsed without a limit on time

_END = re.compile(rb"[;{}]")

# what GCC and nvcc call C's qualifier; the grammar takes it for the name of what it stands before
_RESTRICT = re.compile(rb"\b__restrict\b")

_BEHIND_ANY_LINE = (1 << 31) - 1

MOST_NODES = 20_000  # Nodes looked at for one question; code that is longer (generated tables) is read up to there

_KEPT_TREES = 16


class SourceTree(Struct, frozen=True, kw_only=True, eq=False):
    """A text and its syntax tree, compared by identity, so that facts about one can be cached."""

    language: Language  # of the text
    content: bytes  # the text in UTF-8; nodes count its bytes. Where the language has pragmas, the tree does not know them: there are blanks.
    root: "Node"  # the whole text's node

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
        None for a language without a grammar here, or whose grammar is not installed, and for a text that is too large or too hard to parse. A
        text that does not parse is no error: its tree has nodes that say so (:func:`is_sound`).

    >>> read_tree("k.cu", "int a;").root.type, read_tree("k.unknown", "int a;")
    ('translation_unit', None)
    """
    language = find_language(file)
    if language is None or len(text) > LARGEST_SOURCE_BYTES:
        return None
    key = (language.name, text)
    with _LOCK:
        if key not in _TREES:
            parser = load_parser(language)
            if parser is None:
                return None
            content = text.encode("utf-8", "replace")
            parsed = content
            if language.has_pragmas:
                parsed = _RESTRICT.sub(b"restrict  ", hide_directives(content)).replace(b"__align__", b"alignas  ")
            is_hard = _is_hard(parser, parsed)
            root = None if is_hard else parser.parse(parsed).root_node
            _TREES[key] = None if root is None else SourceTree(language=language, content=content, root=root)
        _TREES.move_to_end(key)
        while len(_TREES) > _KEPT_TREES:
            _TREES.popitem(last=False)
        return _TREES[key]


def _is_hard(parser: "Parser", content: bytes) -> bool:
    """Whether parsing a text would take too long or nest too deeply; editors ask about it at every move of the cursor."""
    if len(content) <= _CERTAIN_BYTES:
        return False
    if max(map(len, _END.split(content))) > _LONGEST_STRETCH_BYTES:
        return True
    latest_s = time.thread_time() + _MOST_PARSE_S
    is_late = False

    def read(start: int, place: object) -> bytes:
        nonlocal is_late
        is_late = is_late or time.thread_time() > latest_s
        return b"" if is_late else content[start : start + _CERTAIN_BYTES]

    parser.parse(read)
    return is_late


def read_text(node: "Node | None") -> str:
    """The source text of a node; empty without one."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def part(node: "Node | None", field: str) -> "Node | None":
    """The child in a field of a node; None without either."""
    return None if node is None else node.child_by_field_name(field)


def list_parts(node: "Node | None") -> "list[Node]":
    """The named children of a node but comments; none without one."""
    return [] if node is None else [child for child in node.named_children if child.type != "comment"]


def walk(root: "Node | None", most: int = MOST_NODES) -> Iterator["Node"]:
    """A node and the named nodes below it, outermost first and in the order of the text; at most so many, and none without it."""
    stack = [] if root is None else [root]
    for _ in range(most):
        if not stack:
            return
        node = stack.pop()
        yield node
        stack.extend(reversed(node.named_children))


def find_nodes_at(tree: SourceTree, letters: bytes) -> Iterator["Node"]:
    """The smallest node at each place where some letters stand, in the order of the text."""
    position = tree.content.find(letters)
    while position >= 0:
        node = tree.root.descendant_for_byte_range(position, position + len(letters))
        if node is not None:
            yield node
        position = tree.content.find(letters, position + len(letters))


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
        stack.extend(reversed(_list_touching(node, rows)))


def _list_touching(node: "Node", rows: list[int]) -> list["Node"]:
    """The named children that reach some rows. Those before the first of them are passed over in one step: a file may have thousands."""
    found: list[Node] = []
    cursor = node.walk()
    is_there = cursor.goto_first_child_for_point((rows[0] - 1, _BEHIND_ANY_LINE) if rows[0] else (0, 0)) is not None
    while is_there and (child := cursor.node) is not None and child.start_point[0] <= rows[-1]:
        if child.is_named and _touches(child, rows):
            found.append(child)
        is_there = cursor.goto_next_sibling()
    return found


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
    """Whether a node parsed without errors and is in no node that did not.

    >>> [is_sound(read_tree("k.cu", text).root.children[0]) for text in ("int a;", "int a", "void f( {} }")]
    [True, False, False]
    """
    return not node.has_error and not any(around.is_error for around in list_ancestors(node))


_TREES: OrderedDict[tuple[str, str], SourceTree | None] = OrderedDict()
_LOCK = Lock()
