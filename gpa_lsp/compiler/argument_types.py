"""The type of what a launch passes, as far as the text tells: literals, casts, and variables by their declarations."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from gpa_lsp.sources.trees import MOST_NODES, SourceTree, list_ancestors, read_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_FLOAT = re.compile(r"(?:\d[\d']*\.?[\d']*|\.\d+)(?:[eE][+-]?\d+)?([fFlL]?)")
_WHOLE = re.compile(r"(?:0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)([uUlL]*)")
_WHOLE_TYPES = {
    "": "int",
    "u": "unsigned int",
    "l": "long",
    "ul": "unsigned long",
    "ll": "long long",
    "ull": "unsigned long long",
}
_DEVICE_VECTORS = re.compile(
    r"(?:thrust::)?(?:device_vector|host_vector|universal_vector)\s*<(.*)>|std::vector\s*<(.*)>"
)


def find_argument_type(tree: SourceTree, argument: "Node") -> str | None:
    """The type of an expression; None where it is not plain to see.

    >>> from gpa_lsp.sources.trees import read_tree
    >>> tree = read_tree("k.cu", "void f(const float* p) { int n = 3; g(p, n, 2.0f, (double*)q, &n, p + 4); }")
    >>> call = next(one for one in walk(tree.root) if one.type == "call_expression")
    >>> [find_argument_type(tree, one) for one in call.child_by_field_name("arguments").named_children]
    ['const float*', 'int', 'float', 'double*', 'int*', 'const float*']
    """
    read = _READERS.get(argument.type)
    return read(tree, argument) if read is not None else None


def _find_inner_type(tree: SourceTree, node: "Node") -> str | None:
    inner = node.child_by_field_name("argument")
    return find_argument_type(tree, inner) if inner is not None else None


def _find_parenthesized_type(tree: SourceTree, node: "Node") -> str | None:
    return find_argument_type(tree, node.named_children[0]) if node.named_child_count == 1 else None


def _find_pointer_type(tree: SourceTree, node: "Node") -> str | None:
    """Of ``&x`` and ``*x``."""
    found = _find_inner_type(tree, node)
    if found is None or read_text(node).startswith("&"):
        return None if found is None else f"{found}*"
    return found.removesuffix("*") if found.endswith("*") else None


def _find_element_type(tree: SourceTree, node: "Node") -> str | None:
    found = _find_inner_type(tree, node)
    return found.removesuffix("*") if found is not None and found.endswith("*") else None


def _find_sum_type(tree: SourceTree, node: "Node") -> str | None:
    left = node.child_by_field_name("left")
    right = node.child_by_field_name("right")
    if left is None or right is None:
        return None
    first, second = find_argument_type(tree, left), find_argument_type(tree, right)
    if first is not None and first.endswith("*"):
        return first
    return first if first == second else None


def _read_cast(tree: SourceTree, node: "Node") -> str:
    return " ".join(read_text(node.child_by_field_name("type")).split()).replace(" *", "*")


def _find_call_type(tree: SourceTree, call: "Node") -> str | None:
    """``static_cast<T>(…)``, ``thrust::raw_pointer_cast(v.data())``, ``v.data()``."""
    text = read_text(call)
    cast = re.match(r"(?:static|reinterpret|const)_cast\s*<(.*?)>\s*\(", text)
    if cast is not None:
        return " ".join(cast[1].split()).replace(" *", "*")
    vector = re.search(r"(\w+)\s*(?:\.\s*data\s*\(\s*\)|\[\s*0\s*\])", text)
    kind = _find_variable_type(tree, call, vector[1]) if vector is not None else None
    held = _DEVICE_VECTORS.fullmatch(kind) if kind is not None else None
    return f"{(held[1] or held[2]).strip()}*" if held is not None else None


def _read_number(text: str) -> str | None:
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        return _WHOLE_TYPES.get("".join(sorted(whole[1].lower(), reverse=True)))
    real = _FLOAT.fullmatch(text)
    if real is None:
        return None
    return {"f": "float", "": "double"}.get(real[1].lower())


def _find_variable_type(tree: SourceTree, place: "Node", name: str) -> str | None:
    """The declared type of the variable that a name stands for; the nearest declaration in front of it counts."""
    function = next((one for one in list_ancestors(place) if one.type == "function_definition"), None)
    scopes = [function] if function is not None else []
    scopes += [one for one in list_ancestors(place) if one.type in ("translation_unit", "declaration_list")]
    for scope in scopes:
        found = None
        for kind, declarator in _list_declarators(tree, scope.start_byte, scope.end_byte, scope.type):
            if declarator.start_byte > place.start_byte:
                break
            if (told := _read_declarator(declarator, name)) is not None:
                found = kind + told
        if found is not None:
            return None if found.startswith("auto") else found
    return None


@lru_cache(maxsize=16)
def _list_declarators(tree: SourceTree, start: int, end: int, kind: str) -> "tuple[tuple[str, Node], ...]":
    """(type, declarator) of all variables declared in a function, or beside the functions of a file or namespace."""
    around = tree.root.descendant_for_byte_range(start, max(start, end - 1))
    scope = (
        next((one for one in (around, *list_ancestors(around)) if one.type == kind), None)
        if around is not None
        else None
    )
    if scope is None:
        return ()
    found = []
    for node in walk(scope) if kind == "function_definition" else scope.named_children[:MOST_NODES]:
        if node.type in ("declaration", "parameter_declaration", "optional_parameter_declaration"):
            name = " ".join(read_text(node.child_by_field_name("type")).split())
            marks = [read_text(child) for child in node.children if child.type == "type_qualifier"]
            head = " ".join([*(one for one in marks if one == "const"), name])
            found += [(head, declarator) for declarator in node.children_by_field_name("declarator")]
    return tuple(found)


def _read_declarator(declarator: "Node", name: str) -> str | None:
    """The stars and brackets that a declarator puts around a name, as stars; None where it declares another name or something that is no variable."""
    stars, node = "", declarator
    while node.type != "identifier":
        if node.type in ("pointer_declarator", "array_declarator"):
            stars += "*"
        elif node.type not in ("init_declarator", "reference_declarator", "parenthesized_declarator"):
            return None
        inner = node.child_by_field_name("declarator") or next(
            (child for child in node.named_children if child.type == "identifier" or child.type.endswith("declarator")),
            None,
        )
        if inner is None:
            return None
        node = inner
    return stars if read_text(node) == name else None


_READERS: "dict[str, Callable[[SourceTree, Node], str | None]]" = {
    "number_literal": lambda _, node: _read_number(read_text(node)),
    "true": lambda _, node: "bool",
    "false": lambda _, node: "bool",
    "identifier": lambda tree, node: _find_variable_type(tree, node, read_text(node)),
    "parenthesized_expression": _find_parenthesized_type,
    "cast_expression": _read_cast,
    "pointer_expression": _find_pointer_type,
    "subscript_expression": _find_element_type,
    "binary_expression": _find_sum_type,
    "call_expression": _find_call_type,
}
