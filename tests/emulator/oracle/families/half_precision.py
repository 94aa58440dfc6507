"""``add sub mul fma neg abs min max ex2 tanh`` of f16, bf16 and their pairs; ``setp`` and ``set`` of pairs.

Source: PTX ISA 9.0, sections 9.7.4 and 9.7.7.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Pair, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_type
from tests.emulator.oracle.comparing import find_combination, find_comparison
from tests.emulator.oracle.halves import build_half
from tests.emulator.oracle.lanes import by_parts
from tests.emulator.oracle.model import Family, LaneOperation, same_types

Function = Callable[..., Any]
S = ScalarType
_ELEMENTS = {S.F16: S.F16, S.BF16: S.BF16, S.F16X2: S.F16, S.BF16X2: S.BF16}
_PAIRS = frozenset({S.F16X2, S.BF16X2})


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind arithmetic or a comparison in half precision."""
    if instruction.opcode in ("setp", "set"):
        return _bind_comparison(instruction)
    kind = find_type(instruction)
    if kind is None or kind not in _ELEMENTS or not {"rz", "rm", "rp", "oob"}.isdisjoint(instruction.suffixes):
        return None
    built = build_half(instruction.opcode, _ELEMENTS[kind], instruction.suffixes)
    if built is None:
        return None
    function, count = built
    if kind in _PAIRS:
        function = by_parts(function, np.uint16)
    if len(instruction.sources) == 3 and count == 2:  # three-operand min and max
        two = function
        return same_types(lambda a, b, c: two(two(a, b), c), kind, 3)
    return same_types(function, kind, count)


def _bind_comparison(instruction: PtxInstruction) -> LaneOperation | None:
    if not instruction.types or instruction.types[-1] not in _PAIRS:
        return None
    pair = instruction.types[-1]
    found = find_comparison(instruction, _ELEMENTS[pair])
    if found is None:
        return None
    compare = _by_halves(found[0])
    combine = find_combination(instruction)
    sources = (pair, pair) if combine is None else (pair, pair, S.PRED)
    if instruction.opcode == "setp":
        if len(instruction.destinations) != 1 or not isinstance(instruction.destinations[0], Pair):
            return None
        return LaneOperation(
            evaluate=_combine_halves(compare, combine), source_types=sources, result_types=(S.PRED, S.PRED)
        )
    return _bind_set(instruction, _combine_halves(compare, combine), sources)


def _bind_set(instruction: PtxInstruction, compare: Function, sources: tuple[ScalarType, ...]) -> LaneOperation | None:
    """``set.cmp.f16x2.f16x2``, and with bits of ones instead of 1.0."""
    true = {S.F16X2: 0x3C00, S.BF16X2: 0x3F80, S.U32: 0xFFFF, S.S32: 0xFFFF, S.U16X2: 0xFFFF, S.S16X2: 0xFFFF}.get(
        instruction.types[0]
    )
    if true is None or len(instruction.types) != 2:
        return None
    low, high = np.uint32(true), np.uint32(true << 16)

    def evaluate(*operands: Any) -> Any:
        first, second = compare(*operands)
        return np.bitwise_or(np.multiply(first, low), np.multiply(second, high))

    return LaneOperation(evaluate=evaluate, source_types=sources, result_types=(S.U32,))


def _by_halves(compare: Function) -> Function:
    """Compare the low halves and the high halves of pairs."""

    def evaluate(a: Any, b: Any) -> tuple[Any, Any]:
        holds = compare(np.ascontiguousarray(a).view(np.uint16), np.ascontiguousarray(b).view(np.uint16))
        return holds[0::2].copy(), holds[1::2].copy()

    return evaluate


def _combine_halves(compare: Function, combine: Function | None) -> Function:
    if combine is None:
        return compare

    def evaluate(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        low, high = compare(a, b)
        return combine(low, c), combine(high, c)

    return evaluate


FAMILY = Family(
    opcodes=("add", "sub", "mul", "fma", "neg", "abs", "min", "max", "ex2", "tanh", "setp", "set"), bind=bind
)
