"""Whether an expression of numbers has the same value in every turn of a loop, and before it."""

from typing import TYPE_CHECKING

from gpa_lsp.code.sources.trees import list_ancestors, read_text, walk
from gpa_lsp.diagnosis.rewrites.code import Code
from gpa_lsp.diagnosis.rewrites.cuda_types import load_known_functions
from gpa_lsp.diagnosis.rewrites.cuda_uses import Deed, Use, find_uses, is_in_lambda

if TYPE_CHECKING:
    from tree_sitter import Node

# What may be in such an expression: nothing that loads from memory, and nothing that writes
_OF_NUMBERS = frozenset(
    {
        "identifier",
        "number_literal",
        "parenthesized_expression",
        "binary_expression",
        "unary_expression",
        "cast_expression",
        "type_descriptor",
        "primitive_type",
        "field_expression",
        "field_identifier",
        "call_expression",
        "argument_list",
    }
)

_MOST_NODES = 40
_SHARED_BY_MANY = frozenset({"volatile", "__shared__", "__device__", "__managed__", "static", "extern"})
_OF_FILE = frozenset({"const", "constexpr", "__constant__"})
_BUILTIN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
_HARMLESS = frozenset({Deed.READ, Deed.COPIED, Deed.COMPARED})


def is_invariant(code: Code, expression: "Node", loop: "Node") -> bool:
    """The expression can be computed before the loop.

    Every name in it is a number that is declared outside the loop, that nothing in the loop assigns, and that nothing in the function can
    change unseen: no address is taken, no reference bound, and no macro of the file mentions it.
    """
    nodes = list(walk(expression, most=_MOST_NODES + 1))
    if len(nodes) > _MOST_NODES or not all(node.type in _OF_NUMBERS for node in nodes):
        return False
    calls = (node for node in nodes if node.type == "call_expression")
    known = load_known_functions()
    if not all(_is_cast(call) or code.types.read_called_name(call) in known.of_numbers for call in calls):
        return False
    return all(_is_fixed(code, node, loop) for node in nodes if node.type == "identifier" and not _is_called(node))


def _is_cast(call: "Node") -> bool:
    function = call.child_by_field_name("function")
    return function is not None and function.type == "primitive_type"


def _is_called(name: "Node") -> bool:
    parent = name.parent
    return parent is not None and parent.type == "call_expression" and parent.child_by_field_name("function") == name


def _is_fixed(code: Code, name: "Node", loop: "Node") -> bool:
    declaration = code.names.find(name)
    if declaration is None:
        return read_text(name) in _BUILTIN and read_text(name) not in code.names.macros
    if declaration.is_reference or declaration.type.levels or code.names.is_in_macros(declaration.name):
        return False
    if declaration.scope.type in ("translation_unit", "declaration_list"):
        return bool(declaration.qualifiers & _OF_FILE) and "volatile" not in declaration.qualifiers
    is_outside = declaration.start_byte <= loop.start_byte and declaration.scope != loop
    if not is_outside or declaration.qualifiers & _SHARED_BY_MANY:
        return False
    return all(_leaves_alone(code, use, loop) for use in find_uses(code.names, declaration))


def _leaves_alone(code: Code, use: Use, loop: "Node") -> bool:
    """A use does not change the variable in the loop."""
    if use.deed in _HARMLESS:
        return True
    if use.deed is Deed.PASSED:
        call = use.through.parent
        name = code.types.read_called_name(call) if call is not None and call.type == "call_expression" else None
        return name in load_known_functions().of_numbers or not is_inside(use.node, loop)
    # What a lambda does happens wherever it is called; what has an address can change anywhere.
    is_outside = not is_inside(use.node, loop) and not is_in_lambda(use, code.function.node)
    return use.deed is Deed.WRITTEN and is_outside


def is_inside(node: "Node", around: "Node") -> bool:
    """The node is part of another."""
    return around.start_byte <= node.start_byte and node.end_byte <= around.end_byte


def find_loops_around(node: "Node", kinds: frozenset[str]) -> "list[Node]":
    """The loops around a node within its function or lambda, innermost first."""
    found = []
    for around in list_ancestors(node):
        if around.type in ("function_definition", "lambda_expression"):
            break
        if around.type in kinds:
            found.append(around)
    return found
