"""Which registers an instruction reads and writes."""

from collections.abc import Iterable, Iterator

from gpa_lsp.code.ptx.model import (
    Address,
    Operand,
    Pair,
    PtxInstruction,
    Register,
    TextureAddress,
    Vector,
)


def list_reads(instruction: PtxInstruction) -> tuple[int, ...]:
    """Slots that are read, the guard's and those of addresses among the results included; some may come twice."""
    found = list(_list_slots(instruction.sources))
    if instruction.guard is not None:
        found.append(instruction.guard.slot)
    for operand in instruction.destinations:
        # An asynchronous product of matrices adds to its results.
        if isinstance(operand, Address | TextureAddress) or instruction.opcode == "wgmma":
            found.extend(_list_slots((operand,)))
    if instruction.call is not None:
        found.extend(_list_slots(instruction.call.arguments))
        if instruction.call.pointer is not None:
            found.append(instruction.call.pointer.slot)
    return tuple(found)


def list_writes(instruction: PtxInstruction) -> tuple[int, ...]:
    """Slots that are written, where the guard holds."""
    results = instruction.destinations if instruction.call is None else instruction.call.results
    return tuple(_list_slots(one for one in results if not isinstance(one, Address | TextureAddress)))


def _list_slots(operands: "Iterable[Operand | None]") -> Iterator[int]:
    for operand in operands:
        if isinstance(operand, Register):
            yield operand.slot
        elif isinstance(operand, Address):
            if isinstance(operand.base, Register):
                yield operand.base.slot
        elif isinstance(operand, Vector):
            yield from _list_slots(operand.elements)
        elif isinstance(operand, Pair):
            yield from _list_slots((operand.first, operand.second))
        elif isinstance(operand, TextureAddress):
            yield from _list_slots((operand.handle, operand.sampler, *operand.coordinates))
