"""Values of host code's expressions, as far as the text alone decides them: numbers, sizes of launches, allocations.

A value that the text does not decide (an argument of the program, the content of a file, a result of another file) is None, and so is every value
that depends on it.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.code.sources.trees import read_text

if TYPE_CHECKING:
    from tree_sitter import Node

_LARGEST = 1 << 62
_WORD_BYTES = 8

Number = int | float


class Array(Struct, eq=False):
    """Allocated memory, or an array declared in the text."""

    size_bytes: int | None  # None where it is not known
    line: int  # where it was allocated, 1-based; 0 where that is not known
    name: str  # of the first variable it was given to
    is_zero: bool = False  # `cudaMemset` filled it with zeros, and nothing has written to it since
    is_shared: bool = False  # CUDA allocated it, so that the device has an address of all of it
    elements: dict[str, "Value"] = field(default_factory=dict)  # known elements, by their index as text
    # elements of the pointer's type from its beginning to where this address points; None where that is not known
    offset: int | None = 0


class Record(Struct, eq=False):
    """A structure."""

    type: str  # its name
    elements: dict[str, "Value"] = field(default_factory=dict)  # known members, by name


class Size(Struct, frozen=True, kw_only=True):
    """A ``dim3``."""

    x: int | None
    y: int | None = 1
    z: int | None = 1

    @property
    def parts(self) -> tuple[int, int, int] | None:
        """The numbers; None where one is not known."""
        if self.x is None or self.y is None or self.z is None:
            return None
        return self.x, self.y, self.z

    @property
    def axes(self) -> int:
        """Axes up to the last whose number may be other than 1."""
        return 3 if self.z != 1 else 2 if self.y != 1 else 1


class Kernel(Struct, frozen=True):
    """A kernel that a variable stands for."""

    name: str  # its plain name


Value = Number | Array | Record | Size | Kernel | None

# As on Linux and other systems where ``long`` has 64 bits
_TYPE_BYTES = {
    "char": 1, "signed char": 1, "unsigned char": 1, "uchar": 1, "bool": 1, "int8_t": 1, "uint8_t": 1,
    "short": 2, "unsigned short": 2, "ushort": 2, "half": 2, "__half": 2, "int16_t": 2, "uint16_t": 2, "__nv_bfloat16": 2,
    "int": 4, "unsigned": 4, "unsigned int": 4, "uint": 4, "float": 4, "int32_t": 4, "uint32_t": 4,
    "long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "ulong": 8, "size_t": 8, "double": 8,
    "int64_t": 8, "uint64_t": 8,
}  # fmt: skip
LONG_FORM = re.compile(r"(?:(?<=\bshort)|(?<=\blong)) int\b")  # ``int`` that says nothing, as in ``unsigned short int``
_VECTOR_LANES = {"2": 2, "3": 3, "4": 4}
_INTEGER_TYPES = frozenset(
    name for name in _TYPE_BYTES if not name.startswith(("float", "double", "half", "__half", "__nv"))
)


def find_type_bytes(name: str, known: Mapping[str, int] | None = None) -> int | None:
    """Size of a type by its spelling; None for one that is not known.

    >>> find_type_bytes("const float"), find_type_bytes("float4"), find_type_bytes("struct Node *"), find_type_bytes("Node")
    (4, 16, 8, None)
    """
    words = [
        word
        for word in name.replace("*", " * ").split()
        if word not in ("const", "struct", "static", "volatile", "register")
    ]
    if "*" in words:
        return _WORD_BYTES
    text = LONG_FORM.sub("", " ".join(words))
    if known is not None and text in known:
        return known[text]
    if text in _TYPE_BYTES:
        return _TYPE_BYTES[text]
    lanes = _VECTOR_LANES.get(text[-1:])
    element = _TYPE_BYTES.get(text[:-1])
    return lanes * element if lanes is not None and element is not None and " " not in text else None


def _divide(left: Number, right: Number) -> Number | None:
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return int(math.copysign(abs(left) // abs(right), left * right)) if left else 0
    return left / right


def _shift(left: Number, right: Number, sign: int) -> Number | None:
    if not isinstance(left, int) or not isinstance(right, int) or not 0 <= right < 63:
        return None
    return left << right if sign > 0 else left >> right


def _of_integers(combine: Callable[[int, int], int]) -> Callable[[Number, Number], Number | None]:
    return lambda left, right: combine(left, right) if isinstance(left, int) and isinstance(right, int) else None


_OPERATIONS: dict[str, Callable[[Number, Number], Number | None]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": _of_integers(lambda left, right: int(math.fmod(left, right)) if right else 0),
    "<<": lambda left, right: _shift(left, right, 1),
    ">>": lambda left, right: _shift(left, right, -1),
    "&": _of_integers(lambda left, right: left & right),
    "|": _of_integers(lambda left, right: left | right),
    "^": _of_integers(lambda left, right: left ^ right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "&&": lambda left, right: int(bool(left) and bool(right)),
    "||": lambda left, right: int(bool(left) or bool(right)),
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "min": min, "max": max, "fmin": min, "fmax": max, "fminf": min, "fmaxf": max, "abs": abs, "fabs": abs,
    "ceil": lambda one: float(math.ceil(one)), "ceilf": lambda one: float(math.ceil(one)),
    "floor": lambda one: float(math.floor(one)), "floorf": lambda one: float(math.floor(one)),
    "sqrt": math.sqrt, "sqrtf": math.sqrt, "pow": lambda one, two: float(one) ** two,
    "powf": lambda one, two: float(one) ** two, "log2": math.log2, "log2f": math.log2,
}  # fmt: skip


def combine(operator: str, left: Value, right: Value) -> Value:
    """The value of a binary expression; a pointer that is moved is still of its array.

    >>> combine("/", 7, 2), combine("/", 7.0, 2), combine("+", 1, None), combine("&&", 0, None)
    (3, 3.5, None, 0)
    """
    if isinstance(left, Array) or isinstance(right, Array):
        if operator not in ("+", "-") or (isinstance(left, Array) and isinstance(right, Array)):
            return None
        array, by = (left, right) if isinstance(left, Array) else (right, left)
        return _move(array, (by if operator == "+" else -by) if isinstance(by, int) else None)
    if operator == "&&" and (left == 0 or right == 0):
        return 0
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    operation = _OPERATIONS.get(operator)
    try:
        found = None if operation is None else operation(left, right)
    except (ArithmeticError, ValueError):
        return None
    return keep_small(found)


def _move(array: Value, by: int | None) -> Value:
    """An address within an array, whose elements become unknown."""
    if not isinstance(array, Array):
        return None
    array.elements.clear()
    offset = None if by is None or array.offset is None else array.offset + by
    return Array(array.size_bytes, array.line, array.name, offset=offset)


def keep_small(value: Number | None) -> Number | None:
    """The number; None where it is beyond any size that a program has."""
    return None if value is None or not math.isfinite(value) or abs(value) > _LARGEST else value


def call_function(name: str, arguments: list[Value]) -> Value:
    """Result of a function of the C++ library; None for others."""
    function = _FUNCTIONS.get(name.rpartition("::")[2])
    numbers = [one for one in arguments if isinstance(one, (int, float))]
    if function is None or len(numbers) != len(arguments) or not numbers:
        return None
    try:
        return keep_small(function(*numbers))
    except (TypeError, ValueError, ArithmeticError):
        return None


def read_literal(text: str) -> Number | None:
    """The value of a number as it is written.

    >>> read_literal("0x10u"), read_literal("1'000"), read_literal("1.5f"), read_literal("1e3"), read_literal("010")
    (16, 1000, 1.5, 1000.0, 8)
    """
    digits = text.replace("'", "").lower()
    try:
        if digits.startswith("0x"):
            return int(digits.rstrip("ul"), 16)
        if any(letter in digits for letter in ".e") or digits.endswith("f"):
            return float(digits.rstrip("fl"))
        plain = digits.rstrip("ulz")
        return int(plain, 8) if len(plain) > 1 and plain.startswith("0") else int(plain)
    except ValueError:
        return None


def cast(value: Value, type_name: str) -> Value:
    """A value as another type."""
    if "*" in type_name or not isinstance(value, (int, float)):
        return value
    name = " ".join(word for word in type_name.split() if word != "const")
    if name in _INTEGER_TYPES:
        return int(value)
    return float(value) if name in ("float", "double") else value


class Scope(Struct):
    """The variables of a function and their current values."""

    values: dict[str, Value] = field(default_factory=dict)  # by name; a name that is here with None is not known
    types: dict[str, str] = field(default_factory=dict)  # as declared, by name
    outer: "Scope | None" = None  # the text's own names
    # reference parameter → variable of the caller
    aliases: dict[str, tuple["Scope", str]] = field(default_factory=dict)

    def read(self, name: str) -> Value:
        """Current value of a name; None where unknown."""
        if name in self.aliases:
            scope, other = self.aliases[name]
            return scope.read(other)
        if name in self.values:
            return self.values[name]
        return None if self.outer is None else self.outer.read(name)

    def write(self, name: str, value: Value) -> None:
        """Assign a value to a name."""
        if name in self.aliases:
            scope, other = self.aliases[name]
            scope.write(other, value)
            return
        holder: Scope | None = self
        while holder is not None and name not in holder.values:
            holder = holder.outer
        (holder or self).values[name] = value

    def read_type(self, name: str) -> str | None:
        """Declared type of a name; None where unknown."""
        return self.types.get(name) or (None if self.outer is None else self.outer.read_type(name))


def read_name(node: "Node | None") -> str:
    """Text of a variable or member, without spaces."""
    return "".join(read_text(node).split())


class Snapshot:
    """A copy of the contents of some scopes, and of the arrays and structures in them.

    >>> scope = Scope(values={"n": 1, "m": 2})
    >>> before = Snapshot([scope])
    >>> scope.values["n"] = 3
    >>> before.forget_changes()
    >>> scope.values
    {'n': None, 'm': 2}
    """

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self._holders: list[tuple[dict[str, Value], dict[str, Value]]] = []
        self._sizes: list[tuple[Array, int | None]] = []
        seen: set[int] = set()
        pending: list[dict[str, Value]] = [one.values for one in scopes]
        while pending:
            holder = pending.pop()
            if id(holder) in seen:
                continue
            seen.add(id(holder))
            self._holders.append((holder, dict(holder)))
            for value in holder.values():
                if isinstance(value, (Array, Record)):
                    pending.append(value.elements)
                if isinstance(value, Array):
                    self._sizes.append((value, value.size_bytes))

    def list_grown(self) -> list[tuple[Array, int, int]]:
        """(array, bytes then, bytes now) of arrays that have another size since."""
        return [
            (array, size, array.size_bytes)
            for array, size in self._sizes
            if size is not None and array.size_bytes is not None and array.size_bytes != size
        ]

    def go_back(self) -> None:
        """Restore the contents."""
        for holder, then in self._holders:
            holder.clear()
            holder.update(then)
        for array, size in self._sizes:
            array.size_bytes = size

    def merge(self) -> None:
        """Make unknown every value that differs from the copy."""
        self._blur(keeps_new=False)

    def forget_changes(self) -> None:
        """Make unknown every value that has changed since, except for arrays allocated since."""
        self._blur(keeps_new=True)

    def _blur(self, *, keeps_new: bool) -> None:
        for holder, then in self._holders:
            for name, value in list(holder.items()):
                if name not in then:
                    holder[name] = value if keeps_new and isinstance(value, Array) else None
                elif not _is_same(then[name], value, keeps_new=keeps_new):
                    holder[name] = _blend(then[name], value)
            for name in then.keys() - holder.keys():
                holder[name] = None
        for array, size in self._sizes:
            if array.size_bytes != size:
                array.size_bytes = None


def _is_same(then: Value, now: Value, *, keeps_new: bool) -> bool:
    if isinstance(then, Array) and isinstance(now, Array):
        return then is now or (then.size_bytes is not None and then.size_bytes == now.size_bytes)
    if isinstance(now, Array):
        return keeps_new
    return then is now or (not isinstance(then, Array) and not isinstance(now, Record) and then == now)


def _blend(then: Value, now: Value) -> Value:
    """Value that two ways have in common: of a ``dim3`` the same numbers."""
    if not isinstance(then, Size) or not isinstance(now, Size):
        return None
    pairs = zip((then.x, then.y, then.z), (now.x, now.y, now.z), strict=True)
    return Size(**{axis: one if one == two else None for axis, (one, two) in zip("xyz", pairs, strict=True)})


class HostArgument(Struct, frozen=True, kw_only=True):
    """Argument passed for one parameter."""

    text: str  # as written
    value: Number | None  # a number; None for arrays and where it is not known
    size_bytes: int | None  # of the array; None for numbers, and where it is not known
    is_array: bool  # it is an array that the text allocates
    line: int  # where the array was allocated, 1-based; that of the launch for numbers
    file: str = ""  # that the line is of; empty for the text itself
    # elements from the array's beginning to where the pointer points; None where that is not known
    offset: int | None = 0
    # known members of a structure, by offset in bytes
    members: "tuple[tuple[int, HostArgument], ...]" = ()
    is_guess: bool = False  # it depends on assumed inputs
    is_zero: bool = False  # the array is full of zeros


class HostLaunch(Struct, frozen=True, kw_only=True):
    """One launch as written in the text."""

    kernel: str  # plain name, without namespace and template arguments
    line: int  # of the launch, 1-based
    grid: tuple[int, int, int] | None  # blocks in x, y, z; None where it is not known
    block: tuple[int, int, int] | None  # threads in x, y, z; None where it is not known
    block_axes: int = 3  # along which a block that is not known may have several threads
    shared_bytes: int | None  # dynamic shared memory; None where it is not known
    arguments: tuple[HostArgument, ...]  # in order
    file: str = ""  # that the line is of; empty for the text itself
    # as demanglers spell them, None for each that is not known; empty where the kernel is no template, or nothing is known
    template_arguments: tuple[str | None, ...] = ()
    # the text does not choose it: it stands in another case of a switch, whose value is assumed
    is_assumed: bool = False
    is_of_other: bool = False  # it may be of another instance of the kernel; the text does not decide
    # those of ``grid``, ``block`` and ``shared_bytes`` that depend on assumed inputs
    guessed: frozenset[str] = frozenset()
    # assumed inputs: place they are read from, and value. Empty where nothing of the launch depends on them.
    inputs: tuple[tuple[str, Number], ...] = ()

    @property
    def threads(self) -> int:
        """Threads in all; 0 where the grid is not known or has none. A block that is not known counts as one thread."""
        return math.prod(self.grid) * math.prod(self.block or (1,)) if self.grid and min(self.grid) > 0 else 0
