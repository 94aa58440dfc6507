"""Integer ``div`` and ``rem``.

Source: PTX ISA 9.0, sections 9.7.1.8 and 9.7.1.9: quotients round toward zero, remainders take the dividend's sign; division by zero gives an
unspecified value, here all ones, as the code that NVIDIA's compiler makes of it does.
"""

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.execution.emulator.semantics.model import INTEGERS, find_type
from tests.emulator.oracle.lanes import exactly
from tests.emulator.oracle.model import Family, LaneOperation, same_types


def _divide(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_QUOTIENT = np.frompyfunc(_divide, 2, 1)
_REST = np.frompyfunc(lambda a, b: a - b * _divide(a, b) if b else -1, 2, 1)


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a division of integers."""
    kind = find_type(instruction)
    if kind is None or kind not in INTEGERS:
        return None
    return same_types(exactly(_QUOTIENT if instruction.opcode == "div" else _REST, kind), kind, 2)


FAMILY = Family(opcodes=("div", "rem"), bind=bind)
