"""Which registers a basic block may read before it or what follows writes them."""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from gpa_lsp.ptx.model import PtxInstruction
from gpa_lsp.ptx.registers_used import list_reads, list_writes

_MOST_WORDS = 16_000_000
"""64-bit words of all sets, before all registers count as alive everywhere; and a hundredth of those that are looked at."""

_MOST_STEPS = 100
"""Times that a block is looked at, on average, before all registers count as alive everywhere. Code needs about as many as its loops are deep."""

_MOST_SLOTS = 5_000_000
"""Slots that are listed, over all blocks, before all registers count as alive everywhere."""


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
        The usual backward data-flow equations, in = use ∪ (out − def); sets are Python integers. The block that stands last in the
        text is looked at first.
    """
    uses, kills = _summarise(instructions, first, last)
    everything = 0
    for block in range(len(first)):
        everything |= uses[block] | kills[block]
    words = everything.bit_length() // 64 + 1
    live = None
    if words * len(first) <= _MOST_WORDS:
        live = _solve(uses, kills, successors, most_steps=min(_MOST_STEPS * len(first), 100 * _MOST_WORDS // words))
    if live is None or sum(bits.bit_count() for bits in live) > _MOST_SLOTS:
        return (_list_bits(everything),) * len(first)
    return tuple(_list_bits(bits) for bits in live)


def _solve(
    uses: Sequence[int], kills: Sequence[int], successors: Sequence[Sequence[int]], *, most_steps: int
) -> list[int] | None:
    """The smallest solution of the equations; None where it is not found in so many steps."""
    predecessors: list[list[int]] = [[] for _ in uses]
    for block, following in enumerate(successors):
        for other in following:
            predecessors[other].append(block)
    live = list(uses)
    # The last block of the text comes first: what follows a block is mostly behind it.
    waiting = [-block for block in range(len(uses) - 1, -1, -1)]
    is_waiting = [True] * len(uses)
    for _ in range(most_steps):
        if not waiting:
            return live
        block = -heappop(waiting)
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
                heappush(waiting, -other)
    return None if waiting else live


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
    content = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return tuple(np.flatnonzero(np.unpackbits(content, bitorder="little")).tolist())
