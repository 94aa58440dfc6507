"""What host code launches, read and not run: grid, block, shared memory, scalars and sizes of arrays, each where the text decides it.

The text's ``main`` (or, without one, each function that launches something, from those that call it on) is gone through statement by statement:
declarations, assignments, allocations, calls of functions of the same text, the branches that are taken, short loops turn by turn, and of others the
first turn. What cannot be told is unknown and stays so.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from gpa_lsp.sources.cuda_functions import find_function_declarator, list_file_nodes
from gpa_lsp.sources.host_evaluation import copy_record
from gpa_lsp.sources.host_launch import HostLaunch
from gpa_lsp.sources.host_noting import Ended, NotedLaunches, is_launch, is_pointer
from gpa_lsp.sources.host_state import Snapshot
from gpa_lsp.sources.host_syntax import (
    OWN_ARRAY,
    can_be_followed,
    count_stars,
    ends_program,
    ends_switch,
    find_bounds,
    find_functions,
    find_identifier,
    list_cases,
    read_last_name,
    strip_casts,
)
from gpa_lsp.sources.host_templates import WHOLE, Passage
from gpa_lsp.sources.host_text import HostText, join_texts
from gpa_lsp.sources.host_values import (
    Array,
    Record,
    Scope,
    Value,
    combine,
    read_name,
)
from gpa_lsp.sources.template_arguments import list_given
from gpa_lsp.sources.trees import SourceTree, read_text, read_tree, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_STEPS = 200_000
_MOST_TURN_STEPS = 80_000
"""Behind them, loops are gone through once."""
_MOST_TURNS = 64
_DEEPEST_CALLS = 12
_BLOCKS = frozenset({"compound_statement", "else_clause", "labeled_statement", "try_statement"})
_PASSED_OVER = frozenset({"comment", "break_statement", "continue_statement", "function_definition"})
_LEAVING = frozenset({"break_statement", "continue_statement", "goto_statement", "return_statement"})
_MOST_CASES = 24


@lru_cache(maxsize=16)
def find_host_launches(
    file: str, text: str, included: tuple[tuple[str, str], ...] = (), defined: tuple[str, ...] = ()
) -> tuple[HostLaunch, ...]:
    """The launches of a text in the order its program would come to them; each place once, and again where it launches another shape.

    Args:
        file: its name, for the language.
        text: of the whole file.
        included: (path, text) of the project's headers that it includes.
        defined: macros of its compile command, as after ``-D``.

    >>> text = "#define N 1000\\nint main() { float *p; cudaMalloc(&p, N * sizeof(float)); k<<<(N + 255) / 256, 256>>>(p, N); }"
    >>> (launch,) = find_host_launches("k.cu", text)
    >>> launch.grid, launch.block, [(one.value, one.size_bytes) for one in launch.arguments]
    ((4, 1, 1), (256, 1, 1), [(None, 4000), (1000, None)])
    """
    if not any("<<<" in one or "cudaLaunch" in one for one in (text, *(content for _, content in included))):
        return ()
    host = join_texts(text, included, defined)
    tree = read_tree(file, host.text)
    if tree is None and included:
        return find_host_launches(file, text, (), defined)
    return () if tree is None else _Reading(tree, host).read()


class _Returned(Exception):  # noqa: N818  (it ends a function, and is no error)
    def __init__(self, value: Value) -> None:
        self.value = value
        super().__init__()


class _NeedsArguments(Exception):  # noqa: N818  (as above)
    """Without arguments the program ends at once."""


class _Reading(NotedLaunches):
    """One walk through a text."""

    def __init__(self, tree: SourceTree, host: HostText) -> None:
        super().__init__(tree, host)
        self._tree = tree
        self._globals = Scope()
        self._functions = dict(find_functions(tree))
        self._steps = 0
        self._calls: list[str] = []
        self._scopes: list[Scope] = [self._globals]
        self._hidden: list[dict[str, tuple[bool, Value, str | None]]] = []
        self._passage = Passage()
        self._statements = {
            "declaration": self._declare,
            "if_statement": self._branch,
            "for_statement": self._loop,
            "while_statement": self._loop,
            "do_statement": self._loop,
            "for_range_loop": self._loop,
            "switch_statement": self._switch,
        }

    def read(self) -> tuple[HostLaunch, ...]:
        try:
            self._read_globals()
            if "main" in self._functions:
                before = Snapshot(self._scopes)
                try:
                    self._enter_function("main", [1], self._globals, ())
                except _NeedsArguments:
                    before.go_back()
                    self._found.clear()
                    self._enter_function("main", [], self._globals, ())
            before = Snapshot(self._scopes)
            for name in self._order_roots():
                if any(is_launch(node) and node.start_byte not in self._found for node in self._walk_calls(name)):
                    before.go_back()  # whatever was called before it, is not known
                    self._forget_written()
                    self._enter_function(name, [], self._globals, ())
        except Ended:
            pass
        return self.list_launches()

    def _read_globals(self) -> None:
        """Headers first; twice, since names may be used behind where they are declared by what stands before it here."""
        declared = [node for node in list_file_nodes(self._tree) if node.type == "declaration"]
        own = self._host.files[0][0] if self._host.files else 0
        for node in sorted(declared, key=lambda one: own > one.start_point[0] + 1):
            self._declare(node, self._globals)
        for node in walk(self._tree.root):
            if node.type == "enum_specifier":
                self._read_enumerators(node)

    def _read_enumerators(self, node: "Node") -> None:
        body = node.child_by_field_name("body")
        following: Value = 0
        for one in body.named_children if body is not None else ():
            if one.type == "enumerator":
                given = one.child_by_field_name("value")
                value = following if given is None else self.value(given, self._globals)
                self._globals.values.setdefault(read_text(one.child_by_field_name("name")), value)
                following = combine("+", value, 1)

    def _forget_written(self) -> None:
        """Variables of the text that some function writes to: nobody knows when."""
        for function in self._functions.values():
            for name in _list_written(function):
                if name in self._globals.values and not isinstance(self._globals.values[name], (Array, Record)):
                    self._globals.values[name] = None

    def _order_roots(self) -> list[str]:
        """Functions of the text, those first that no other one calls."""
        called = {
            read_last_name(node.child_by_field_name("function"))
            for function in self._functions.values()
            for node in walk(function)
            if node.type == "call_expression"
        }
        return sorted(self._functions, key=lambda name: name in called)

    def _walk_calls(self, name: str) -> "Iterator[Node]":
        """The nodes of a function, and of those it calls."""
        pending, seen = [name], {name}
        while pending:
            for node in walk(self._functions[pending.pop()]):
                yield node
                if node.type == "call_expression":
                    other = read_last_name(node.child_by_field_name("function"))
                    if other in self._functions and other not in seen:
                        seen.add(other)
                        pending.append(other)

    def knows(self, name: str) -> bool:
        return name in self._functions

    def enter(
        self, call: "Node", name: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]"
    ) -> Value:
        before = self._parameters
        function = self._functions[name]
        bound = self.bind_template(list_given(call.child_by_field_name("function")), function, scope, nodes)
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
    ) -> Value:
        """Go through a function's body; again for the cases of switches that were not chosen, for what they launch alone."""
        passage = Passage(numbers=numbers or {})
        value = self._pass_through(name, arguments, caller, nodes, passage)
        if passage.others and not self._is_silent and not self._is_assumed:
            after = Snapshot(self._scopes)
            for variable, case, is_against in passage.others[:_MOST_CASES]:
                self._is_silent, self._is_assumed = True, is_against
                try:
                    other = Passage(numbers=passage.numbers, assumed={variable: case})
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
        body = function.child_by_field_name("body")
        if body is None or name in self._calls or len(self._calls) >= _DEEPEST_CALLS:
            return None
        scope = Scope(outer=self._globals)
        scope.values.update(passage.numbers)
        self._bind(function, scope, arguments, caller, nodes)
        scope.values.update({one: value for one, value in passage.assumed.items() if one in scope.values})
        self._calls.append(name)
        self._scopes.append(scope)
        outer_blocks, self._hidden = self._hidden, []
        outer_passage, self._passage = self._passage, passage
        try:
            self._run(body, scope)
        except _Returned as returned:
            return returned.value
        finally:
            self._calls.pop()
            self._scopes.pop()
            self._hidden = outer_blocks
            self._passage = outer_passage
        return None

    def _bind(
        self, function: "Node", scope: Scope, arguments: Sequence[Value], caller: Scope, nodes: "Sequence[Node]"
    ) -> None:
        declarator = find_function_declarator(function)
        parameters = None if declarator is None else declarator.child_by_field_name("parameters")
        listed = [] if parameters is None else [one for one in parameters.named_children if "parameter" in one.type]
        for number, parameter in enumerate(listed):
            inner = parameter.child_by_field_name("declarator")
            name = find_identifier(inner)
            if not name:
                continue
            scope.types[name] = read_text(parameter.child_by_field_name("type")) + "*" * read_text(inner).count("*")
            given = nodes[number] if number < len(nodes) else None
            target = strip_casts(given)
            if target is not None and inner is not None and inner.type == "reference_declarator":
                if target.type == "identifier":
                    scope.aliases[name] = caller, read_text(target)
                    continue
            elif target is not None and target.type == "pointer_expression" and read_text(target).startswith("&"):
                scope.aliases[f"*{name}"] = caller, read_name(target.child_by_field_name("argument"))
            scope.values[name] = copy_record(arguments[number]) if number < len(arguments) else None

    # Statements

    def _run(self, node: "Node", scope: Scope) -> None:
        self.step()
        kind = node.type
        if kind == "return_statement":
            raise _Returned(self.value(node.named_children[0], scope) if node.named_children else None)
        statement = self._statements.get(kind)
        if statement is not None:
            statement(node, scope)
        elif kind in _BLOCKS:
            with self._block(scope):
                for child in node.named_children:
                    self._run(child, scope)
        elif kind == "expression_statement":
            for child in node.named_children:
                self.value(child, scope)
        elif kind not in _PASSED_OVER:
            self.value(node, scope)

    @contextmanager
    def _block(self, scope: Scope) -> Iterator[None]:
        """Names that are declared within end with it; those they hid are seen again."""
        hidden: dict[str, tuple[bool, Value, str | None]] = {}
        self._hidden.append(hidden)
        try:
            yield
        finally:
            self._hidden.pop()
            for name, (was_known, value, kind) in hidden.items():
                if was_known:
                    scope.values[name] = value
                else:
                    scope.values.pop(name, None)
                scope.types.pop(name, None)
                if kind is not None:
                    scope.types[name] = kind

    def _hide(self, name: str, scope: Scope) -> None:
        if self._hidden:
            self._hidden[-1].setdefault(name, (name in scope.values, scope.values.get(name), scope.types.get(name)))

    def step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise Ended

    def _switch(self, node: "Node", scope: Scope) -> None:
        """The case that is chosen. Of the others what they launch is read, too: each with the value it is for, from the beginning of the function."""
        condition = node.child_by_field_name("condition")
        asked = read_name(strip_casts(None if condition is None else condition.child_by_field_name("value")))
        cases = list_cases(node)
        values = [self.value(case.child_by_field_name("value"), scope) for case in cases]
        assumed = self._passage.assumed.get(asked)
        value = self.value(condition, scope) if assumed is None else assumed
        is_known = isinstance(value, (int, float))
        if not can_be_followed(cases) or (not is_known and asked not in scope.values):
            self._switch_blindly(node, scope)
        elif assumed is not None:
            scope.values[asked] = assumed
            self._is_silent = False
            self._run_cases(cases, values, assumed, scope)
            raise _Returned(None)
        else:
            if asked in scope.values:
                told = [one for case, one in zip(cases, values, strict=True) if any(map(is_launch, walk(case)))]
                others = [(asked, one, is_known) for one in told if isinstance(one, int) and one != value]
                self._passage.others += others
            if is_known:
                self._run_cases(cases, values, value, scope)
                return
            left = [case for case, one in zip(cases, values, strict=True) if not isinstance(one, int)]
            self._switch_blindly(node, scope, left)

    def _switch_blindly(self, node: "Node", scope: Scope, cases: "Sequence[Node] | None" = None) -> None:
        """Which case it is is not known: what launches, launches, and what any case writes to is not known."""
        self._forget(node, scope)
        for case in (node,) if cases is None else cases:
            for child in walk(case):
                if is_launch(child):
                    self.launch(child, scope)

    def _run_cases(self, cases: "Sequence[Node]", values: Sequence[Value], value: Value, scope: Scope) -> None:
        """From the case of a value up to where one ends."""
        default = next((n for n, case in enumerate(cases) if case.child_by_field_name("value") is None), len(cases))
        chosen = next((number for number, one in enumerate(values) if one is not None and one == value), default)
        for case in cases[chosen:]:
            for child in case.named_children:
                if child != case.child_by_field_name("value"):
                    self._run(child, scope)
            if ends_switch(case):
                return

    def _branch(self, node: "Node", scope: Scope) -> None:
        condition = node.child_by_field_name("condition")
        value = None if condition is None else self.value(condition, scope)
        parts = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if self._branch_as_assumed(condition, value, parts[0], scope):
            return
        if isinstance(value, (int, float)):
            taken = parts[0] if value else parts[1]
            self._look_beside(parts[1] if value else parts[0], scope)
            if taken is not None:
                if self._calls == ["main"] and ends_program(taken) and "argc" in read_text(condition):
                    raise _NeedsArguments
                self._run(taken, scope)
            return
        before = Snapshot(self._scopes)
        ways = []
        for part in parts:
            before.go_back()
            ends = False
            if part is not None:
                try:
                    self._run(part, scope)
                except _Returned:
                    ends = True  # the way that goes on is the other one
            if not ends and not (part is not None and ends_program(part)):
                ways.append(Snapshot(self._scopes))
        (ways[-1] if ways else before).go_back()
        for other in ways[:-1]:
            other.merge()

    def _branch_as_assumed(self, condition: "Node | None", value: Value, then: "Node | None", scope: Scope) -> bool:
        """``if (n == 256) kernel<256><<<…>>>(…);`` is read like the case of a switch; True where it was, and nothing else is to be read of it."""
        asked, wanted = self._read_equality(condition, scope)
        if not asked or then is None or not any(map(is_launch, walk(then))):
            return False
        assumed = self._passage.assumed.get(asked)
        if assumed is not None and assumed == wanted:
            scope.values[asked] = assumed
            self._is_silent = False
            self._run(then, scope)
            raise _Returned(None)
        if assumed is None and asked in scope.values and not value:
            self._passage.others.append((asked, wanted, value is not None))
        return False

    def _read_equality(self, condition: "Node | None", scope: Scope) -> tuple[str, Value]:
        """Variable and whole number of ``variable == number``; an empty name for anything else."""
        inner = None if condition is None else condition.child_by_field_name("value")
        if inner is None or inner.type != "binary_expression":
            return "", None
        left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
        wanted = self.value(right, scope)
        is_equality = read_text(inner.child_by_field_name("operator")) == "==" and isinstance(wanted, int)
        if not is_equality or left is None or left.type != "identifier":
            return "", None
        return read_name(left), wanted

    def _look_beside(self, part: "Node | None", scope: Scope) -> None:
        """What a branch that is not taken launches, for kernels that nothing else does."""
        if part is None or self._is_silent or self._is_assumed or not any(map(is_launch, walk(part))):
            return
        before = Snapshot(self._scopes)
        with self.noting_beside():
            try:
                self._run(part, scope)
            except _Returned:
                pass
            finally:
                before.go_back()

    def _loop(self, node: "Node", scope: Scope) -> None:
        """Turn by turn while it can be told that there is another one; else once, and what it writes to is not known behind it."""
        with self._block(scope):
            begin = node.child_by_field_name("initializer")
            if begin is not None:
                self._run(begin, scope)
            body = node.child_by_field_name("body")
            if body is None:
                return
            before = Snapshot(self._scopes)
            if not self._take_turns(node, body, scope):
                before.forget_changes()
                self._forget(node, scope)

    def _take_turns(self, node: "Node", body: "Node", scope: Scope) -> bool:
        """Go through a loop; False where it was not gone through to its end."""
        condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        is_plain = node.type != "for_range_loop" and not any(child.type in _LEAVING for child in walk(body))
        for turn in range(_MOST_TURNS):
            if turn or node.type != "do_statement":
                value = None if condition is None else self.value(condition, scope)
                is_known = isinstance(value, (int, float))
                if is_known and not value:
                    return is_plain or turn == 0
                if turn and not is_known:
                    return False
            else:
                is_known = True
            try:
                self._run(body, scope)
            except _Returned:
                if is_known and turn == 0 and node.type == "do_statement":
                    raise
                return False
            if not is_plain or not is_known or self._steps > _MOST_TURN_STEPS:
                return False
            if update is not None:
                self.value(update, scope)
        return False

    def _forget(self, node: "Node", scope: Scope) -> None:
        for child in walk(node):
            target = None
            if child.type == "assignment_expression":
                target = child.child_by_field_name("left")
            elif child.type == "update_expression" or (
                child.type == "pointer_expression" and read_text(child).startswith("&")
            ):
                target = child.child_by_field_name("argument")
            if target is None or target.type == "subscript_expression":
                continue
            if not isinstance(self.value(target, scope), (Array, Record)):
                self.store(target, None, scope)

    def _declare(self, node: "Node", scope: Scope) -> None:
        kind = read_text(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            name = find_identifier(inner)
            if not name:
                continue
            self._hide(name, scope)
            stars = "*" * count_stars(inner)
            scope.types[name] = kind + stars + (OWN_ARRAY if stars and find_bounds(inner) is not None else "")
            scope.aliases.pop(name, None)
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            if inner is not None and inner.type == "reference_declarator":
                self._declare_reference(name, value, scope)
            else:
                begun = self.begin(name, kind, declarator, scope)
                scope.values[name] = self._passage.assumed.get(name, begun)

    def _declare_reference(self, name: str, value: "Node | None", scope: Scope) -> None:
        """Another name for a variable; for anything else, nobody knows what is written through it."""
        target = strip_casts(value)
        if target is not None and target.type == "identifier" and read_text(target) != name:
            scope.aliases[name] = scope, read_text(target)
            return
        held = self.value(target, scope)
        if target is not None and target.type in ("subscript_expression", "field_expression"):
            self.store(target, None if not isinstance(held, Array) else held, scope)
        scope.values[name] = held


def _list_written(function: "Node") -> Iterator[str]:
    """Names that a function writes to."""
    for node in walk(function):
        if node.type == "assignment_expression":
            yield read_name(node.child_by_field_name("left"))
        elif node.type == "update_expression" or is_pointer(node):
            yield read_name(node.child_by_field_name("argument"))
