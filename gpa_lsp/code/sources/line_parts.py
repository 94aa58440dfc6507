"""Expressions on one line of source, as written: loads, stores, divisions and calls."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.code.sources.trees import Language, SourceTree, read_text, read_tree, walk_lines

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST_EXPRESSION = 60


class LineParts(Struct, frozen=True, kw_only=True):
    """Expressions that begin on one line, in the order they stand there, each once; long ones are shortened with an ellipsis."""

    loads: tuple[str, ...]  # indexed or dereferenced values that are read
    stores: tuple[str, ...]  # indexed or dereferenced places that are written
    divisions: tuple[str, ...]  # binary operations with ``/`` or ``%`` as a whole
    divisors: tuple[str, ...]  # what those divide by; same length
    calls: tuple[str, ...]  # names of called functions
    doubles: tuple[str, ...]  # literals of double precision
    assigned: tuple[str, ...]  # names of plain variables the line assigns or declares
    begins_loop: bool  # a loop statement begins here


def read_line_parts(file: str, text: str, line: int) -> LineParts | None:
    """The expressions that begin on a line.

    Args:
        file: its name, for the language.
        text: of the whole file, as it was compiled.
        line: 1-based.

    Returns:
        None for a language without a grammar here, or whose grammar is not installed, for a text that is too large, and for a line the text
        does not have. Text that does not parse is no error: the expressions recognised on the line are returned.

    >>> parts = read_line_parts("k.cu", "void f() {\\n  float a = x[i] / 2.0 + s->y[j];\\n}", 2)
    >>> parts.loads, parts.divisors, parts.doubles, parts.assigned
    (('x[i]', 's->y[j]'), ('2.0',), ('2.0',), ('a',))
    """
    tree = read_tree(file, text)
    if tree is None or not 0 < line <= tree.line_count:
        return None
    known = _find_known_lines(tree)
    if line not in known:
        found = _Parts(tree.language)
        for node in walk_lines(tree.root, (line,)):
            found.look_at(node)
        known[line] = found.gather()
    return known[line]


@lru_cache(maxsize=16)
def _find_known_lines(_tree: SourceTree) -> dict[int, LineParts]:
    """Cache of a text's lines: hints come back to the same few hot lines."""
    return {}


class _Parts(Struct):
    """Gathers the expressions of a line; ``passed`` holds ids of nodes that are no accesses of their own."""

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
        pattern = language.double_pattern if kind in language.floats else None
        if pattern is not None and re.fullmatch(pattern, read_text(node)):
            self.doubles[read_text(node)] = None
        self.begins_loop = self.begins_loop or kind in language.loops

    def _is_access(self, node: "Node") -> bool:
        language = self.language
        if node.type in language.pointers:
            return read_text(node).startswith(language.dereference)
        if node.type not in language.subscripts:
            return False
        first = node.named_children[0] if node.named_children else None
        return first is None or read_text(first).lower() not in language.functions

    def _pass_over(self, node: "Node") -> None:
        """Mark the inner levels of ``a[i][j]`` as no accesses of their own; those in the brackets are."""
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
                self.assigned[read_text(left)] = None
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
        return operator is not None and read_text(operator) != "="

    def _look_at_call(self, node: "Node") -> None:
        name = read_text(node.named_children[0]) if node.named_children else ""
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
        operators = [read_text(child) for child in node.children if child.type in ("/", "%", "//", "operator")]
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


def _shorten(node: "Node") -> str:
    words = " ".join(read_text(node).split())
    return words if len(words) <= _LONGEST_EXPRESSION else f"{words[: _LONGEST_EXPRESSION - 1]}…"


_AXIS = re.compile(r"\bthreadIdx\s*\.\s*([xyz])\b")
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Up to the end of a statement or the next declarator of a declaration
_VALUE = r"((?:(?!,\s*\*?\s*[A-Za-z_]\w*\s*=(?!=))[^;])*)"

_MOST_NAMES = 64  # Looked at for one expression


def find_thread_axes(text: str, line: int, expression: str) -> frozenset[str]:
    """The axes of ``threadIdx`` in an expression, or in the values assigned to its names before.

    Every assignment above the line counts, on any path: rather an axis too many than one too few.

    Args:
        text: of the source.
        line: 1-based, of the expression.
        expression: e.g. ``a[row * n + k]``.

    Returns:
        Those of ``x``, ``y`` and ``z``; empty where there are none, or where they come from outside the text.

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
