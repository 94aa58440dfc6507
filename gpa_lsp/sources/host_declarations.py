"""What declared variables hold at first, in a walk through host code: :class:`Declarations`."""

from typing import TYPE_CHECKING

from gpa_lsp.sources.host_evaluation import VECTOR, copy_record
from gpa_lsp.sources.host_syntax import count_stars, find_bounds, list_size_parts
from gpa_lsp.sources.host_templates import TemplateEvaluation
from gpa_lsp.sources.host_text import HostText
from gpa_lsp.sources.host_values import Array, Record, Scope, Value, cast, combine
from gpa_lsp.sources.trees import SourceTree, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_ELEMENTS = 64


class Declarations(TemplateEvaluation):
    """Values of expressions, and of declared variables."""

    def __init__(self, tree: SourceTree, host: HostText) -> None:
        super().__init__(tree, host)
        self._lists: dict[str, tuple[Scope, list[Node]]] = {}

    def begin(self, name: str, kind: str, declarator: "Node", scope: Scope) -> Value:
        """What a declared variable holds."""
        inner: Node | None = declarator
        value: Node | None = None
        if declarator.type == "init_declarator":
            inner, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
        plain_kind = kind.removeprefix("const ").removeprefix("struct ").strip()
        element = VECTOR.fullmatch("".join(kind.split()))
        if element is not None:
            return self._begin_vector(name, element[1], declarator, value, scope)
        if kind == "dim3" or kind.endswith("::dim3"):
            return self.read_size(list_size_parts(declarator, value), scope)
        if find_bounds(inner) is not None:
            return self._begin_array(name, kind, inner, value, scope)
        if "*" not in read_text(inner) and (value is None or value.type in ("argument_list", "initializer_list")):
            made = self.construct(plain_kind, list_size_parts(declarator, value), scope)
            if made is not None:
                return made
        if plain_kind in self._structures and "*" not in read_text(inner) and self._structures[plain_kind].members:
            return self._begin_record(plain_kind, value, scope)
        if value is None:
            return None
        is_listed = value.type in ("argument_list", "initializer_list")
        plain = value.named_children[0] if is_listed and len(value.named_children) == 1 else value
        found = copy_record(cast(self.value(plain, scope), scope.types[name]))
        if found is None and self._inputs is not None:
            found = self._inputs.find(name, scope.types[name], plain)
        if isinstance(found, Array) and not found.name:
            found.name = name
        return found

    def _begin_array(self, name: str, kind: str, inner: "Node | None", value: "Node | None", scope: Scope) -> Array:
        bounds = find_bounds(inner)
        element = kind + "*" * count_stars(inner)
        size = None if bounds is None else self._measure_array(bounds, element, scope)
        array = Array(size, 0 if inner is None else inner.start_point[0] + 1, name)
        if value is not None and value.type == "initializer_list":
            nodes = [child for child in value.named_children if child.type != "comment"]
            self._lists[name] = scope, nodes
            for number, child in enumerate(nodes[:_MOST_ELEMENTS]):
                if not read_text(child).startswith("&"):
                    array.elements[str(number)] = self.value(child, scope)
            if array.size_bytes is None:
                listed = combine("*", self.measure(element), len(nodes))
                array.size_bytes = listed if isinstance(listed, int) else None
        return array

    def _begin_record(self, kind: str, value: "Node | None", scope: Scope) -> Value:
        members = self._structures[kind].members
        if value is not None and value.type == "initializer_list":
            nodes = [child for child in value.named_children if child.type != "comment"]
            if any(one.type == "initializer_pair" for one in nodes):
                return Record(kind)
            given = [self.value(one, scope) for one in nodes]
            return Record(kind, {one[0]: cast(given[n], one[1]) for n, one in enumerate(members) if n < len(given)})
        held = None if value is None or value.type == "argument_list" else self.value(value, scope)
        return copy_record(held) if isinstance(held, Record) else Record(kind)

    def _begin_vector(self, name: str, element: str, declarator: "Node", value: "Node | None", scope: Scope) -> Array:
        line = declarator.start_point[0] + 1
        if value is None and declarator.type == "identifier":
            return Array(0, line, name)
        nodes = list_size_parts(declarator, value)
        is_list = value is not None and value.type == "initializer_list"
        count: Value = len(nodes) if is_list else self.value(nodes[0], scope) if nodes else None
        if isinstance(count, Array):
            return Array(count.size_bytes if len(nodes) == 1 else None, line, name)
        size = combine("*", count, self.measure(element))
        return Array(size if isinstance(size, int) else None, line, name)

    def _measure_array(self, declarator: "Node", kind: str, scope: Scope) -> int | None:
        """Bytes of an array of the text's own."""
        total: Value = self.measure(kind)
        node: Node | None = declarator
        while node is not None and node.type == "array_declarator":
            size = node.child_by_field_name("size")
            total = None if size is None else combine("*", total, self.value(size, scope))
            node = node.child_by_field_name("declarator")
        return total if isinstance(total, int) else None
