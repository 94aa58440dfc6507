"""Integer ``div`` and ``rem``.

Source: PTX ISA 9.0, sections 9.7.1.8 and 9.7.1.9: quotients round toward zero, remainders take the dividend's sign; division by zero gives an
unspecified value, here all ones, as the code that NVIDIA's compiler makes of it does.
"""

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.execution.emulator.semantics.modifiers import INTEGERS, SIGNED, find_type
from tests.emulator.oracle.integers import divide_signed, divide_unsigned, remainder_signed, remainder_unsigned
from tests.emulator.oracle.model import Family, LaneOperation


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a division of integers."""
    kind = find_type(instruction)
    if kind is None or kind not in INTEGERS:
        return None
    if instruction.opcode == "div":
        function = divide_signed if kind in SIGNED else divide_unsigned
    else:
        function = remainder_signed if kind in SIGNED else remainder_unsigned
    return LaneOperation(evaluate=function, source_types=(kind, kind), result_types=(kind,))


FAMILY = Family(opcodes=("div", "rem"), bind=bind)
