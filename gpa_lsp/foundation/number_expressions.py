"""Numbers given as text: ``"ceildiv(width * height, 256)"`` → a number. Names, numbers, operators and three functions; nothing else runs."""

import difflib
import re
from collections.abc import Callable
from functools import reduce
from operator import add, floordiv, mod, mul, sub, truediv
from typing import Generic, TypeVar

from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError

Number = int | float
T = TypeVar("T")

_LONGEST = 400
_DEEPEST = 32
LARGEST = 1 << 100  # Integers of any step of an expression stay below it

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F_]{1,32}|(?:\d[\d_]{0,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,4})?)|(?P<name>[A-Za-z_]\w*(?:\.[xyz]\b)?)|(?P<mark>//|<<|>>|[-+*/%(),]))",
    re.ASCII,
)
_LEVELS = (("<<", ">>"), ("+", "-"), ("*", "/", "//", "%"))  # Operators, those that bind weakest first

FUNCTIONS = ("min", "max", "ceildiv")  # Functions that are known; ``ceildiv(a, b)`` divides and rounds up


def evaluate(text: str, find: Callable[[str], Number]) -> Number:
    """The value of an expression.

    Integers stay integers: ``/`` between integers must divide without a remainder, ``//`` rounds down.

    Args:
        find: value of a name; raises :class:`~gpa_lsp.foundation.errors.InputError` where there is none.

    Raises:
        InputError: it is none, divides by zero, or gives a number beyond 100 bits.

    >>> evaluate("ceildiv(n, 256) * 2 - max(1, n % 7)", {"n": 1000}.__getitem__)
    2
    >>> evaluate("1 << 20", {}.__getitem__), evaluate("n / 4", {"n": 10.0}.__getitem__)
    (1048576, 2.5)
    """
    return calculate(text, find, apply_to_numbers)


Apply = Callable[[str, T | Number, T | Number], T | Number]  # Operator or function, and what it is applied to


def calculate(text: str, find: Callable[[str], T | Number], apply: Apply[T]) -> T | Number:
    """The value of an expression of anything that can be added and multiplied, such as sums of unknowns.

    Args:
        find: value of a name; may be ``threadIdx.x``.
        apply: does the arithmetic; see :func:`apply_to_numbers`.

    Raises:
        InputError: it is no expression, or its arithmetic cannot be done.
    """
    if len(text) > _LONGEST:
        raise InputError(f"an expression of {len(text)} characters", remedy=f"write at most {_LONGEST}")
    reader = _Reader(text, find, apply)
    value = reader.read_level(0, 0)
    if reader.position < len(reader.tokens):
        raise reader.refuse()
    return value


class _Reader(Generic[T]):
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, find: Callable[[str], T | Number], apply: Apply[T]) -> None:
        self.text = text
        self.find = find
        self.apply = apply
        self.tokens: list[tuple[str, str]] = []
        self.position = 0
        place = 0
        stripped = text.rstrip()
        while place < len(stripped):
            match = _TOKEN.match(stripped, place)
            if match is None:
                raise self.refuse()
            kind = match.lastgroup or ""
            self.tokens.append((kind, match[kind]))
            place = match.end()

    def refuse(self) -> InputError:
        return InputError(
            f"{self.text.strip()[:60]!r} is not an expression",
            remedy=f"use numbers, names of scalars and constants, + - * / // % << >> ( ) and {', '.join(FUNCTIONS)}",
        )

    def next(self) -> str:
        return self.tokens[self.position][1] if self.position < len(self.tokens) else ""

    def expect(self, mark: str) -> None:
        if self.next() != mark:
            raise self.refuse()
        self.position += 1

    def read_level(self, level: int, depth: int) -> T | Number:
        if depth > _DEEPEST:
            raise InputError("an expression is nested too deeply", remedy="simplify it")
        if level == len(_LEVELS):
            return self.read_operand(depth + 1)
        value = self.read_level(level + 1, depth)
        while self.next() in _LEVELS[level]:
            operator = self.next()
            self.position += 1
            value = self.apply(operator, value, self.read_level(level + 1, depth))
        return value

    def read_operand(self, depth: int) -> T | Number:
        if self.position >= len(self.tokens) or depth > _DEEPEST:
            raise self.refuse()
        kind, token = self.tokens[self.position]
        self.position += 1
        if kind == "number":
            return _read_number(token)
        if kind == "name":
            return self.read_call(token, depth) if self.next() == "(" else self.find(token)
        if token in ("-", "+"):
            value = self.read_operand(depth + 1)
            return self.apply("-", 0, value) if token == "-" else value
        if token != "(":
            raise self.refuse()
        value = self.read_level(0, depth + 1)
        self.expect(")")
        return value

    def read_call(self, name: str, depth: int) -> T | Number:
        if name not in FUNCTIONS:
            raise InputError(f"there is no function {name[:40]!r}", remedy=f"there are {', '.join(FUNCTIONS)}")
        self.expect("(")
        values = [self.read_level(0, depth + 1)]
        while self.next() == ",":
            self.position += 1
            values.append(self.read_level(0, depth + 1))
        self.expect(")")
        if name == "ceildiv" and len(values) != 2:
            raise InputError("ceildiv takes two numbers", remedy="write ceildiv(all, part)")
        return reduce(lambda left, right: self.apply(name, left, right), values)


def _read_number(token: str) -> Number:
    if token[:2].lower() == "0x":
        return int(token, 16) if not token.endswith("_") and "__" not in token else _refuse_number(token)
    if set(token) & set(".eE"):
        return float(token) if "_" not in token else _refuse_number(token)
    return int(token) if not token.endswith("_") and "__" not in token else _refuse_number(token)


def _refuse_number(token: str) -> Number:
    raise InputError(f"{token} is not a number", remedy="write it without underscores")


def apply_to_numbers(operator: str, left: Number, right: Number) -> Number:
    """One operator or function of two numbers.

    Raises:
        InputError: it divides by zero or leaves a remainder, or the result has more than 100 bits.
    """
    if operator in ("min", "max"):
        return min(left, right) if operator == "min" else max(left, right)
    if operator in ("/", "//", "%", "ceildiv") and right == 0:
        raise InputError("an expression divides by zero", remedy="check the numbers it is made of")
    if operator == "ceildiv":
        return _bound(-(-left // right))
    if operator in ("<<", ">>"):
        if isinstance(left, float) or isinstance(right, float) or not 0 <= right <= 100:
            raise InputError(f"{left} {operator} {right} is not defined", remedy="shift integers by 0 to 100")
        return _bound(left << right if operator == "<<" else left >> right)
    if operator == "/" and isinstance(left, int) and isinstance(right, int):
        if left % right:
            raise InputError(f"{left} / {right} leaves a remainder", remedy="write // or ceildiv(…)")
        return _bound(left // right)
    return _bound(_ARITHMETIC[operator](left, right))


_ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "+": add, "-": sub, "*": mul, "/": truediv, "//": floordiv, "%": mod,
}  # fmt: skip


def _bound(value: Number) -> Number:
    if isinstance(value, float):
        return value
    if abs(value) > LARGEST:
        raise InputError("an expression gives a number beyond 100 bits", remedy="check the numbers it is made of")
    return value


_MOST_ASKED = 50


class Names(Struct):
    """Names and how to find their values. A value is found when it is first asked for, so that names may be used before they are given."""

    where: str = "under constants, or as a scalar argument"  # a name can be given, for messages
    sources: dict[str, Callable[[], Number]] = field(default_factory=dict)  # name → what gives its value
    values: dict[str, Number] = field(default_factory=dict)  # those that were found
    _asked: list[str] = field(default_factory=list)

    def add(self, name: str, source: Callable[[], Number]) -> None:
        """Give a name a meaning; a later one counts."""
        self.sources[name] = source
        self.values.pop(name, None)

    def find(self, name: str) -> Number:
        """The value of a name.

        Raises:
            InputError: there is no such name, it depends on itself, or on too many others.
        """
        if name in self.values:
            return self.values[name]
        source = self.sources.get(name)
        if source is None:
            near = difflib.get_close_matches(name[:60], self.sources, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"give it {self.where}"
            raise InputError(f"{name[:60]!r} is not defined", remedy=remedy)
        if name in self._asked or len(self._asked) >= _MOST_ASKED:
            chain = " → ".join((*self._asked[-5:], name))
            raise InputError(
                f"a number depends on itself, or on too many others: {chain}", remedy="give one of them as a number"
            )
        self._asked.append(name)
        try:
            self.values[name] = source()
        finally:
            self._asked.pop()
        return self.values[name]
