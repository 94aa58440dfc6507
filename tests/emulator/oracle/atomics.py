"""New values of atomic operations: :func:`atomic_function`.

Source: PTX ISA 9.0, sections 9.7.13.6 (atom) and 9.7.13.7 (red).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import as_unsigned
from tests.emulator.oracle.halves import build_half
from tests.emulator.oracle.lanes import by_parts
from tests.emulator.oracle.single import build_extreme, canonicalise, flush

Function = Callable[..., Any]
S = ScalarType
_HALVES = {S.F16: S.F16, S.BF16: S.BF16, S.F16X2: S.F16, S.BF16X2: S.BF16}


class AtomicFunction(Struct, frozen=True, kw_only=True):
    """Change of a value in memory by an atomic operation."""

    name: str  # ``add min max inc dec cas exch and or xor``
    evaluate: Function  # ``(old, *operands) -> new``, lane-wise; arrays or scalars of the type's natural dtype
    type: ScalarType  # of the value and of every operand. Where the sign does not matter it is the unsigned type of the width.
    operands: int = 1  # besides the old value: 2 for ``cas`` (compared, then new), else 1


def _increase(old: Any, limit: Any) -> Any:
    """``inc``: 0 from the limit on, else one more."""
    return np.where(old >= limit, old.dtype.type(0), np.add(old, old.dtype.type(1)))[()]


def _decrease(old: Any, limit: Any) -> Any:
    """``dec``: the limit from 0 and above the limit, else one less."""
    return np.where((old == 0) | (old > limit), limit, np.subtract(old, old.dtype.type(1)))[()]


def _swap_equal(old: Any, compared: Any, new: Any) -> Any:
    return np.where(old == compared, new, old)[()]


_ASSOCIATIVE: dict[str, Function] = {"add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_IN_ORDER: dict[str, Function] = {"exch": lambda _old, new: new, "inc": _increase, "dec": _decrease}
_NAMES = frozenset({"cas", "min", "max", *_ASSOCIATIVE, *_IN_ORDER})


def atomic_function(instruction: PtxInstruction) -> AtomicFunction | None:
    """Give what an ``atom`` or ``red`` does to the value at its address.

    Vectors (``.v2.f32`` …) do this to each of their elements. Sums of f32 keep subnormal numbers unless the instruction says ``.ftz``; on a GPU
    those in global memory do, and those in shared memory follow the instruction too.

    Returns:
        The function; None for a form that is not supported (128 bits among them).
    """
    name = next((word for word in instruction.suffixes if word in _NAMES), None)
    kind = instruction.types[0] if len(instruction.types) == 1 else S.B128
    if name is None or kind is S.B128 or kind is S.PRED:
        return None
    if name == "cas":
        return AtomicFunction(name=name, evaluate=_swap_equal, type=as_unsigned(kind), operands=2)
    if name in _IN_ORDER and (name == "exch" or not kind.is_float):
        return AtomicFunction(name=name, evaluate=_IN_ORDER[name], type=as_unsigned(kind))
    if kind.is_float:
        return _find_float(name, kind, instruction.suffixes)
    if name in _ASSOCIATIVE:
        return AtomicFunction(name=name, evaluate=_ASSOCIATIVE[name], type=as_unsigned(kind))
    ordered = kind if kind.is_signed else as_unsigned(kind)
    return AtomicFunction(name=name, evaluate=np.minimum if name == "min" else np.maximum, type=ordered)


def _find_float(name: str, kind: ScalarType, words: tuple[str, ...]) -> AtomicFunction | None:
    if kind in _HALVES:
        built = build_half(name, _HALVES[kind], tuple(word for word in words if word not in ("ftz", "noftz")))
        if built is None:
            return None
        function = by_parts(built[0], np.uint16) if kind.bytes == 4 else built[0]
        return AtomicFunction(name=name, evaluate=function, type=kind)
    if kind not in (S.F32, S.F64):
        return None
    if name in ("min", "max"):
        return AtomicFunction(
            name=name,
            evaluate=build_extreme(kind, greatest=name == "max", keeps_nan=False, by_magnitude=False),
            type=kind,
        )
    if name != "add":
        return None
    if kind is S.F64:
        return AtomicFunction(name=name, evaluate=np.add, type=kind)
    if "ftz" in words:
        return AtomicFunction(
            name=name, evaluate=lambda old, b: flush(canonicalise(np.add(flush(old), flush(b)))), type=kind
        )
    return AtomicFunction(name=name, evaluate=lambda old, b: canonicalise(np.add(old, b)), type=kind)
