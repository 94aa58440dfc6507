"""``add.cc addc sub.cc subc mad.cc madc``: arithmetic with the carry flag CC.CF.

Source: PTX ISA 9.0, section 9.7.2 (extended-precision integer arithmetic). The flag of a difference is its borrow.
"""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import as_unsigned, find_type
from tests.emulator.oracle.lanes import wrap
from tests.emulator.oracle.model import Family, LaneOperation

_KINDS = frozenset({ScalarType.U32, ScalarType.S32, ScalarType.U64, ScalarType.S64})


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind an addition, subtraction or multiply-add that reads or writes the carry flag."""
    kind = find_type(instruction)
    reads, writes = instruction.opcode.endswith("c"), "cc" in instruction.suffixes
    if kind is None or kind not in _KINDS or not (reads or writes):
        return None
    unsigned, name = as_unsigned(kind), instruction.opcode.removesuffix("c")
    sign = -1 if name == "sub" else 1
    shift = 8 * kind.bytes if "hi" in instruction.suffixes else 0

    def evaluate(*sources: Any) -> Any:
        whole = [one.astype(object) for one in sources]
        carry = whole.pop() if reads else 0
        if name == "mad":
            whole[:2] = [wrap(whole[0] * whole[1] >> shift, unsigned).astype(object)]
        total = whole[0] + sign * (whole[1] + carry)
        result, flag = wrap(total, unsigned), np.asarray((total < 0) | (total >> 8 * kind.bytes != 0), np.bool_)
        return (result, flag) if writes else result

    return LaneOperation(
        evaluate=evaluate,
        source_types=(kind, kind, unsigned) if name == "mad" else (unsigned, unsigned),
        result_types=(unsigned,),
        reads_carry=reads,
        writes_carry=writes,
    )


FAMILY = Family(opcodes=("add", "sub", "mad", "addc", "subc", "madc"), bind=bind)
