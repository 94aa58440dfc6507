"""Parts of host code's syntax: what stands behind casts, the names of declarators, functions and structures of a text."""

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from gpa_lsp.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.sources.host_values import Array, Value, find_type_bytes
from gpa_lsp.sources.trees import SourceTree, read_text, read_tree, walk

if TYPE_CHECKING:
    from tree_sitter import Node


def find_value_bytes(value: Value, declared: str, types: dict[str, int]) -> int | None:
    """Size of a variable, as ``sizeof`` has it."""
    if isinstance(value, Array) and "*" not in declared:
        return value.size_bytes
    return find_type_bytes(declared, types)


def ends_program(node: "Node") -> bool:
    """A branch that ends the program."""
    return any(
        child.type == "call_expression"
        and read_text(child.child_by_field_name("function")) in ("exit", "abort", "std::exit")
        for child in itertools.islice(walk(node), 200)
    )


def unwrap(node: "Node") -> "Node | None":
    """What stands in parentheses."""
    children = [child for child in node.named_children if child.type != "comment"]
    return children[0] if len(children) == 1 else (children[-1] if children else None)


def strip_casts(node: "Node | None") -> "Node | None":
    """Without casts and parentheses."""
    for _ in range(20):
        if node is None:
            return None
        if node.type == "cast_expression":
            node = node.child_by_field_name("value")
        elif node.type == "parenthesized_expression":
            node = unwrap(node)
        else:
            return node
    return node


def find_identifier(node: "Node | None") -> str:
    """The name that a declarator declares; empty where it has none."""
    for _ in range(20):
        if node is None:
            return ""
        if node.type == "identifier":
            return read_text(node)
        node = node.child_by_field_name("declarator") or next(
            (one for one in node.named_children if one.type == "identifier" or one.type.endswith("declarator")), None
        )
    return ""


def list_size_parts(declarator: "Node", value: "Node | None") -> "list[Node]":
    """What a ``dim3`` is declared with: ``(a, b)``, ``{a, b}``, ``= dim3(a, b)``, or what looks like a function of two types."""
    if value is not None:
        if value.type in ("argument_list", "initializer_list"):
            return [child for child in value.named_children if child.type != "comment"]
        return [value]
    if declarator.type == "function_declarator":
        parameters = declarator.child_by_field_name("parameters")
        listed = [] if parameters is None else parameters.named_children
        texts = [parse_expression(read_text(one)) for one in listed]
        return [one for one in texts if one is not None]
    return []


def read_last_name(callee: "Node | None") -> str:
    """The plain name of what is called, without namespaces and template arguments."""
    node = callee
    while node is not None and node.type in ("qualified_identifier", "template_function"):
        node = node.child_by_field_name("name")
    return read_text(node)


@lru_cache(maxsize=512)
def parse_expression(text: str) -> "Node | None":
    """The tree of an expression that stands by itself, such as a macro's value."""
    tree = read_tree("expression.cu", f"int x = ({text});")
    if tree is None or len(text) > 1000:
        return None
    return next((node.child_by_field_name("value") for node in walk(tree.root) if node.type == "init_declarator"), None)


def find_functions(tree: SourceTree) -> "Iterator[tuple[str, Node]]":
    """Host functions with a body, by plain name; overloads are left out."""
    seen: dict[str, list[Node]] = {}
    for node in list_file_nodes(tree):
        if node.type != "function_definition":
            continue
        declarator = find_function_declarator(node)
        body = node.child_by_field_name("body")
        if declarator is None or body is None:
            continue
        head = tree.content[node.start_byte : body.start_byte]
        if b"__global__" in head or (b"__device__" in head and b"__host__" not in head):
            continue
        seen.setdefault(read_own_name(declarator), []).append(node)
    yield from ((name, nodes[0]) for name, nodes in seen.items() if len(nodes) == 1)


def measure_structures(tree: SourceTree) -> Iterator[tuple[str, int]]:
    """Sizes of structures whose members are plain: laid out as C does."""
    known: dict[str, int] = {}
    for node in walk(tree.root):
        if node.type == "type_definition":
            name = read_text(node.child_by_field_name("declarator"))
            inner = node.child_by_field_name("type")
            size = (
                _measure_structure(inner, known)
                if inner is not None and inner.type == "struct_specifier"
                else (find_type_bytes(read_text(inner), known))
            )
        elif node.type == "struct_specifier":
            name, size = read_text(node.child_by_field_name("name")), _measure_structure(node, known)
        else:
            continue
        if name and size and name.isidentifier() and name not in known:
            known[name] = size
            yield name, size


def _measure_structure(node: "Node", known: dict[str, int]) -> int | None:
    body = node.child_by_field_name("body")
    if body is None:
        return known.get(read_text(node.child_by_field_name("name")))
    end, largest = 0, 1
    for member in body.named_children:
        if member.type == "comment":
            continue
        if member.type != "field_declaration":
            return None
        for declarator in member.children_by_field_name("declarator"):
            text = read_text(declarator)
            size = find_type_bytes(read_text(member.child_by_field_name("type")) + "*" * text.count("*"), known)
            if size is None or "[" in text or declarator.type not in ("field_identifier", "pointer_declarator"):
                return None
            alignment = min(size, 8)
            end = -(-end // alignment) * alignment + size
            largest = max(largest, alignment)
    return -(-end // largest) * largest if end else None
