"""Loops over arrays of numpy in plain Python as machine code: :func:`compiled`.

What a function is called with decides its types: contiguous or strided arrays of numbers or of records, tuples with names, integers and floats.
Within loops integers have 64 bits and wrap, ``//`` and ``%`` round down, and an integer meets a float as one; a variable has one type. Indexes are
not checked. Functions that are marked by :func:`part` are written out where they are called.
"""

import ast
import ctypes
import math
from collections.abc import Callable, Hashable
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from msgspec import Struct

from gpa_lsp.foundation.machine_code import types
from gpa_lsp.foundation.machine_code.build import Code, load_module
from gpa_lsp.foundation.machine_code.translate import Body, Module, Written, find_written
from gpa_lsp.foundation.machine_code.types import BOOL, Number
from gpa_lsp.foundation.machine_code.values import BYTE, LONG, POINTER, S64, U64, Literal, Loop, Return, Value, find_ir

_Function = TypeVar("_Function", bound=Callable[..., object])

_F64: Any = types.f64
_NUMBERS = {
    np.dtype(f"{sign}{size}"): getattr(types, f"{kind}{8 * size}")
    for sign, kind, sizes in (("u", "u", (1, 2, 4, 8)), ("i", "s", (1, 2, 4, 8)), ("f", "f", (4, 8)))
    for size in sizes
}


class ArrayKind(Struct, frozen=True):
    """The type of an array: of its elements, and its number of dimensions."""

    dtype: "np.dtype[Any]"
    dimensions: int

    def __repr__(self) -> str:
        """The text for messages and keys."""
        return f"array of {self.dimensions} × {self.dtype.descr if self.dtype.names else self.dtype.str}"


class RecordKind(Struct, frozen=True):
    """The type of a record within an array."""

    dtype: "np.dtype[Any]"

    def __repr__(self) -> str:
        """The text for messages and keys."""
        return f"record of {self.dtype.descr}"


class Array(Struct, eq=False):
    """An array at hand."""

    kind: ArrayKind  # of it
    pointer: Any  # to its first element
    shape: list[Any]  # extents
    strides: list[Any]  # bytes from one element to the next, by dimension


class Bundle(Struct, frozen=True):
    """Several values together, with names where they have any."""

    values: tuple[Any, ...]
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """The text for messages and keys."""
        return f"{self.names} of {list(self.values)}"


class _Loops(Body):
    """Translates one function of loops; all that it calls is written out in it."""

    def __init__(self, module: Module, written: Written, outer: "Body | None" = None) -> None:
        super().__init__(module, written, outer)
        self._bound: dict[str, ir.Block] = {}  # where names of arrays were given

    def begin(self, function: ir.Function, kinds: tuple[Any, ...]) -> None:
        """All of a function that is called with arguments of some kinds."""
        entry, begin = function.append_basic_block("entry"), function.append_basic_block("begin")
        self._entry, self._builder = ir.IRBuilder(entry), ir.IRBuilder(begin)
        left = list(function.args)
        end = self._end = Return(function.append_basic_block("end"))
        self.bind([self._take_argument(kind, left) for kind in kinds])
        self._run(self._written.node.body)
        if not self._builder.block.is_terminated:
            self._builder.branch(end.behind)
        self._builder.position_at_end(end.behind)
        found = self._give(end)
        if found is None:
            self._builder.ret(ir.Constant(LONG, 0))
        elif isinstance(found, (Value, Literal)):
            self._builder.ret(self._cast(self._as_number(found), S64).code)
        else:
            raise self._fail("only an integer can be given back")
        self._entry.branch(begin)

    def _take_argument(self, kind: Any, left: list[Any]) -> Any:
        if isinstance(kind, Bundle):
            return Bundle(tuple(self._take_argument(one, left) for one in kind.values), kind.names)
        if isinstance(kind, ArrayKind):
            pointer, parts = left.pop(0), [left.pop(0) for _ in range(2 * kind.dimensions)]
            shape = [Value(one, S64) for one in parts[: kind.dimensions]]
            return Array(kind, pointer, shape, [Value(one, S64) for one in parts[kind.dimensions :]])
        return Value(left.pop(0), kind)

    # --- types ---

    def _as_number(self, found: Any) -> Any:
        """A value as Python has it: an integer of 64 bits, a float, or a truth value."""
        if not isinstance(found, Value) or not isinstance(found.kind, Number) or found.kind.is_bool:
            return found
        if found.kind.is_float:
            return self._cast(found, _F64)
        return found if found.kind == U64 else self._cast(found, S64)

    def _meet(self, left: Any, right: Any) -> tuple[Value, Value]:
        left, right = self._as_number(left), self._as_number(right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Literal) and isinstance(one.value, float) and isinstance(other, Value):
                return self._as_float(left), self._as_float(right)
            if isinstance(one, Value) and isinstance(one.kind, Number) and one.kind.is_float:
                return self._as_float(left), self._as_float(right)
        if isinstance(left, Value) and isinstance(right, Value) and left.kind == right.kind == BOOL:
            return left, right
        kind = U64 if U64 in (getattr(left, "kind", None), getattr(right, "kind", None)) else S64
        return self._cast(left, kind), self._cast(right, kind)

    def _as_float(self, found: Any) -> Value:
        return self._cast(found, _F64)

    def _fit(self, found: Any, kind: Any) -> Value:
        if isinstance(found, Value) and isinstance(found.kind, Number) and isinstance(kind, Number):
            if kind.is_float or not found.kind.is_float:
                return self._cast(found, kind) if not kind.is_bool else Value(self._test(found), BOOL)
            raise self._fail(f"{found.kind} is no {kind}")
        return super()._fit(found, kind)

    def _join(self, operator: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(left, Literal) and isinstance(right, Literal):
            return super()._join(operator, left, right)
        if isinstance(operator, (ast.LShift, ast.RShift)):
            return self._shift(operator, self._widen(left), self._widen(right))
        left, right = self._meet(left, right)
        if left.kind.is_bool and not isinstance(operator, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            left, right = self._cast(left, S64), self._cast(right, S64)
        if isinstance(operator, ast.Div):
            return super()._join(operator, self._as_float(left), self._as_float(right))
        if isinstance(operator, (ast.FloorDiv, ast.Mod)) and not left.kind.is_float and left.kind.is_signed:
            return self._divide(operator, left, right)
        return super()._join(operator, left, right)

    def _widen(self, found: Any) -> Any:
        found = self._as_number(found)
        return self._cast(found, S64) if isinstance(found, Value) and found.kind.is_bool else found

    def _divide(self, operator: ast.operator, left: Value, right: Value) -> Value:
        """Quotient or remainder, rounded down."""
        builder, zero = self._builder, ir.Constant(LONG, 0)
        quotient, rest = builder.sdiv(left.code, right.code), builder.srem(left.code, right.code)
        differs = builder.icmp_signed("<", builder.xor(rest, right.code), zero)
        is_lower = builder.and_(builder.icmp_signed("!=", rest, zero), differs)
        if isinstance(operator, ast.Mod):
            return Value(builder.select(is_lower, builder.add(rest, right.code), rest), S64)
        return Value(builder.sub(quotient, builder.zext(is_lower, LONG)), S64)

    # --- arrays ---

    def _find(self, node: ast.expr) -> Any:
        match node:
            case ast.Tuple(elts=parts):
                return Bundle(tuple(self._find(one) for one in parts))
            case ast.Subscript(value=value, slice=index):
                found = self._find(value)
                if isinstance(found, (Array, Bundle)):
                    return self._read(self._index(found, index))
            case ast.Attribute(value=value, attr=name) if not self._is_of_module(value):
                return self._find_part(self._find(value), name)
        return self._as_number(super()._find(node))

    def _is_of_module(self, node: ast.expr) -> bool:
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self._names

    def _find_part(self, found: Any, name: str) -> Any:
        if isinstance(found, Bundle) and name in found.names:
            return found.values[found.names.index(name)]
        if isinstance(found, Array) and name == "shape":
            return Bundle(tuple(found.shape))
        return self._read(self._find_member(found, name))

    def _find_member(self, found: Any, name: str) -> Any:
        """A field of a record, where it lies."""
        if (
            not isinstance(found, Value)
            or not isinstance(found.kind, RecordKind)
            or name not in (found.kind.dtype.names or ())
        ):
            raise self._fail(f"there is no {name}")
        fields: Any = found.kind.dtype.fields
        dtype, offset = fields[name][:2]
        place = self._builder.gep(found.code, [ir.Constant(LONG, offset)], source_etype=BYTE)
        base, shape = dtype.base, dtype.shape
        if not shape:
            return Array(ArrayKind(base, 0), place, [], [])
        strides = [base.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        literal = [[Value(ir.Constant(LONG, one), S64) for one in numbers] for numbers in (shape, strides)]
        return Array(ArrayKind(base, len(shape)), place, *literal)

    def _read(self, found: Any) -> Any:
        """The value at a place; several stay an array."""
        if not isinstance(found, Array) or found.kind.dimensions:
            return found
        dtype = found.kind.dtype
        if dtype.names:
            return Value(found.pointer, RecordKind(dtype))
        if dtype == np.bool_:
            byte = self._builder.load(found.pointer, typ=BYTE, align=1)
            return Value(self._builder.icmp_unsigned("!=", byte, ir.Constant(BYTE, 0)), BOOL)
        kind = _NUMBERS[dtype]
        return self._as_number(Value(self._builder.load(found.pointer, typ=find_ir(kind), align=1), kind))

    def _write(self, to: Array, found: Any) -> None:
        if to.kind.dimensions == 1:
            self._write_all(to, found)
            return
        if to.kind.dtype == np.bool_:
            value = self._cast(Value(self._test(found), BOOL), cast("Number", types.u8))
        else:
            value = self._fit(found, _NUMBERS[to.kind.dtype])
        self._builder.store(value.code, to.pointer, align=1)

    def _write_all(self, to: Array, found: Any) -> None:
        """Write one value everywhere; of a field, whose length is known."""
        for place in range(to.shape[0].code.constant):
            self._write(self._go_along(to, Literal(place)), found)

    def _choose(self, condition: Any, body: ast.expr, other: ast.expr) -> Any:
        if isinstance(condition, Literal) or not (isinstance(body, ast.Attribute) and isinstance(other, ast.Attribute)):
            return super()._choose(condition, body, other)
        one, two = self._find(body), self._find(other)
        if not isinstance(one, Array):
            return super()._choose(condition, body, other)
        pointer = self._builder.select(self._test(condition), one.pointer, two.pointer)
        return Array(one.kind, pointer, one.shape, one.strides)

    def _go_along(self, array: Array, index: Any) -> Array:
        """One place of the first dimension."""
        steps = self._cast(self._as_number(index), S64)
        behind = self._builder.mul(steps.code, array.strides[0].code)
        pointer = self._builder.gep(array.pointer, [behind], source_etype=BYTE)
        kind = ArrayKind(array.kind.dtype, array.kind.dimensions - 1)
        return Array(kind, pointer, array.shape[1:], array.strides[1:])

    def _index(self, found: Any, index: ast.expr) -> Any:
        if isinstance(found, Bundle):
            place = self._find(index)
            if not isinstance(place, Literal):
                raise self._fail("which one of several values is asked for must be known")
            return found.values[int(place.value)]
        match index:
            case ast.Tuple(elts=parts):
                for one in parts:
                    found = self._index(found, one)
                return found
            case ast.Slice(lower=None, upper=None):
                return found
            case ast.Slice(lower=lower, upper=None) if lower is not None:
                first = self._cast(self._find(lower), S64)
                moved = self._go_along(found, first)
                size = Value(self._builder.sub(found.shape[0].code, first.code), S64)
                return Array(found.kind, moved.pointer, [size, *found.shape[1:]], found.strides)
        return self._go_along(found, self._find(index))

    # --- statements ---

    def _assign(self, target: ast.expr, found: Any) -> None:
        match target:
            case ast.Tuple(elts=parts):
                for number, one in enumerate(parts):
                    is_array = isinstance(found, Array)
                    self._assign(
                        one, self._read(self._go_along(found, Literal(number))) if is_array else found.values[number]
                    )
            case ast.Subscript(value=value, slice=index):
                self._write(self._index(self._find(value), index), found)
            case ast.Attribute(value=value, attr=name):
                self._write(self._find_member(self._find(value), name), found)
            case _:
                super()._assign(target, found)

    def _name(self, name: str, found: Any) -> None:
        if isinstance(self._names.get(name), (Array, Bundle)) and self._bound.get(name) is not self._builder.block:
            raise self._fail(f"{name} stands for another array already")
        self._bound[name] = self._builder.block
        super()._name(name, found)

    def _return(self, found: Any) -> None:
        end: Any = self._end
        if isinstance(found, Bundle):
            settled = [self._settle(one) for one in found.values]
            if end.places is None:
                end.places = [(self._reserve(one.kind), one.kind) for one in settled]
            for one, (place, kind) in zip(settled, end.places, strict=True):
                self._store(self._fit(one, kind).code, place)
            self._builder.branch(end.behind)
            return
        super()._return(found)

    def _give(self, end: Return) -> Any:
        if end.places is not None:
            return Bundle(tuple(Value(self._load(place, kind), kind) for place, kind in end.places))
        return super()._give(end)

    def _run_for(self, name: str, kind: str, arguments: list[ast.expr], body: list[ast.stmt]) -> None:
        if kind not in ("range", "unrolled"):
            raise self._fail(f"a loop over {kind}")
        super()._run_for(name, kind, arguments, body)

    def _run_one(self, statement: ast.stmt) -> None:
        match statement:
            case ast.For(target=ast.Name(id=name), iter=ast.Name() | ast.Attribute() as over, body=body):
                self._run_along(name, self._find(over), body)
            case ast.For(target=target, iter=ast.Tuple(elts=parts), body=body):
                self._loops.append(None)
                for one in parts:
                    self._assign(target, self._find(one))
                    self._run(body)
                self._loops.pop()
            case _:
                super()._run_one(statement)

    def _run_along(self, name: str, array: Any, body: list[ast.stmt]) -> None:
        """A loop over the elements of an array."""
        builder = self._builder
        again, inside, on, behind = (builder.append_basic_block(one) for one in ("again", "inside", "on", "behind"))
        left = self._reserve(S64)
        self._store(ir.Constant(LONG, 0), left)
        builder.branch(again)
        builder.position_at_end(again)
        number = Value(self._load(left, S64), S64)
        builder.cbranch(builder.icmp_signed("<", number.code, array.shape[0].code), inside, behind)
        builder.position_at_end(inside)
        self._begin_turn(name, self._read(self._go_along(array, number)))
        self._loop(inside, Loop(on, behind), body)
        if not builder.block.is_terminated:
            builder.branch(on)
        builder.position_at_end(on)
        self._store(builder.add(number.code, ir.Constant(LONG, 1)), left)
        builder.branch(again)
        builder.position_at_end(behind)

    # --- calls ---

    def _take_known(self, node: ast.expr) -> Any:
        found = self._look_up_known(node)
        return (
            found
            if isinstance(found, Loops) or (isinstance(found, Hashable) and found in _BUILT_IN)
            else super()._take_known(node)
        )

    def _look_up_known(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and node.id not in self._written.names:
            return _NAMES.get(node.id)
        return super()._look_up_known(node)

    def _call(self, function: Any, nodes: list[ast.expr]) -> Any:
        if isinstance(function, Loops):
            return self._write_out(function.written, [self._find(one) for one in nodes])
        name = _BUILT_IN.get(function) if not isinstance(function, Value) else None
        if name is None:
            found = super()._call(function, nodes)
            return self._as_number(found)
        arguments = [self._find(one) for one in nodes]
        if name == "len":
            return arguments[0].shape[0]
        if name in ("min", "max"):
            found = arguments[0]
            for one in arguments[1:]:
                found = self._choose_one(ast.Lt() if name == "min" else ast.Gt(), one, found)
            return found
        if name == "ceil":
            return self._cast(self._call_math(name, [self._as_float(arguments[0])]), S64)
        kind: Any = {"int": S64, "u64": U64, "float": _F64}.get(name)
        return Value(self._test(arguments[0]), BOOL) if kind is None else self._cast(arguments[0], kind)

    def _choose_one(self, operator: ast.cmpop, one: Any, other: Any) -> Any:
        if isinstance(one, Literal) and isinstance(other, Literal):
            return one if self._compare(operator, one, other).value else other
        one, other = self._meet(one, other)
        return Value(self._builder.select(self._compare(operator, one, other).code, one.code, other.code), one.kind)


_NAMES: dict[str, Any] = {one.__name__: one for one in (len, min, max, int, float, bool)}
_BUILT_IN: dict[Any, str] = {
    len: "len", min: "min", max: "max", int: "int", np.int64: "int", np.uint64: "u64", float: "float", bool: "bool", math.ceil: "ceil",
}  # fmt: skip


class Loops:
    """A function of loops, compiled for each kind of arguments when it is first called with it.

    Args:
        function: it.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self._codes: dict[tuple[Any, ...], Code] = {}
        self.__doc__ = function.__doc__

    @property
    def written(self) -> Written:
        """The function as it is written."""
        return find_written(self.function)

    def __call__(self, *arguments: Any) -> int:
        """Run it; what it gives, 0 where that is nothing."""
        given: list[Any] = []
        kinds = tuple(_describe(one, given) for one in arguments)
        code = self._codes.get(kinds)
        if code is None:
            name = self.function.__qualname__
            sources = (repr(kinds), self.function.__module__, name, *_list_sources(self.function, {}))
            code = self._codes[kinds] = load_module(
                lambda: self._translate(kinds), sources, name=name, functions=("loops",), is_vectorised=True
            )
        return code.call("loops", *given)

    def _translate(self, kinds: tuple[Any, ...]) -> ir.Module:
        module = Module(self.function.__qualname__)
        parameters = [one for kind in kinds for one in _list_parts(kind)]
        function = ir.Function(module.code, ir.FunctionType(LONG, parameters), "loops")
        _Loops(module, self.written).begin(function, kinds)
        return module.code


def compiled(function: _Function) -> _Function:
    """A function as machine code, which gives an integer, a truth value or nothing."""
    return cast("_Function", Loops(function))


def part(function: _Function) -> _Function:
    """A function that only compiled functions call: it is written out in them."""
    return cast("_Function", Loops(function))


def _list_sources(function: Any, known: "dict[str, str]") -> list[str]:
    """All that a function is made from: the modules of those that it may call, and the numbers that these have from elsewhere."""
    path, names = function.__code__.co_filename, function.__globals__
    if path not in known:
        known[path] = Path(path).read_text(encoding="utf-8")
        numbers = {name: one for name, one in names.items() if isinstance(one, (int, float))}
        enums = {name: list(one) for name, one in names.items() if isinstance(one, type) and issubclass(one, Enum)}
        known[path] += f"{numbers} {enums}"
        for one in names.values():
            if isinstance(one, Loops):
                _list_sources(one.function, known)
    return [known[one] for one in sorted(known)]


def _describe(argument: Any, given: list[Any]) -> Any:
    """The kind of an argument; what is handed over of it is added."""
    if isinstance(argument, tuple):
        names = getattr(argument, "_fields", ())
        return Bundle(tuple(_describe(one, given) for one in argument), names)
    if isinstance(argument, np.ndarray):
        given += [ctypes.c_void_p(argument.ctypes.data), *argument.shape, *argument.strides]
        return ArrayKind(argument.dtype, argument.ndim)
    if isinstance(argument, np.void):
        given.append(ctypes.c_void_p(np.frombuffer(argument, np.uint8).ctypes.data))
        return RecordKind(argument.dtype)
    if isinstance(argument, (float, np.floating)):
        given.append(ctypes.c_double(float(argument)))
        return _F64
    given.append(int(argument))
    return S64


def _list_parts(kind: Any) -> list[Any]:
    """The values of LLVM that one argument consists of."""
    if isinstance(kind, Bundle):
        return [part_ for one in kind.values for part_ in _list_parts(one)]
    if isinstance(kind, ArrayKind):
        return [POINTER, *[LONG] * (2 * kind.dimensions)]
    return [POINTER if isinstance(kind, RecordKind) else find_ir(kind)]
