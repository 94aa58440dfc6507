"""``np.float32(0.5)`` for literals in arithmetic of a Numba kernel that is otherwise single precision."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.code.sources.cuda_values import read_number
from gpa_lsp.code.sources.trees import read_text, walk_lines
from gpa_lsp.diagnosis.rewrites.edits import replace_node
from gpa_lsp.diagnosis.rewrites.model import Proposal, RewriteKind, Site
from gpa_lsp.diagnosis.rewrites.numba_types import SINGLE, SinglePrecision, find_constructor, read_single_precision
from gpa_lsp.diagnosis.rewrites.python_functions import NUMBA_KERNEL, find_compiled_around
from gpa_lsp.diagnosis.rewrites.titles import join_code
from gpa_lsp.foundation.prose import say

if TYPE_CHECKING:
    from tree_sitter import Node

_OPERATORS = frozenset({"+", "-", "*", "/"})
_COMPOUND = frozenset({"+=", "-=", "*=", "/="})
_HIGHEST = 40


class _Operands(Struct, kw_only=True):
    """What an expression computes with."""

    literals: list["Node"] = field(default_factory=list)  # its literals, of double precision as they stand
    others: int = 0  # how many operands are single precision


def _propose(site: Site) -> Iterator[Proposal]:
    seen: set[int] = set()
    kernels: dict[int, SinglePrecision] = {}
    for node in walk_lines(site.tree.root, site.lines):
        function = find_compiled_around(site.tree, node) if node.type == "float" else None
        if function is None or function.compiler != NUMBA_KERNEL:
            continue
        root = _find_root(node)
        if root.id in seen:
            continue
        seen.add(root.id)
        if function.node.id not in kernels:
            kernels[function.node.id] = read_single_precision(function)
        known, constructor = kernels[function.node.id], find_constructor(function)
        operands = _find_operands(known, root)
        if operands is not None and constructor is not None and _becomes_single(known, root):
            yield _describe(site, operands, constructor)


def _find_root(literal: "Node") -> "Node":
    node = literal
    for _ in range(_HIGHEST):
        if node.parent is None or not _is_arithmetic(node.parent):
            break
        node = node.parent
    return node


def _is_arithmetic(node: "Node") -> bool:
    if node.type == "binary_operator":
        return read_text(node.child_by_field_name("operator")) in _OPERATORS
    return node.type in ("parenthesized_expression", "unary_operator")


def _find_operands(known: SinglePrecision, root: "Node") -> _Operands | None:
    """The literals; None where an operand is not certainly single precision. With integers Numba computes in double precision."""
    found = _Operands()
    stack = [root]
    while stack:
        node = stack.pop()
        if _is_arithmetic(node):
            stack.extend(reversed(node.named_children))
        elif node.type == "float":
            found.literals.append(node)
        elif known.holds(node):
            found.others += 1
        else:
            return None
    found.others += root.parent is not None and root.parent.type == "augmented_assignment"
    fit = all(read_number(read_text(one)).fits_float for one in found.literals)
    return found if found.others and fit else None


def _becomes_single(known: SinglePrecision, root: "Node") -> bool:
    """The value goes into a single precision array, or is converted."""
    parent = root.parent
    if parent is None:
        return False
    if parent.type in ("assignment", "augmented_assignment"):
        left = parent.child_by_field_name("left")
        operator = parent.child_by_field_name("operator")
        is_known = operator is None or read_text(operator) in _COMPOUND
        return is_known and left is not None and left.type == "subscript" and known.holds(left)
    call = parent.parent
    is_argument = parent.type == "argument_list" and call is not None and call.type == "call"
    if not is_argument or call is None:
        return False
    return known.function.find_meaning(call.child_by_field_name("function")) in SINGLE


def _describe(site: Site, operands: _Operands, constructor: str) -> Proposal:
    literals = [read_text(one) for one in operands.literals]
    is_rounded = any(not read_number(text).is_exact_in_float for text in literals)
    return Proposal(
        title=say(
            "Write {literals}{rounds}",
            literals=join_code([f"{constructor}({text})" for text in literals]),
            rounds=" (rounds to float)" if is_rounded else "",
        ),
        explanation=say(
            "The literal makes Numba compute in FP64, although the other operands and the result are FP32. In FP32 intermediate values keep 24 "
            "bits instead of 53, so the last bits of the result can differ."
        ),
        edits=tuple(replace_node(site.tree, node, f"{constructor}({read_text(node)})") for node in operands.literals),
        changes_results=True,
    )


REWRITE = RewriteKind(language="python", optimizers=("strength_reduction", "fast_math"), propose=_propose)
