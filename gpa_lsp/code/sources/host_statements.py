"""Statements in a walk through host code (blocks, branches, loops, declarations): :class:`Statements`."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.host_evaluation import VECTOR, copy_record
from gpa_lsp.code.sources.host_inputs import CONVERSIONS
from gpa_lsp.code.sources.host_noting import Ended, NotedLaunches, Passage, is_launch
from gpa_lsp.code.sources.host_syntax import (
    OWN_ARRAY,
    RESIZING,
    can_be_followed,
    count_stars,
    ends_program,
    ends_switch,
    find_bounds,
    find_functions,
    find_identifier,
    is_of_host,
    leaves_loop,
    list_cases,
    list_size_parts,
    read_last_name,
    strip_casts,
    turns_are_alike,
)
from gpa_lsp.code.sources.host_text import HostText
from gpa_lsp.code.sources.host_values import Array, Record, Scope, Size, Snapshot, Value, cast, read_name
from gpa_lsp.code.sources.template_arguments import list_given
from gpa_lsp.code.sources.trees import SourceTree, list_parts, part, read_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_CLASSES = frozenset({"struct_specifier", "class_specifier"})
_MAKING = frozenset({"make_unique", "make_shared"})
_MOST_STEPS = 200_000
_MOST_TURN_STEPS = 80_000  # Beyond them, loops are walked once
_MOST_TURNS = 64
_MOST_NESTED_TURNS = 1024  # Iterations of nested loops, multiplied
_BLOCKS = frozenset({"compound_statement", "else_clause", "labeled_statement", "try_statement"})
_PASSED_OVER = frozenset({"comment", "function_definition"})


class Returned(Exception):  # noqa: N818  (it ends a function, and is no error)
    """A function ends with a value."""

    def __init__(self, value: Value) -> None:
        self.value = value
        super().__init__()


class Left(Exception):  # noqa: N818  (as above)
    """An iteration or a case of a switch ends early."""

    def __init__(self, *, is_break: bool) -> None:
        self.is_break = is_break
        super().__init__()


class NeedsArguments(Exception):  # noqa: N818  (as above)
    """The program ends at once when it is given no arguments."""


# A class of the text: (name, type as written with its stars, what it holds at first or None) of its members, in order; and its methods with a body by
# name, the constructor among them, overloads left out
HostClass = tuple[tuple[tuple[str, str, "Node | None"], ...], Mapping[str, "Node"]]


def find_classes(tree: SourceTree) -> dict[str, HostClass]:
    """The classes of a text by name, with the methods that are defined outside of them."""
    bodies = {name: body for node in walk(tree.root) for name, body in _read_class(node)}
    methods: dict[str, dict[str, list[Node]]] = {name: {} for name in bodies}
    outside = (node for node in list_file_nodes(tree) if node.type == "function_definition")
    inside = ((name, node) for name, body in bodies.items() for node in body.named_children)
    for name, node in (*inside, *((_find_class(node), node) for node in outside)):
        declarator = find_function_declarator(node) if node.type == "function_definition" else None
        has_body = part(node, "body") is not None
        if name in methods and declarator is not None and has_body and is_of_host(tree, node):
            methods[name].setdefault(read_own_name(declarator), []).append(node)
    return {
        name: (
            tuple(_list_members(body)),
            {one: nodes[0] for one, nodes in methods[name].items() if len(nodes) == 1},
        )
        for name, body in bodies.items()
    }


def _read_class(node: "Node") -> "Iterator[tuple[str, Node]]":
    inner = part(node, "type") if node.type == "type_definition" else node
    if inner is None or inner.type not in _CLASSES:
        return
    named, body = part(node, "declarator") or part(node, "name"), part(inner, "body")
    if named is not None and body is not None and read_text(named).isidentifier():
        yield read_text(named), body


def _find_class(definition: "Node") -> str:
    """The class of a method defined outside of it; empty for plain functions."""
    declarator = find_function_declarator(definition)
    name = part(declarator, "declarator")
    found = ""
    while name is not None and name.type == "qualified_identifier":
        found = read_text(part(name, "scope"))
        name = part(name, "name")
    return found


def _list_members(body: "Node") -> "Iterator[tuple[str, str, Node | None]]":
    for member in body.named_children:
        if member.type != "field_declaration":
            continue
        kind = read_text(part(member, "type"))
        declared = member.children_by_field_name("declarator")
        defaults = member.children_by_field_name("default_value")
        for declarator, following in zip(declared, [*declared[1:], None], strict=True):
            name = read_text(declarator).lstrip("*& \t")
            end = member.end_byte if following is None else following.start_byte
            default = next((one for one in defaults if declarator.end_byte <= one.start_byte < end), None)
            if name.isidentifier():
                yield name, kind + "*" * read_text(declarator).count("*"), default


class Statements(NotedLaunches):
    """Walks through statements, with objects of the text's classes."""

    def __init__(self, tree: SourceTree, host: HostText) -> None:
        super().__init__(tree, host)
        self._classes = find_classes(tree)
        methods = dict(self.list_methods())
        self._functions = {name: node for name, node in find_functions(tree) if node not in methods.values()} | methods
        self._named: dict[str, list[str]] = {}
        for name in self._functions:
            self._named.setdefault(name.rpartition("::")[2], []).append(name)
        self._globals = Scope()
        self._steps = 0
        self._turns_around = 1  # iterations of the loops around, all together
        self._launching: dict[int, bool] = {}
        # the program ended at an input that it does not accept; such ends are passed over
        self._has_refused = self._takes_any_input = False
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
        self._rules["lambda_expression"] = self._look_inside

    @abstractmethod
    def enter_method(
        self, record: Record, name: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]"
    ) -> Value:
        """Walk through a method of an object."""

    def open(self, record: Record) -> Scope:
        """The members of an object as names."""
        types = {name: kind for name, kind, _ in self._classes[record.type][0]}
        return Scope(values=record.elements, types=types, outer=self._globals)

    def construct(self, kind: str, nodes: "Sequence[Node]", scope: Scope) -> Record | None:
        """An object as its constructor leaves it; None for what is no class of the text, or is given members and no arguments."""
        found = self._classes.get(kind)
        if found is None or (kind not in found[1] and nodes):
            return None
        arguments = [self.value(one, scope) for one in nodes]
        return self.make(kind, arguments, scope, nodes)

    def make(self, kind: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]") -> Record:
        """An object of a class that the text has."""
        members, methods = self._classes[kind]
        record = Record(kind, {name: self._begin_plain(one) for name, one, _ in members})
        inner = self.open(record)
        for name, one, default in members:
            if default is not None:
                record.elements[name] = self._begin_member(name, one, default, inner)
        if kind in methods:
            self.enter_method(record, kind, arguments, scope, nodes)
        return record

    def _begin_plain(self, kind: str) -> Value:
        """A member of some type before anything is assigned to it."""
        if kind == "dim3":
            return Size(x=1)
        return Record(kind) if kind in self._structures and self._structures[kind].members else None

    def initialize(self, constructor: "Node", scope: Scope) -> None:
        """Evaluate a constructor's initializer list."""
        listed = next((one for one in constructor.named_children if one.type == "field_initializer_list"), None)
        for one in list_parts(listed):
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
        return held if isinstance(held, Record) and known is not None and name in known[1] else None

    def make_object(self, callee: "Node | None", name: str, nodes: "Sequence[Node]", scope: Scope) -> Record | None:
        """``C(…)`` and ``std::make_unique<C>(…)``."""
        given = list_given(callee) if name in _MAKING else [name]
        return self.construct(given[0], nodes, scope) if given else None

    def list_methods(self) -> "Iterator[tuple[str, Node]]":
        """The methods of all classes: ``C::m``."""
        for kind, (_, methods) in self._classes.items():
            for name, node in methods.items():
                yield f"{kind}::{name}", node

    # Statements

    def _list_called(self, call: "Node") -> list[str]:
        """The functions of the text that a call may reach; for a method those of all classes that have one of that name."""
        callee = part(call, "function")
        if callee is not None and callee.type == "field_expression":
            callee = part(callee, "field")
        return self._named.get(read_last_name(callee), [])

    def walk_nodes(self, node: "Node") -> "Iterator[Node]":
        """The nodes below one, and those of the functions it calls."""
        pending, seen = [node], set()
        while pending:
            for one in walk(pending.pop()):
                yield one
                for other in self._list_called(one) if one.type == "call_expression" else ():
                    if other not in seen:
                        seen.add(other)
                        pending.append(self._functions[other])

    def _launches(self, node: "Node") -> bool:
        """Whether a part of the text launches a kernel, itself or by a function that it calls."""
        if node.id not in self._launching:
            self._launching[node.id] = any(map(is_launch, self.walk_nodes(node)))
        return self._launching[node.id]

    def run(self, node: "Node", scope: Scope) -> None:
        """Walk through a statement."""
        self.step()
        kind = node.type
        if kind == "return_statement":
            raise Returned(self.value(node.named_children[0], scope) if node.named_children else None)
        if kind in ("break_statement", "continue_statement"):
            raise Left(is_break=kind == "break_statement")
        statement = self._statements.get(kind)
        if statement is not None:
            statement(node, scope)
        elif kind in _BLOCKS:
            with self._block(scope):
                for child in node.named_children:
                    self.run(child, scope)
        elif kind == "expression_statement":
            for child in node.named_children:
                self.value(child, scope)
        elif kind not in _PASSED_OVER:
            self.value(node, scope)

    @contextmanager
    def _block(self, scope: Scope) -> Iterator[None]:
        """Scope of a block: names declared within end with it, and names they hid are visible again."""
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
        """Count one step against the limit."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise Ended

    def _switch(self, node: "Node", scope: Scope) -> None:
        """Walk through the chosen case. Launches of other cases are noted in later walks through the function, each with the value of its case."""
        condition = part(node, "condition")
        asked = read_name(strip_casts(part(condition, "value")))
        cases = list_cases(node)
        values = [self.value(part(case, "value"), scope) for case in cases]
        assumed = self._passage.assumed.get(asked)
        value = self.value(condition, scope) if assumed is None else assumed
        is_known = isinstance(value, (int, float))
        if not can_be_followed(cases) or (not is_known and asked not in scope.values):
            self._switch_blindly(node, scope)
        elif assumed is not None:
            scope.values[asked] = assumed
            self._is_silent = False
            with suppress(Left):
                self._run_cases(cases, values, assumed, scope)
            raise Returned(None)
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
        """Handle a switch whose case is unknown: note all launches, and make unknown what any case writes."""
        self._forget(node, scope)
        for case in (node,) if cases is None else cases:
            for child in walk(case):
                if is_launch(child):
                    self.launch(child, scope)

    def _run_cases(self, cases: "Sequence[Node]", values: Sequence[Value], value: Value, scope: Scope) -> None:
        """Walk from the case of a value to the first case that ends."""
        default = next((n for n, case in enumerate(cases) if part(case, "value") is None), len(cases))
        chosen = next((number for number, one in enumerate(values) if one is not None and one == value), default)
        for case in cases[chosen:]:
            try:
                for child in case.named_children:
                    if child != part(case, "value"):
                        self.run(child, scope)
            except Left as left:
                if not left.is_break:
                    raise
                return
            if ends_switch(case):
                return

    def _branch(self, node: "Node", scope: Scope) -> None:
        condition = part(node, "condition")
        value = None if condition is None else self.value(condition, scope)
        branches = part(node, "consequence"), part(node, "alternative")
        if self._branch_as_assumed(condition, value, branches[0], scope):
            return
        if isinstance(value, (int, float)):
            taken, beside = branches if value else branches[::-1]
            if taken is not None and self._refuses(taken):
                if "argc" in read_text(condition):
                    raise NeedsArguments
                self._has_refused |= self._inputs is not None
                if self._takes_any_input:
                    taken, beside = beside, None
            self._look_beside(beside, scope)
            if taken is not None:
                self.run(taken, scope)
            return
        before = Snapshot(self._scopes)
        ways = []
        for branch in branches:
            before.go_back()
            ends = False
            if branch is not None:
                try:
                    self.run(branch, scope)
                except (Returned, Left):
                    ends = True  # the way that goes on is the other one
            if not ends and not (branch is not None and self._ends(branch)):
                ways.append(Snapshot(self._scopes))
        (ways[-1] if ways else before).go_back()
        for other in ways[:-1]:
            other.merge()

    def _ends(self, branch: "Node") -> bool:
        """Whether a branch ends the program, itself or by a function that always does so, such as ``usage``."""
        return ends_program(branch) or any(
            ends_program(part(self._functions[name], "body"))
            for node in walk(branch)
            if node.type == "call_expression"
            for name in self._list_called(node)
        )

    def _refuses(self, branch: "Node") -> bool:
        """Whether a branch of ``main``, or of a function that it calls, ends the program and launches nothing."""
        leaves = self._calls == ["main"] and any(node.type == "return_statement" for node in walk(branch))
        ends = self._calls[:1] == ["main"] and (leaves or self._ends(branch))
        return ends and not self._launches(branch)

    def _branch_as_assumed(self, condition: "Node | None", value: Value, then: "Node | None", scope: Scope) -> bool:
        """Handle ``if (n == 256) kernel<256><<<…>>>(…);`` like the case of a switch; True where that was all there is to it."""
        asked, wanted = self._read_equality(condition, scope)
        if not asked or then is None or not any(map(is_launch, walk(then))):
            return False
        assumed = self._passage.assumed.get(asked)
        if assumed is not None and assumed == wanted:
            scope.values[asked] = assumed
            self._is_silent = False
            with suppress(Left):
                self.run(then, scope)
            raise Returned(None)
        if assumed is None and asked in scope.values and not value:
            self._passage.others.append((asked, wanted, value is not None))
        return False

    def _read_equality(self, condition: "Node | None", scope: Scope) -> tuple[str, Value]:
        """Variable and whole number of ``variable == number``; an empty name for anything else."""
        inner = part(condition, "value")
        if inner is None or inner.type != "binary_expression":
            return "", None
        left, right = part(inner, "left"), part(inner, "right")
        wanted = self.value(right, scope)
        is_equality = read_text(part(inner, "operator")) == "==" and isinstance(wanted, int)
        if not is_equality or left is None or left.type != "identifier":
            return "", None
        return read_name(left), wanted

    def _look_beside(self, part: "Node | None", scope: Scope) -> None:
        """Note the launches of a branch that is not taken, for kernels that have no other launch."""
        if part is None or self._is_silent or self._is_assumed or not self._launches(part):
            return
        before = Snapshot(self._scopes)
        with self.noting_beside():
            try:
                with suppress(Returned, Left):
                    self.run(part, scope)
            finally:
                before.go_back()

    def _look_inside(self, node: "Node", scope: Scope, _: int) -> Value:
        """Note the launches of a lambda where it stands, with what it captures there; what it is given is unknown."""
        body = part(node, "body")
        if body is None or not self._launches(body):
            return None
        before, is_silent = Snapshot(self._scopes), self._is_silent
        self._calls.append("")  # What the lambda returns from is not main
        try:
            with self._block(scope), suppress(Returned, Left):
                for given in list_parts(part(part(node, "declarator"), "parameters")):
                    name = find_identifier(part(given, "declarator"))
                    self._hide(name, scope)
                    scope.values[name] = None
                self.run(body, scope)
        finally:
            self._calls.pop()
            self._is_silent = is_silent  # An assumed case ends with the lambda, and what follows belongs to none
            before.go_back()
        return None

    def _loop(self, node: "Node", scope: Scope) -> None:
        """Walk a loop iteration by iteration while its condition is known; else once, and make unknown what it writes."""
        with self._block(scope):
            begin = part(node, "initializer")
            if begin is not None:
                self.run(begin, scope)
            body = part(node, "body")
            if body is None or self._take_elements(node, body, scope):
                return
            before, turns = Snapshot(self._scopes), self._count_turns(node, scope)
            outer = self._turns_around
            is_long = turns > _MOST_TURNS or turns * outer > _MOST_NESTED_TURNS
            is_long = is_long and not self._launches(body)
            self._turns_around = outer if is_long else outer * min(max(turns, 1), _MOST_TURNS)
            try:
                has_ended = self._take_turns(node, body, scope, 1 if is_long else _MOST_TURNS)
            finally:
                self._turns_around = outer
            if not has_ended:
                grown = before.list_grown() if is_long and turns_are_alike(node, self.walk_nodes(body)) else []
                before.forget_changes()
                self._forget(node, scope)
                for array, size, next_size in grown:
                    array.size_bytes = size + turns * (next_size - size)

    def _take_elements(self, node: "Node", body: "Node", scope: Scope) -> bool:
        """Walk a loop over listed values, such as ``for (int size : sizes)``; False for any other loop, and for one that may end early."""
        listed, name = part(node, "right"), find_identifier(part(node, "declarator"))
        if node.type != "for_range_loop" or listed is None or leaves_loop(body):
            return False
        held = None if listed.type == "initializer_list" else self.value(listed, scope)
        values = list(held.elements.values()) if isinstance(held, Array) else []
        values = values or [self.value(one, scope) for one in list_parts(listed) if listed.type == "initializer_list"]
        for value in values[:_MOST_TURNS]:
            self._hide(name, scope)
            scope.aliases.pop(name, None)
            scope.values[name], scope.types[name] = copy_record(value), read_text(part(node, "type"))
            self.run(body, scope)
        return 0 < len(values) <= _MOST_TURNS

    def _take_turns(self, node: "Node", body: "Node", scope: Scope, most: int) -> bool:
        """Walk at most so many iterations of a loop; False where its end was not reached."""
        condition, update = part(node, "condition"), part(node, "update")
        is_plain = node.type != "for_range_loop" and not leaves_loop(body)
        for turn in range(most):
            if turn or node.type != "do_statement":
                endless = 1 if node.type == "for_statement" else None
                value = endless if condition is None else self.value(condition, scope)
                is_known = isinstance(value, (int, float))
                if is_known and not value:
                    return is_plain or turn == 0
                if turn and not is_known:
                    return False
            else:
                is_known = True
            try:
                self.run(body, scope)
            except Returned:
                if is_known and turn == 0 and node.type == "do_statement":
                    raise
                return False
            except Left as left:
                if left.is_break:
                    return is_known and turn == 0  # all that led there is known
            if not is_plain or not is_known or self._steps > _MOST_TURN_STEPS:
                return False
            if update is not None:
                self.value(update, scope)
        return False

    def _count_turns(self, node: "Node", scope: Scope) -> int:
        """Iterations of a loop that counts by one up to a bound or down to one; 0 where unknown."""
        condition, update = (strip_casts(part(node, one)) for one in ("condition", "update"))
        if condition is None or update is None or condition.type != "binary_expression":
            return 0
        first, last = (self.value(part(condition, one), scope) for one in ("left", "right"))
        if update.type != "update_expression" or not isinstance(first, int) or not isinstance(last, int):
            return 0
        is_included = read_text(part(condition, "operator")) in ("<=", ">=")
        return abs(last - first) + is_included

    def _forget(self, node: "Node", scope: Scope) -> None:
        """Make unknown what statements write, except for inputs that they convert from text."""
        for child in walk(node):
            target = None
            read: Value = None
            if child.type == "field_expression" and read_text(part(child, "field")) in RESIZING:
                held = self.value(part(child, "argument"), scope)
                if isinstance(held, Array):
                    held.size_bytes = None
            elif child.type == "assignment_expression":
                target = part(child, "left")
                call = strip_casts(part(child, "right"))
                name = read_name(part(call, "function")) if call is not None and call.type == "call_expression" else ""
                if name in CONVERSIONS and self._inputs is not None and call is not None:
                    read = self._inputs.convert(call, name)
            elif child.type == "update_expression" or (
                child.type == "pointer_expression" and read_text(child).startswith("&")
            ):
                target = part(child, "argument")
            if target is None or target.type == "subscript_expression":
                continue
            if not isinstance(self.value(target, scope), (Array, Record)):
                self.store(target, read, scope)

    def _declare(self, node: "Node", scope: Scope) -> None:
        kind = read_text(part(node, "type"))
        for declarator in node.children_by_field_name("declarator"):
            inner = part(declarator, "declarator") if declarator.type == "init_declarator" else declarator
            name = find_identifier(inner)
            if not name:
                continue
            self._hide(name, scope)
            stars = "*" * count_stars(inner)
            scope.types[name] = kind + stars + (OWN_ARRAY if stars and find_bounds(inner) is not None else "")
            scope.aliases.pop(name, None)
            value = part(declarator, "value") if declarator.type == "init_declarator" else None
            if inner is not None and inner.type == "reference_declarator":
                self._declare_reference(name, value, scope)
            else:
                begun = self.begin(name, kind, declarator, scope)
                scope.values[name] = self._passage.assumed.get(name, begun)

    def _declare_reference(self, name: str, value: "Node | None", scope: Scope) -> None:
        """Declare another name for a variable; a reference to anything else makes its target unknown."""
        target = strip_casts(value)
        if target is not None and target.type == "identifier" and read_text(target) != name:
            scope.aliases[name] = scope, read_text(target)
            return
        held = self.value(target, scope)
        if target is not None and target.type in ("subscript_expression", "field_expression"):
            self.store(target, None if not isinstance(held, Array) else held, scope)
        scope.values[name] = held
