"""Numbers given as text: ``"ceildiv(width * height, 256)"`` → a number. Names, numbers, operators and three functions; nothing else runs."""

import ast
import difflib
import re
from collections.abc import Callable
from functools import partial, reduce
from operator import add, floordiv, mod, mul, sub, truediv
from typing import TypeVar

from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError

Number = int | float
T = TypeVar("T")

_LONGEST = 400
_DEEPEST = 32
LARGEST = 1 << 100  # Integers of any step of an expression stay below it

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
_OPERATORS: dict[type[ast.operator], str] = {
    ast.LShift: "<<", ast.RShift: ">>", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip

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
    marked = _NAME.sub(r"_\g<0>", " ".join(text.split()))  # so that words of Python are names, too
    try:
        if not text.isascii() or "#" in text:
            raise _refuse(text)
        node = ast.parse(marked, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _refuse(text) from None

    def find_value(node: ast.expr, depth: int) -> T | Number:
        if depth > _DEEPEST:
            raise InputError("an expression is nested too deeply", remedy="simplify it")
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                return find(name[1:])
            case ast.Attribute(value=ast.Name(id=name), attr="x" | "y" | "z" as axis):
                return find(f"{name[1:]}.{axis}")
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                value = find_value(operand, depth + 1)
                return value if isinstance(sign, ast.UAdd) else apply("-", 0, value)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                # a sum of many parts is no deeper than one of two
                first = find_value(left, depth + (not isinstance(left, ast.BinOp)))
                return apply(_OPERATORS[type(operator)], first, find_value(right, depth + 1))
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as given, keywords=[]):
                _check_call(name[1:], len(given))
                return reduce(partial(apply, name[1:]), [find_value(one, depth + 1) for one in given])
        raise _refuse(text)

    return find_value(node, 0)


def _check_call(name: str, count: int) -> None:
    if name not in FUNCTIONS:
        raise InputError(f"there is no function {name[:40]!r}", remedy=f"there are {', '.join(FUNCTIONS)}")
    if name == "ceildiv" and count != 2:
        raise InputError("ceildiv takes two numbers", remedy="write ceildiv(all, part)")


def _refuse(text: str) -> InputError:
    return InputError(
        f"{text.strip()[:60]!r} is not an expression",
        remedy=f"use numbers, names of scalars and constants, + - * / // % << >> ( ) and {', '.join(FUNCTIONS)}",
    )


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
