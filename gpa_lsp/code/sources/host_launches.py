"""Launches in host code, which is read and not run: grid, block, shared memory, scalars and sizes of arrays, as far as the text decides them.

The text's ``main`` (or, without one, each function that launches something, callers first) is walked statement by statement: declarations,
assignments, allocations, calls of functions of the same text, the branches that are taken, short loops iteration by iteration, and the first
iteration of others. Values that the text does not decide stay unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.host_evaluation import copy_record
from gpa_lsp.code.sources.host_inputs import AssumedInputs
from gpa_lsp.code.sources.host_noting import WHOLE, Ended, Passage, is_launch, is_pointer
from gpa_lsp.code.sources.host_statements import Left, NeedsArguments, Returned, Statements
from gpa_lsp.code.sources.host_syntax import (
    find_identifier,
    list_parameters,
    strip_casts,
)
from gpa_lsp.code.sources.host_text import HostText, join_texts
from gpa_lsp.code.sources.host_values import (
    Array,
    HostLaunch,
    Number,
    Record,
    Scope,
    Snapshot,
    Value,
    combine,
    read_name,
)
from gpa_lsp.code.sources.template_arguments import list_given
from gpa_lsp.code.sources.trees import SourceTree, list_parts, part, read_text, read_tree, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST_CALLS, _MOST_RECURSIONS = 12, 3
_MOST_CASES = 24


@lru_cache(maxsize=16)
def find_host_launches(
    file: str,
    text: str,
    included: tuple[tuple[str, str], ...] = (),
    defined: tuple[str, ...] = (),
    *,
    told: tuple[tuple[str, Number], ...] = (),
) -> tuple[HostLaunch, ...]:
    """The launches of a text in the order its program would make them; each place once, and again where it launches another shape.

    Args:
        file: its name, for the language.
        text: of the whole file.
        included: (path, text) of the project's headers that it includes.
        defined: macros of its compile command, as after ``-D``.
        told: values of inputs that the user gives, by variable or by the expression that is read, such as ``argv[1]``.

    >>> text = "#define N 1000\\nint main() { float *p; cudaMalloc(&p, N * sizeof(float)); k<<<(N + 255) / 256, 256>>>(p, N); }"
    >>> (launch,) = find_host_launches("k.cu", text)
    >>> launch.grid, launch.block, [(one.value, one.size_bytes) for one in launch.arguments]
    ((4, 1, 1), (256, 1, 1), [(None, 4000), (1000, None)])
    """
    inputs = AssumedInputs(told=dict(told), knows_only_told=True) if told else None
    return read_launches(file, text, included, defined, inputs)


def read_launches(
    file: str,
    text: str,
    included: tuple[tuple[str, str], ...],
    defined: tuple[str, ...],
    inputs: AssumedInputs | None,
) -> tuple[HostLaunch, ...]:
    """The launches as in :func:`find_host_launches`, with assumed inputs; without any, ``inputs`` is None."""
    if not any("<<" in one or "cudaLaunch" in one for one in (text, *(content for _, content in included))):
        return ()
    host = join_texts(text, included, defined, path=file)
    if "<<<" not in host.text and "cudaLaunch" not in host.text:
        return ()
    tree = read_tree(file, host.text)
    if tree is None and included:
        return read_launches(file, text, (), defined, inputs)
    return () if tree is None else _Reading(tree, host, inputs).read()


class _Reading(Statements):
    """One walk through a text."""

    def __init__(self, tree: SourceTree, host: HostText, inputs: AssumedInputs | None = None) -> None:
        super().__init__(tree, host)
        self._inputs = inputs
        self._tree = tree
        self._declared = {
            read_own_name(declarator): list_parameters(node)
            for node in list_file_nodes(tree)
            if node.type == "declaration" and (declarator := find_function_declarator(node)) is not None
        }
        self._entered: set[str] = set()

    def read(self) -> tuple[HostLaunch, ...]:
        try:
            self._read_globals()
            if "main" in self._functions:
                before = Snapshot(self._scopes)
                try:
                    self._enter_function("main", [1], self._globals, ())
                except NeedsArguments:
                    self._begin_again(before)
                if self._has_refused and not self._noted:
                    self._takes_any_input = True
                    self._begin_again(before)
            before = Snapshot(self._scopes)
            for name in self._order_roots():
                if any(
                    is_launch(node) and node.start_byte not in self._noted
                    for node in self.walk_nodes(self._functions[name])
                ):
                    before.go_back()  # calls before it are unknown
                    self._forget_written()
                    # what a function that has been walked through has left is in branches that the text does not choose
                    with self.noting_beside() if name in self._entered else nullcontext():
                        self._enter_root(name)
        except Ended:
            pass
        return self.list_launches()

    def _begin_again(self, before: Snapshot) -> None:
        """Walk through the program once more, without a known number of arguments."""
        before.go_back()
        self._found.clear()
        self._noted.clear()
        self._enter_function("main", [], self._globals, ())

    def _read_globals(self) -> None:
        """Evaluate declarations and enumerations of the file's level; headers, which stand behind the source in the joined text, come first."""
        declared = [node for node in list_file_nodes(self._tree) if node.type == "declaration"]
        own = self._host.files[0][0] if self._host.files else 0
        for node in sorted(declared, key=lambda one: own > one.start_point[0] + 1):
            self._declare(node, self._globals)
        for node in walk(self._tree.root):
            if node.type == "enum_specifier":
                self._read_enumerators(node)

    def _read_enumerators(self, node: "Node") -> None:
        body, kind = part(node, "body"), read_text(part(node, "name"))
        following: Value = 0
        for one in list_parts(body):
            if one.type == "enumerator":
                given = part(one, "value")
                value = following if given is None else self.value(given, self._globals)
                name = read_text(part(one, "name"))
                for spelled in (name, f"{kind}::{name}"):
                    self._globals.values.setdefault(spelled, value)
                following = combine("+", value, 1)

    def _forget_written(self) -> None:
        """Make global variables unknown that some function writes to, since the order of calls is unknown."""
        for function in self._functions.values():
            for name in _list_written(function):
                if name in self._globals.values and not isinstance(self._globals.values[name], (Array, Record)):
                    self._globals.values[name] = None

    def _order_roots(self) -> list[str]:
        """Functions of the text, those first that no other one calls."""
        called = {
            name
            for function in self._functions.values()
            for node in walk(function)
            if node.type == "call_expression"
            for name in self._list_called(node)
        }
        return sorted(self._functions, key=lambda name: name in called)

    def _enter_root(self, name: str) -> None:
        """Walk through a function that nothing calls; a method is called on an object as constructed."""
        kind, _, method = name.rpartition("::")
        if kind not in self._classes:
            self._enter_function(name, self._assume_parameters(name), self._globals, ())
            return
        constructor = f"{kind}::{kind}"
        given = self._assume_parameters(constructor) if constructor in self._functions else []
        record = self.make(kind, given, self._globals, ())
        if method != kind:
            self.enter_method(record, method, self._assume_parameters(name), self._globals, ())

    def enter_method(
        self, record: Record, name: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]"
    ) -> Value:
        return self._enter_function(f"{record.type}::{name}", arguments, scope, nodes, this=record)

    def _assume_parameters(self, name: str) -> list[Value]:
        """Arguments of a function that nothing in the text calls: assumed numbers, or none."""
        if self._inputs is None or name == "main":
            return []
        parameters = list_parameters(self._functions[name])
        return [
            self._inputs.take(one)
            if (default := self._find_default(name, number, one)) is None
            else self.value(default, self._globals)
            for number, one in enumerate(parameters)
        ]

    def _find_default(self, name: str, number: int, parameter: "Node") -> "Node | None":
        """Expression that stands for an argument that a call leaves out, from a function's definition or its declaration before that."""
        declared = self._declared.get(name, [])[number : number + 1]
        return next((one for each in (parameter, *declared) if (one := part(each, "default_value")) is not None), None)

    def knows(self, name: str) -> bool:
        return name in self._functions

    def enter(
        self, call: "Node", name: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]"
    ) -> Value:
        before = self._parameters
        function = self._functions[name]
        bound = self.bind_template(list_given(part(call, "function")), function, scope, nodes)
        self._parameters = {**before, **bound}
        numbers = {key: int(text) for key, text in bound.items() if WHOLE.fullmatch(text)}
        try:
            return self._enter_function(name, arguments, scope, nodes, numbers)
        finally:
            self._parameters = before

    def _enter_function(
        self,
        name: str,
        arguments: Sequence[Value],
        caller: Scope,
        nodes: "Sequence[Node]",
        numbers: Mapping[str, Value] | None = None,
        *,
        this: Record | None = None,
    ) -> Value:
        """Walk through a function's body; once more for each case of a switch that was not chosen, only for its launches."""
        passage = Passage(numbers=numbers or {}, this=this)
        value = self._pass_through(name, arguments, caller, nodes, passage)
        if passage.others and not self._is_silent and not self._is_assumed:
            after = Snapshot(self._scopes)
            for variable, case, is_against in passage.others[:_MOST_CASES]:
                self._is_silent, self._is_assumed = True, is_against
                try:
                    other = Passage(numbers=passage.numbers, assumed={variable: case}, this=this)
                    self._pass_through(name, arguments, caller, nodes, other)
                finally:
                    self._is_silent = self._is_assumed = False
                    after.go_back()
        return value

    def _pass_through(
        self,
        name: str,
        arguments: Sequence[Value],
        caller: Scope,
        nodes: "Sequence[Node]",
        passage: Passage,
    ) -> Value:
        function = self._functions[name]
        body = part(function, "body")
        if body is None or self._calls.count(name) > _MOST_RECURSIONS or len(self._calls) >= _DEEPEST_CALLS:
            return None
        scope = Scope(outer=self._globals if passage.this is None else self.open(passage.this))
        scope.values.update(passage.numbers)
        if passage.this is not None:
            scope.values["*this"] = passage.this
        self._bind(name, scope, arguments, caller, nodes)
        scope.values.update({one: value for one, value in passage.assumed.items() if one in scope.values})
        self._calls.append(name)
        self._entered.add(name)
        self._scopes.append(scope)
        outer_blocks, self._hidden = self._hidden, []
        outer_passage, self._passage = self._passage, passage
        try:
            self.initialize(function, scope)
            self.run(body, scope)
        except Returned as returned:
            return returned.value
        except Left:
            return None  # the loop or switch that it would leave is unknown
        finally:
            self._calls.pop()
            self._scopes.pop()
            self._hidden = outer_blocks
            self._passage = outer_passage
        return None

    def _bind(
        self, function: str, scope: Scope, arguments: Sequence[Value], caller: Scope, nodes: "Sequence[Node]"
    ) -> None:
        for number, parameter in enumerate(list_parameters(self._functions[function])):
            inner = part(parameter, "declarator")
            name = find_identifier(inner)
            if not name:
                continue
            scope.types[name] = read_text(part(parameter, "type")) + "*" * read_text(inner).count("*")
            given = nodes[number] if number < len(nodes) else None
            target = strip_casts(given)
            if target is not None and inner is not None and inner.type == "reference_declarator":
                if target.type == "identifier":
                    scope.aliases[name] = caller, read_text(target)
                    continue
            elif target is not None and target.type == "pointer_expression" and read_text(target).startswith("&"):
                scope.aliases[f"*{name}"] = caller, read_name(part(target, "argument"))
            if number < len(arguments):
                scope.values[name] = copy_record(arguments[number])
            else:
                default = self._find_default(function, number, parameter)
                scope.values[name] = None if default is None else self.value(default, self._globals)


def _list_written(function: "Node") -> Iterator[str]:
    """Names that a function writes to."""
    for node in walk(function):
        if node.type == "assignment_expression":
            yield read_name(part(node, "left"))
        elif node.type == "update_expression" or is_pointer(node):
            yield read_name(part(node, "argument"))


_MOST_THREADS = 1024


def find_launch_sizes(file: str, text: str, kernel: str) -> tuple[tuple[int, tuple[int, int, int], int | None], ...]:
    """The launches of a kernel whose block is made of numbers, constants and macros of the text, in its order.

    Args:
        file: its name, for the language.
        text: of the whole file.
        kernel: plain name, without namespace or template arguments.

    Returns:
        Line, 1-based; threads of a block in x, y, z; and bytes of dynamic shared memory: 0 where the launch names none, None where it names
        something that is no number of the text. Empty for texts without such a launch, and for those that are not parsed. A variable counts as a
        number when it is declared with one and nothing in its function writes to it afterwards.

    >>> text = "#define T 16\\nvoid f() { dim3 block(T, T); k<<<9, block>>>(); k<<<9, 2 * 64, n>>>(); k<<<9, threads>>>(); }"
    >>> find_launch_sizes("k.cu", text, "k")
    ((2, (16, 16, 1), 0), (2, (128, 1, 1), None))
    """
    return tuple(
        (one.line, one.block, one.shared_bytes)
        for one in find_host_launches(file, text)
        if one.kernel == kernel
        and one.block is not None
        and 0 < one.block[0] * one.block[1] * one.block[2] <= _MOST_THREADS
    )
