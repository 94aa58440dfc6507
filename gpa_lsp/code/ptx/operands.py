"""The text of an operand → its model."""

import re
import struct
from collections.abc import Callable, Container, Iterator, Mapping
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub, truediv, xor
from typing import Any

from msgspec import Struct, field

from gpa_lsp.code.ptx.model import (
    Address,
    Immediate,
    Operand,
    Pair,
    PtxVariable,
    Register,
    SpecialRegister,
    Symbol,
    TextureAddress,
    Vector,
)
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.errors import InputError

_LONGEST_NUMBER = 80
_LONGEST_EXPRESSION = 400
_DEEPEST_EXPRESSION = 32
_NUMBER = re.compile(
    r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?",
    re.ASCII,
)
_EXPRESSION_TOKEN = re.compile(
    rf"\s*(?:({_NUMBER.pattern}|WARP_SZ)|(\(\s*\.[su]64\s*\))|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%~!<>&^|?:()]))",
    re.ASCII,
)
# Binary operators, those that bind weakest first
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip


def incomplete(message: str) -> InputError:
    """An error of a text that ends early, or was cut somewhere."""
    return InputError(message, remedy="check that the PTX is complete")


def read_number(text: str) -> Immediate | None:
    """A literal with an optional sign; None when the text is none.

    Raises:
        InputError: an integer of more than 64 bits.

    >>> [read_number(text).value for text in ("-12", "0x10", "017", "0b101U")]
    [-12, 16, 15, 5]
    >>> read_number("0f3F800000"), read_number("1.5e1"), read_number("%r1")
    (Immediate(value=1.0, bits=1065353216, width_bits=32), Immediate(value=15.0, bits=None, width_bits=None), None)
    """
    if len(text) > _LONGEST_NUMBER:
        return None
    is_negative = text[:1] == "-"
    digits = text[1:].strip() if text[:1] in ("-", "+") else text
    if _NUMBER.fullmatch(digits) is None:
        return None
    kind = digits[:2].lower()
    if kind in ("0f", "0d"):
        return _read_bits(digits, is_negative=is_negative)
    if "." in digits or (kind != "0x" and "e" in digits.lower()):
        return Immediate(-float(digits) if is_negative else float(digits))
    value = _read_integer(digits)
    return Immediate(-value if is_negative else value)


def _read_integer(digits: str) -> int:
    digits = digits.rstrip("U")
    kind = digits[:2].lower()
    if kind in ("0x", "0b"):
        value = int(digits, 0)
    elif digits[0] == "0" and digits.isdigit() and not set(digits) & {"8", "9"}:
        value = int(digits, 8)
    else:
        value = int(digits)
    if value >> 64:
        raise InputError(f"the number {digits} has more than 64 bits", remedy="PTX has integers of 64 bits")
    return value


def _read_bits(digits: str, *, is_negative: bool) -> Immediate:
    width = 32 if digits[1] in "fF" else 64
    bits = int(digits[2:], 16)
    if is_negative:
        bits ^= 1 << (width - 1)
    code = "<If" if width == 32 else "<Qd"
    return Immediate(struct.unpack(f"<{code[2]}", struct.pack(code[:2], bits))[0], bits, width)


def evaluate_constant(text: str) -> int | float:
    """The value of a constant expression, of literals and operators alone.

    >>> evaluate_constant("(1 << 4) + 6 / 4 * 2"), evaluate_constant("~0 & 0xff"), evaluate_constant("1 < 2 ? 7 : 8")
    (18, 255, 7)
    """
    number = read_number(text.strip())
    if number is not None:
        return number.value
    if len(text) > _LONGEST_EXPRESSION:
        raise InputError(f"a constant expression of {len(text)} characters", remedy="shorten it")
    reader = _Expression(text)
    value = reader.read_choice(0)
    if reader.position < len(reader.tokens):
        raise reader.refuse()
    return value


class _Expression:
    """Reads one expression by recursive descent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.position = 0
        place = 0
        stripped = text.rstrip()
        while place < len(stripped):
            match = _EXPRESSION_TOKEN.match(stripped, place)
            if match is None:
                raise self.refuse()
            place = match.end()
            if match[2] is None:  # a cast to 64 bits changes nothing here: all constants have 64 bits
                self.tokens.append(match[1] or match[3])

    def refuse(self) -> InputError:
        shown = self.text.strip()[:60]
        return InputError(f"{shown!r} is neither an operand nor a constant expression", remedy="see PTX ISA, constants")

    def next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def read_choice(self, depth: int) -> int | float:
        if depth > _DEEPEST_EXPRESSION:
            raise InputError("a constant expression is nested too deeply", remedy="simplify it")
        condition = self.read_level(0, depth)
        if self.next() != "?":
            return condition
        self.position += 1
        first = self.read_choice(depth + 1)
        if self.next() != ":":
            raise self.refuse()
        self.position += 1
        second = self.read_choice(depth + 1)
        return first if condition else second

    def read_level(self, level: int, depth: int) -> int | float:
        if level == len(_LEVELS):
            return self.read_unary(depth)
        value = self.read_level(level + 1, depth)
        while self.next() in _LEVELS[level]:
            operator = self.tokens[self.position]
            self.position += 1
            value = _apply(operator, value, self.read_level(level + 1, depth))
        return value

    def read_unary(self, depth: int) -> int | float:
        token = self.next()
        self.position += 1
        if depth > _DEEPEST_EXPRESSION or not token:
            raise self.refuse()
        if token == "(":
            value = self.read_choice(depth + 1)
            if self.next() != ")":
                raise self.refuse()
            self.position += 1
            return value
        if token in ("-", "+", "!", "~"):
            value = self.read_unary(depth + 1)
            if token == "!":
                return int(not value)
            return -value if token == "-" else value if token == "+" else _wrap(~_refuse_float(value))
        number = Immediate(32) if token == "WARP_SZ" else read_number(token)
        if number is None:
            raise self.refuse()
        return number.value


def _refuse_float(value: int | float) -> int:
    if isinstance(value, float):
        raise InputError("an operator for integers has a floating-point operand", remedy="see PTX ISA, constants")
    return value


def _wrap(value: int) -> int:
    """Wrap a value to 64 bits, signed."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


_OF_NUMBERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": add, "-": sub, "*": mul, "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_OF_INTEGERS: Mapping[str, Callable[[Any, Any], Any]] = {"&": and_, "|": or_, "^": xor}


def _apply(operator: str, left: int | float, right: int | float) -> int | float:
    if operator in ("/", "%") and right == 0:
        raise InputError("a constant expression divides by zero", remedy="correct it")
    if isinstance(left, float) or isinstance(right, float):
        if operator not in _OF_NUMBERS and operator != "/":
            raise InputError(f"the operator {operator} has a floating-point operand", remedy="see PTX ISA, constants")
        value = _OF_NUMBERS.get(operator, truediv)(float(left), float(right))
        return int(value) if isinstance(value, bool) else value
    if operator in ("<<", ">>"):
        shift = min(max(right, 0), 64)
        return _wrap(left << shift) if operator == "<<" else left >> shift
    if operator in ("/", "%"):
        quotient = abs(left) // abs(right) * (-1 if (left < 0) != (right < 0) else 1)
        value = quotient if operator == "/" else left - quotient * right
    elif operator in ("&&", "||"):
        value = int(bool(left) and bool(right)) if operator == "&&" else int(bool(left) or bool(right))
    else:
        value = int((_OF_INTEGERS.get(operator) or _OF_NUMBERS[operator])(left, right))
    return value if -(1 << 63) <= value < 1 << 64 else _wrap(value)


DEEPEST_SCOPE = 64
_DIGITS = "0123456789"
_MOST_DIGITS = 10
COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}  # Names of a vector register's elements


Registers = list[tuple[str, ScalarType]]  # name and type of each slot, in the order in which registers are first named


class Scope(Struct):
    """One ``{ }``."""

    parent: "Scope | None"  # the scope around it; None for the body itself
    depth: int = 0  # 0 for the body
    parameter_bytes: int = 0  # where the next ``.param`` variable declared here can begin
    # register's name → slot, or the slots of a vector register's elements
    slots: dict[str, "int | tuple[int, ...]"] = field(default_factory=dict)
    # names of single registers that have no slot yet → type, and 1, 2 or 4 elements
    declared: dict[str, tuple[ScalarType, int]] = field(default_factory=dict)
    ranges: dict[str, tuple[int, ScalarType]] = field(default_factory=dict)  # prefix → (count, type) of ``%r<81>``
    variables: dict[str, PtxVariable] = field(default_factory=dict)  # name as written → variable
    labels: dict[str, int] = field(default_factory=dict)  # label → index of the instruction behind it
    # label → names in its ``.branchtargets`` or ``.calltargets``
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # label → bytes of what a ``.callprototype`` returns and takes
    prototypes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    operands: dict[str, Operand] = field(default_factory=dict)  # text → what it means here

    def open(self) -> "Scope":
        """A scope inside this one.

        Raises:
            InputError: it would be nested too deeply.
        """
        if self.depth >= DEEPEST_SCOPE:
            raise InputError(f"braces are nested deeper than {DEEPEST_SCOPE}", remedy="no compiler writes such PTX")
        return Scope(parent=self, depth=self.depth + 1, parameter_bytes=self.parameter_bytes)

    def declare_registers(self, name: str, kind: ScalarType, *, elements: int, count: int | None) -> None:
        """``.reg .b32 name`` or, with a count, ``.reg .b32 name<count>``."""
        if count is not None:
            self.ranges[name] = (count, kind)
        else:
            self.declared[name] = (kind, elements)
            self.slots.pop(name, None)
        self.operands.clear()

    def find_register(self, name: str, registers: Registers) -> "int | tuple[int, ...] | None":
        """The slot of a register, the slots of a vector register's elements, or None where no register has that name."""
        for scope in self.walk_out():
            found = scope.slots.get(name)
            if found is None:
                found = scope._give_slot(name, registers)
            if found is not None:
                return found
            if name in scope.variables:
                return None
        return None

    def _give_slot(self, name: str, registers: Registers) -> "int | tuple[int, ...] | None":
        single = self.declared.get(name)
        slots: int | tuple[int, ...]
        if single is not None:
            kind, elements = single
            first = len(registers)
            names = [name] if elements == 1 else [f"{name}.{axis}" for axis in "xyzw"[:elements]]
            registers.extend((one, kind) for one in names)
            slots = first if elements == 1 else tuple(range(first, first + elements))
        else:
            kind_of_range = self._find_range(name)
            if kind_of_range is None:
                return None
            slots = len(registers)
            registers.append((name, kind_of_range))
        self.slots[name] = slots
        return slots

    def _find_range(self, name: str) -> ScalarType | None:
        """The type of ``name`` in a range ``prefix<count>``; the prefix itself may end in digits."""
        for start in range(max(len(name.rstrip(_DIGITS)), len(name) - _MOST_DIGITS), len(name)):
            known = self.ranges.get(name[:start])
            digits = name[start:]
            if known is not None and int(digits) < known[0] and (digits[0] != "0" or digits == "0"):
                return known[1]
        return None

    def walk_out(self) -> "Iterator[Scope]":
        """The scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def find_variable(self, name: str) -> PtxVariable | None:
        """The variable of that name declared here or around."""
        return next((scope.variables[name] for scope in self.walk_out() if name in scope.variables), None)

    def find_label(self, name: str) -> int | None:
        """The instruction a label here or around stands before."""
        return next((scope.labels[name] for scope in self.walk_out() if name in scope.labels), None)

    def find_table(self, name: str) -> "tuple[Scope, tuple[str, ...]] | None":
        """A list of targets and the scope it stands in."""
        return next(((scope, scope.tables[name]) for scope in self.walk_out() if name in scope.tables), None)

    def find_prototype(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Bytes of what an indirect call returns and takes."""
        return next((scope.prototypes[name] for scope in self.walk_out() if name in scope.prototypes), None)


_MOST_ELEMENTS = 1024
_LONGEST_NAME = 16384
_NAME = re.compile(r"[A-Za-z_$%][\w$%]*+", re.ASCII)
_ADDRESS = re.compile(r"([A-Za-z_$%][\w$%.]*+)\s*+(?:([+-])\s*+(\S.*+))?", re.ASCII | re.DOTALL)
_PARTS = re.compile(r"\s*+(\{[^{}]*+\}\s*+|[^,{}]++)(?:,|\Z)")
_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
# Names of special registers, without ``%``. Source: PTX ISA 9.0, section 10.
SPECIAL_REGISTERS = re.compile(
    r"(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster"
    r"|cluster_ctarank|cluster_nctarank|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm[0-7](?:_64)?|envreg(?:[12]?\d|3[01])"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_(?:begin|end|cap|[01])|total_smem_size|aggr_smem_size|dynamic_smem_size|current_graph_exec)"
)

# Those with four elements, of which the last is always 0; a scalar is read of one of them, as ``%tid.x``
_VECTOR_REGISTERS = frozenset(
    ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
)


class OperandReader:
    """Reads operands of one function."""

    def __init__(self, registers: Registers, module_names: Container[str]) -> None:
        self.registers = registers  # of the function; grows
        self.module_names = module_names  # names of the module's variables and functions

    def read(self, text: str, scope: Scope) -> Operand | None:
        """The operand; None for ``_``."""
        stripped = text.strip()
        if stripped == "_":
            return None
        known = scope.operands.get(stripped)
        if known is None:
            known = self._parse(stripped, scope)
            scope.operands[stripped] = known
        scope.operands[text] = known
        return known

    def _parse(self, text: str, scope: Scope) -> Operand:
        first = text[:1]
        parse = _BY_FIRST.get(first)
        if parse is not None:
            return parse(self, text, scope)
        if first == "-" and (text[1:2] in ("%", "$") or text[1:2].isalpha()):
            register = self._require(text[1:].strip(), scope)
            return Register(register.slot, True, register.selector)
        if "|" in text and "||" not in text:
            return self._parse_pair(text, scope)
        if _NAME.match(text) is not None:
            return self._parse_name(text, scope)
        return read_number(text) or Immediate(evaluate_constant(text))

    def _parse_pair(self, text: str, scope: Scope) -> Operand:
        left, _, right = text.partition("|")
        first, second = (None if part.strip() == "_" else self._require(part.strip(), scope) for part in (left, right))
        return Pair(first, second)

    def _parse_vector(self, text: str, scope: Scope) -> Operand:
        if text[-1] != "}":
            raise InputError(f"{text[:60]!r} is not a vector", remedy="close its brace")
        parts = text[1:-1].split(",", _MOST_ELEMENTS)
        if len(parts) > _MOST_ELEMENTS:
            raise InputError(f"a vector of more than {_MOST_ELEMENTS} elements", remedy="no instruction takes one")
        return Vector(tuple(self.read(part, scope) for part in parts))

    def _parse_negated(self, text: str, scope: Scope) -> Operand:
        name = text[1:].strip()
        if _NAME.match(name) is None:
            return Immediate(evaluate_constant(text))
        register = self._require(name, scope)
        return Register(register.slot, True)

    def _parse_address(self, text: str, scope: Scope) -> Operand:
        if text[-1] != "]":
            raise InputError(f"{text[:60]!r} is not an address", remedy="close its bracket")
        inner = text[1:-1].strip()
        if "," in inner:
            return self._parse_texture(inner, scope)
        match = _ADDRESS.fullmatch(inner)
        if match is None:
            return Address(None, _require_integer(inner))
        base = self._parse_base(match[1], scope)
        offset = 0
        if match[2] is not None:
            # The offset may carry a sign of its own (``+-4``).
            offset = _require_integer(match[3])
            offset = -offset if match[2] == "-" else offset
        return Address(base, offset)

    def _parse_texture(self, inner: str, scope: Scope) -> Operand:
        parts: list[str] = []
        place = 0
        while place < len(inner):
            match = _PARTS.match(inner, place)
            if match is None or match.end() == place:
                raise InputError(f"[{inner[:60]}] is not an address", remedy="see PTX ISA, texture instructions")
            parts.append(match[1].strip())
            place = match.end()
        if len(parts) not in (2, 3) or not parts[-1]:
            raise InputError(f"[{inner[:60]}] is not an address", remedy="see PTX ISA, texture instructions")
        last = self.read(parts[-1], scope)
        if last is None:
            raise InputError(f"[{inner[:60]}] has no coordinates", remedy="see PTX ISA, texture instructions")
        coordinates = tuple(one for one in last.elements if one is not None) if isinstance(last, Vector) else (last,)
        sampler = self._parse_base(parts[1], scope) if len(parts) == 3 else None
        return TextureAddress(self._parse_base(parts[0], scope), sampler, coordinates)

    def _parse_base(self, name: str, scope: Scope) -> Register | Symbol:
        base = self._parse_name(name, scope)
        if not isinstance(base, Register | Symbol):
            raise InputError(f"{name[:60]!r} is not an address", remedy="see PTX ISA, addresses as operands")
        return base

    def _require(self, name: str, scope: Scope) -> Register:
        found = self._parse_name(name, scope)
        if not isinstance(found, Register):
            raise InputError(f"{name[:60]!r} is not a register", remedy="declare it with .reg")
        return found

    def _parse_name(self, text: str, scope: Scope) -> Operand:
        if len(text) > _LONGEST_NAME:
            raise InputError(f"a name of {len(text)} characters", remedy="no compiler writes such names")
        slot = scope.find_register(text, self.registers)
        if slot is not None:
            return Register(slot) if isinstance(slot, int) else Vector(tuple(Register(one) for one in slot))
        name, dot, component = text.partition(".")
        if dot:
            return self._parse_component(text, name, component, scope)
        match = _ADDRESS.fullmatch(text)
        if match is not None and match[2] is not None:
            symbol = self._parse_base(match[1], scope)
            if not isinstance(symbol, Symbol):
                raise InputError(
                    f"{text[:60]!r} is not an operand", remedy="put the offset in brackets or after a variable"
                )
            offset = _require_integer(match[3])
            return Symbol(symbol.name, offset if match[2] == "+" else -offset)
        if text.startswith("%") and SPECIAL_REGISTERS.fullmatch(text, 1) is not None:
            special = text[1:]
            if special in _VECTOR_REGISTERS:
                return Vector(tuple(SpecialRegister(special, axis) for axis in "xyzw"))
            return SpecialRegister(special)
        variable = scope.find_variable(text)
        if variable is not None:
            return Symbol(variable.name)
        if text in self.module_names:
            return Symbol(text)
        if text == "WARP_SZ":
            return Immediate(32)
        raise incomplete(f"{text[:80]!r} is not declared")

    def _parse_component(self, text: str, name: str, component: str, scope: Scope) -> Operand:
        slot = scope.find_register(name, self.registers)
        if isinstance(slot, tuple) and COMPONENTS.get(component, 4) < len(slot):
            return Register(slot[COMPONENTS[component]])
        if isinstance(slot, int) and _SELECTOR.fullmatch(component) is not None:
            return Register(slot, False, component)
        if slot is None and component in COMPONENTS and name.startswith("%") and name[1:] in _VECTOR_REGISTERS:
            return SpecialRegister(name[1:], "xyzw"[COMPONENTS[component]])
        raise incomplete(f"{text[:80]!r} is not declared")


def _require_integer(text: str) -> int:
    number = read_number(text)
    value = evaluate_constant(text) if number is None else number.value
    if isinstance(value, float):
        raise InputError(f"the offset {text[:40]} is not an integer", remedy="addresses count bytes")
    return value


_BY_FIRST: dict[str, Callable[[OperandReader, str, Scope], Operand]] = {
    "[": OperandReader._parse_address,
    "{": OperandReader._parse_vector,
    "!": OperandReader._parse_negated,
}
