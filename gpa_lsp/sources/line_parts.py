"""What one line of source does, as its author wrote it: the expressions that load, store, divide and call on it."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from gpa_lsp.sources.languages import Language, find_language, load_parser

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

LARGEST_SOURCE_BYTES = 4 << 20
"""Larger texts are not parsed: nobody wrote them, and a hint is not worth the time."""

_KEPT_TREES = 16
_MOST_NODES = 20_000
"""Nodes looked at per line; lines that are longer (generated tables) are read up to there."""

_LONGEST_EXPRESSION = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LineParts:
    """Expressions that begin on one line, in the order they stand there, each once; long ones are shortened with an ellipsis.

    Attributes:
        loads: indexed or dereferenced values that are read.
        stores: indexed or dereferenced places that are written.
        divisions: binary operations with ``/`` or ``%`` as a whole.
        divisors: what those divide by; same length.
        calls: names of called functions.
        doubles: literals of double precision.
        assigned: names of plain variables the line assigns or declares.
        begins_loop: a loop statement begins here.
    """

    loads: tuple[str, ...]
    stores: tuple[str, ...]
    divisions: tuple[str, ...]
    divisors: tuple[str, ...]
    calls: tuple[str, ...]
    doubles: tuple[str, ...]
    assigned: tuple[str, ...]
    begins_loop: bool


def read_line_parts(file: str, text: str, line: int) -> LineParts | None:
    """What a line does.

    Args:
        file: its name, for the language.
        text: of the whole file, as it was compiled.
        line: 1-based.

    Returns:
        None for a language without a grammar here, or whose grammar is not installed, for a text that is too large, and for a line the text
        does not have. Text that does not parse is no error: what could be recognised on the line is returned.

    >>> parts = read_line_parts("k.cu", "void f() {\\n  float a = x[i] / 2.0 + s->y[j];\\n}", 2)
    >>> parts.loads, parts.divisors, parts.doubles, parts.assigned
    (('x[i]', 's->y[j]'), ('2.0',), ('2.0',), ('a',))
    """
    language = find_language(file)
    if language is None or len(text) > LARGEST_SOURCE_BYTES:
        return None
    tree = _parse(language, text)
    if tree is None:
        return None
    source_lines = tree.root_node.end_point[0] + 1
    if not 0 < line <= source_lines:
        return None
    found = _Parts(language)
    for node in _walk_line(tree.root_node, line - 1):
        found.look_at(node)
    return found.gather()


@dataclass(slots=True)
class _Parts:
    """What has been seen of a line; ``written`` holds nodes that are the left side of a plain assignment."""

    language: Language
    loads: dict[str, None] = field(default_factory=dict)
    stores: dict[str, None] = field(default_factory=dict)
    divisions: dict[str, str] = field(default_factory=dict)
    calls: dict[str, None] = field(default_factory=dict)
    doubles: dict[str, None] = field(default_factory=dict)
    assigned: dict[str, None] = field(default_factory=dict)
    begins_loop: bool = False
    passed: set[int] = field(default_factory=set)

    def look_at(self, node: "Node") -> None:
        kind, language = node.type, self.language
        if kind in language.assignments or kind in language.declarations:
            self._look_at_assignment(node)
        if self._is_access(node) and node.id not in self.passed:
            self.loads[_shorten(node)] = None
            self._pass_over(node)
        if kind in language.calls and not self._is_access(node):
            self._look_at_call(node)
        if kind in language.binary:
            self._look_at_operation(node)
        if kind in language.floats and language.double_pattern and language.double_pattern.fullmatch(_text(node)):
            self.doubles[_text(node)] = None
        self.begins_loop = self.begins_loop or kind in language.loops

    def _is_access(self, node: "Node") -> bool:
        language = self.language
        if node.type in language.pointers:
            return _text(node).startswith(language.dereference)
        if node.type not in language.subscripts:
            return False
        first = node.named_children[0] if node.named_children else None
        return first is None or _text(first).lower() not in language.functions

    def _pass_over(self, node: "Node") -> None:
        """The inner levels of ``a[i][j]`` are no accesses of their own; what stands in the brackets is."""
        inner = node.named_children[0] if node.named_children else None
        while inner is not None and (inner.type in self.language.subscripts):
            self.passed.add(inner.id)
            inner = inner.named_children[0] if inner.named_children else None

    def _look_at_assignment(self, node: "Node") -> None:
        left = node.child_by_field_name("left") or node.child_by_field_name("declarator")
        left = left or (node.named_children[0] if node.named_children else None)
        if left is None:
            return
        if not self._is_access(left):
            if left.child_count == 0:
                self.assigned[_text(left)] = None
            return
        self.stores[_shorten(left)] = None
        self._pass_over(left)
        if not self._reads_its_left(node):
            self.passed.add(left.id)

    def _reads_its_left(self, node: "Node") -> bool:
        if node.type in self.language.compound:
            return True
        operator = (
            node.child_by_field_name(self.language.compound_operator) if self.language.compound_operator else None
        )
        return operator is not None and _text(operator) != "="

    def _look_at_call(self, node: "Node") -> None:
        name = _text(node.named_children[0]) if node.named_children else ""
        language = self.language
        arguments = node.named_children[-1].named_children if len(node.named_children) > 1 else []
        if name in language.load_calls and arguments:
            self.loads[_shorten(arguments[0])] = None
        elif name in language.store_calls and arguments:
            self.stores[_shorten(arguments[0])] = None
        else:
            self.calls[name] = None

    def _look_at_operation(self, node: "Node") -> None:
        operands = node.named_children
        operators = [_text(child) for child in node.children if child.type in ("/", "%", "//", "operator")]
        if len(operands) >= 2 and any(operator in ("/", "%", "//") for operator in operators):
            self.divisions[_shorten(node)] = _shorten(operands[-1])

    def gather(self) -> LineParts:
        return LineParts(
            loads=tuple(self.loads),
            stores=tuple(self.stores),
            divisions=tuple(self.divisions),
            divisors=tuple(self.divisions.values()),
            calls=tuple(self.calls),
            doubles=tuple(self.doubles),
            assigned=tuple(self.assigned),
            begins_loop=self.begins_loop,
        )


def _walk_line(root: "Node", row: int) -> Iterator["Node"]:
    """Nodes that begin on a line, outermost first and in order. Not recursive, and bounded: sources can be hostile too."""
    stack = [root]
    for _ in range(_MOST_NODES):
        if not stack:
            return
        node = stack.pop()
        if node.start_point[0] == row:
            yield node
        stack.extend(
            child for child in reversed(node.named_children) if child.start_point[0] <= row <= child.end_point[0]
        )


def _text(node: "Node") -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""


def _shorten(node: "Node") -> str:
    words = " ".join(_text(node).split())
    return words if len(words) <= _LONGEST_EXPRESSION else f"{words[: _LONGEST_EXPRESSION - 1]}…"


_TREES: OrderedDict[tuple[str, str], "Tree"] = OrderedDict()
_LOCK = Lock()


def _parse(language: Language, text: str) -> "Tree | None":
    """The tree of a text; the last few are kept, because hints ask for many lines of one file. None without the grammar."""
    parser = load_parser(language)
    if parser is None:
        return None
    key = (language.name, text)
    with _LOCK:
        tree = _TREES.get(key)
        if tree is None:
            tree = parser.parse(text.encode("utf-8", "replace"))
            _TREES[key] = tree
        _TREES.move_to_end(key)
        while len(_TREES) > _KEPT_TREES:
            _TREES.popitem(last=False)
        return tree
