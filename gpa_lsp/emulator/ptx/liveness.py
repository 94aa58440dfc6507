"""Which registers a basic block may read before it or what follows writes them."""

from collections.abc import Sequence

from gpa_lsp.emulator.ptx.model import PtxInstruction
from gpa_lsp.emulator.ptx.registers_used import list_reads, list_writes

_MOST_WORDS = 200_000_000
"""64-bit words of sets that are looked at before all registers count as alive everywhere: seconds."""

_MOST_SLOTS = 20_000_000
"""Slots that are listed, over all blocks, likewise."""


def find_live_in(
    instructions: Sequence[PtxInstruction],
    first: Sequence[int],
    last: Sequence[int],
    successors: Sequence[Sequence[int]],
) -> tuple[tuple[int, ...], ...]:
    """Slots that may be read before they are written, from each block's start, ascending.

    A guarded instruction reads its guard, and its write does not end the life of what the register held. For functions so large that the
    answer would take seconds or gigabytes, all registers that occur are given for every block: more than needed, never too few.

    Args:
        instructions: of the function.
        first: index of each block's first instruction.
        last: of its last one.
        successors: of each block.

    Source:
        The usual backward data-flow equations, in = use ∪ (out − def); sets are Python integers. A worklist in reverse order of the text.
    """
    uses, kills = _summarise(instructions, first, last)
    predecessors: list[list[int]] = [[] for _ in first]
    for block, following in enumerate(successors):
        for other in following:
            predecessors[other].append(block)
    live = list(uses)
    waiting = list(range(len(first)))
    is_waiting = [True] * len(first)
    everything = 0
    for block in waiting:
        everything |= uses[block] | kills[block]
    steps_left = _MOST_WORDS // (everything.bit_length() // 64 + 1)
    while waiting and steps_left > 0:
        steps_left -= 1
        block = waiting.pop()
        is_waiting[block] = False
        out = 0
        for other in successors[block]:
            out |= live[other]
        found = uses[block] | (out & ~kills[block])
        if found == live[block]:
            continue
        live[block] = found
        for other in predecessors[block]:
            if not is_waiting[other]:
                is_waiting[other] = True
                waiting.append(other)
    if waiting or sum(bits.bit_count() for bits in live) > _MOST_SLOTS:
        return (_list_bits(everything),) * len(first)
    return tuple(_list_bits(bits) for bits in live)


def _summarise(
    instructions: Sequence[PtxInstruction], first: Sequence[int], last: Sequence[int]
) -> tuple[list[int], list[int]]:
    """For each block the registers it reads before writing them, and those it surely writes."""
    uses: list[int] = []
    kills: list[int] = []
    for start, end in zip(first, last, strict=True):
        read: set[int] = set()
        written: set[int] = set()
        for index in range(start, end + 1):
            instruction = instructions[index]
            read.update(slot for slot in list_reads(instruction) if slot not in written)
            if instruction.guard is None:
                written.update(list_writes(instruction))
        uses.append(_pack(read))
        kills.append(_pack(written))
    return uses, kills


def _pack(slots: set[int]) -> int:
    if not slots:
        return 0
    packed = bytearray(max(slots) // 8 + 1)
    for slot in slots:
        packed[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(packed, "little")


def _list_bits(bits: int) -> tuple[int, ...]:
    found: list[int] = []
    for place, byte in enumerate(bits.to_bytes((bits.bit_length() + 7) // 8, "little")):
        if byte:
            found.extend(8 * place + bit for bit in range(8) if byte >> bit & 1)
    return tuple(found)
