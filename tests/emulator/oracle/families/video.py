"""Scalar and SIMD video instructions: ``vadd vsub vabsdiff vmin vmax vshl vshr vmad vset`` and their ``2`` and ``4`` forms.

Source: PTX ISA 9.0, section 9.7.15 (video instructions).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Operand, PtxInstruction, Register
from gpa_lsp.code.ptx.scalar_types import ScalarType
from tests.emulator.oracle.model import Family, LaneOperation

Function = Callable[..., Any]
S = ScalarType
_TYPES = frozenset({S.U32, S.S32})
_COMPARISONS: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
# Of int64 values that came from 32 bits or fewer. An average rounds away from zero.
_WORDS: dict[str, Function] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(np.subtract(a, b)),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": lambda a, b: np.right_shift(np.add(a, b) + np.greater_equal(np.add(a, b), 0), 1),
}


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a video instruction."""
    opcode = instruction.opcode
    if (
        not instruction.types
        or not set(instruction.types) <= _TYPES
        or any(getattr(operand, "is_negated", False) for operand in instruction.sources)
    ):
        return None
    if opcode[-1] in "24":
        return _bind_simd(instruction, opcode[:-1], int(opcode[-1]))
    if opcode == "vmad":
        return _bind_vmad(instruction)
    return _bind_scalar(instruction)


def _find_function(instruction: PtxInstruction, name: str) -> Function | None:
    if name == "vset":
        word = next((word for word in instruction.suffixes if word in _COMPARISONS), None)
        if word is None:
            return None
        compare = _COMPARISONS[word]
        return lambda a, b: compare(a, b).astype(np.int64)
    if name in ("vshl", "vshr"):
        wraps = "wrap" in instruction.suffixes
        left = name == "vshl"

        def shift(a: Any, b: Any) -> Any:
            amount = np.bitwise_and(b, 31) if wraps else np.minimum(b, 32)
            return np.left_shift(a, amount) if left else np.right_shift(a, amount)

        return shift
    return _WORDS.get(name)


def _bind_scalar(instruction: PtxInstruction) -> LaneOperation | None:
    """``vop.dtype.atype.btype{.sat}{.op2} d, a{.sel}, b{.sel}{, c}``, or with ``c`` merged into a part of the result."""
    name = instruction.opcode
    function = _find_function(instruction, name)
    types = instruction.types if name != "vset" else (S.U32, *instruction.types)
    if function is None or len(types) != 3 or len(instruction.sources) not in (2, 3):
        return None
    signs = [kind is S.S32 for kind in types]
    selectors = [find_selector(operand) for operand in instruction.sources[:2]]
    target = find_selector(instruction.destinations[0]) if instruction.destinations else ""
    saturates = "sat" in instruction.suffixes
    second = next((word for word in ("add", "min", "max") if word in instruction.suffixes), None)
    has_addend = len(instruction.sources) == 3
    if has_addend and second is None and not target:
        return None

    def evaluate(a: Any, b: Any, *rest: Any) -> Any:
        value = function(pick_part(a, selectors[0], signed=signs[1]), pick_part(b, selectors[1], signed=signs[2]))
        if saturates:
            value = _saturate(value, 32, signed=signs[0])
        return merge_scalar(value, rest[0] if rest else None, target, second, signed=signs[0])

    count = len(instruction.sources)
    return LaneOperation(evaluate=evaluate, source_types=(S.U32,) * count, result_types=(S.U32,))


def _saturate(value: Any, bits: int, *, signed: bool) -> Any:
    lowest = -(2 ** (bits - 1)) if signed else 0
    return np.clip(value, lowest, lowest + 2**bits - 1)


def _bind_vmad(instruction: PtxInstruction) -> LaneOperation | None:
    """``vmad.dtype.atype.btype{.sat}{.shr7|.shr15} d, a{.sel}, b{.sel}, c`` and ``.po``: a · b + c (+ 1), scaled down."""
    if len(instruction.types) != 3 or len(instruction.sources) != 3:
        return None
    words = instruction.suffixes
    signs = [kind is S.S32 for kind in instruction.types]
    selectors = [find_selector(operand) for operand in instruction.sources[:2]]
    if not all(selectors):
        return None  # 32-bit factors make a 66-bit sum; nobody emits them
    scale = 7 if "shr7" in words else 15 if "shr15" in words else 0
    one = int("po" in words)

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        product = pick_part(a, selectors[0], signed=signs[1]) * pick_part(b, selectors[1], signed=signs[2])
        value = (product + pick_part(c, "", signed=signs[0]) + one) >> scale
        if "sat" in words:
            value = _saturate(value, 32, signed=signs[0])
        return value.astype(np.uint32)

    return LaneOperation(evaluate=evaluate, source_types=(S.U32,) * 3, result_types=(S.U32,))


def _bind_simd(instruction: PtxInstruction, name: str, count: int) -> LaneOperation | None:
    """``vop2|4.dtype.atype.btype{.sat}{.add} d{.mask}, a, b, c``; operands without selectors."""
    function = _find_function(instruction, name)
    types = instruction.types if name != "vset" else (S.U32, *instruction.types)
    selected = any(find_selector(operand) for operand in (*instruction.sources, *instruction.destinations) if operand)
    if function is None or len(types) != 3 or len(instruction.sources) != 3 or selected or name in ("vshl", "vshr"):
        return None
    signs = [kind is S.S32 for kind in types]
    saturates, accumulates = "sat" in instruction.suffixes, "add" in instruction.suffixes
    bits = 32 // count

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        values = function(split_parts(a, count, signed=signs[1]), split_parts(b, count, signed=signs[2]))
        if saturates:
            values = _saturate(values, bits, signed=signs[0])
        if accumulates:
            return np.add(values.sum(axis=1).astype(np.uint32), c)
        return join_parts(values, count)

    return LaneOperation(evaluate=evaluate, source_types=(S.U32,) * 3, result_types=(S.U32,))


_SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
_SIMD = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset")


def find_selector(operand: Operand | None) -> str:
    """``b0`` … ``h1`` of an operand; empty for the whole register."""
    return operand.selector if isinstance(operand, Register) else ""


def _find_field(selector: str) -> tuple[int, int]:
    """Position and width in bits."""
    width = {"b": 8, "h": 16}.get(selector[:1], 32)
    return (int(selector[1]) * width, width) if selector else (0, 32)


def pick_part(values: Any, selector: str, *, signed: bool) -> Any:
    """The part of uint32[n] as int64[n], extended by its type."""
    position, width = _find_field(selector)
    part = (values.astype(np.int64) >> position) & ((1 << width) - 1)
    return (part ^ (1 << (width - 1))) - (1 << (width - 1)) if signed else part


def merge_scalar(values: Any, addend: Any, target: str, second: str | None, *, signed: bool) -> Any:
    """The second operation of a scalar video instruction, on its first result.

    Args:
        values: int64[n], before it is cut to 32 bits.
        addend: c, uint32[n]; None when there is none.
        second: ``add min max`` with c.
    """
    if addend is None:
        return values.astype(np.uint32)
    if target:
        position, width = _find_field(target)
        mask = np.uint32(((1 << width) - 1) << position)
        moved = (values << position).astype(np.uint32)
        return (addend & ~mask) | (moved & mask)
    kept = pick_part(values.astype(np.uint32), "", signed=signed)
    other = pick_part(addend, "", signed=signed)
    if second == "add":
        return (kept + other).astype(np.uint32)
    return (np.minimum(kept, other) if second == "min" else np.maximum(kept, other)).astype(np.uint32)


def split_parts(values: Any, count: int, *, signed: bool) -> Any:
    """uint32[n] as int64[n, count], lowest part first."""
    dtype = np.dtype(f"{'i' if signed else 'u'}{4 // count}")
    return np.ascontiguousarray(values).view(dtype).reshape(-1, count).astype(np.int64)


def join_parts(values: Any, count: int) -> Any:
    """int64[n, count], cut to their width, as uint32[n]."""
    return np.ascontiguousarray(values.astype(f"u{4 // count}")).view(np.uint32).reshape(-1)


FAMILY = Family(opcodes=(*_SCALAR, *(f"{name}2" for name in _SIMD), *(f"{name}4" for name in _SIMD)), bind=bind)
