"""Launches found in a walk through host code: :class:`NotedLaunches`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.code.sources.host_evaluation import VECTOR, Evaluation, copy_record
from gpa_lsp.code.sources.host_syntax import (
    OWN_ARRAY,
    count_stars,
    find_bounds,
    lay_out_structures,
    list_kernels,
    list_parameters,
    list_size_parts,
    parse_expression,
    read_last_name,
    strip_casts,
)
from gpa_lsp.code.sources.host_text import HostText
from gpa_lsp.code.sources.host_values import (
    Array,
    HostArgument,
    HostLaunch,
    Kernel,
    Record,
    Scope,
    Value,
    cast,
    combine,
    keep_small,
    read_name,
)
from gpa_lsp.code.sources.template_arguments import (
    bind_types,
    find_kernel_templates,
    find_type_names,
    list_given,
    list_template_parameters,
    spell_type,
)
from gpa_lsp.code.sources.trees import SourceTree, list_parts, part, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

WHOLE = re.compile(r"-?\d+")
_MOST_ELEMENTS = 64
_MOST_LAUNCHES = 256
_MOST_OF_ONE_PLACE = 4
_LAUNCHING = frozenset({"cudaLaunchKernel", "cudaLaunchCooperativeKernel"})


class Ended(Exception):  # noqa: N818  (it ends the reading, and is no error)
    """Enough was read."""


class Passage(Struct):
    """One walk through a function."""

    numbers: Mapping[str, Value] = field(default_factory=dict)  # that parameters of its template stand for
    # values of variables that a switch asks for, against what the text says
    assumed: dict[str, Value] = field(default_factory=dict)
    # variable and value of cases that were not gone through, and whether the text says that they are not
    others: list[tuple[str, Value, bool]] = field(default_factory=list)
    this: Record | None = None  # the object that a method is called for; None for functions


class NotedLaunches(Evaluation):
    """Values of expressions and declared variables, arguments of templates, and launches with all of them."""

    def __init__(self, tree: SourceTree, host: HostText) -> None:
        super().__init__(host, lay_out_structures(tree, host.macros))
        self._templates = find_kernel_templates(tree)
        self._type_names = find_type_names(tree)
        self._lists: dict[str, tuple[Scope, list[Node]]] = {}
        self._kernels = list_kernels(tree)
        self._found: dict[int, list[HostLaunch]] = {}
        self._noted: set[int] = set()  # Places of launches, those in branches not taken among them
        self._is_silent = False
        self._is_assumed = False
        self._is_beside = False
        self._found_beside: list[HostLaunch] = []

    def bind_template(
        self, given: Sequence[str], function: "Node", scope: Scope, nodes: "Sequence[Node]"
    ) -> dict[str, str]:
        """Template parameter → argument in a call, given explicitly or deduced from ``T``, ``T *`` or ``vector<T>``."""
        parameters = list_template_parameters(function)
        bound = {one.name: self._resolve(text, scope) for one, text in zip(parameters, given, strict=False)}
        listed = list_parameters(function) if parameters else []
        types = [self._find_passed_type(node, scope) for node in nodes]
        told = bind_types(parameters, [read_text(one) for one in listed], types) or {}
        for name, text in told.items():
            bound.setdefault(name, self._resolve(text, scope))
        for one in parameters:
            if one.default and one.name not in bound:
                bound[one.name] = self._resolve(one.default, scope)
        return bound

    def _find_passed_type(self, node: "Node", scope: Scope) -> str | None:
        """The declared type of a variable; None for any other expression."""
        declared = scope.read_type(read_name(strip_casts(node)))
        return None if declared is None else declared.removesuffix(OWN_ARRAY)

    def _resolve(self, text: str, scope: Scope) -> str:
        """A template argument with its names resolved to a type or a number; else as it is."""
        text = self._parameters.get(text, text)
        text = self._host.macros.get(text, text)
        spelled = spell_type(text, self._type_names)
        if spelled is not None:
            return spelled
        value = self.value(parse_expression(text), scope)
        return str(int(value)) if isinstance(value, (int, float)) and int(value) == value else text

    def read_template_arguments(
        self, callee: "Node | None", name: str, scope: Scope, nodes: "Sequence[Node]"
    ) -> tuple[str | None, ...]:
        """Template arguments of a launch; None for each that is unknown."""
        given, kernel = list_given(callee), self._templates.get(name)
        if kernel is None:
            told = [self._resolve(text, scope) for text in given]
        else:
            bound = self.bind_template(given, kernel, scope, nodes)
            told = [bound.get(one.name, "") for one in list_template_parameters(kernel)]
        return tuple(one if spell_type(one, self._type_names) or WHOLE.fullmatch(one) else None for one in told)

    # Declared variables

    def begin(self, name: str, kind: str, declarator: "Node", scope: Scope) -> Value:
        """Initial value of a declared variable."""
        inner: Node | None = declarator
        value: Node | None = None
        if declarator.type == "init_declarator":
            inner, value = part(declarator, "declarator"), part(declarator, "value")
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
            nodes = list_parts(value)
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
            nodes = list_parts(value)
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
            size = part(node, "size")
            total = None if size is None else combine("*", total, self.value(size, scope))
            node = part(node, "declarator")
        return total if isinstance(total, int) else None

    # Launches

    def list_launches(self) -> tuple[HostLaunch, ...]:
        """Launches in the order found; then those in branches not taken, of kernels that have no other launch."""
        found = [one for some in self._found.values() for one in some]
        known = {(one.kernel, one.template_arguments) for one in found}
        return (*found, *(one for one in self._found_beside if (one.kernel, one.template_arguments) not in known))

    @contextmanager
    def noting_beside(self) -> Iterator[None]:
        """Mark launches noted within as ones that the text does not choose."""
        self._is_assumed = self._is_beside = True
        try:
            yield
        finally:
            self._is_assumed = self._is_beside = False

    def launch(self, node: "Node", scope: Scope) -> bool:
        """Note the launch that a call makes; False where it makes none."""
        if not is_launch(node):
            return False
        callee, given = part(node, "function"), part(node, "arguments")
        nodes = list_parts(given)
        syntax = next((child for child in node.named_children if child.type == "kernel_call_syntax"), None)
        if syntax is not None:
            settings = list_parts(syntax)
            name, passed = read_last_name(callee), [self._pass(child, scope) for child in nodes]
        else:
            if len(nodes) < 4:
                return True
            target = strip_casts(nodes[0])
            target = part(target, "argument") if target is not None and is_pointer(target) else target
            inner, listed = self._lists.get(read_name(strip_casts(nodes[3])), (scope, []))
            name, settings = read_last_name(target), [*nodes[1:3], *nodes[4:5]]
            passed = [self._pass(part(one, "argument"), inner) for one in map(strip_casts, listed) if one]
        if len(settings) < 2 or self._is_silent:
            return True
        callee = callee if syntax is not None else target
        held = scope.read(name)
        name = held.name if isinstance(held, Kernel) else name
        shared = self.value(settings[2], scope) if len(settings) > 2 else 0
        grid, block = (self.read_extent(one, scope) for one in settings[:2])
        line, file = self._host.locate(node.start_point[0] + 1)
        self._note(
            node.start_byte,
            HostLaunch(
                kernel=name,
                line=line,
                grid=grid.parts,
                block=block.parts,
                block_axes=block.axes,
                shared_bytes=int(shared) if isinstance(shared, (int, float)) else None,
                arguments=tuple(passed),
                file=file,
                template_arguments=self.read_template_arguments(callee, name, scope, nodes),
                is_assumed=self._is_assumed,
            ),
        )
        return True

    def _note(self, place: int, launch: HostLaunch) -> None:
        self._noted.add(place)
        if self._is_beside:
            is_new = all(_find_shape(one) != _find_shape(launch) for one in self._found_beside)
            if is_new and len(self._found_beside) < _MOST_LAUNCHES:
                self._found_beside.append(launch)
            return
        known = self._found.setdefault(place, [])
        if any(_covers(one, launch) for one in known):
            return
        vaguer = [one for one in known if _covers(launch, one)]
        own = launch.kernel, launch.template_arguments
        alike = [one for one in known if (one.kernel, one.template_arguments) == own]
        if vaguer:
            self._found[place] = [launch if one is vaguer[0] else one for one in known if one not in vaguer[1:]]
        elif len(alike) < _MOST_OF_ONE_PLACE:
            known.append(launch)
        elif launch.threads > alike[-1].threads:  # the first ones of a loop, and its largest
            known[known.index(alike[-1])] = launch
        if sum(map(len, self._found.values())) >= _MOST_LAUNCHES:
            raise Ended

    def _pass(self, node: "Node | None", scope: Scope) -> HostArgument:
        value = self.value(node, scope)
        line = 0 if node is None else node.start_point[0] + 1
        passed = self._describe(value, " ".join(read_text(node).split()), line)
        if isinstance(value, Array):
            value.is_zero = False  # the kernel may write to it
        return passed

    def _describe(self, value: Value, text: str, line: int) -> HostArgument:
        array = value if isinstance(value, Array) else None
        members: list[tuple[int, HostArgument]] = []
        if isinstance(value, Record):
            for name, kind, offset in self._structures[value.type].members:
                held = value.elements.get(name)
                if held is not None:
                    members.append((offset, self._describe(cast(held, kind), f"{text}.{name}", line)))
        place, file = self._host.locate(line if array is None else array.line)
        return HostArgument(
            text=text,
            value=keep_small(value) if isinstance(value, (int, float)) else None,
            size_bytes=None if array is None else array.size_bytes,
            is_array=array is not None,
            line=place,
            file=file,
            offset=0 if array is None else array.offset,
            is_zero=array is not None and array.is_zero,
            members=tuple(members),
        )


def _find_shape(one: HostLaunch) -> tuple[object, ...]:
    """The values by which launches are compared."""
    sizes = (item.size_bytes for item in one.arguments)
    return one.kernel, *one.template_arguments, one.grid, one.block, one.shared_bytes, *sizes


def _covers(launch: HostLaunch, other: HostLaunch) -> bool:
    """Whether the other launch adds no value to this one, and is assumed if this one is."""
    shape, known = _find_shape(launch), _find_shape(other)
    if len(shape) != len(known) or (launch.is_assumed and not other.is_assumed):
        return False
    return all(theirs in (None, own) for own, theirs in zip(shape, known, strict=True))


def is_launch(node: "Node") -> bool:
    """Whether a node is a launch in angle brackets, or a call of ``cudaLaunchKernel`` or its like."""
    if node.type != "call_expression":
        return False
    if any(child.type == "kernel_call_syntax" for child in node.named_children):
        return True
    return read_last_name(part(node, "function")) in _LAUNCHING


def is_pointer(node: "Node") -> bool:
    """Whether a node is ``*p`` or ``&a``."""
    return node.type == "pointer_expression"
