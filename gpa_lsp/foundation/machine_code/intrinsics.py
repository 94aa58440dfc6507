"""Functions that typed Python calls beside its own: :class:`Intrinsics`."""

import ast
from typing import Any

from llvmlite import ir

from gpa_lsp.foundation.machine_code.types import BOOL, LANES, Number, PointerType
from gpa_lsp.foundation.machine_code.values import (
    BIT,
    BYTE,
    LONG,
    POINTER,
    S64,
    U8,
    U32,
    U64,
    WORD,
    Literal,
    Value,
    Values,
    abbreviate,
    find_ir,
    measure,
)


class Declarations:
    """A module of LLVM, and what its functions call that stands elsewhere.

    Args:
        name: of the module, for messages of LLVM.
    """

    def __init__(self, name: str) -> None:
        self.code = ir.Module(name)
        self._declared: dict[str, ir.Function] = {}

    def declare(self, name: str, result: Any, parameters: list[Any]) -> ir.Function:
        """A function that is somewhere else, or one of LLVM's."""
        found = self._declared.get(name)
        if found is None:
            found = self._declared[name] = ir.Function(self.code, ir.FunctionType(result, parameters), name)
        return found

    def find_access(self, what: str, vector: Any, name: str) -> ir.Function:
        """LLVM's gathers and scatters; those of few bits, of which processors have none, become long, and stay functions."""
        full = f"{what}_{name}"
        found = self._declared.get(full)
        if found is not None:
            return found
        offsets, held = ir.VectorType(LONG, LANES), ir.VectorType(BIT, LANES)
        pointers = ir.VectorType(POINTER, LANES)
        is_gather = what == "gather"
        more = [] if is_gather else [vector]
        kind = ir.FunctionType(vector if is_gather else ir.VoidType(), [POINTER, offsets, WORD, *more])
        found = self._declared[full] = ir.Function(self.code, kind, full)
        found.linkage = "internal"
        found.attributes.add("noinline")
        found.attributes.add("nounwind")
        builder = ir.IRBuilder(found.append_basic_block("entry"))
        places = builder.gep(found.args[0], [found.args[1]], source_etype=BYTE)
        places.type = pointers
        some, every = found.append_basic_block("some"), found.append_basic_block("every")
        is_whole = builder.icmp_unsigned("==", found.args[2], ir.Constant(WORD, 0xFFFFFFFF))
        builder.cbranch(is_whole, every, some)
        for block, mask in ((some, None), (every, ir.Constant(held, [ir.Constant(BIT, 1)] * LANES))):
            builder.position_at_end(block)
            chosen = builder.bitcast(found.args[2], held) if mask is None else mask
            if is_gather:
                take = self.declare(f"llvm.masked.gather.v32{name}.v32p0", vector, [pointers, held, vector])
                builder.ret(builder.call(take, [places, chosen, ir.Constant(vector, None)]))
            else:
                give = self.declare(f"llvm.masked.scatter.v32{name}.v32p0", ir.VoidType(), [vector, pointers, held])
                builder.call(give, [found.args[3], places, chosen])
                builder.ret_void()
        return found


class Intrinsics(Values):
    """The functions of :mod:`types`.

    Args:
        module: that they are called in.
        place: of the function, for messages.
    """

    def __init__(self, module: Declarations, place: str) -> None:
        super().__init__(place)
        self._declarations = module

    def _read_operand(self, operand: Value, kind: Any) -> Value:
        """Lanes of a type: of a place in memory, or those that there are."""
        if isinstance(operand.kind, PointerType):
            return self._call_lanes(Value(operand.code, PointerType(kind)))
        wide = kind.spread(LANES)
        if operand.kind.bits != kind.bits:
            raise self._fail(f"{operand.kind} is no {kind}")
        return Value(self._builder.bitcast(operand.code, find_ir(wide)), wide)

    def _call_lanes(self, pointer: Value) -> Value:
        kind = pointer.kind.to.spread(LANES)
        return Value(self._load(pointer.code, kind), kind)

    def _call_put(self, pointer: Value, values: Any) -> None:
        self._store(self._fit(values, pointer.kind.to.spread(LANES)).code, pointer.code)

    def _call_gather(self, pointer: Value, offsets: Value, mask: Any) -> Value:
        kind = pointer.kind.to.spread(LANES)
        function = self._declarations.find_access("gather", find_ir(kind), abbreviate(kind))
        return Value(self._builder.call(function, [pointer.code, offsets.code, self._fit(mask, U32).code]), kind)

    def _call_scatter(self, pointer: Value, offsets: Value, mask: Any, values: Any) -> None:
        kind = pointer.kind.to.spread(LANES)
        function = self._declarations.find_access("scatter", find_ir(kind), abbreviate(kind))
        self._builder.call(
            function, [pointer.code, offsets.code, self._fit(mask, U32).code, self._fit(values, kind).code]
        )

    def _call_lanes_of(self, mask: Any) -> Value:
        held = BOOL.spread(LANES)
        return Value(self._builder.bitcast(self._fit(mask, U32).code, find_ir(held)), held)

    def _call_mask_of(self, holds: Value) -> Value:
        return Value(self._builder.bitcast(self._test(holds), WORD), U32)

    def _call_lane_numbers(self) -> Value:
        kind = U64.spread(LANES)
        return Value(ir.Constant(find_ir(kind), [ir.Constant(LONG, lane) for lane in range(LANES)]), kind)

    def _call_all_lanes(self, value: Any) -> Value:
        return self._spread(self._settle(value))

    def _reduce(self, name: str, values: Value) -> Value:
        kind = values.kind
        full = f"llvm.vector.reduce.{name}.v32{abbreviate(kind)}"
        function = self._declarations.declare(full, find_ir(kind.spread(1)), [find_ir(kind)])
        return Value(self._builder.call(function, [values.code]), kind.spread(1))

    def _call_union(self, values: Value) -> Value:
        return self._reduce("or", values)

    def _call_total(self, values: Value) -> Value:
        return self._reduce("add", values)

    def _call_odd(self, values: Value) -> Value:
        return self._reduce("xor", values)

    def _call_highest(self, values: Value) -> Value:
        return self._reduce("smax" if values.kind.is_signed else "umax", values)

    def _call_lowest(self, values: Value) -> Value:
        return self._reduce("smin" if values.kind.is_signed else "umin", values)

    def _call_pick(self, values: Value, sources: Value) -> Value:
        place = self._entry.alloca(values.code.type)
        place.align = 64
        self._builder.store(values.code, place, align=64)
        size = values.kind.bits // 8
        offsets = self._join(ast.Mult(), self._cast(sources, U64), Literal(size))
        return self._call_gather(Value(place, PointerType(values.kind.spread(1))), offsets, Literal(0xFFFFFFFF))

    def _call_as_bits(self, value: Value) -> Value:
        kind = Number(f"u{value.kind.bits}", value.kind.bits, value.kind.lanes)
        return Value(self._builder.bitcast(value.code, find_ir(kind)), kind)

    def _call_as_float(self, value: Value) -> Value:
        kind = Number(f"f{value.kind.bits}", value.kind.bits, value.kind.lanes)
        return Value(self._builder.bitcast(value.code, find_ir(kind)), kind)

    def _call_view(self, pointer: Value, kind: Any) -> Value:
        return Value(pointer.code, PointerType(kind))

    def _call_local(self, kind: Any, count: Any = None) -> Value:
        size = measure(kind) * (1 if count is None else int(count.value))
        place = self._entry.alloca(ir.ArrayType(BYTE, size))
        place.align = 64
        return Value(place, kind if isinstance(kind, type) else PointerType(kind))

    def _call_copy(self, to: Value, source: Value, size: Any) -> None:
        function = self._declarations.declare("llvm.memcpy.p0.p0.i64", ir.VoidType(), [POINTER, POINTER, LONG, BIT])
        self._builder.call(function, [to.code, source.code, self._as_size(size), ir.Constant(BIT, 0)])

    def _call_fill(self, to: Value, value: Any, size: Any) -> None:
        function = self._declarations.declare("llvm.memset.p0.i64", ir.VoidType(), [POINTER, BYTE, LONG, BIT])
        byte = self._cast(value, U8).code
        self._builder.call(function, [to.code, byte, self._as_size(size), ir.Constant(BIT, 0)])

    def _as_size(self, size: Any) -> Any:
        return self._cast(size, U64).code

    def _call_call(self, function: Value, *arguments: Any) -> Value:
        codes = [self._settle(one).code for one in arguments]
        kind = ir.FunctionType(LONG, [one.type for one in codes])
        return Value(self._builder.call(self._builder.inttoptr(function.code, kind.as_pointer()), codes), S64)

    def _call_resize(self, pointer: Value, size: Any) -> Value:
        function = self._declarations.declare("realloc", POINTER, [POINTER, LONG])
        return Value(self._builder.call(function, [pointer.code, self._as_size(size)]), pointer.kind)

    def _call_release(self, pointer: Value) -> None:
        self._builder.call(self._declarations.declare("free", ir.VoidType(), [POINTER]), [pointer.code])

    def _call_math(self, name: str, arguments: list[Any]) -> Value:
        if name in _LIBRARY:
            function = self._declarations.declare(name, ir.DoubleType(), [ir.DoubleType()])
            function.attributes.add("nobuiltin")  # LLVM would call others in its place, which round in another way
            return Value(self._builder.call(function, [arguments[0].code]), arguments[0].kind)
        known, more = _MATH[name]
        first = next(one for one in arguments if isinstance(one, Value))
        fitted = [self._fit(one, first.kind) for one in arguments]
        code = find_ir(first.kind)
        flags = [BIT] if more else []
        vector = "v32" if first.kind.lanes > 1 else ""
        function = self._declarations.declare(
            f"llvm.{known}.{vector}{abbreviate(first.kind)}", code, [code] * len(arguments) + flags
        )
        given = [one.code for one in fitted] + [ir.Constant(flag, 0) for flag in flags]
        return Value(self._builder.call(function, given), first.kind)


_LIBRARY = frozenset({"exp2", "log2", "sin", "cos", "tanh"})  # Functions of one double
_MATH = {
    "popcount": ("ctpop", False), "trailing_zeros": ("cttz", True), "leading_zeros": ("ctlz", True), "reverse_bits": ("bitreverse", False),
    "sqrt": ("sqrt", False), "fma": ("fma", False), "round_even": ("roundeven", False), "truncate": ("trunc", False),
    "floor": ("floor", False), "ceil": ("ceil", False),
}  # fmt: skip
