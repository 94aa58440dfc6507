"""Which operation an instruction is: :func:`bind_operation`."""

from functools import cache

import numpy as np
import numpy.typing as npt

import gpa_lsp.execution.emulator.operations.families as catalogue
from gpa_lsp.code.ptx.model import Operand, Pair, PtxInstruction, Vector
from gpa_lsp.execution.emulator.operations.model import Family, Operation
from gpa_lsp.foundation.catalogue import load_catalogue


@cache
def _find_families() -> dict[str, tuple[Family, ...]]:
    """Families by opcode, in alphabetical order of their modules."""
    found: dict[str, tuple[Family, ...]] = {}
    members: dict[str, Family] = load_catalogue(catalogue, "FAMILY", Family)
    for family in members.values():
        for opcode in family.opcodes:
            found[opcode] = (*found.get(opcode, ()), family)
    return found


def count_flattened(operands: tuple[Operand, ...]) -> int:
    """Count operands with vectors taken apart and pairs as two."""
    count = 0
    for operand in operands:
        if isinstance(operand, Vector):
            count += len(operand.elements)
        else:
            count += 2 if isinstance(operand, Pair) else 1
    return count


def bind_operation(instruction: PtxInstruction) -> Operation | None:
    """Give what an instruction computes.

    Returns:
        The operation, or None when the instruction is not supported, or is written with operands that do not fit it.
    """
    for family in _find_families().get(instruction.opcode, ()):
        operation = family.bind(instruction)
        if operation is None:
            continue
        if count_flattened(instruction.sources) != len(operation.source_types):
            continue
        if count_flattened(instruction.destinations) != len(operation.result_types):
            continue
        return operation
    return None


def find_zero_divisors(divisor: npt.NDArray[np.generic] | np.generic) -> npt.NDArray[np.bool_] | None:
    """Find lanes that divide an integer by zero.

    Args:
        divisor: second source of an operation that says ``can_divide_by_zero``; integers.

    Returns:
        bool[n] (bool[] for a scalar), True where it is zero; None when it is zero nowhere.
    """
    zero = np.asarray(divisor == 0)
    return zero if zero.any() else None
