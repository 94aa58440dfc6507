"""Instances of kernel templates that host code launches, found before the host code is left out.

A launch names its template arguments, or they follow from what is passed. Both are read from the text: names of constants and of the template
parameters of the function around are replaced by what they stand for; types of variables are those of their declarations. What cannot be told so is
not guessed, and said.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.host_syntax import read_last_name
from gpa_lsp.code.sources.template_arguments import list_template_parameters, match_parameters, split_arguments
from gpa_lsp.code.sources.trees import MOST_NODES, SourceTree, list_ancestors, read_text, walk

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
    """Type of an expression; None if it is not obvious.

    >>> from gpa_lsp.code.sources.trees import read_tree
    >>> tree = read_tree("k.cu", "void f(const float* p) { int n = 3; g(p, n, 2.0f, (double*)q, &n, p + 4); }")
    >>> call = next(one for one in walk(tree.root) if one.type == "call_expression")
    >>> [find_argument_type(tree, one) for one in call.child_by_field_name("arguments").named_children]
    ['const float*', 'int', 'float', 'double*', 'int*', 'const float*']
    """
    read = _READERS.get(argument.type)
    return read(tree, argument) if read is not None else None


def _find_around(node: "Node | None", kind: str) -> "Node | None":
    """The innermost node of a kind that encloses a node, or is it; None if there is none."""
    return next((one for one in (node, *list_ancestors(node)) if one.type == kind), None) if node is not None else None


def _find_inner_type(tree: SourceTree, node: "Node") -> str | None:
    inner = node.child_by_field_name("argument")
    return find_argument_type(tree, inner) if inner is not None else None


def _find_parenthesized_type(tree: SourceTree, node: "Node") -> str | None:
    return find_argument_type(tree, node.named_children[0]) if node.named_child_count == 1 else None


def _find_pointer_type(tree: SourceTree, node: "Node") -> str | None:
    """Type of ``&x`` or ``*x``."""
    if not read_text(node).startswith("&"):
        return _find_element_type(tree, node)
    found = _find_inner_type(tree, node)
    return None if found is None else f"{found}*"


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
    """Type of ``static_cast<T>(…)``, ``thrust::raw_pointer_cast(v.data())``, ``v.data()``."""
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
    """Declared type of a variable, by the nearest declaration in front of it."""
    function = _find_around(place, "function_definition")
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
    """(type, declarator) of all variables declared in a function, or directly in a file or namespace."""
    scope = _find_around(tree.root.descendant_for_byte_range(start, max(start, end - 1)), kind)
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
    """Pointer and array levels that a declarator gives a name, as stars; None if it declares another name or no variable."""
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


MOST_EXPRESSIONS = 64
_MOST_LAUNCHES = 200
_MOST_CHOICES = 8
_DEEPEST = 3
_NAME = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")
_MARK = "__global__"
_BOOLEAN = re.compile(r"\bbool\s+(\w+)")
_THREAD_COUNT = re.compile(r"block|thread")


class Instantiations(Struct, frozen=True, kw_only=True):
    """Instances of a text's kernel templates to compile."""

    expressions: tuple[str, ...]  # e.g. ``scale<float, 4>``.
    # names of kernel templates of the text that are neither launched in a way that can be told nor instantiated by the text itself
    untold: tuple[str, ...]


def find_instantiations(tree: SourceTree) -> Instantiations:
    """Instances that a text's launches ask for.

    >>> from gpa_lsp.code.sources.trees import read_tree
    >>> text = "template <class T> __global__ void k(T* x) {} void f(float* p) { k<<<1, 2>>>(p); k<int><<<1, 2>>>(q); }"
    >>> find_instantiations(read_tree("k.cu", text))
    Instantiations(expressions=('k<float>', 'k<int>'), untold=())
    """
    templates = dict(_find_kernel_templates(tree))
    explicit = {_own_name(node) for node in list_file_nodes(tree) if node.type == "template_instantiation"}
    found: dict[str, None] = {}
    told: set[str] = set()
    for call in itertools.islice(_find_launches(tree), _MOST_LAUNCHES):
        callee = call.child_by_field_name("function")
        if callee is None:
            continue
        name = read_last_name(callee)
        for expression in _write_expressions(tree, call, callee, templates.get(name)):
            told.add(name)
            if len(found) < MOST_EXPRESSIONS:
                found[expression] = None
    untold = tuple(sorted(set(templates) - told - explicit))
    return Instantiations(expressions=tuple(found), untold=untold)


def guess_instantiations(tree: SourceTree) -> tuple[str, ...]:
    """An instance of each kernel template, for texts that give none: types are ``float``, numbers are usual ones.

    >>> from gpa_lsp.code.sources.trees import read_tree
    >>> text = "template <class T, int BLOCK, bool B, int N = 4> __global__ void k(T* x) {} template <class... T> __global__ void l(T... x) {}"
    >>> guess_instantiations(read_tree("k.cu", text))
    ('k<float, 256, false>',)
    """
    found = []
    for name, template in dict(_find_kernel_templates(tree)).items():
        function = next((child for child in template.named_children if child.type == "function_definition"), None)
        parameters = () if function is None else list_template_parameters(function)
        given = itertools.takewhile(lambda one: not one.default, parameters)
        kinds = template.child_by_field_name("parameters")
        booleans = set(_BOOLEAN.findall(read_text(kinds)))
        values = [_guess_argument(one.name, is_type=one.is_type, is_boolean=one.name in booleans) for one in given]
        if parameters:
            found.append(f"{_write_scope(template)}{name}<{', '.join(values)}>")
    return tuple(found[:MOST_EXPRESSIONS])


def _guess_argument(name: str, *, is_type: bool, is_boolean: bool) -> str:
    if is_type:
        return "float"
    if is_boolean:
        return "false"
    return "256" if _THREAD_COUNT.search(name.lower()) else "16"


def _write_scope(node: "Node") -> str:
    """Enclosing namespaces of a node, each followed by ``::``."""
    names = [
        read_text(one.child_by_field_name("name")) for one in list_ancestors(node) if one.type == "namespace_definition"
    ]
    return "".join(f"{name}::" for name in reversed(names) if name)


def _find_kernel_templates(tree: SourceTree) -> "Iterator[tuple[str, Node]]":
    """Name and ``template_declaration`` of each kernel template with a body."""
    for node in list_file_nodes(tree):
        if node.type != "function_definition" or node.parent is None or node.parent.type != "template_declaration":
            continue
        parameters = node.parent.child_by_field_name("parameters")
        is_full_specialisation = parameters is not None and parameters.named_child_count == 0
        if any(child.type == _MARK for child in node.children) and not is_full_specialisation:
            yield _own_name(node), node.parent


def _own_name(node: "Node") -> str:
    declarator = find_function_declarator(node)
    return read_own_name(declarator) if declarator is not None else ""


def _find_launches(tree: SourceTree) -> "Iterator[Node]":
    position = tree.content.find(b"<<<")
    while position >= 0:
        call = _find_around(tree.root.descendant_for_byte_range(position, position + 3), "call_expression")
        if call is not None:
            yield call
        position = tree.content.find(b"<<<", position + 3)


def _write_expressions(tree: SourceTree, call: "Node", callee: "Node", template: "Node | None") -> Iterator[str]:
    """Instances one launch asks for; several if it stands in a template that is used several times."""
    text = " ".join(read_text(callee).split())
    if "<" in text:
        texts: Sequence[str] = [text]
    elif template is not None:
        matched = _deduce(tree, call, template)
        texts = [] if matched is None else [f"{text}<{', '.join(matched)}>"]
    else:
        return
    around = _find_around(call, "function_definition")
    for one in texts:
        yield from _resolve(tree, one, around, 0)


def _deduce(tree: SourceTree, call: "Node", template: "Node") -> tuple[str, ...] | None:
    """Template arguments deduced from the launch's arguments; None if they cannot be."""
    arguments = call.child_by_field_name("arguments")
    function = next((child for child in template.named_children if child.type == "function_definition"), None)
    declarator = find_function_declarator(function) if function is not None else None
    formal = declarator.child_by_field_name("parameters") if declarator is not None else None
    parameters = () if function is None else list_template_parameters(function)
    if not parameters or arguments is None or formal is None:
        return None
    types = [find_argument_type(tree, argument) for argument in arguments.named_children]
    return match_parameters(parameters, [read_text(one) for one in formal.named_children], types)


def _resolve(tree: SourceTree, text: str, function: "Node | None", depth: int) -> Iterator[str]:
    """Expression with names local to the enclosing function replaced by their values."""
    if function is None or depth > _DEEPEST:
        yield text
        return
    constants = _read_constants(function)
    head, bracket, rest = text.partition("<")
    for _ in range(_DEEPEST):
        rest = _NAME.sub(lambda found: constants.get(found.group(), found.group()), rest)
    own = [one.name for one in list_template_parameters(function)]
    used = [name for name in own if re.search(rf"\b{re.escape(name)}\b", rest)]
    if not used:
        yield head + bracket + rest
        return
    for binding in itertools.islice(_find_bindings(tree, function, own, depth), _MOST_CHOICES):
        if all(name in binding for name in used):
            yield head + bracket + _NAME.sub(lambda found, b=binding: b.get(found.group(), found.group()), rest)  # type: ignore[misc]


def _read_constants(function: "Node") -> dict[str, str]:
    """Constants with a plain value that a function declares, parenthesized, and its type aliases."""
    found: dict[str, str] = {}
    body = function.child_by_field_name("body")
    for node in walk(body) if body is not None else ():
        if node.type == "declaration" and "const" in read_text(node).partition("=")[0]:
            for one in node.children_by_field_name("declarator"):
                value = one.child_by_field_name("value")
                name = one.child_by_field_name("declarator")
                is_plain = value is not None and value.type != "initializer_list"
                if is_plain and name is not None and name.type == "identifier":
                    found[read_text(name)] = f"({read_text(value)})"
        elif node.type in ("alias_declaration", "type_definition"):
            name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
            found[read_text(name)] = read_text(node.child_by_field_name("type"))
    return found


def _find_bindings(tree: SourceTree, function: "Node", names: Sequence[str], depth: int) -> Iterator[Mapping[str, str]]:
    """Values of a function's template parameters at each call with explicit template arguments."""
    name = _own_name(function)
    wanted = f"{name}<".encode()
    seen: set[str] = set()
    position = tree.content.find(wanted)
    while name and position >= 0:
        node = tree.root.descendant_for_byte_range(position, position + len(name))
        call = _find_around(node, "template_function")
        if call is not None and read_text(call) not in seen:
            seen.add(read_text(call))
            around = _find_around(call, "function_definition")
            for text in _resolve(tree, " ".join(read_text(call).split()), around, depth + 1):
                values = split_arguments(text.partition("<")[2].rpartition(">")[0])
                yield dict(zip(names, values, strict=False))
        position = tree.content.find(wanted, position + len(wanted))
