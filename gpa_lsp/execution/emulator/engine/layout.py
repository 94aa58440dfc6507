"""The register file of one function: :class:`Layout` gives every operand a slot, :func:`find_lives` finds how long it is live."""

from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import Immediate, PtxFunction, list_reads, list_writes
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.geometry import BOOL, U64, Value
from gpa_lsp.foundation.records import remembered

Piece = tuple[int, int]  # Offset and bytes of a part of a parameter


class Layout:
    """Slots of a function: its registers first, then parts of parameters.

    Args:
        function: it.

    Attributes:
        dtypes: storage dtype of each slot.
        pieces: parts of parameters that are read or written, by variable: part → slot.
        carry: slot of the carry flag.
    """

    def __init__(self, function: PtxFunction) -> None:
        self.dtypes = [U64 if kind is ScalarType.B128 else kind.storage_dtype for kind in function.registers]
        self.pieces: dict[str, dict[Piece, int]] = {}
        self._stored: dict[str, dict[Piece, int]] = {}
        self._returned: dict[str, dict[Piece, int]] = {}
        self.carry = self._add(BOOL)

    def _add(self, dtype: "np.dtype[Any]") -> int:
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def store_piece(self, variable: str, piece: Piece) -> None:
        """Note a part of an argument (or result) that is stored now."""
        self._stored.setdefault(variable, {})[piece] = self._find(variable, piece)

    def take_stored(self, variable: str) -> dict[Piece, int]:
        """Parts of an argument stored since the call before: those a call hands over."""
        return self._stored.pop(variable, {})

    def load_piece(self, variable: str, piece: Piece) -> None:
        """Note a part of a parameter (or of what a call returned) that is read now."""
        slot = self._find(variable, piece)
        if variable in self._returned:
            self._returned[variable][piece] = slot

    def expect_returned(self, variable: str) -> dict[Piece, int]:
        """Parts of a call's result: filled as the instructions that read them are bound."""
        found = self._returned[variable] = {}
        return found

    def _find(self, variable: str, piece: Piece) -> int:
        parts = self.pieces.setdefault(variable, {})
        if piece not in parts:
            parts[piece] = self._add(np.dtype(f"u{piece[1]}"))
        return parts[piece]


def make_constant(literal: Immediate, kind: ScalarType) -> Value:
    """A literal as a value of a type, in its natural dtype; integers wrap.

    Raises:
        KeyError: the type has no dtype.
    """
    dtype = kind.natural_dtype
    if kind is ScalarType.PRED:
        return np.bool_(literal.value != 0)
    if kind in (ScalarType.F32, ScalarType.F64):
        if literal.bits is not None and literal.width_bits == 8 * dtype.itemsize:
            return np.array([literal.bits], np.dtype(f"u{dtype.itemsize}")).view(dtype)[0]
        with np.errstate(all="ignore"):
            return dtype.type(literal.value)
    if literal.bits is not None:
        bits = literal.bits
    elif isinstance(literal.value, float):
        bits = int(np.array([literal.value], np.float64).view(np.uint64)[0])
    else:
        bits = literal.value
    return np.array([bits % (1 << 8 * dtype.itemsize)], np.dtype(f"u{dtype.itemsize}")).view(dtype)[0]


ENDING = frozenset({"bra", "brx", "ret", "exit", "trap", "call", "bar", "barrier"})  # Opcodes that end a segment
# Opcodes before which lanes of a warp may have to wait for each other: a segment ends before them
MEETING = frozenset(
    {"shfl", "vote", "match", "redux", "mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix", "elect"}
)


class Lives(Struct, frozen=True, kw_only=True):
    """Liveness of registers."""

    live_at: dict[int, frozenset[int]]  # slots that are live before an instruction, for those where a segment may begin
    written: list[tuple[int, ...]]  # for each instruction slots that it writes
    # for each instruction slots that it reads or writes and that are not read after it
    dead_after: list[tuple[int, ...]]
    most_live: int  # slots that are live at once


@remembered
def find_lives(function: PtxFunction) -> Lives:
    """Liveness of a function's registers, found block by block from its end."""
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
