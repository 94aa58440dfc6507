"""Values of expressions in a walk through host code: :class:`Evaluation`; the walk through statements is a subclass."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.code.sources.host_inputs import CONVERSIONS, NO_OPTIONS, SCANNING, AssumedInputs, find_property, is_stream
from gpa_lsp.code.sources.host_syntax import (
    Layout,
    find_value_bytes,
    parse_expression,
    read_last_name,
    strip_casts,
    unwrap,
)
from gpa_lsp.code.sources.host_text import HostText
from gpa_lsp.code.sources.host_values import (
    Array,
    Kernel,
    Record,
    Scope,
    Size,
    Value,
    call_function,
    cast,
    combine,
    find_type_bytes,
    read_literal,
    read_name,
)
from gpa_lsp.code.sources.trees import list_parts, part, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 150
_PITCH_BYTES = 512
_MOST_ELEMENTS = 64
# Functions that give their first argument an array, by where its size stands
_ALLOCATIONS = {
    "cudaMalloc": 1, "cudaMallocManaged": 1, "cudaMallocHost": 1, "cudaHostAlloc": 1, "cudaMallocAsync": 1, "cudaMallocPitch": 2,
    "cudaMallocFromPoolAsync": 1, "cudaMalloc3D": 1,
}  # fmt: skip
_WITHOUT_VALUE = frozenset({"string_literal", "null", "char_literal", "argument_list"})
VECTOR = re.compile(r"(?:std::|thrust::)?(?:host_|device_)?vector<(.*)>")
_HOST_ALLOCATIONS = {"malloc": (0,), "calloc": (0, 1), "valloc": (0,), "aligned_alloc": (1,), "_mm_malloc": (0,)}
_WRITING_FIRST = ("cudaMemcpy", "memcpy", "memset", "cudaMemset", "memmove")
_FILLING = ("cudaMemcpy", "cudaMemset")
_WRITING_NOTHING = frozenset({
    "printf", "fprintf", "puts", "free", "cudaFree", "cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync", "assert",
    "cudaFreeHost", "exit",
})  # fmt: skip
_DEVICE_ADDRESSES = frozenset({"cudaHostGetDevicePointer", "cudaGetSymbolAddress"})
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_MADE = {"make_cudaExtent": "cudaExtent", "make_cudaPitchedPtr": "cudaPitchedPtr"}
_KEEPING_SIZE = frozenset({"end", "cend", "front", "back", "at", "empty", "capacity", "reserve", "shrink_to_fit"})
_SAME = frozenset({"raw_pointer_cast", "move", "forward", "static_cast", "reinterpret_cast", "const_cast"})


class Evaluation(ABC):
    """Evaluates expressions in the scopes of a walk."""

    def __init__(self, host: HostText, structures: dict[str, Layout]) -> None:
        self._host = host
        self._inputs: AssumedInputs | None = None
        self._kernels: frozenset[str] = frozenset()
        self._structures = structures
        self._types = {name: one.size_bytes for name, one in structures.items() if one.size_bytes}
        self._parameters: dict[str, str] = {}
        self._expanding: set[str] = set()
        self._expressions: dict[str, Node | None] = {}
        self._rules: dict[str, Callable[[Node, Scope, int], Value]] = {
            "number_literal": lambda node, *_: read_literal(read_text(node)),
            "true": lambda *_: 1,
            "false": lambda *_: 0,
            "identifier": self._look_up,
            "qualified_identifier": self._look_up,
            "parenthesized_expression": lambda node, *rest: self.value(unwrap(node), *rest),
            "condition_clause": lambda node, *rest: self.value(unwrap(node), *rest),
            "comma_expression": self._read_last,
            "binary_expression": self._calculate,
            "call_expression": self._call,
            "assignment_expression": self._assign,
            "cast_expression": self._cast,
            "unary_expression": self._negate,
            "conditional_expression": self._choose,
            "sizeof_expression": self._size_of,
            "update_expression": self._update,
            "field_expression": self._read_member,
            "subscript_expression": self._read_element,
            "pointer_expression": self._follow,
            "new_expression": self._new,
        }

    @abstractmethod
    def step(self) -> None:
        """Count one step against the limit."""

    @abstractmethod
    def launch(self, node: "Node", scope: Scope) -> bool:
        """Note the launch that a call makes; False where it makes none."""

    @abstractmethod
    def enter(
        self, call: "Node", name: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]"
    ) -> Value:
        """Go through a function of the text."""

    @abstractmethod
    def construct(self, kind: str, nodes: "Sequence[Node]", scope: Scope) -> Record | None:
        """An object of a class of the text."""

    @abstractmethod
    def make_object(self, callee: "Node | None", name: str, nodes: "Sequence[Node]", scope: Scope) -> Record | None:
        """The object that a call makes."""

    @abstractmethod
    def find_method(self, held: Value, name: str) -> Record | None:
        """The object that a method of the text is called for."""

    @abstractmethod
    def enter_method(
        self, record: Record, name: str, arguments: Sequence[Value], scope: Scope, nodes: "Sequence[Node]"
    ) -> Value:
        """Go through a method of an object."""

    @abstractmethod
    def knows(self, name: str) -> bool:
        """Whether the text has one function of a name."""

    def measure(self, type_name: str) -> int | None:
        """Size of a type in bytes, template parameters and macros resolved; None where it is unknown."""
        words = [self._parameters.get(word, word) for word in type_name.replace("*", " * ").split()]
        words = [self._host.macros.get(word, word).replace("*", " * ") for word in words]
        return find_type_bytes(" ".join(words), self._types)

    def value(self, node: "Node | None", scope: Scope, depth: int = 0) -> Value:
        """Value of an expression; None where it is unknown."""
        if node is None or depth > _DEEPEST:
            return None
        self.step()
        expression = self._rules.get(node.type)
        if expression is not None:
            return expression(node, scope, depth + 1)
        if node.type not in _WITHOUT_VALUE:
            for child in node.named_children:
                self.value(child, scope, depth + 1)
        return None

    def _read_last(self, node: "Node", scope: Scope, depth: int) -> Value:
        found: Value = None
        for child in node.named_children:
            found = self.value(child, scope, depth)
        return found

    def _calculate(self, node: "Node", scope: Scope, depth: int) -> Value:
        operator, second = read_text(part(node, "operator")), part(node, "right")
        left = self.value(part(node, "left"), scope, depth)
        if operator == ">>" and is_stream(node, scope):
            self.store(second, None if self._inputs is None else self._inputs.scan(second, scope), scope)
            return None
        return combine(operator, left, self.value(second, scope, depth))

    def _cast(self, node: "Node", scope: Scope, depth: int) -> Value:
        value = self.value(part(node, "value"), scope, depth)
        if isinstance(value, Array) and value.offset:  # counted in elements of another type from here on
            return replace(value, offset=None)
        return cast(value, read_text(part(node, "type")))

    def _negate(self, node: "Node", scope: Scope, depth: int) -> Value:
        value = self.value(part(node, "argument"), scope, depth)
        if not isinstance(value, (int, float)):
            return None
        return {"-": -value, "+": value, "!": int(not value)}.get(read_text(part(node, "operator")))

    def _choose(self, node: "Node", scope: Scope, depth: int) -> Value:
        value = self.value(part(node, "condition"), scope, depth)
        if not isinstance(value, (int, float)):
            return None
        return self.value(part(node, "consequence" if value else "alternative"), scope, depth)

    def _update(self, node: "Node", scope: Scope, depth: int) -> Value:
        target = part(node, "argument")
        value = self.value(target, scope, depth)
        changed = combine("+" if "++" in read_text(node) else "-", value, 1)
        self.store(target, changed, scope)
        return changed if read_text(node).startswith(("++", "--")) else value

    def _follow(self, node: "Node", scope: Scope, depth: int) -> Value:
        text = read_text(node)
        target = strip_casts(part(node, "argument"))
        if text.startswith("*"):
            return scope.read(read_name(node))
        if target is not None and target.type == "subscript_expression":
            held = self.value(part(target, "argument"), scope, depth)
            index = self._find_index(target, scope, depth)
            return held if index == "0" else combine("+", held, None if index is None else int(index))
        held = scope.read(read_name(target))
        if held is None and read_name(target) in self._kernels:
            return Kernel(read_name(target))
        if isinstance(held, Array) and "*" not in (scope.read_type(read_name(target)) or "*"):
            return held  # the text's own array
        self.store(target, None, scope)  # who has the address may write there
        return None

    def _new(self, node: "Node", scope: Scope, depth: int) -> Value:
        count, given = part(node, "declarator"), part(node, "arguments")
        if count is None:
            passed = list_parts(given)
            made = self.construct(read_text(part(node, "type")), passed, scope)
            if made is not None:
                return made
        kind = self.measure(read_text(part(node, "type")))
        number = None if count is None or not count.named_children else self.value(count.named_children[0], scope)
        size = combine("*", kind, number)
        return Array(size if isinstance(size, int) else None, node.start_point[0] + 1, "")

    def _look_up(self, node: "Node", scope: Scope, depth: int) -> Value:
        name = read_name(node)
        macro = self._host.macros.get(name)
        if macro is None:
            held = scope.read(name)
            return Kernel(name) if held is None and name in self._kernels else held
        return self._expand(name, macro, scope, depth)

    def _expand(self, name: str, text: str, scope: Scope, depth: int) -> Value:
        if name in self._expanding:
            return None
        if text not in self._expressions:
            self._expressions[text] = parse_expression(text)
        self._expanding.add(name)
        try:
            return self.value(self._expressions[text], scope, depth + 1)
        finally:
            self._expanding.discard(name)

    def _expand_call(self, name: str, nodes: "list[Node]", scope: Scope, depth: int) -> Value:
        """Value of a macro with parameters; where it is no expression, only its arguments are evaluated."""
        parameters, text = self._host.functions[name]
        given = {one: f"({read_text(node)})" for one, node in zip(parameters, nodes, strict=False)}
        body = _WORD.sub(lambda found: given.get(found.group(), found.group()), text)
        is_expression = len(given) == len(parameters) == len(nodes) and not any(mark in text for mark in "#{;")
        if is_expression and name not in self._expanding:
            return self._expand(name, body, scope, depth)
        for child in nodes:
            self.value(child, scope, depth)
        return None

    def _read_member(self, node: "Node", scope: Scope, depth: int) -> Value:
        holder = self._find_record(node, scope, depth)
        member = read_text(part(node, "field"))
        if isinstance(holder, Size) and member in ("x", "y", "z"):
            return getattr(holder, member)  # type: ignore[no-any-return]
        if isinstance(holder, Record):
            return holder.elements.get(member)
        held, base = scope.read(read_name(node)), read_name(part(node, "argument"))
        if held is None and (scope.read_type(base) or "").rstrip("*&") in ("cudaDeviceProp", "struct cudaDeviceProp"):
            return find_property(member, self._inputs)
        return held

    def _find_record(self, node: "Node", scope: Scope, depth: int) -> Value:
        """The object that a member expression selects from."""
        base = strip_casts(part(node, "argument"))
        if base is None or depth > _DEEPEST:
            return None
        if "->" in read_text(node)[len(read_text(base)) :]:
            pointed = scope.read(f"*{read_name(base)}")
            return scope.read(read_name(base)) if pointed is None else pointed
        return (
            self._read_member(base, scope, depth + 1)
            if base.type == "field_expression"
            else scope.read(read_name(base))
        )

    def _read_element(self, node: "Node", scope: Scope, depth: int) -> Value:
        held = self.value(part(node, "argument"), scope, depth)
        index = self._find_index(node, scope, depth)
        return held.elements.get(index) if isinstance(held, Array) and index is not None else None

    def _find_index(self, node: "Node", scope: Scope, depth: int) -> str | None:
        indices = part(node, "indices") or part(node, "index")
        if indices is not None and indices.type == "subscript_argument_list":
            indices = indices.named_children[0] if len(indices.named_children) == 1 else None
        value = self.value(indices, scope, depth)
        return str(value) if isinstance(value, int) else None

    def store(self, target: "Node | None", value: Value, scope: Scope) -> None:
        """Assign a value to the variable, member or element that an expression names."""
        target = strip_casts(target)
        if target is None:
            return
        if target.type == "field_expression":
            holder, member = self._find_record(target, scope, 0), read_text(part(target, "field"))
            if isinstance(holder, Record):
                holder.elements[member] = value
                return
            if isinstance(holder, Size) and member in ("x", "y", "z"):
                parts = {"x": holder.x, "y": holder.y, "z": holder.z, member: value if isinstance(value, int) else None}
                base = part(target, "argument")
                self.store(base, Size(**parts), scope)
                return
        elif target.type == "subscript_expression":
            held = self.value(part(target, "argument"), scope)
            index = self._find_index(target, scope, 0)
            if isinstance(held, Array):
                if index is None or len(held.elements) > _MOST_ELEMENTS:
                    held.elements.clear()
                else:
                    held.elements[index] = value
            return
        scope.write(read_name(target), value)

    def _size_of(self, node: "Node", scope: Scope, depth: int) -> Value:
        kind = part(node, "type")
        if kind is not None:
            name = " ".join(read_text(kind).split())
            declared = scope.read_type(name)
            if declared is None:
                return self.measure(name)
            return find_value_bytes(scope.read(name), declared, self._types)
        inner = strip_casts(part(node, "value"))
        text = read_name(inner)
        declared = scope.read_type(text.lstrip("*")) if inner is not None else None
        if declared is None:  # a type's name in parentheses looks like a variable's
            return self.measure(text)
        if text.startswith("*"):
            return self.measure(declared[: -(len(text) - len(text.lstrip("*")))])
        return find_value_bytes(scope.read(text), declared, self._types)

    def _assign(self, node: "Node", scope: Scope, depth: int) -> Value:
        left, right = part(node, "left"), part(node, "right")
        value = self.value(right, scope, depth + 1)
        operator = read_text(part(node, "operator"))
        if operator != "=":
            value = combine(operator[:-1], self.value(left, scope, depth), value)
        kind = scope.read_type(read_name(left))
        if value is None and operator == "=" and self._inputs is not None:
            value = self._inputs.find(read_name(left), kind or "", right)
        value = copy_record(value if kind is None else cast(value, kind))
        if isinstance(value, Array) and not value.name:
            value.name = read_name(left)
        self.store(left, value, scope)
        return value

    def _call(self, node: "Node", scope: Scope, depth: int) -> Value:
        callee, given = part(node, "function"), part(node, "arguments")
        nodes = list_parts(given)
        name = read_last_name(callee)
        if self.launch(node, scope):
            return 0
        of_class = "::".join(read_name(callee).split("::")[-2:])
        if self.knows(of_class) and self.find_method(scope.read("*this"), name) is None:
            name = of_class
        if callee is not None and callee.type == "field_expression":
            return self._call_member(callee, nodes, scope)
        if name in self._host.functions:
            return self._expand_call(name, nodes, scope, depth)
        rule = self._find_rule(node, name, nodes)
        if rule is not None:
            return rule(nodes, scope)
        this = self.find_method(scope.read("*this"), name)
        if this is not None:
            return self._enter_method(this, name, nodes, scope)
        if self.knows(name):
            arguments = [self._find_passed(child, scope, depth) for child in nodes]
            return self.enter(node, name, arguments, scope, nodes)
        found = self.make_object(callee, name, nodes, scope) or self._call_unknown(callee, name, nodes, scope, depth)
        return self._read_input(node, name, nodes, scope) if found is None else found

    def _enter_method(self, this: Record, name: str, nodes: "list[Node]", scope: Scope) -> Value:
        arguments = [self._find_passed(child, scope, 0) for child in nodes]
        return self.enter_method(this, name, arguments, scope, nodes)

    def _read_input(self, node: "Node", name: str, nodes: "list[Node]", scope: Scope) -> Value:
        """Value of a call that reads program options or converts text to a number."""
        if name == "_ConvertSMVer2Cores":
            return find_property("cores", self._inputs)
        if name in NO_OPTIONS and nodes:
            return NO_OPTIONS[name] if self._inputs is not None or self.value(nodes[0], scope) == 1 else None
        return self._inputs.convert(node, name) if self._inputs is not None and name in CONVERSIONS else None

    def _find_passed(self, node: "Node", scope: Scope, depth: int) -> Value:
        """Value passed to a function of the text; None for an address, through which it writes by name."""
        target = strip_casts(node)
        inner = None if target is None or not _is_address(node) else part(target, "argument")
        return self.value(node, scope, depth) if inner is None or read_name(inner) in self._kernels else None

    def _find_rule(self, node: "Node", name: str, nodes: "list[Node]") -> "Callable[[list[Node], Scope], Value] | None":
        """Evaluator of a function of CUDA or C++ that returns memory, addresses or sizes; None for others."""
        if name == "dim3":
            return self.read_size
        if name in _ALLOCATIONS:
            return partial(self._allocate, name)
        if name in _HOST_ALLOCATIONS:
            return partial(self._allocate_host, node, name)
        if name == "cudaDeviceGetAttribute" and len(nodes) >= 2:
            return self._get_attribute
        if name == "cudaOccupancyMaxActiveBlocksPerMultiprocessor" and len(nodes) >= 3:
            return self._get_occupancy
        if name in _DEVICE_ADDRESSES and len(nodes) >= 2:
            return partial(self._find_device_address, name)
        return partial(self._make_structure, _MADE[name]) if name in _MADE else None

    def _make_structure(self, kind: str, nodes: "list[Node]", scope: Scope) -> Value:
        """A CUDA structure from its members in order."""
        names = [name for name, _, _ in self._structures[kind].members]
        return Record(kind, {name: self.value(one, scope) for name, one in zip(names, nodes, strict=False)})

    def _call_unknown(self, callee: "Node | None", name: str, nodes: "list[Node]", scope: Scope, depth: int) -> Value:
        """Value of a call of a function outside the text, which may write to variables whose address it is given."""
        arguments: list[Value] = []
        for number, child in enumerate(nodes):
            is_written = name not in _WRITING_NOTHING and not (number > 0 and name.startswith(_WRITING_FIRST))
            target = strip_casts(child)
            if target is not None and _is_address(child):
                if is_written:
                    inner = part(target, "argument")
                    is_scanned = self._inputs is not None and name in SCANNING
                    self.store(inner, self._inputs.scan(inner, scope) if self._inputs and is_scanned else None, scope)
                arguments.append(None)
                continue
            value = self.value(child, scope, depth)
            if isinstance(value, Array) and is_written and name not in _SAME:
                value.elements.clear()
                value.size_bytes = value.size_bytes or None
            arguments.append(value)
        filled = arguments[0] if len(arguments) > 1 and name.startswith(_FILLING) else None
        if isinstance(filled, Array):
            filled.is_zero = "set" in name and arguments[1] == 0
        if name in _SAME and len(arguments) == 1:
            return arguments[0]
        is_cast = callee is not None and callee.type == "primitive_type" and len(arguments) == 1
        return cast(arguments[0], name) if is_cast else call_function(name, arguments)

    def _get_attribute(self, nodes: "list[Node]", scope: Scope) -> Value:
        """``cudaDeviceGetAttribute``: a property of the GPU."""
        found = find_property(read_name(nodes[1]).rpartition("cudaDevAttr")[2], self._inputs)
        self._store_through(strip_casts(nodes[0]), found, scope)
        return 0

    def _get_occupancy(self, nodes: "list[Node]", scope: Scope) -> Value:
        """``cudaOccupancyMaxActiveBlocksPerMultiprocessor``: as many blocks as an SM has threads for."""
        threads = find_property("maxThreadsPerMultiProcessor", self._inputs)
        self._store_through(strip_casts(nodes[0]), combine("/", threads, self.value(nodes[2], scope)), scope)
        return 0

    def _find_device_address(self, name: str, nodes: "list[Node]", scope: Scope) -> Value:
        """``cudaHostGetDevicePointer`` and ``cudaGetSymbolAddress``: another address of a known array."""
        held = self.value(strip_casts(nodes[1]), scope)
        is_whole = isinstance(held, Array) and (held.is_shared or name == "cudaGetSymbolAddress")
        self._store_through(
            strip_casts(nodes[0]), held if is_whole else Array(None, nodes[0].start_point[0] + 1, ""), scope
        )
        return 0

    def _store_through(self, target: "Node | None", value: Value, scope: Scope) -> str:
        """Assign through a pointer argument; returns the name of the variable it points to."""
        if target is not None and _is_address(target):
            inner = part(target, "argument")
            self.store(inner, value, scope)
            return read_name(strip_casts(inner))
        name = f"*{read_name(target)}"
        scope.write(name, value)
        return name.lstrip("*")

    def _call_member(self, callee: "Node", nodes: "list[Node]", scope: Scope) -> Value:
        """Value of a method call; a method that may resize a vector makes its size unknown."""
        node, member = part(callee, "argument"), read_text(part(callee, "field"))
        this = self.find_method(self._find_record(callee, scope, 0), member)
        if this is not None:
            return self._enter_method(this, member, nodes, scope)
        base = read_name(node)
        held = self.value(node, scope)
        if member == "get":
            return held
        element = VECTOR.fullmatch("".join((scope.read_type(base) or "").split()))
        if not isinstance(held, Array) or element is None:
            return None
        if member in ("data", "begin"):
            return held
        size = self.measure(element[1])
        if member == "size":
            return None if held.size_bytes is None or not size else held.size_bytes // size
        if member not in _KEEPING_SIZE:
            held.size_bytes = self._resize(held.size_bytes, size, member, nodes, scope)
            held.elements.clear()
        return None

    def _resize(
        self, now: int | None, element: int | None, member: str, nodes: "list[Node]", scope: Scope
    ) -> int | None:
        """Bytes of a vector after a method that changes it; None where unknown."""
        if member in ("push_back", "emplace_back", "pop_back"):
            changed = combine("-" if member == "pop_back" else "+", now, element)
        elif member == "resize" or (member == "assign" and len(nodes) == 2):
            changed = combine("*", self.value(nodes[0], scope) if nodes else None, element)
        else:
            changed = 0 if member == "clear" else None
        return changed if isinstance(changed, int) and changed >= 0 else None

    def _allocate(self, name: str, nodes: "list[Node]", scope: Scope) -> Value:
        target = strip_casts(nodes[0]) if nodes else None
        if target is None:
            return None
        line = target.start_point[0] + 1
        if name == "cudaMalloc3D":
            extent = self.value(nodes[1], scope) if len(nodes) > 1 else None
            sides = extent.elements if isinstance(extent, Record) else {}
            pitch, array = self._pitch([sides.get(side) for side in ("width", "height", "depth")], line)
            array.name = read_name(target).lstrip("&")
            parts = {"ptr": array, "pitch": pitch, "xsize": sides.get("width"), "ysize": sides.get("height")}
            self._store_through(target, Record("cudaPitchedPtr", parts), scope)
            return 0
        if name == "cudaMallocPitch":
            sizes = [self.value(one, scope) for one in nodes[2:4]]
            pitch, array = self._pitch(sizes if len(sizes) == 2 else [None], line)
            self._store_through(strip_casts(nodes[1]) if len(nodes) > 1 else None, pitch, scope)
        else:
            place = _ALLOCATIONS[name]
            size = self.value(nodes[place], scope) if len(nodes) > place else None
            array = Array(int(size) if isinstance(size, (int, float)) else None, line, "", is_shared=True)
        array.name = self._store_through(target, array, scope)
        return 0

    def _pitch(self, sides: Sequence[Value], line: int) -> tuple[int | None, Array]:
        """Bytes of a padded row, and the array of all rows; ``sides`` are the row's width in bytes, then counts of rows and planes."""
        width, *counts = sides
        pitch = -(-width // _PITCH_BYTES) * _PITCH_BYTES if isinstance(width, int) else None
        size: Value = pitch
        for count in counts:
            size = combine("*", size, count)
        return pitch, Array(size if isinstance(size, int) else None, line, "", is_shared=True)

    def _allocate_host(self, node: "Node", name: str, nodes: "list[Node]", scope: Scope) -> Value:
        sizes = [self.value(nodes[place], scope) if place < len(nodes) else None for place in _HOST_ALLOCATIONS[name]]
        total: Value = 1
        for size in sizes:
            total = combine("*", total, size)
        return Array(int(total) if isinstance(total, (int, float)) else None, node.start_point[0] + 1, "")

    def read_extent(self, node: "Node", scope: Scope) -> Size:
        """Value of a grid or block, as far as it is known."""
        value = self.value(node, scope)
        if isinstance(value, Size):
            return value
        if isinstance(value, (int, float)) and value >= 1:
            return Size(x=int(value))
        return Size(x=None, y=None, z=None)

    def read_size(self, nodes: "Sequence[Node]", scope: Scope) -> Size:
        """A ``dim3`` from the arguments of its constructor."""
        values = [self.value(one, scope) for one in nodes][:3]
        if len(values) == 1 and isinstance(values[0], Size):
            return values[0]
        parts = [int(one) if isinstance(one, (int, float)) else None for one in values]
        return Size(**dict(zip("xyz", parts, strict=False))) if parts else Size(x=1)


def copy_record(value: Value) -> Value:
    """Copy a structure on assignment or passing; other values as they are."""
    return Record(value.type, dict(value.elements)) if isinstance(value, Record) else value


def _is_address(node: "Node") -> bool:
    target = strip_casts(node)
    return target is not None and target.type == "pointer_expression" and read_text(target).startswith("&")
