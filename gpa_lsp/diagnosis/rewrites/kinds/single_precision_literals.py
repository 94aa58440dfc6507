"""Literals of CUDA C++ in single precision."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpa_lsp.code.sources.cuda_declarations import NumberLiteral, read_descriptor, read_number
from gpa_lsp.code.sources.trees import read_text, walk_lines
from gpa_lsp.diagnosis.rewrites.code import Code, find_lambda_around, load_known_functions, read_code
from gpa_lsp.diagnosis.rewrites.model import (
    MOST_NAMED,
    Rewrite,
    RewriteKind,
    Site,
    insert_behind,
    quote,
    title_literals,
)
from gpa_lsp.foundation.prose import Sentence, join, say

if TYPE_CHECKING:
    from tree_sitter import Node


_HIGHEST = 40  # Levels of an expression around a literal

_OPERATORS = frozenset({"+", "-", "*", "/"})
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})
_COMPOUND = frozenset({"+=", "-=", "*=", "/="})


def _propose_literals(site: Site) -> Iterator[Rewrite]:
    """An ``f`` behind double literals in arithmetic that is otherwise single precision."""
    seen = set()
    for node in walk_lines(site.tree.root, site.lines):
        code = read_code(site.tree, node) if _is_double(node) else None
        if code is None:
            continue
        root = _find_root(code, node)
        if root.id in seen:
            continue
        seen.add(root.id)
        arithmetic = _find_arithmetic(code, root)
        if arithmetic is not None:
            yield _describe(site, *arithmetic, is_comparison=_is_comparison(root))


def _is_double(node: "Node") -> bool:
    return node.type == "number_literal" and read_number(read_text(node)).type.is_double


def _find_root(code: Code, literal: "Node") -> "Node":
    """The whole expression whose arithmetic a literal takes part in."""
    node = literal
    for _ in range(_HIGHEST):
        parent = node.parent
        if parent is not None and _is_comparison(parent):
            return parent
        if parent is None or node not in _list_operands(code, parent):
            break
        node = parent
    return node


def _list_operands(code: Code, node: "Node") -> Sequence["Node"]:
    """Operands that take part in an operation's precision; empty for anything but an operation."""
    operands: Sequence[Node | None] = ()
    if node.type in ("binary_expression", "unary_expression"):
        is_arithmetic = read_text(node.child_by_field_name("operator")) in _OPERATORS
        operands = node.named_children if is_arithmetic else ()
    elif node.type == "parenthesized_expression":
        operands = node.named_children
    elif node.type == "conditional_expression":
        operands = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
    elif node.type == "argument_list" and node.parent is not None and node.parent.type == "call_expression":
        operands = node.named_children if _is_overloaded(code, node.parent) else ()
    elif node.type == "call_expression" and _is_overloaded(code, node):
        operands = (node.child_by_field_name("arguments"),)
    return [one for one in operands if one is not None and one.type != "comment"]


def _is_overloaded(code: Code, call: "Node") -> bool:
    return code.types.read_called_name(call) in load_known_functions().overloaded


def _find_arithmetic(code: Code, root: "Node") -> "tuple[list[Node], int] | None":
    """Double literals of an expression and the number of its other operands; None where one of these, or the result, is not single precision."""
    literals: list[Node] = []
    others = int(_is_compound_operand(root))
    is_comparison = _is_comparison(root)
    stack = root.named_children[::-1] if is_comparison else [root]
    while stack:
        node = stack.pop()
        operands = _list_operands(code, node)
        if operands:
            stack.extend(reversed(operands))
        elif _is_double(node):
            literals.append(node)
        elif code.types.find(node).is_float:
            others += 1
        elif not _is_exact_integer(node):
            return None
    if not others or not all(read_number(read_text(one)).fits_float for one in literals):
        return None
    return (literals, others) if is_comparison or _is_narrowed(code, root) else None


def _is_comparison(node: "Node") -> bool:
    return node.type == "binary_expression" and read_text(node.child_by_field_name("operator")) in _COMPARISONS


def _is_exact_integer(node: "Node") -> bool:
    return node.type == "number_literal" and read_number(read_text(node)).is_exact_in_float


def _is_compound_operand(root: "Node") -> bool:
    """Whether an expression is the right side of ``x += root``, which computes with x, too."""
    parent = root.parent
    return (
        parent is not None
        and parent.type == "assignment_expression"
        and read_text(parent.child_by_field_name("operator")) in _COMPOUND
    )


def _is_narrowed(code: Code, root: "Node") -> bool:
    """Whether a value becomes a float: by an assignment, an initialisation, a result, an argument or a cast."""
    parent = root.parent
    if parent is None:
        return False
    if parent.type == "assignment_expression":
        is_assigned = read_text(parent.child_by_field_name("operator")) in _COMPOUND | {"="}
        return is_assigned and parent.child_by_field_name("right") == root and code.types.find(parent).is_float
    if parent.type == "init_declarator":
        name, around = parent.child_by_field_name("declarator"), parent.parent
        is_plain = name is not None and name.type == "identifier"
        return is_plain and around is not None and read_text(around.child_by_field_name("type")) == "float"
    if parent.type == "return_statement":
        return find_lambda_around(root) is None and _returns_float(code)
    if parent.type == "cast_expression":
        return read_descriptor(parent.child_by_field_name("type")).is_float
    call = parent.parent
    return parent.type == "argument_list" and call is not None and _takes_float(code, call)


def _returns_float(code: Code) -> bool:
    node = code.function.node
    is_plain = node.child_by_field_name("declarator") == code.function.declarator
    return is_plain and read_text(node.child_by_field_name("type")) == "float"


def _takes_float(code: Code, call: "Node") -> bool:
    if call.type != "call_expression":
        return False
    name = code.types.read_called_name(call)
    return code.types.find(call).is_float if name is None else name in load_known_functions().single


def _describe(site: Site, literals: "Sequence[Node]", others: int, *, is_comparison: bool) -> Rewrite:
    texts = [read_text(one) for one in literals]
    rounded = [text for text in dict.fromkeys(texts) if not read_number(text).is_exact_in_float]
    changes = bool(rounded) or not (is_comparison and others == len(literals) == 1)
    return Rewrite(
        title=title_literals([f"{text}f" for text in texts], is_rounded=bool(rounded)),
        explanation=_explain(rounded, changes_results=changes, is_comparison=is_comparison),
        edits=tuple(insert_behind(site.tree, node, "f") for node in literals),
        changes_results=changes,
        is_preferred=not changes,
    )


def _explain(rounded: Sequence[str], *, changes_results: bool, is_comparison: bool) -> Sentence:
    sentences = [
        say(
            "A literal without a suffix is a double: the other operands, all float, are widened, and the arithmetic is done in FP64."
        )
    ]
    if rounded:
        values = (
            say("{literal} becomes {value}", literal=quote(text), value=quote(_write_value(read_number(text))))
            for text in rounded[:MOST_NAMED]
        )
        sentences.append(say("As a float {values}.", values=join(values, ", ")))
    if not changes_results:
        sentences.append(say("The result is the same."))
    elif is_comparison:
        sentences.append(say("Values next to the threshold can fall on the other side."))
    else:
        sentences.append(
            say("Intermediate values keep 24 bits instead of 53, so the last bits of the result can differ.")
        )
    return join(sentences)


def _write_value(literal: NumberLiteral) -> str:
    return f"{float(np.float32(literal.value or 0.0)):.9g}"


REWRITES = {
    "single_precision_literals": RewriteKind(
        language="cuda", optimizers=("strength_reduction", "fast_math"), propose=_propose_literals
    ),
}
