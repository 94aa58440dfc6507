"""The launches that a walk through host code comes to: :class:`NotedLaunches`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpa_lsp.sources.host_declarations import Declarations
from gpa_lsp.sources.host_launch import HostArgument, HostLaunch
from gpa_lsp.sources.host_syntax import list_kernels, read_last_name, strip_casts
from gpa_lsp.sources.host_text import HostText
from gpa_lsp.sources.host_values import Array, Kernel, Record, Scope, Value, cast, keep_small, read_name
from gpa_lsp.sources.trees import SourceTree, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_LAUNCHES = 256
_MOST_OF_ONE_PLACE = 4
_LAUNCHING = frozenset({"cudaLaunchKernel", "cudaLaunchCooperativeKernel"})


class Ended(Exception):  # noqa: N818  (it ends the reading, and is no error)
    """Enough was read."""


class NotedLaunches(Declarations):
    """Values of expressions and declared variables, and launches with both."""

    def __init__(self, tree: SourceTree, host: HostText) -> None:
        super().__init__(tree, host)
        self._kernels = list_kernels(tree)
        self._found: dict[int, list[HostLaunch]] = {}
        self._is_silent = False
        self._is_assumed = False
        self._is_beside = False
        self._found_beside: list[HostLaunch] = []

    def list_launches(self) -> tuple[HostLaunch, ...]:
        """In the order in which they were come to; behind them those of branches that are not taken, of kernels that nothing else launches."""
        found = [one for some in self._found.values() for one in some]
        known = {(one.kernel, one.template_arguments) for one in found}
        return (*found, *(one for one in self._found_beside if (one.kernel, one.template_arguments) not in known))

    @contextmanager
    def noting_beside(self) -> Iterator[None]:
        """What is launched within is what the text does not choose."""
        self._is_assumed = self._is_beside = True
        try:
            yield
        finally:
            self._is_assumed = self._is_beside = False

    def launch(self, node: "Node", scope: Scope) -> bool:
        """Note what a call launches; False where it launches nothing."""
        if not is_launch(node):
            return False
        callee, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        nodes = [] if given is None else [child for child in given.named_children if child.type != "comment"]
        syntax = next((child for child in node.named_children if child.type == "kernel_call_syntax"), None)
        if syntax is not None:
            settings = [child for child in syntax.named_children if child.type != "comment"]
            name, passed = read_last_name(callee), [self._pass(child, scope) for child in nodes]
        else:
            if len(nodes) < 4:
                return True
            target = strip_casts(nodes[0])
            target = target.child_by_field_name("argument") if target is not None and is_pointer(target) else target
            inner, listed = self._lists.get(read_name(strip_casts(nodes[3])), (scope, []))
            name, settings = read_last_name(target), [*nodes[1:3], *nodes[4:5]]
            passed = [self._pass(one.child_by_field_name("argument"), inner) for one in map(strip_casts, listed) if one]
        if len(settings) < 2 or self._is_silent:
            return True
        callee = callee if syntax is not None else target
        held = scope.read(name)
        name = held.name if isinstance(held, Kernel) else name
        shared = self.value(settings[2], scope) if len(settings) > 2 else 0
        line, file = self._host.locate(node.start_point[0] + 1)
        self._note(
            node.start_byte,
            HostLaunch(
                kernel=name,
                line=line,
                grid=self.read_extent(settings[0], scope),
                block=self.read_extent(settings[1], scope),
                shared_bytes=int(shared) if isinstance(shared, (int, float)) else None,
                arguments=tuple(passed),
                file=file,
                template_arguments=self.read_template_arguments(callee, name, scope, nodes),
                is_assumed=self._is_assumed,
            ),
        )
        return True

    def _note(self, place: int, launch: HostLaunch) -> None:
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
        if sum(map(len, self._found.values())) >= _MOST_LAUNCHES:
            raise Ended

    def _pass(self, node: "Node | None", scope: Scope) -> HostArgument:
        value = self.value(node, scope)
        line = 0 if node is None else node.start_point[0] + 1
        return self._describe(value, " ".join(read_text(node).split()), line)

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
            members=tuple(members),
        )


def _find_shape(one: HostLaunch) -> tuple[object, ...]:
    """What tells launches apart."""
    sizes = (item.size_bytes for item in one.arguments)
    return one.kernel, *one.template_arguments, one.grid, one.block, one.shared_bytes, *sizes


def _covers(launch: HostLaunch, other: HostLaunch) -> bool:
    """The other says nothing of its shape that the launch does not, and is assumed if the launch is."""
    shape, known = _find_shape(launch), _find_shape(other)
    if len(shape) != len(known) or (launch.is_assumed and not other.is_assumed):
        return False
    return all(theirs in (None, own) for own, theirs in zip(shape, known, strict=True))


def is_launch(node: "Node") -> bool:
    """A launch in angle brackets, or a call of a function that launches."""
    if node.type != "call_expression":
        return False
    if any(child.type == "kernel_call_syntax" for child in node.named_children):
        return True
    return read_last_name(node.child_by_field_name("function")) in _LAUNCHING


def is_pointer(node: "Node") -> bool:
    """``*p`` or ``&a``."""
    return node.type == "pointer_expression"
