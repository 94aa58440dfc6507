"""The floating-point divisions of CUDA C++ code."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_values import UNKNOWN, ValueType, read_number
from gpa_lsp.code.sources.trees import SourceTree, read_text, walk_lines
from gpa_lsp.diagnosis.rewrites.code import Code, read_code
from gpa_lsp.diagnosis.rewrites.cuda_types import join_types

if TYPE_CHECKING:
    from tree_sitter import Node


class Division(Struct, frozen=True, kw_only=True, eq=False):
    """``dividend / divisor`` or ``dividend /= divisor``."""

    code: Code  # the function it is in
    node: "Node"  # the whole
    dividend: "Node"  # what is divided
    operator: "Node"  # the token between
    divisor: "Node"  # by what
    type: ValueType  # what it is done in; UNKNOWN where that is not certain

    @property
    def is_assignment(self) -> bool:
        """It changes the dividend."""
        return self.node.type == "assignment_expression"

    @property
    def literal_divisor(self) -> float | None:
        """The number it divides by, where that is written there."""
        inner = self.divisor
        return read_number(read_text(inner)).value if inner.type == "number_literal" else None


def find_divisions(tree: SourceTree, lines: frozenset[int]) -> Iterator[Division]:
    """Divisions that begin, or whose divisor begins, on some lines (1-based); outermost first."""
    seen = set()
    for node in walk_lines(tree.root, lines):
        for near in (node, node.parent):
            if near is None or near.id in seen or not _is_division(near):
                continue
            seen.add(near.id)
            code = read_code(tree, near)
            found = None if code is None else read_division(code, near)
            if found is not None:
                yield found


def read_division(code: Code, node: "Node") -> Division | None:
    """A node as a division; None for anything else, and for one with a comment in it."""
    if not _is_division(node) or node.child_count != 3:
        return None
    dividend, operator, divisor = node.children
    left, right = code.types.find(dividend), code.types.find(divisor)
    joined = join_types(left, right)
    is_narrowed = node.type == "assignment_expression" and joined != left
    return Division(
        code=code,
        node=node,
        dividend=dividend,
        operator=operator,
        divisor=divisor,
        type=UNKNOWN if is_narrowed else joined,
    )


def _is_division(node: "Node") -> bool:
    if node.type not in ("binary_expression", "assignment_expression"):
        return False
    return read_text(node.child_by_field_name("operator")) in ("/", "/=")
