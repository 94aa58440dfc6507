"""What kind of value a CUDA C++ type, declarator or literal stands for, as far as its spelling says."""

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from gpa_lsp.code.sources.trees import read_text

if TYPE_CHECKING:
    from tree_sitter import Node


class Scalar(Enum):
    """What arithmetic is done in."""

    FLOAT = "float"
    DOUBLE = "double"
    INTEGER = "integer"  # Any width and sign, and bool
    FLOAT_VECTOR = "float vector"  # float1 to float4
    DOUBLE_VECTOR = "double vector"
    INTEGER_VECTOR = "integer vector"
    AUTO = "auto"  # That of its initial value
    UNKNOWN = "unknown"


# What ``.x`` of a vector is
VECTOR_ELEMENTS = {
    Scalar.FLOAT_VECTOR: Scalar.FLOAT,
    Scalar.DOUBLE_VECTOR: Scalar.DOUBLE,
    Scalar.INTEGER_VECTOR: Scalar.INTEGER,
}


class ValueType(Struct, frozen=True, kw_only=True):
    """The type of a value."""

    scalar: Scalar  # what is there after all levels
    levels: int = 0  # how often it must be indexed or dereferenced to get there; arrays and pointers are the same here

    @property
    def is_float(self) -> bool:
        """A single precision number, no pointer to one."""
        return self == FLOAT

    @property
    def is_double(self) -> bool:
        """A double precision number."""
        return self == DOUBLE

    @property
    def is_integer(self) -> bool:
        """An integer."""
        return self == INTEGER


FLOAT = ValueType(scalar=Scalar.FLOAT)
DOUBLE = ValueType(scalar=Scalar.DOUBLE)
INTEGER = ValueType(scalar=Scalar.INTEGER)
UNKNOWN = ValueType(scalar=Scalar.UNKNOWN)

_VECTORS = {
    **{f"float{n}": Scalar.FLOAT_VECTOR for n in range(1, 5)},
    **{f"double{n}": Scalar.DOUBLE_VECTOR for n in range(1, 5)},
    **{
        f"{element}{n}": Scalar.INTEGER_VECTOR
        for element in ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong", "ulonglong")
        for n in range(1, 5)
    },
    "dim3": Scalar.INTEGER_VECTOR,
}
_NO_INTEGERS = frozenset({"void", "nullptr_t", "max_align_t"})


def read_scalar(node: "Node | None") -> Scalar:
    """What a type specifier names. A name that is no builtin type of CUDA C++ is unknown: it may be a parameter of a template."""
    if node is None:
        return Scalar.UNKNOWN
    text = read_text(node)
    if node.type == "primitive_type":
        known = {"float": Scalar.FLOAT, "double": Scalar.DOUBLE}
        return known.get(text, Scalar.UNKNOWN if text in _NO_INTEGERS else Scalar.INTEGER)
    if node.type == "sized_type_specifier":
        return Scalar.UNKNOWN if "double" in text.split() else Scalar.INTEGER
    if node.type == "type_identifier":
        return _VECTORS.get(text, Scalar.UNKNOWN)
    return Scalar.AUTO if node.type == "placeholder_type_specifier" and text == "auto" else Scalar.UNKNOWN


def read_descriptor(node: "Node | None") -> ValueType:
    """The type in a cast.

    >>> from gpa_lsp.code.sources.trees import read_tree, walk
    >>> casts = walk(read_tree("k.cu", "int a = (float*)p;").root)
    >>> read_descriptor(next(node for node in casts if node.type == "type_descriptor"))
    ValueType(scalar=<Scalar.FLOAT: 'float'>, levels=1)
    """
    if node is None or node.type != "type_descriptor":
        return UNKNOWN
    levels = 0
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        if declarator.type not in ("abstract_pointer_declarator", "abstract_reference_declarator"):
            return UNKNOWN
        levels += declarator.type == "abstract_pointer_declarator"
        declarator = declarator.child_by_field_name("declarator")
    return ValueType(scalar=read_scalar(node.child_by_field_name("type")), levels=levels)


class NumberLiteral(Struct, frozen=True, kw_only=True):
    """A number as it is written."""

    type: ValueType  # FLOAT, DOUBLE, INTEGER, or UNKNOWN for long doubles and other suffixes
    value: float | None  # rounded to double; None for what cannot be read

    @property
    def is_exact_in_float(self) -> bool:
        """A float holds the same number."""
        return self.value is not None and _round_to_float(self.value) == self.value

    @property
    def fits_float(self) -> bool:
        """A float holds it with all its 24 bits: neither too large nor so small that bits are lost."""
        if self.value is None:
            return False
        size = abs(_round_to_float(self.value))
        return self.value == 0.0 or float(np.finfo(np.float32).tiny) <= size < np.inf


def read_number(text: str) -> NumberLiteral:
    """What a literal of C++ stands for.

    >>> [read_number(one).type.scalar.value for one in ("1.", "1e3f", "0x1p-3", "0x1f", "1.0L", "2u")]
    ['double', 'float', 'double', 'integer', 'unknown', 'integer']
    >>> read_number("1'000.5").value, read_number("0.1").is_exact_in_float, read_number("1e-60").fits_float
    (1000.5, False, False)
    """
    digits = text.replace("'", "").lower().lstrip("+-")
    is_hexadecimal = digits.startswith("0x")
    is_real = "p" in digits if is_hexadecimal else not digits.startswith("0b") and ("." in digits or "e" in digits)
    if not is_real:
        suffix = digits.lstrip("0123456789abcdefx") if is_hexadecimal else digits.lstrip("0123456789b")
        return NumberLiteral(
            type=INTEGER if set(suffix) <= set("ulz") else UNKNOWN, value=_parse(digits[: len(digits) - len(suffix)])
        )
    suffix = digits[len(digits.rstrip("abcdefghijklmnopqrstuvwxyz")) :] if is_hexadecimal else _find_suffix(digits)
    types = {"": DOUBLE, "f": FLOAT}
    return NumberLiteral(type=types.get(suffix, UNKNOWN), value=_parse(digits[: len(digits) - len(suffix)]))


def _find_suffix(digits: str) -> str:
    """The letters behind the last digit or dot; ``bf16`` and its like end in digits and are found by their first letter."""
    mantissa = digits.lstrip("0123456789.")
    return mantissa.lstrip("e").lstrip("+-").lstrip("0123456789") if mantissa.startswith("e") else mantissa


def _parse(digits: str) -> float | None:
    try:
        if digits.startswith("0x"):
            return float.fromhex(digits)
        if digits.startswith("0b"):
            return float(int(digits, 2))
        return float(int(digits, 8) if digits.isdigit() and digits.startswith("0") else digits)
    except (ValueError, OverflowError):
        return None


def _round_to_float(value: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(value))
