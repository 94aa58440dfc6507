"""Kernel templates that a text launches, and with which arguments: found in its host code before that is left out.

A launch names its template arguments, or they follow from what is passed. Both are read from the text: names of constants and of the template
parameters of the function around are replaced by what they stand for; types of variables are those of their declarations. What cannot be told so is
not guessed, and said.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.compiler.argument_types import find_argument_type
from gpa_lsp.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.sources.template_arguments import list_template_parameters, split_arguments
from gpa_lsp.sources.template_matching import match_parameters
from gpa_lsp.sources.trees import SourceTree, list_ancestors, read_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_EXPRESSIONS = 64
_MOST_LAUNCHES = 200
_MOST_CHOICES = 8
_DEEPEST = 3
_NAME = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")
_MARK = "__global__"
_BOOLEAN = re.compile(r"\bbool\s+(\w+)")
_OF_THREADS = re.compile(r"block|thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instantiations:
    """What of a text's kernel templates to compile.

    Attributes:
        expressions: e.g. ``scale<float, 4>``.
        untold: names of kernel templates of the text that are neither launched in a way that can be told nor instantiated by the text itself.
    """

    expressions: tuple[str, ...]
    untold: tuple[str, ...]


def find_instantiations(tree: SourceTree) -> Instantiations:
    """The instantiations that a text's launches ask for.

    >>> from gpa_lsp.sources.trees import read_tree
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
        name = _read_last_name(callee)
        for expression in _write_expressions(tree, call, callee, templates.get(name)):
            told.add(name)
            if len(found) < MOST_EXPRESSIONS:
                found[expression] = None
    untold = tuple(sorted(set(templates) - told - explicit))
    return Instantiations(expressions=tuple(found), untold=untold)


def guess_instantiations(tree: SourceTree) -> tuple[str, ...]:
    """An instance of each kernel template, for texts that give none: types are ``float``, numbers are usual ones.

    >>> from gpa_lsp.sources.trees import read_tree
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
    return "256" if _OF_THREADS.search(name.lower()) else "16"


def _write_scope(node: "Node") -> str:
    """The namespaces around a node, with ``::`` behind each."""
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
        node = tree.root.descendant_for_byte_range(position, position + 3)
        around = () if node is None else (node, *list_ancestors(node))
        call = next((one for one in around if one.type == "call_expression"), None)
        if call is not None:
            yield call
        position = tree.content.find(b"<<<", position + 3)


def _read_last_name(callee: "Node") -> str:
    node: Node | None = callee
    while node is not None and node.type in ("qualified_identifier", "template_function"):
        node = node.child_by_field_name("name")
    return read_text(node)


def _write_expressions(tree: SourceTree, call: "Node", callee: "Node", template: "Node | None") -> Iterator[str]:
    """The instantiations one launch asks for; several where it stands in a template that is used several times."""
    text = " ".join(read_text(callee).split())
    if "<" in text:
        texts: Sequence[str] = [text]
    elif template is not None:
        matched = _deduce(tree, call, template)
        texts = [] if matched is None else [f"{text}<{', '.join(matched)}>"]
    else:
        return
    around = next((one for one in list_ancestors(call) if one.type == "function_definition"), None)
    for one in texts:
        yield from _resolve(tree, one, around, 0)


def _deduce(tree: SourceTree, call: "Node", template: "Node") -> tuple[str, ...] | None:
    """The template arguments that follow from what is passed; None where they do not."""
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
    """An expression with the names that only the function around it knows replaced by what they stand for."""
    if function is None or depth > _DEEPEST:
        yield text
        return
    constants = _read_constants(function)
    head, bracket, rest = text.partition("<")
    for _ in range(_DEEPEST):
        rest = _NAME.sub(lambda found: constants.get(found.group(), found.group()), rest)
    own = _read_parameter_names(function)
    used = [name for name in own if re.search(rf"\b{re.escape(name)}\b", rest)]
    if not used:
        yield head + bracket + rest
        return
    for binding in itertools.islice(_find_bindings(tree, function, own, depth), _MOST_CHOICES):
        if all(name in binding for name in used):
            yield head + bracket + _NAME.sub(lambda found, b=binding: b.get(found.group(), found.group()), rest)  # type: ignore[misc]


def _read_constants(function: "Node") -> dict[str, str]:
    """Constants with a plain value that a function declares, the value in parentheses; types that it renames, too."""
    found: dict[str, str] = {}
    body = function.child_by_field_name("body")
    for node in walk(body) if body is not None else ():
        if node.type == "declaration" and "const" in read_text(node).partition("=")[0]:
            for one in node.children_by_field_name("declarator"):
                value = one.child_by_field_name("value")
                name = one.child_by_field_name("declarator")
                if (
                    value is not None
                    and name is not None
                    and name.type == "identifier"
                    and value.type != "initializer_list"
                ):
                    found[read_text(name)] = f"({read_text(value)})"
        elif node.type in ("alias_declaration", "type_definition"):
            name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
            found[read_text(name)] = read_text(node.child_by_field_name("type"))
    return found


def _read_parameter_names(function: "Node") -> tuple[str, ...]:
    return tuple(one.name for one in list_template_parameters(function))


def _find_bindings(tree: SourceTree, function: "Node", names: Sequence[str], depth: int) -> Iterator[Mapping[str, str]]:
    """What the template parameters of a function stand for, at each place that calls it with arguments in angle brackets."""
    name = _own_name(function)
    wanted = f"{name}<".encode()
    seen: set[str] = set()
    position = tree.content.find(wanted)
    while name and position >= 0:
        node = tree.root.descendant_for_byte_range(position, position + len(name))
        call = (
            None
            if node is None
            else next((one for one in (node, *list_ancestors(node)) if one.type == "template_function"), None)
        )
        if call is not None and read_text(call) not in seen:
            seen.add(read_text(call))
            around = next((one for one in list_ancestors(call) if one.type == "function_definition"), None)
            for text in _resolve(tree, " ".join(read_text(call).split()), around, depth + 1):
                values = split_arguments(text.partition("<")[2].rpartition(">")[0])
                yield dict(zip(names, values, strict=False))
        position = tree.content.find(wanted, position + len(wanted))
