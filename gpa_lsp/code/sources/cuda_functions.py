"""The functions of a CUDA C++ text: which one is around a place, which one is a kernel, what it takes."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.trees import SourceTree, find_nodes_at, list_ancestors, read_text, walk, walk_lines

if TYPE_CHECKING:
    from tree_sitter import Node

_MARKS = frozenset({"__global__", "__device__", "__host__", "__forceinline__", "__noinline__"})
# What may stand around a function that is no member of a class
_CONTAINERS = frozenset({
    "translation_unit", "namespace_definition", "declaration_list", "linkage_specification", "template_declaration",
    "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
})  # fmt: skip

_KEEPING = frozenset(
    {"init_declarator", "assignment_expression", "initializer_list", "return_statement", "pointer_expression"}
)
_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})


class CudaFunction(Struct, frozen=True, kw_only=True, eq=False):
    """A function with a body."""

    node: "Node"  # the whole definition
    name: str  # its own, without namespace or class
    marks: frozenset[str]  # ``__global__``, ``__device__`` and their like
    declarator: "Node"  # name and parameters
    parameters: tuple["Node", ...]  # the declarations of its parameters
    body: "Node"  # between the braces
    is_member: bool  # of a class, so that names may be the class's

    @property
    def is_kernel(self) -> bool:
        """Whether it is launched from the host."""
        return "__global__" in self.marks

    @property
    def is_device_only(self) -> bool:
        """Whether it runs only on the device, so that it can call functions that only the device has."""
        return (
            bool(self.marks & {"__global__", "__device__"}) and "__host__" not in self.marks and not self.is_constexpr
        )

    @property
    def is_constexpr(self) -> bool:
        """Whether it is ``constexpr``: the compiler may have to evaluate it, which it cannot do with a device function."""
        return any(child.type == "type_qualifier" and read_text(child) == "constexpr" for child in self.node.children)


def find_function_around(node: "Node") -> CudaFunction | None:
    """The innermost function with a body that holds a node; None outside functions, and for one of a shape that is not understood."""
    found = next((around for around in (node, *list_ancestors(node)) if around.type == "function_definition"), None)
    return None if found is None else read_function(found)


def find_functions_on_lines(tree: SourceTree, lines: frozenset[int]) -> tuple[CudaFunction, ...]:
    """The functions whose text touches some lines (1-based), in the order of the text."""
    found: dict[int, CudaFunction] = {}
    rows = set()
    for node in walk_lines(tree.root, lines):
        row = node.start_point[0]
        # What follows on a line is in the same function as its first node, or in one that begins there.
        if row in rows and node.type != "function_definition":
            continue
        rows.add(row)
        function = find_function_around(node)
        if function is not None:
            found.setdefault(function.node.id, function)
    return tuple(found.values())


def find_kernels(tree: SourceTree, name: str) -> tuple[CudaFunction, ...]:
    """The ``__global__`` functions of a name that have a body here.

    Several where templates are specialised, or where the preprocessor chooses.

    >>> from gpa_lsp.code.sources.trees import read_tree
    >>> tree = read_tree("k.cu", "namespace n { template <class T> __global__ void k(T* x) {} }")
    >>> [found.name for found in find_kernels(tree, "k")], find_kernels(tree, "other")
    (['k'], ())
    """
    return _find_all_kernels(tree).get(name, ())


@lru_cache(maxsize=16)
def _find_all_kernels(tree: SourceTree) -> Mapping[str, tuple[CudaFunction, ...]]:
    """All kernels of a file by name, found in one pass: a file may have hundreds, and each is asked for."""
    found: dict[str, tuple[CudaFunction, ...]] = {}
    for node in list_file_nodes(tree):
        if node.type == "function_definition":
            function = read_function(node)
            if function is not None and function.is_kernel:
                found[function.name] = (*found.get(function.name, ()), function)
    return found


@lru_cache(maxsize=16)
def list_file_nodes(tree: SourceTree) -> tuple["Node", ...]:
    """Nodes at the level of the file, also inside namespaces, templates and preprocessor conditions, but not in functions or classes."""
    found, stack = [], [tree.root]
    while stack:
        node = stack.pop()
        found.append(node)
        if node.type in _CONTAINERS:
            stack.extend(reversed(node.named_children))
    return tuple(found)


@lru_cache(maxsize=16)
def find_function_names(tree: SourceTree) -> frozenset[str]:
    """Names of the functions the file itself defines or declares outside classes."""
    names = set()
    for node in list_file_nodes(tree):
        if node.type in ("function_definition", "declaration"):
            declarator = find_function_declarator(node)
            if declarator is not None:
                names.add(read_own_name(declarator))
    return frozenset(names)


def count_declarations(tree: SourceTree, name: str) -> int:
    """Number of definitions and declarations of a function of that name outside classes, explicit instantiations included."""
    count = 0
    for node in list_file_nodes(tree):
        if node.type in ("function_definition", "declaration", "template_instantiation"):
            declarator = find_function_declarator(node)
            count += declarator is not None and read_own_name(declarator) == name
    return count


def find_function_declarator(node: "Node") -> "Node | None":
    """The part of a definition or declaration that holds name and parameters; None where it declares no function."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        # A reference's declarator has no name for what it holds.
        declarator = inner or next(
            (child for child in declarator.named_children if child.type.endswith("declarator")), None
        )
    return declarator


def read_own_name(declarator: "Node") -> str:
    """A function's name without namespace, class or template arguments."""
    name = declarator.child_by_field_name("declarator")
    while name is not None and name.type in ("qualified_identifier", "template_function"):
        name = name.child_by_field_name("name")
    return read_text(name)


def read_function(node: "Node") -> CudaFunction | None:
    """A definition as a function; None where it has no body (``= default``) or no plain declarator."""
    declarator, body = find_function_declarator(node), node.child_by_field_name("body")
    if declarator is None or body is None or body.type != "compound_statement":
        return None
    parameters = declarator.child_by_field_name("parameters")
    qualified = declarator.child_by_field_name("declarator")
    return CudaFunction(
        node=node,
        name=read_own_name(declarator),
        marks=frozenset(child.type for child in node.children if child.type in _MARKS),
        declarator=declarator,
        parameters=tuple(parameters.named_children) if parameters is not None else (),
        body=body,
        is_member=(qualified is not None and qualified.type == "qualified_identifier")
        or any(around.type in _CLASSES for around in list_ancestors(node)),
    )


def has_internal_linkage(function: CudaFunction) -> bool:
    """Whether a function is ``static`` or in a namespace without a name, so that no other file can declare it."""
    if any(
        child.type == "storage_class_specifier" and read_text(child) == "static" for child in function.node.children
    ):
        return True
    namespaces = (around for around in list_ancestors(function.node) if around.type == "namespace_definition")
    return any(namespace.child_by_field_name("name") is None for namespace in namespaces)


def find_kernel_calls(tree: SourceTree, name: str) -> Iterator["Node"]:
    """Launches of a kernel in the same file, ``name<<<…>>>(…)``."""
    for node in find_nodes_at(tree, b"<<<"):
        call = next((one for one in list_ancestors(node) if one.type == "call_expression"), None)
        if call is not None and name in {
            read_text(one) for one in walk(call.children[0], most=100) if one.child_count == 0
        }:
            yield call


def find_parameter(tree: SourceTree, name: str, index: int) -> "Node | None":
    """The declaration of a parameter of a function of this file; None where the file has none or several of that name, or fewer parameters."""
    found = [
        declarator
        for node in list_file_nodes(tree)
        if node.type in ("function_definition", "declaration")
        and (declarator := find_function_declarator(node)) is not None
        and read_own_name(declarator) == name
    ]
    parameters = found[0].child_by_field_name("parameters") if len(found) == 1 else None
    if parameters is None or index >= len(parameters.named_children):
        return None
    parameter = parameters.named_children[index]
    return parameter if parameter.type in ("parameter_declaration", "optional_parameter_declaration") else None


def has_own_headers(tree: SourceTree) -> bool:
    """Whether the file includes headers in quotes, which may declare its functions."""
    nodes = (node for node in list_file_nodes(tree) if node.type == "preproc_include")
    return any(read_text(node.child_by_field_name("path")).startswith('"') for node in nodes)


def is_kept_as_value(tree: SourceTree, name: str) -> bool:
    """Whether the file assigns a function to a variable, so that the variable's type spells out the function's."""
    for node in find_nodes_at(tree, name.encode()):
        around = node.parent if read_text(node) == name else None
        if around is not None and around.type in _KEEPING and around.child_by_field_name("declarator") != node:
            return True
    return False
