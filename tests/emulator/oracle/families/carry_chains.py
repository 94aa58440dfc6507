"""``add.cc addc sub.cc subc mad.cc madc``: arithmetic with the carry flag CC.CF.

Source: PTX ISA 9.0, section 9.7.2 (extended-precision integer arithmetic). The flag of a difference is its borrow.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.modifiers import as_unsigned, find_type
from tests.emulator.oracle.integers import multiply_high
from tests.emulator.oracle.model import Family, LaneOperation

Function = Callable[..., Any]
_KINDS = frozenset({ScalarType.U32, ScalarType.S32, ScalarType.U64, ScalarType.S64})


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind an addition, subtraction or multiply-add that reads or writes the carry flag."""
    kind = find_type(instruction)
    reads, writes = instruction.opcode.endswith("c"), "cc" in instruction.suffixes
    if kind is None or kind not in _KINDS or not (reads or writes):
        return None
    unsigned = as_unsigned(kind)
    name = instruction.opcode.removesuffix("c")
    if name == "mad":
        return _bind_mad(instruction, kind, reads=reads, writes=writes)
    return LaneOperation(
        evaluate=_build(_add if name == "add" else _subtract, unsigned, reads=reads, writes=writes),
        source_types=(unsigned, unsigned),
        result_types=(unsigned,),
        reads_carry=reads,
        writes_carry=writes,
    )


def _bind_mad(instruction: PtxInstruction, kind: ScalarType, *, reads: bool, writes: bool) -> LaneOperation:
    unsigned = as_unsigned(kind)
    high = "hi" in instruction.suffixes
    factor = kind if high else unsigned
    product: Function = multiply_high(kind) if high else np.multiply
    add = _build(_add, unsigned, reads=reads, writes=writes)
    dtype = unsigned.natural_dtype

    def evaluate(a: Any, b: Any, c: Any, *carry: Any) -> Any:
        return add(product(a, b).view(dtype), c, *carry)

    return LaneOperation(
        evaluate=evaluate,
        source_types=(factor, factor, unsigned),
        result_types=(unsigned,),
        reads_carry=reads,
        writes_carry=writes,
    )


def _build(step: Function, unsigned: ScalarType, *, reads: bool, writes: bool) -> Function:
    dtype = unsigned.natural_dtype

    def evaluate(a: Any, b: Any, *carry: Any) -> Any:
        result, flag = step(a, b)
        if reads:
            result, second = step(result, carry[0].astype(dtype))
            flag = np.logical_or(flag, second)
        return (result, flag) if writes else result

    return evaluate


def _add(a: Any, b: Any) -> tuple[Any, Any]:
    total = np.add(a, b)
    return total, np.less(total, a)


def _subtract(a: Any, b: Any) -> tuple[Any, Any]:
    return np.subtract(a, b), np.less(a, b)


FAMILY = Family(opcodes=("add", "sub", "mad", "addc", "subc", "madc"), bind=bind)
