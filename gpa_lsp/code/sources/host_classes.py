"""Classes in a walk through host code: their members, constructors and methods: :class:`ClassReading`."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.host_evaluation import VECTOR
from gpa_lsp.code.sources.host_noting import NotedLaunches
from gpa_lsp.code.sources.host_syntax import is_of_host, list_size_parts
from gpa_lsp.code.sources.host_text import HostText
from gpa_lsp.code.sources.host_values import Record, Scope, Size, Value, cast
from gpa_lsp.code.sources.template_arguments import list_given
from gpa_lsp.code.sources.trees import SourceTree, read_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_CLASSES = frozenset({"struct_specifier", "class_specifier"})
_MAKING = frozenset({"make_unique", "make_shared"})


class HostClass(Struct, frozen=True, kw_only=True):
    """A class of the text."""

    # (name, type as written with its stars, what it holds at first or None), in order
    members: "tuple[tuple[str, str, Node | None], ...]"
    methods: "Mapping[str, Node]"  # with a body, by name; the constructor among them, overloads left out


def find_classes(tree: SourceTree) -> dict[str, HostClass]:
    """The classes of a text by name, with the methods that are defined outside of them."""
    bodies = {name: body for node in walk(tree.root) for name, body in _read_class(node)}
    methods: dict[str, dict[str, list[Node]]] = {name: {} for name in bodies}
    outside = (node for node in list_file_nodes(tree) if node.type == "function_definition")
    inside = ((name, node) for name, body in bodies.items() for node in body.named_children)
    for name, node in (*inside, *((_find_class(node), node) for node in outside)):
        declarator = find_function_declarator(node) if node.type == "function_definition" else None
        has_body = node.child_by_field_name("body") is not None
        if name in methods and declarator is not None and has_body and is_of_host(tree, node):
            methods[name].setdefault(read_own_name(declarator), []).append(node)
    return {
        name: HostClass(
            members=tuple(_list_members(body)),
            methods={one: nodes[0] for one, nodes in methods[name].items() if len(nodes) == 1},
        )
        for name, body in bodies.items()
    }


def _read_class(node: "Node") -> "Iterator[tuple[str, Node]]":
    inner = node.child_by_field_name("type") if node.type == "type_definition" else node
    if inner is None or inner.type not in _CLASSES:
        return
    named, body = (
        node.child_by_field_name("declarator") or node.child_by_field_name("name"),
        inner.child_by_field_name("body"),
    )
    if named is not None and body is not None and read_text(named).isidentifier():
        yield read_text(named), body


def _find_class(definition: "Node") -> str:
    """The class that a definition outside of it is of; empty for plain functions."""
    declarator = find_function_declarator(definition)
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    found = ""
    while name is not None and name.type == "qualified_identifier":
        found = read_text(name.child_by_field_name("scope"))
        name = name.child_by_field_name("name")
    return found


def _list_members(body: "Node") -> "Iterator[tuple[str, str, Node | None]]":
    for member in body.named_children:
        if member.type != "field_declaration":
            continue
        kind = read_text(member.child_by_field_name("type"))
        declared = member.children_by_field_name("declarator")
        for declarator in declared:
            name = read_text(declarator).lstrip("*& \t")
            default = member.child_by_field_name("default_value") if len(declared) == 1 else None
            if name.isidentifier():
                yield name, kind + "*" * read_text(declarator).count("*"), default


class ClassReading(NotedLaunches):
    """Launches, and the objects whose methods make them."""

    def __init__(self, tree: SourceTree, host: HostText) -> None:
        super().__init__(tree, host)
        self._classes = find_classes(tree)
        self._globals = Scope()

    @abstractmethod
    def enter_method(
        self, record: Record, name: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]"
    ) -> Value:
        """Go through a method of an object."""

    def open(self, record: Record) -> Scope:
        """The members of an object as names."""
        types = {name: kind for name, kind, _ in self._classes[record.type].members}
        return Scope(values=record.elements, types=types, outer=self._globals)

    def construct(self, kind: str, nodes: "Sequence[Node]", scope: Scope) -> Record | None:
        """An object as its constructor leaves it; None for what is no class of the text, or is given members and no arguments."""
        found = self._classes.get(kind)
        if found is None or (kind not in found.methods and nodes):
            return None
        arguments = [self.value(one, scope) for one in nodes]
        return self.make(kind, arguments, scope, nodes)

    def make(self, kind: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]") -> Record:
        """An object of a class that the text has."""
        found = self._classes[kind]
        record = Record(kind, {name: Size(x=1) if one == "dim3" else None for name, one, _ in found.members})
        inner = self.open(record)
        for name, one, default in found.members:
            if default is not None:
                record.elements[name] = self._begin_member(name, one, default, inner)
        if kind in found.methods:
            self.enter_method(record, kind, arguments, scope, nodes)
        return record

    def initialize(self, constructor: "Node", scope: Scope) -> None:
        """What stands between a constructor's parameters and its body."""
        listed = next((one for one in constructor.named_children if one.type == "field_initializer_list"), None)
        for one in () if listed is None else listed.named_children:
            if one.type == "field_initializer" and len(one.named_children) == 2:
                field, value = one.named_children
                name = read_text(field)
                scope.write(name, self._begin_member(name, scope.read_type(name) or "", value, scope))

    def _begin_member(self, name: str, kind: str, value: "Node", scope: Scope) -> Value:
        element = VECTOR.fullmatch("".join(kind.split()))
        if element is not None:
            return self._begin_vector(name, element[1], value, value, scope)
        is_listed = value.type in ("argument_list", "initializer_list")
        nodes = list_size_parts(value, value) if is_listed else [value]
        if kind == "dim3":
            return self.read_size(nodes, scope)
        return cast(self.value(nodes[0], scope), kind) if len(nodes) == 1 else None

    def find_method(self, held: Value, name: str) -> Record | None:
        """The object that a method of the text is called for."""
        known = self._classes.get(held.type) if isinstance(held, Record) else None
        return held if isinstance(held, Record) and known is not None and name in known.methods else None

    def make_object(self, callee: "Node | None", name: str, nodes: "Sequence[Node]", scope: Scope) -> Record | None:
        """``C(…)`` and ``std::make_unique<C>(…)``."""
        given = list_given(callee) if name in _MAKING else [name]
        return self.construct(given[0], nodes, scope) if given else None

    def list_methods(self) -> "Iterator[tuple[str, Node]]":
        """The methods of all classes: ``C::m``."""
        for kind, one in self._classes.items():
            for name, node in one.methods.items():
                yield f"{kind}::{name}", node
