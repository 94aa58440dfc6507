"""Values of typed Python, and what LLVM does with them."""

import ast
import ctypes
from collections.abc import Callable
from typing import Any

import msgspec
from llvmlite import ir

from gpa_lsp.foundation.machine_code import types
from gpa_lsp.foundation.machine_code.types import BOOL, LANES, Number, PointerType, Struct

POINTER = ir.PointerType()
BYTE, WORD, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_NUMBERS: Any = types
S64, U8, U32, U64 = _NUMBERS.s64, _NUMBERS.u8, _NUMBERS.u32, _NUMBERS.u64
BIT = ir.IntType(1)


class TranslationError(Exception):
    """A function is not valid typed Python."""


class Literal(msgspec.Struct, eq=False):
    """A number known when it is translated; it takes the type of what it meets."""

    value: "float | bool"


class Value(msgspec.Struct, eq=False):
    """A value of a running function."""

    code: Any  # how LLVM has it
    kind: Any  # its type: :class:`Number`, :class:`PointerType`, or a :class:`Struct` that it refers to


class Loop(msgspec.Struct, eq=False):
    """The blocks at which a loop goes on."""

    again: ir.Block  # before the next turn
    behind: ir.Block  # behind the last one


class Return(msgspec.Struct, eq=False):
    """The block to which a function that is written out goes at its end, and its result."""

    behind: ir.Block
    place: Any = None
    kind: Any = None
    known: Any = None  # what is no value of a running function
    places: Any = None  # of several values together
    count: int = 0


class Variable(msgspec.Struct, eq=False):
    """A name that is assigned to."""

    place: Any  # of its value
    kind: Any  # its type


def find_ir(kind: Any) -> Any:
    """LLVM's type; of what is neither number nor nothing a pointer."""
    if kind is None:
        return ir.VoidType()
    if not isinstance(kind, Number):
        return POINTER
    single = (ir.FloatType() if kind.bits == 32 else ir.DoubleType()) if kind.is_float else ir.IntType(kind.bits)
    return single if kind.lanes == 1 else ir.VectorType(single, kind.lanes)


_BINARY = {
    ast.Add: ("add", "fadd"), ast.Sub: ("sub", "fsub"), ast.Mult: ("mul", "fmul"), ast.BitAnd: ("and_", ""), ast.BitOr: ("or_", ""),
    ast.BitXor: ("xor", ""),
}  # fmt: skip
_COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
FOLDED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b, ast.LShift: lambda a, b: a << b, ast.RShift: lambda a, b: a >> b, ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b, ast.BitXor: lambda a, b: a ^ b, ast.Div: lambda a, b: a / b, ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b, ast.Pow: lambda a, b: a**b, ast.Is: lambda a, b: a is b, ast.IsNot: lambda a, b: a is not b,
}  # fmt: skip


class Values:
    """The operations on values in a function that is being written.

    Args:
        place: of the function, for messages.
    """

    _builder: ir.IRBuilder  # writes where the function has come to
    _entry: ir.IRBuilder  # writes what it reserves when it begins
    _at: ast.AST  # what is being translated

    def __init__(self, place: str) -> None:
        self._place = place

    def _fail(self, why: str) -> TranslationError:
        line = getattr(self._at, "lineno", 0)
        return TranslationError(f"{self._place}:{line}: {why}")

    # --- memory ---

    def _reserve(self, kind: Any) -> Any:
        return self._entry.alloca(find_ir(kind))

    def _load(self, place: Any, kind: Any) -> Any:
        return self._builder.load(place, typ=find_ir(kind), align=1 if isinstance(kind, Number) else 8)

    def _store(self, code: Any, place: Any) -> None:
        self._builder.store(code, place, align=1)

    def _find_field(self, found: Value, name: str) -> tuple[Any, Any, int]:
        kind = found.kind
        if not (isinstance(kind, type) and issubclass(kind, Struct)) or name not in kind.fields:
            raise self._fail(f"{kind} has no {name}")
        offset, of, count = kind.fields[name]
        place = self._builder.gep(found.code, [ir.Constant(LONG, offset)], source_etype=BYTE)
        return place, of, count

    def _step(self, pointer: Value, index: Any) -> Any:
        if not isinstance(pointer.kind, PointerType):
            raise self._fail(f"{pointer.kind} is no pointer")
        size = measure(pointer.kind.to)
        count = index if isinstance(index, Literal) else self._cast(index, S64 if index.kind.is_signed else U64)
        if isinstance(count, Literal):
            behind = ir.Constant(LONG, int(count.value) * size)
        else:
            behind = self._builder.mul(count.code, ir.Constant(LONG, size)) if size != 1 else count.code
        return self._builder.gep(pointer.code, [behind], source_etype=BYTE)

    # --- numbers ---

    def _settle(self, found: Any) -> Value:
        """A value, of the usual type where it is a literal."""
        if not isinstance(found, Literal):
            return found  # type: ignore[no-any-return]
        kind = BOOL if isinstance(found.value, bool) else types.f64 if isinstance(found.value, float) else S64
        return self._fit(found, kind)

    def _fit(self, found: Any, kind: Any) -> Value:
        """A value of a type: literals, truth values and None become of it, and what is one becomes that of all lanes."""
        if isinstance(found, Literal):
            if not isinstance(kind, Number):
                raise self._fail(f"{found.value} is no {kind}")
            if isinstance(found.value, float) and not kind.is_float:
                raise self._fail(f"{found.value} is no {kind}")
            value = float(found.value) if kind.is_float else int(found.value) & ((1 << kind.bits) - 1)
            single = ir.Constant(find_ir(kind.spread(1)), value)
            return Value(single if kind.lanes == 1 else ir.Constant(find_ir(kind), [single] * kind.lanes), kind)
        if not isinstance(found, Value):
            raise self._fail(f"{found} is no {kind}")
        if found.kind is None and isinstance(kind, PointerType):
            return Value(found.code, kind)
        if found.kind == kind:
            return found
        if isinstance(found.kind, Number) and isinstance(kind, Number):
            if found.kind.lanes == 1 and kind.lanes > 1:
                return self._spread(self._fit(found, kind.spread(1)))
            if found.kind.lanes == kind.lanes and holds(kind, found.kind):
                return self._cast(found, kind)
        raise self._fail(f"{found.kind} is no {kind}")

    def _spread(self, found: Value) -> Value:
        kind = found.kind.spread(LANES)
        nothing = ir.Constant(find_ir(kind), ir.Undefined)
        first = self._builder.insert_element(nothing, found.code, ir.Constant(WORD, 0))
        zeros = ir.Constant(ir.VectorType(WORD, LANES), [ir.Constant(WORD, 0)] * LANES)
        return Value(self._builder.shuffle_vector(first, nothing, zeros), kind)

    def _meet(self, left: Any, right: Any) -> tuple[Value, Value]:
        """Two values as ones of one type."""
        if isinstance(left, Literal):
            return self._fit(left, right.kind), right
        if isinstance(right, Literal):
            return left, self._fit(right, left.kind)
        one, other = left.kind, right.kind
        if isinstance(one, Number) and isinstance(other, Number):
            lanes = max(one.lanes, other.lanes)
            kind = (other if holds(other, one) else one).spread(lanes)
            return self._fit(left, kind), self._fit(right, kind)
        if one is None:
            return self._fit(left, other), right
        return left, self._fit(right, one)

    def _join(self, operator: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(left, Literal) and isinstance(right, Literal):
            return Literal(FOLDED[type(operator)](left.value, right.value))
        if isinstance(left, Value) and isinstance(left.kind, PointerType):
            if isinstance(operator, ast.Sub):
                right = self._turn(ast.USub(), right)
            return Value(self._step(left, right), left.kind)
        if isinstance(operator, (ast.LShift, ast.RShift)):
            return self._shift(operator, left, right)
        left, right = self._meet(left, right)
        kind = left.kind
        if not isinstance(kind, Number):
            raise self._fail(f"{ast.dump(operator)} of {kind}")
        if type(operator) in _BINARY:
            name = _BINARY[type(operator)][kind.is_float]
        elif isinstance(operator, ast.Div) and kind.is_float:
            name = "fdiv"
        elif isinstance(operator, (ast.FloorDiv, ast.Mod)) and not kind.is_float:
            name = ("s" if kind.is_signed else "u") + ("div" if isinstance(operator, ast.FloorDiv) else "rem")
        else:
            name = ""
        if not name:
            raise self._fail(f"{type(operator).__name__} of {kind}")
        return Value(getattr(self._builder, name)(left.code, right.code), kind)

    def _shift(self, operator: ast.operator, left: Any, right: Any) -> Value:
        if isinstance(left, Literal):
            left = self._fit(left, right.kind.spread(1))
        if not isinstance(right, Literal):
            lanes = max(left.kind.lanes, right.kind.lanes)
            left, right = self._fit(left, left.kind.spread(lanes)), self._fit(right, right.kind.spread(lanes))
            right = self._cast(right, left.kind)
        right = self._fit(right, left.kind)
        name = "shl" if isinstance(operator, ast.LShift) else "ashr" if left.kind.is_signed else "lshr"
        return Value(getattr(self._builder, name)(left.code, right.code), left.kind)

    def _turn(self, operator: ast.unaryop, found: Any) -> Any:
        if isinstance(found, Literal):
            value = found.value
            return Literal(
                not value
                if isinstance(operator, ast.Not)
                else -value
                if isinstance(operator, ast.USub)
                else ~int(value)
            )
        if isinstance(operator, ast.Not):
            return Value(self._builder.not_(self._test(found)), BOOL.spread(self._count_lanes(found)))
        if isinstance(operator, ast.USub):
            if found.kind.is_float:
                return Value(self._builder.fneg(found.code), found.kind)
            return Value(self._builder.neg(found.code), found.kind)
        return Value(self._builder.not_(found.code), found.kind)

    def _count_lanes(self, found: Value) -> int:
        return found.kind.lanes if isinstance(found.kind, Number) else 1

    def _test(self, found: Any) -> Any:
        """Whether a value is not zero."""
        if isinstance(found, Literal):
            found = self._fit(Literal(bool(found.value)), BOOL)
        if not isinstance(found.kind, Number):
            raise self._fail("pointers are compared with None")
        if found.kind.is_bool:
            return found.code
        return self._compare(ast.NotEq(), found, Literal(0)).code

    def _compare(self, operator: ast.cmpop, left: Any, right: Any) -> Any:
        if not isinstance(left, Value) and not isinstance(right, Value):
            known = (one.value if isinstance(one, Literal) else one for one in (left, right))
            return Literal(FOLDED[type(operator)](*known))
        left, right = self._meet(left, right)
        if isinstance(operator, (ast.Is, ast.IsNot)):
            name = "==" if isinstance(operator, ast.Is) else "!="
            return Value(self._builder.icmp_unsigned(name, left.code, right.code), BOOL)
        name, kind = _COMPARED[type(operator)], left.kind
        if kind.is_float:
            is_unordered = isinstance(operator, ast.NotEq)
            compare = self._builder.fcmp_unordered if is_unordered else self._builder.fcmp_ordered
        else:
            compare = self._builder.icmp_signed if kind.is_signed else self._builder.icmp_unsigned
        return Value(compare(name, left.code, right.code), BOOL.spread(kind.lanes))

    def _compare_any(self, found: Any, others: list[Any]) -> Any:
        """Whether a value is one of some."""
        result = Literal(False)
        for one in others:
            result = self._join(ast.BitOr(), result, self._compare(ast.Eq(), found, one))
        return result

    def _cast(self, found: Any, kind: Number) -> Value:
        """A number as one of another type, as C has it."""
        if isinstance(found, Literal):
            value = int(found.value) if not kind.is_float else float(found.value)
            return self._fit(Literal(value), kind)
        of = found.kind
        if not isinstance(of, Number):
            raise self._fail(f"{of} is no number")
        kind = kind.spread(of.lanes)
        to = find_ir(kind)
        if of == kind:
            return found  # type: ignore[no-any-return]
        if of.is_float and kind.is_float:
            name = "fpext" if kind.bits > of.bits else "fptrunc"
        elif of.is_float:
            name = "fptosi" if kind.is_signed else "fptoui"
        elif kind.is_float:
            name = "sitofp" if of.is_signed else "uitofp"
        elif kind.bits == of.bits:
            return Value(found.code, kind)
        else:
            name = "trunc" if kind.bits < of.bits else "sext" if of.is_signed else "zext"
        return Value(getattr(self._builder, name)(found.code, to), kind)


def holds(kind: Number, other: Number) -> bool:
    """Whether each value of another type of integers is one of a type, too."""
    if kind.is_float or other.is_float:
        return False
    return kind.bits > other.bits and (kind.is_signed or not other.is_signed)


def measure(kind: Any) -> int:
    """Bytes of a value."""
    if isinstance(kind, Number):
        return max(1, kind.bits // 8)
    if isinstance(kind, PointerType):
        return 8
    return ctypes.sizeof(kind.c_type)


def abbreviate(kind: Number) -> str:
    """LLVM's name for a type of numbers."""
    return f"f{kind.bits}" if kind.is_float else f"i{kind.bits}"
