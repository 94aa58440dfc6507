"""Queries on the syntax of host code: expressions without casts, names of declarators, functions and structures of a text."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.host_values import Array, Value, find_type_bytes, read_literal
from gpa_lsp.code.sources.trees import SourceTree, list_parts, part, read_text, read_tree, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_LARGEST_ALIGNMENT = 16
_EXITS = ("exit", "abort", "std::exit", "_exit")
_UNCONDITIONAL = frozenset({"compound_statement", "else_clause", "expression_statement", "do_statement"})
LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
LEAVING = frozenset({"break_statement", "continue_statement", "goto_statement", "return_statement"})
_DECIDING = frozenset({"if_statement", "switch_statement", "while_statement", "do_statement", "goto_statement"})
_SHRINKING = frozenset({"assign", "clear", "erase", "pop_back", "resize", "swap"})
RESIZING = _SHRINKING | {"push_back", "emplace_back", "insert"}  # Methods that change how many elements a vector has
# Nodes that may write to a name, and the field the name stands in
_CHANGING = {
    "assignment_expression": "left",
    "update_expression": "argument",
    "init_declarator": "declarator",
    "pointer_expression": "argument",
}
CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
OWN_ARRAY = "[]"  # Behind the type of an array of pointers that the text declares
_NO_MEMBERS = frozenset(
    {"comment", "function_definition", "access_specifier", "template_declaration", "declaration", "friend_declaration", "using_declaration",
     "static_assert_declaration", "alias_declaration", "type_definition"}
)  # fmt: skip


def find_value_bytes(value: Value, declared: str, types: dict[str, int]) -> int | None:
    """Size of a variable, as ``sizeof`` has it."""
    if isinstance(value, Array) and ("*" not in declared or declared.endswith(OWN_ARRAY)):
        return value.size_bytes
    return find_type_bytes(declared, types)


def ends_program(node: "Node | None") -> bool:
    """Whether a statement ends the program each time that it is reached."""
    if node is None or node.type not in _UNCONDITIONAL:
        return node is not None and node.type == "call_expression" and read_text(part(node, "function")) in _EXITS
    return any(map(ends_program, node.named_children))


def list_cases(switch: "Node") -> "list[Node]":
    """The cases of a ``switch``, the default among them, in the order of the text."""
    body = part(switch, "body")
    return [child for child in (list_parts(body)) if child.type == "case_statement"]


def ends_switch(case: "Node") -> bool:
    """Whether a case ends with a ``break``, so that it does not fall through."""
    inner = [child for child in case.named_children if child.type == "compound_statement"]
    return any(child.type == "break_statement" for one in (case, *inner) for child in one.named_children)


def can_be_followed(cases: "Sequence[Node]") -> bool:
    """Whether no ``break`` of the cases is conditional."""
    places = {"case_statement", *LOOPS}
    for node in (one for case in cases for one in walk(case) if one.type == "break_statement"):
        around = node.parent
        while around is not None and around.type == "compound_statement":
            around = around.parent
        if around is None or around.type not in places:
            return False
    return bool(cases)


def leaves_loop(body: "Node") -> bool:
    """Whether a statement in the body of a loop may end an iteration or the loop early."""
    return any(child.type in LEAVING and not _is_of_inner(child, body) for child in walk(body))


def _is_of_inner(node: "Node", body: "Node") -> bool:
    """Whether a node is a ``break`` or ``continue`` of an inner loop or ``switch``."""
    if node.type not in ("break_statement", "continue_statement"):
        return False
    around = node.parent
    while around is not None and around.id != body.id:
        if around.type in LOOPS or (around.type == "switch_statement" and node.type == "break_statement"):
            return True
        around = around.parent
    return False


def turns_are_alike(loop: "Node", within: "Iterable[Node]") -> bool:
    """Whether each iteration of a loop does the same work: no branches, and no inner loop depends on a variable that an iteration changes.

    Args:
        loop: a ``for`` that counts.
    """
    nodes = list(within)
    fields = (part(node, "field") for node in nodes if node.type == "field_expression")
    if any(node.type in _DECIDING for node in nodes) or any(read_text(one) in _SHRINKING for one in fields):
        return False
    changed = {
        find_identifier(part(node, _CHANGING[node.type]))
        for node in (*nodes, part(loop, "update"))
        if node is not None and node.type in _CHANGING
    }
    for inner in (node for node in nodes if node.type == "for_statement"):
        asked = [*walk(part(inner, "initializer")), *walk(part(inner, "condition"))]
        own = {
            find_identifier(part(one, "declarator" if one.type == "init_declarator" else "left"))
            for one in asked
            if one.type in ("init_declarator", "assignment_expression")
        }
        names = {read_text(one) for one in asked if one.type == "identifier"} - own
        if names & changed or any(one.type == "call_expression" for one in asked):
            return False
    return True


def unwrap(node: "Node | None") -> "Node | None":
    """The expression in parentheses."""
    children = list_parts(node)
    return children[-1] if children else None


def list_parameters(function: "Node") -> "list[Node]":
    """The parameters of a function's definition."""
    return [
        one for one in list_parts(part(find_function_declarator(function), "parameters")) if "parameter" in one.type
    ]


def strip_casts(node: "Node | None") -> "Node | None":
    """An expression without the casts and parentheses around it."""
    for _ in range(20):
        if node is None:
            return None
        if node.type == "cast_expression":
            node = part(node, "value")
        elif node.type == "parenthesized_expression":
            node = unwrap(node)
        elif node.type == "call_expression" and read_last_name(part(node, "function")) in CASTS:
            node = unwrap(part(node, "arguments"))
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
        node = part(node, "declarator") or next(
            (one for one in node.named_children if one.type == "identifier" or one.type.endswith("declarator")), None
        )
    return ""


def list_size_parts(declarator: "Node", value: "Node | None") -> "list[Node]":
    """Arguments a ``dim3`` is declared with: ``(a, b)``, ``{a, b}``, ``= dim3(a, b)``, or a declaration that looks like a function's."""
    if value is not None:
        return list_parts(value) if value.type in ("argument_list", "initializer_list") else [value]
    listed = list_parts(part(declarator, "parameters")) if declarator.type == "function_declarator" else []
    return [one for one in (parse_expression(read_text(one)) for one in listed) if one is not None]


def read_last_name(callee: "Node | None") -> str:
    """The plain name of a callee, without namespaces and template arguments."""
    node = callee
    while node is not None and node.type in ("qualified_identifier", "template_function"):
        node = part(node, "name")
    return read_text(node)


@lru_cache(maxsize=512)
def parse_expression(text: str) -> "Node | None":
    """The tree of an expression that stands by itself, such as a macro's value."""
    tree = read_tree("expression.cu", f"int x = ({text});")
    if tree is None or len(text) > 1000:
        return None
    return next((part(node, "value") for node in walk(tree.root) if node.type == "init_declarator"), None)


def list_kernels(tree: SourceTree) -> frozenset[str]:
    """Plain names of the kernels that a text defines or declares."""
    found = set()
    for node in list_file_nodes(tree):
        declarator = find_function_declarator(node) if node.type in ("function_definition", "declaration") else None
        if declarator is not None and b"__global__" in tree.content[node.start_byte : declarator.start_byte]:
            found.add(read_own_name(declarator))
    return frozenset(found)


def is_of_host(tree: SourceTree, function: "Node") -> bool:
    """Whether a function with a body can be called by host code."""
    body = part(function, "body")
    head = tree.content[function.start_byte : function.end_byte if body is None else body.start_byte]
    return b"__global__" not in head and (b"__device__" not in head or b"__host__" in head)


def find_functions(tree: SourceTree) -> "Iterator[tuple[str, Node]]":
    """Host functions with a body, by plain name; overloads are left out."""
    seen: dict[str, list[Node]] = {}
    for node in list_file_nodes(tree):
        declarator = find_function_declarator(node) if node.type == "function_definition" else None
        if declarator is not None and part(node, "body") is not None and is_of_host(tree, node):
            seen.setdefault(read_own_name(declarator), []).append(node)
    yield from ((name, nodes[0]) for name, nodes in seen.items() if len(nodes) == 1)


class Layout(Struct, frozen=True, kw_only=True):
    """A structure as C lays it out."""

    size_bytes: int | None  # of all of it; None where a member's size is not known
    # (name, type as written with its stars, offset in bytes), in order; as far as they are known
    members: tuple[tuple[str, str, int], ...]
    alignment: int = 1  # in bytes


# Structures of CUDA's own that host code fills and kernels take
_OF_CUDA = {
    name: Layout(
        size_bytes=8 * len(members),
        members=tuple((member, "void*" if member == "ptr" else "size_t", 8 * n) for n, member in enumerate(members)),
        alignment=8,
    )
    for name, members in {
        "cudaExtent": ("width", "height", "depth"),
        "cudaPitchedPtr": ("ptr", "pitch", "xsize", "ysize"),
    }.items()
}


def lay_out_structures(tree: SourceTree, macros: Mapping[str, str]) -> dict[str, Layout]:
    """The structures and classes of a text by name; names that are given to a type with ``typedef`` or ``using``, too."""
    found = dict(_OF_CUDA)
    sizes = {name: size for name, text in macros.items() if (size := find_type_bytes(text)) is not None}
    for node in walk(tree.root):
        name, inner = "", None
        if node.type in ("type_definition", "alias_declaration"):
            name = read_text(part(node, "declarator") or part(node, "name"))
            inner = part(node, "type")
        elif node.type in ("struct_specifier", "class_specifier"):
            name, inner = read_text(part(node, "name")), node
        if inner is None or not name.isidentifier() or name in found:
            continue
        if inner.type in ("struct_specifier", "class_specifier"):
            if part(inner, "body") is None:
                known = found.get(read_text(part(inner, "name")))
                if known is None or node.type != "type_definition":
                    continue
                found[name] = known
            else:
                found[name] = _lay_out(inner, sizes, found)
            size = found[name].size_bytes
        else:
            size = find_type_bytes(read_text(inner), sizes)
        if size:
            sizes[name] = size
            if name not in found and node.type in ("type_definition", "alias_declaration"):
                found[name] = Layout(size_bytes=size, members=(), alignment=min(size & -size, _LARGEST_ALIGNMENT))
    return found


def _lay_out(node: "Node", known: dict[str, int], laid_out: dict[str, Layout]) -> Layout:
    body = part(node, "body")
    end, largest = 0, _read_alignment(node)
    members: list[tuple[str, str, int]] = []
    is_plain = body is not None and not any(child.type == "base_class_clause" for child in node.children)
    for member in body.named_children if body is not None and is_plain else ():
        if member.type in _NO_MEMBERS or (member.type == "field_declaration" and _is_function(member)):
            is_plain = is_plain and "virtual" not in read_text(member).split("(")[0]
            continue
        if member.type != "field_declaration":
            is_plain = False
            break
        if read_text(member).startswith("static"):
            continue
        for declarator in member.children_by_field_name("declarator"):
            text = read_text(declarator)
            kind = read_text(part(member, "type")) + "*" * text.count("*")
            size = find_type_bytes(kind, known)
            if size is None or "[" in text or declarator.type not in ("field_identifier", "pointer_declarator"):
                return Layout(size_bytes=None, members=tuple(members))
            alignment = laid_out[kind].alignment if kind in laid_out else min(size & -size, _LARGEST_ALIGNMENT)
            end = -(-end // alignment) * alignment
            members.append((text.lstrip("*& \t"), kind, end))
            end += size
            largest = max(largest, alignment)
    size_bytes = -(-end // largest) * largest if end and is_plain else None
    return Layout(size_bytes=size_bytes, members=tuple(members) if is_plain else (), alignment=largest)


def _read_alignment(structure: "Node") -> int:
    """Bytes that ``alignas`` or ``__align__`` asks for; 1 without any."""
    asked = (
        list_parts(one)[0] for one in structure.named_children if one.type == "alignas_qualifier" and list_parts(one)
    )
    return max((value for one in asked if isinstance(value := read_literal(read_text(one)), int)), default=1)


def _is_function(member: "Node") -> bool:
    return any(one.type == "function_declarator" for one in member.children_by_field_name("declarator"))


def count_stars(declarator: "Node | None") -> int:
    """Number of ``*`` of a declarator, those in its bounds or parameters left out."""
    return re.split(r"[(\[]", read_text(declarator).lstrip("("))[0].count("*")


def find_bounds(declarator: "Node | None") -> "Node | None":
    """The part of an array's declarator with its bounds; None for what is no array, pointers to one among it."""
    node = declarator
    while node is not None and node.type == "pointer_declarator":
        node = part(node, "declarator")
    inner = node
    while inner is not None and inner.type == "array_declarator":
        inner = part(inner, "declarator")
    is_array = node is not None and node.type == "array_declarator" and inner is not None and inner.type == "identifier"
    return node if is_array else None
