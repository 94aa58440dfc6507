"""Numbers and constant expressions of PTX.

Source: PTX ISA 9.0, sections 4.5 (constants) and 4.5.5 (operators and their precedence).
"""

import re
import struct

from gpa_lsp.code.ptx.model import Immediate
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
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)


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

    Raises:
        InputError: it is none, is too long or nested too deeply, or divides by zero.

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
            return -value if token == "-" else value if token == "+" else _wrap(~_require_integer(value))
        number = Immediate(32) if token == "WARP_SZ" else read_number(token)
        if number is None:
            raise self.refuse()
        return number.value


def _require_integer(value: int | float) -> int:
    if isinstance(value, float):
        raise InputError("an operator for integers has a floating-point operand", remedy="see PTX ISA, constants")
    return value


def _wrap(value: int) -> int:
    """To 64 bits, signed."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _apply(operator: str, left: int | float, right: int | float) -> int | float:
    if operator in ("/", "%") and right == 0:
        raise InputError("a constant expression divides by zero", remedy="correct it")
    if isinstance(left, float) or isinstance(right, float):
        return _apply_floats(operator, float(left), float(right))
    if operator in ("<<", ">>"):
        shift = min(max(right, 0), 64)
        return _wrap(left << shift) if operator == "<<" else left >> shift
    quotient = abs(left) // abs(right) if operator in ("/", "%") else 0
    quotient = -quotient if (left < 0) != (right < 0) else quotient
    known = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "/": quotient,
        "%": left - quotient * right,
        "&": left & right,
        "|": left | right,
        "^": left ^ right,
        "&&": int(bool(left) and bool(right)),
        "||": int(bool(left) or bool(right)),
    }
    value = known[operator] if operator in known else _compare(operator, left, right)
    return value if -(1 << 63) <= value < 1 << 64 else _wrap(value)


def _apply_floats(operator: str, left: float, right: float) -> int | float:
    if operator in ("+", "-", "*", "/"):
        return (
            left + right
            if operator == "+"
            else left - right
            if operator == "-"
            else left * right
            if operator == "*"
            else left / right
        )
    if operator in _LEVELS[5] + _LEVELS[6]:
        return _compare(operator, left, right)
    raise InputError(f"the operator {operator} has a floating-point operand", remedy="see PTX ISA, constants")


def _compare(operator: str, left: int | float, right: int | float) -> int:
    return int(
        {
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[operator]
    )
