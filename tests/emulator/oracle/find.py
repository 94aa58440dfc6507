"""Finding the operation of an instruction: :func:`bind_operation`."""

from functools import cache

import tests.emulator.oracle.families as catalogue
from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.execution.emulator.semantics.model import flatten
from gpa_lsp.foundation.catalogue import load_catalogue
from tests.emulator.oracle.model import Family, Operation


@cache
def _find_families() -> dict[str, tuple[Family, ...]]:
    """Families by opcode, in alphabetical order of their modules."""
    found: dict[str, tuple[Family, ...]] = {}
    members: dict[str, Family] = load_catalogue(catalogue, "FAMILY", Family)
    for family in members.values():
        for opcode in family.opcodes:
            found[opcode] = (*found.get(opcode, ()), family)
    return found


def bind_operation(instruction: PtxInstruction) -> Operation | None:
    """Give what an instruction computes.

    Returns:
        The operation, or None when the instruction is not supported, or is written with operands that do not fit it.
    """
    for family in _find_families().get(instruction.opcode, ()):
        operation = family.bind(instruction)
        if (
            operation is not None
            and len(flatten(instruction.sources)) == len(operation.source_types)
            and len(flatten(instruction.destinations)) == len(operation.result_types)
        ):
            return operation
    return None
