"""What host code launches, read and not run: grid, block, shared memory, scalars and sizes of arrays, each where the text decides it.

The text's ``main`` (or, without one, each function that launches something) is gone through statement by statement: declarations, assignments,
allocations, calls of functions of the same text, the branches that are taken, the first turn of loops. What cannot be told is unknown and stays so.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from gpa_lsp.sources.cuda_declarations import read_macros
from gpa_lsp.sources.cuda_functions import find_function_declarator, list_file_nodes
from gpa_lsp.sources.host_launch import HostArgument, HostLaunch
from gpa_lsp.sources.host_syntax import (
    ends_program,
    find_functions,
    find_identifier,
    find_value_bytes,
    list_size_parts,
    measure_structures,
    parse_expression,
    read_last_name,
    strip_casts,
    unwrap,
)
from gpa_lsp.sources.host_values import (
    Array,
    Scope,
    Size,
    Value,
    call_function,
    cast,
    combine,
    find_type_bytes,
    keep_small,
    read_literal,
    read_name,
)
from gpa_lsp.sources.trees import SourceTree, read_text, read_tree, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_STEPS = 200_000
_MOST_LAUNCHES = 256
_DEEPEST_CALLS = 12
_DEEPEST = 150
_PITCH_BYTES = 512
_ALLOCATIONS = {
    "cudaMalloc": 1, "cudaMallocManaged": 1, "cudaMallocHost": 1, "cudaHostAlloc": 1, "cudaMallocAsync": 1, "cudaMallocPitch": 2,
}  # fmt: skip
"""Functions that give their first argument an array, by where its size stands."""
_BLOCKS = frozenset({"compound_statement", "else_clause", "labeled_statement", "try_statement"})
_PASSED_OVER = frozenset({"comment", "break_statement", "continue_statement"})
_WITHOUT_VALUE = frozenset(
    {
        "subscript_expression",
        "string_literal",
        "null",
        "char_literal",
        "lambda_expression",
        "comma_expression",
        "argument_list",
    }
)
_VECTOR = re.compile(r"(?:std::|thrust::)?(?:host_|device_)?vector<(.*)>")
_HOST_ALLOCATIONS = {"malloc": (0,), "calloc": (0, 1), "valloc": (0,), "aligned_alloc": (1,), "_mm_malloc": (0,)}


@lru_cache(maxsize=16)
def find_host_launches(file: str, text: str) -> tuple[HostLaunch, ...]:
    """The launches of a text in the order its program would come to them; each place once.

    Args:
        file: its name, for the language.
        text: of the whole file.

    >>> text = "#define N 1000\\nint main() { float *p; cudaMalloc(&p, N * sizeof(float)); k<<<(N + 255) / 256, 256>>>(p, N); }"
    >>> (launch,) = find_host_launches("k.cu", text)
    >>> launch.grid, launch.block, [(one.value, one.size_bytes) for one in launch.arguments]
    ((4, 1, 1), (256, 1, 1), [(None, 4000), (1000, None)])
    """
    tree = read_tree(file, text)
    if tree is None or b"<<<" not in tree.content:
        return ()
    return _Reading(tree).read()


class _Returned(Exception):  # noqa: N818  (it ends a function, and is no error)
    def __init__(self, value: Value) -> None:
        self.value = value
        super().__init__()


class _Ended(Exception):  # noqa: N818  (likewise)
    """Enough was read."""


class _Reading:
    """One walk through a text."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._macros = read_macros(tree)
        self._globals = Scope()
        self._functions = dict(find_functions(tree))
        self._types = dict(measure_structures(tree))
        self._found: dict[int, HostLaunch] = {}
        self._steps = 0
        self._calls: list[str] = []
        self._hidden: list[dict[str, tuple[bool, Value, str | None]]] = []
        self._expanding: set[str] = set()
        self._expressions: dict[str, Node | None] = {}
        self._statements = {
            "declaration": self._declare,
            "if_statement": self._branch,
            "for_statement": self._loop,
            "while_statement": self._loop,
            "do_statement": self._loop,
            "for_range_loop": self._loop,
            "switch_statement": self._switch,
        }
        self._rules: dict[str, Callable[[Node, Scope, int], Value]] = {
            "number_literal": self._read_literal,
            "true": self._read_literal,
            "false": self._read_literal,
            "identifier": self._read_variable,
            "qualified_identifier": self._read_variable,
            "parenthesized_expression": self._read_inner,
            "condition_clause": self._read_inner,
            "binary_expression": self._calculate,
            "call_expression": self._call,
            "assignment_expression": self._assign,
            "cast_expression": self._cast,
            "unary_expression": self._negate,
            "conditional_expression": self._choose,
            "sizeof_expression": self._size_of,
            "update_expression": self._update,
            "field_expression": self._read_member,
            "pointer_expression": self._follow,
            "new_expression": self._new,
        }

    def read(self) -> tuple[HostLaunch, ...]:
        try:
            for node in list_file_nodes(self._tree):
                if node.type == "declaration":
                    self._declare(node, self._globals)
            if "main" in self._functions:
                self._enter("main", [1], self._globals, ())
            for name, function in self._functions.items():
                if any(
                    node.type == "kernel_call_syntax" and node.start_byte not in self._found for node in walk(function)
                ):
                    self._enter(name, [], self._globals, ())
        except _Ended:
            pass
        return tuple(self._found.values())

    def _enter(self, name: str, arguments: Sequence[Value], caller: Scope, nodes: "Sequence[Node]") -> Value:
        """Go through a function's body."""
        function = self._functions[name]
        body = function.child_by_field_name("body")
        if body is None or name in self._calls or len(self._calls) >= _DEEPEST_CALLS:
            return None
        scope = Scope(outer=self._globals)
        self._bind(function, scope, arguments, caller, nodes)
        self._calls.append(name)
        outer_blocks, self._hidden = self._hidden, []
        try:
            self._run(body, scope)
        except _Returned as returned:
            return returned.value
        finally:
            self._calls.pop()
            self._hidden = outer_blocks
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
            scope.values[name] = arguments[number] if number < len(arguments) else None

    # Statements

    def _run(self, node: "Node", scope: Scope) -> None:
        self._step()
        kind = node.type
        if kind == "return_statement":
            raise _Returned(self._value(node.named_children[0], scope) if node.named_children else None)
        statement = self._statements.get(kind)
        if statement is not None:
            statement(node, scope)
        elif kind in _BLOCKS:
            with self._block(scope):
                for child in node.named_children:
                    self._run(child, scope)
        elif kind == "expression_statement":
            for child in node.named_children:
                self._value(child, scope)
        elif kind not in _PASSED_OVER:
            self._value(node, scope)

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

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _Ended

    def _switch(self, node: "Node", scope: Scope) -> None:
        """Which case it is is not looked for: what launches, launches, and what any case writes to is not known."""
        self._forget(node, scope)
        for child in walk(node):
            if child.type == "kernel_call_syntax" and child.parent is not None:
                self._value(child.parent, scope)

    def _branch(self, node: "Node", scope: Scope) -> None:
        condition = node.child_by_field_name("condition")
        value = None if condition is None else self._value(condition, scope)
        parts = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if isinstance(value, (int, float)):
            taken = parts[0] if value else parts[1]
            if taken is not None:
                self._run(taken, scope)
            return
        before = dict(scope.values)
        after = []
        for part in parts:
            scope.values = dict(before)
            ends = False
            if part is not None:
                try:
                    self._run(part, scope)
                except _Returned:
                    ends = True  # the way that goes on is the other one
            if not ends and not (part is not None and ends_program(part)):
                after.append(scope.values)
        scope.values = after[0] if after else before
        for other in after[1:]:
            scope.values = {
                name: value if name in other and _is_same(other[name], value) else None
                for name, value in scope.values.items()
            }

    def _loop(self, node: "Node", scope: Scope) -> None:
        """The first turn; what the loop writes to is not known behind it, nor what may be zero turns of it."""
        with self._block(scope):
            begin = node.child_by_field_name("initializer")
            if begin is not None:
                self._run(begin, scope)
            condition = node.child_by_field_name("condition")
            value = None if condition is None else self._value(condition, scope)
            body = node.child_by_field_name("body")
            if body is None or (isinstance(value, (int, float)) and not value and node.type != "do_statement"):
                return
            self._run(body, scope)
            self._forget(node, scope)

    def _forget(self, node: "Node", scope: Scope) -> None:
        for child in walk(node):
            target = None
            if child.type == "assignment_expression":
                target = child.child_by_field_name("left")
            elif child.type == "update_expression" or (
                child.type == "pointer_expression" and read_text(child).startswith("&")
            ):
                target = child.child_by_field_name("argument")
            if target is not None and not isinstance(scope.read(read_name(target)), Array):
                scope.write(read_name(target), None)

    def _declare(self, node: "Node", scope: Scope) -> None:
        kind = read_text(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            name = find_identifier(inner)
            if not name:
                continue
            self._hide(name, scope)
            scope.types[name] = kind + "*" * read_text(inner).count("*")
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            element = _VECTOR.fullmatch("".join(kind.split()))
            if element is not None:
                count = value.named_children[0] if value is not None and value.named_children else None
                size = combine("*", self._value(count, scope), find_type_bytes(element[1], self._types))
                scope.values[name] = Array(size if isinstance(size, int) else None, node.start_point[0] + 1, name)
            elif kind == "dim3" or kind.endswith("::dim3"):
                scope.values[name] = self._read_size(list_size_parts(declarator, value), scope)
            elif inner is not None and inner.type == "array_declarator":
                scope.values[name] = Array(self._measure(inner, kind, scope), node.start_point[0] + 1, name)
            elif value is not None:
                is_listed = value.type in ("argument_list", "initializer_list")
                plain = value.named_children[0] if is_listed and len(value.named_children) == 1 else value
                found = cast(self._value(plain, scope), scope.types[name])
                if isinstance(found, Array) and not found.name:
                    found.name = name
                scope.values[name] = found
            else:
                scope.values[name] = None

    def _measure(self, declarator: "Node", kind: str, scope: Scope) -> int | None:
        """Bytes of an array of the text's own."""
        total: Value = find_type_bytes(kind, self._types)
        node: Node | None = declarator
        while node is not None and node.type == "array_declarator":
            size = node.child_by_field_name("size")
            total = None if size is None else combine("*", total, self._value(size, scope))
            node = node.child_by_field_name("declarator")
        return total if isinstance(total, int) else None

    # Expressions

    def _value(self, node: "Node | None", scope: Scope, depth: int = 0) -> Value:
        if node is None or depth > _DEEPEST:
            return None
        self._step()
        expression = self._rules.get(node.type)
        if expression is not None:
            return expression(node, scope, depth + 1)
        if node.type not in _WITHOUT_VALUE:
            for child in node.named_children:
                self._value(child, scope, depth + 1)
        return None

    def _read_literal(self, node: "Node", scope: Scope, depth: int) -> Value:
        return {"true": 1, "false": 0}.get(node.type, read_literal(read_text(node)))

    def _read_variable(self, node: "Node", scope: Scope, depth: int) -> Value:
        return self._look_up(read_name(node), scope, depth)

    def _read_inner(self, node: "Node", scope: Scope, depth: int) -> Value:
        return self._value(unwrap(node), scope, depth)

    def _calculate(self, node: "Node", scope: Scope, depth: int) -> Value:
        left = self._value(node.child_by_field_name("left"), scope, depth)
        right = self._value(node.child_by_field_name("right"), scope, depth)
        return combine(read_text(node.child_by_field_name("operator")), left, right)

    def _cast(self, node: "Node", scope: Scope, depth: int) -> Value:
        value = self._value(node.child_by_field_name("value"), scope, depth)
        return cast(value, read_text(node.child_by_field_name("type")))

    def _negate(self, node: "Node", scope: Scope, depth: int) -> Value:
        value = self._value(node.child_by_field_name("argument"), scope, depth)
        if not isinstance(value, (int, float)):
            return None
        return {"-": -value, "+": value, "!": int(not value)}.get(read_text(node.child_by_field_name("operator")))

    def _choose(self, node: "Node", scope: Scope, depth: int) -> Value:
        value = self._value(node.child_by_field_name("condition"), scope, depth)
        if not isinstance(value, (int, float)):
            return None
        return self._value(node.child_by_field_name("consequence" if value else "alternative"), scope, depth)

    def _update(self, node: "Node", scope: Scope, depth: int) -> Value:
        name = read_name(node.child_by_field_name("argument"))
        value = scope.read(name)
        scope.write(name, combine("+" if "++" in read_text(node) else "-", value, 1))
        return value

    def _follow(self, node: "Node", scope: Scope, depth: int) -> Value:
        return scope.read(read_name(node)) if read_text(node).startswith("*") else None

    def _new(self, node: "Node", scope: Scope, depth: int) -> Value:
        count = node.child_by_field_name("declarator")
        kind = find_type_bytes(read_text(node.child_by_field_name("type")), self._types)
        number = None if count is None or not count.named_children else self._value(count.named_children[0], scope)
        size = combine("*", kind, number)
        return Array(size if isinstance(size, int) else None, node.start_point[0] + 1, "")

    def _look_up(self, name: str, scope: Scope, depth: int) -> Value:
        macro = self._macros.get(name)
        if macro is None:
            return scope.read(name)
        if name in self._expanding:
            return None
        if name not in self._expressions:
            self._expressions[name] = parse_expression(macro)
        self._expanding.add(name)
        try:
            return self._value(self._expressions[name], scope, depth + 1)
        finally:
            self._expanding.discard(name)

    def _read_member(self, node: "Node", scope: Scope, depth: int) -> Value:
        base = scope.read(read_name(node.child_by_field_name("argument")))
        member = read_text(node.child_by_field_name("field"))
        if isinstance(base, Size) and member in ("x", "y", "z"):
            return getattr(base, member)  # type: ignore[no-any-return]
        return scope.read(read_name(node))

    def _size_of(self, node: "Node", scope: Scope, depth: int) -> Value:
        kind = node.child_by_field_name("type")
        if kind is not None:
            name = " ".join(read_text(kind).split())
            declared = scope.read_type(name)
            if declared is None:
                return find_type_bytes(name, self._types)
            return find_value_bytes(scope.read(name), declared, self._types)
        inner = strip_casts(node.child_by_field_name("value"))
        text = read_name(inner)
        declared = scope.read_type(text.lstrip("*")) if inner is not None else None
        if declared is None:  # a type's name in parentheses looks like a variable's
            return find_type_bytes(text, self._types)
        if text.startswith("*"):
            return find_type_bytes(declared[: -(len(text) - len(text.lstrip("*")))], self._types)
        return find_value_bytes(scope.read(text), declared, self._types)

    def _assign(self, node: "Node", scope: Scope, depth: int) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        name = read_name(left)
        value = self._value(right, scope, depth + 1)
        operator = read_text(node.child_by_field_name("operator"))
        if operator != "=":
            value = combine(operator[:-1], scope.read(name), value)
        kind = scope.read_type(name)
        value = value if kind is None else cast(value, kind)
        if left is not None and left.type == "field_expression":
            base = read_name(left.child_by_field_name("argument"))
            size, member = scope.read(base), read_text(left.child_by_field_name("field"))
            if isinstance(size, Size) and member in ("x", "y", "z"):
                parts = {"x": size.x, "y": size.y, "z": size.z, member: value if isinstance(value, int) else None}
                scope.write(base, Size(**parts))
                return value
        if left is not None and left.type == "subscript_expression":
            return value
        if isinstance(value, Array) and not value.name:
            value.name = name
        scope.write(name, value)
        return value

    def _call(self, node: "Node", scope: Scope, depth: int) -> Value:
        callee, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        syntax = next((child for child in node.named_children if child.type == "kernel_call_syntax"), None)
        nodes = [] if given is None else [child for child in given.named_children if child.type != "comment"]
        name = read_last_name(callee)
        if callee is not None and callee.type == "field_expression":
            return self._call_member(callee, scope)
        if syntax is not None:
            self._launch(node, name, syntax, nodes, scope)
            return None
        if name == "dim3":
            return self._read_size(nodes, scope)
        if name in _ALLOCATIONS:
            return self._allocate(name, nodes, scope)
        if name in _HOST_ALLOCATIONS:
            return self._allocate_host(node, name, nodes, scope)
        arguments = [self._value(child, scope, depth) for child in nodes]
        if name in self._functions:
            return self._enter(name, arguments, scope, nodes)
        for child in nodes:  # it may write to what it is given the address of
            target = strip_casts(child)
            if target is not None and target.type == "pointer_expression" and read_text(target).startswith("&"):
                scope.write(read_name(target.child_by_field_name("argument")), None)
        is_cast = callee is not None and callee.type == "primitive_type" and len(arguments) == 1
        return cast(arguments[0], name) if is_cast else call_function(name, arguments)

    def _call_member(self, callee: "Node", scope: Scope) -> Value:
        """What a vector says of itself; a method that may change it leaves nothing known of its size."""
        base, member = read_name(callee.child_by_field_name("argument")), read_text(callee.child_by_field_name("field"))
        held = scope.read(base)
        element = _VECTOR.fullmatch("".join((scope.read_type(base) or "").split()))
        if not isinstance(held, Array) or element is None:
            return None
        if member in ("data", "begin"):
            return held
        size = find_type_bytes(element[1], self._types)
        if member == "size":
            return None if held.size_bytes is None or not size else held.size_bytes // size
        if member not in ("end", "front", "back", "at", "empty"):
            held.size_bytes = None
        return None

    def _allocate(self, name: str, nodes: "list[Node]", scope: Scope) -> Value:
        target = strip_casts(nodes[0]) if nodes else None
        if target is None:
            return None
        line = target.start_point[0] + 1
        is_pitched = name == "cudaMallocPitch"
        if is_pitched:
            width, height = (self._value(one, scope) for one in nodes[2:4]) if len(nodes) >= 4 else (None, None)
            pitch = -(-width // _PITCH_BYTES) * _PITCH_BYTES if isinstance(width, int) else None
            size = combine("*", pitch, height)
            given = strip_casts(nodes[1]) if len(nodes) > 1 else None
            if given is not None and given.type == "pointer_expression":
                scope.write(read_name(given.child_by_field_name("argument")), pitch)
        else:
            place = _ALLOCATIONS[name]
            size = self._value(nodes[place], scope) if len(nodes) > place else None
        text = read_name(target)
        if target.type == "pointer_expression" and text.startswith("&"):
            wanted = read_name(target.child_by_field_name("argument"))
        else:
            wanted = f"*{text}"
        array = Array(int(size) if isinstance(size, (int, float)) else None, line, wanted.lstrip("*"))
        scope.write(wanted, array)
        return 0

    def _allocate_host(self, node: "Node", name: str, nodes: "list[Node]", scope: Scope) -> Value:
        sizes = [self._value(nodes[place], scope) if place < len(nodes) else None for place in _HOST_ALLOCATIONS[name]]
        total: Value = 1
        for size in sizes:
            total = combine("*", total, size)
        return Array(int(total) if isinstance(total, (int, float)) else None, node.start_point[0] + 1, "")

    def _launch(self, node: "Node", name: str, syntax: "Node", nodes: "list[Node]", scope: Scope) -> None:
        settings = [child for child in syntax.named_children if child.type != "comment"]
        arguments = tuple(self._pass(child, scope) for child in nodes)
        if len(settings) < 2 or syntax.start_byte in self._found:
            return
        shared = self._value(settings[2], scope) if len(settings) > 2 else 0
        self._found[syntax.start_byte] = HostLaunch(
            kernel=name,
            line=node.start_point[0] + 1,
            grid=self._read_extent(settings[0], scope),
            block=self._read_extent(settings[1], scope),
            shared_bytes=int(shared) if isinstance(shared, (int, float)) else None,
            arguments=arguments,
        )
        if len(self._found) >= _MOST_LAUNCHES:
            raise _Ended

    def _pass(self, node: "Node", scope: Scope) -> HostArgument:
        value = self._value(node, scope)
        array = value if isinstance(value, Array) else None
        return HostArgument(
            text=" ".join(read_text(node).split()),
            value=keep_small(value) if isinstance(value, (int, float)) else None,
            size_bytes=None if array is None else array.size_bytes,
            is_array=array is not None,
            line=node.start_point[0] + 1 if array is None else array.line,
        )

    def _read_extent(self, node: "Node", scope: Scope) -> tuple[int, int, int] | None:
        value = self._value(node, scope)
        if isinstance(value, Size):
            return value.parts
        return (int(value), 1, 1) if isinstance(value, (int, float)) and value >= 1 else None

    def _read_size(self, nodes: "Sequence[Node]", scope: Scope) -> Size:
        values = [self._value(one, scope) for one in nodes][:3]
        if len(values) == 1 and isinstance(values[0], Size):
            return values[0]
        parts = [int(one) if isinstance(one, (int, float)) else None for one in values]
        return Size(**dict(zip("xyz", parts, strict=False))) if parts else Size(x=1)


def _is_same(left: Value, right: Value) -> bool:
    return left is right or (not isinstance(left, Array) and not isinstance(right, Array) and left == right)
