"""How long registers live within basic blocks: :func:`find_lives`."""

from msgspec import Struct

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxFunction, list_reads, list_writes
from gpa_lsp.foundation.shared_facts import Remembered

ENDING = frozenset({"bra", "brx", "ret", "exit", "trap", "call", "bar", "barrier"})  # Opcodes that end a segment
# Opcodes before which lanes of a warp may have to wait for each other: a segment ends before them
MEETING = frozenset(
    {"shfl", "vote", "match", "redux", "mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix", "elect"}
)


class Lives(Struct, frozen=True, kw_only=True):
    """Where registers live."""

    live_at: dict[int, frozenset[int]]  # slots that are live before an instruction, for those where a segment may begin
    written: list[tuple[int, ...]]  # for each instruction slots that it writes
    dead_after: list[tuple[int, ...]]  # for each instruction slots that it reads or writes and nobody reads after it
    most_live: int  # slots that are live at once


@Remembered
def find_lives(function: PtxFunction) -> Lives:
    """Go through each block from its end."""
    blocks = find_blocks(function)
    live_at: dict[int, frozenset[int]] = {}
    written: list[tuple[int, ...]] = [()] * len(function.instructions)
    dead_after: list[tuple[int, ...]] = [()] * len(function.instructions)
    most = 0
    for block, (first, last) in enumerate(zip(blocks.first, blocks.last, strict=True)):
        alive: set[int] = set()
        for other in blocks.successors[block]:
            alive.update(blocks.live_in[other])
        for index in range(last, first - 1, -1):
            instruction = function.instructions[index]
            reads, writes = list_reads(instruction), list_writes(instruction)
            written[index] = writes
            most = max(most, len(alive))
            if instruction.opcode in ENDING and index < last:
                live_at[index + 1] = frozenset(alive)
            dead_after[index] = tuple(slot for slot in dict.fromkeys((*reads, *writes)) if slot not in alive)
            if instruction.guard is None:
                alive.difference_update(writes)
            else:
                alive.update(writes)
            alive.update(reads)
            if instruction.opcode in MEETING:
                live_at[index] = frozenset(alive)
        live_at[first] = frozenset(alive)
    return Lives(live_at=live_at, written=written, dead_after=dead_after, most_live=most)
