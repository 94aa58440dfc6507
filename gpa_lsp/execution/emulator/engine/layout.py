"""The register file of one function: :class:`Layout` gives every operand a slot, :func:`find_lives` finds how long it is live."""

from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import Immediate, PtxFunction, list_reads, list_writes
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.values import BOOL, U64, Value
from gpa_lsp.foundation.records import remembered

Piece = tuple[int, int]  # Offset and bytes of a part of a parameter


class Layout:
    """Slots of a function: its registers first, then constants, temporaries and parts of parameters.

    Attributes:
        template: what a register file begins with: zeros and the constants.
        dtypes: storage dtype of each slot.
        pieces: parts of parameters that are read or written, by variable: part → slot.
        carry: slot of the carry flag.
    """

    def __init__(self, function: PtxFunction) -> None:
        self.template: list[Value] = []
        self.dtypes: list[np.dtype[Any]] = []
        self.pieces: dict[str, dict[Piece, int]] = {}
        self._constants: dict[tuple[bytes, str], int] = {}
        for kind in function.registers:
            self.add(U64 if kind is ScalarType.B128 else kind.storage_dtype)
        self.carry = self.add(BOOL)

    def add(self, dtype: "np.dtype[Any]") -> int:
        """A new slot."""
        self.template.append(dtype.type(0))
        self.dtypes.append(dtype)
        return len(self.template) - 1

    def constant(self, value: Value) -> int:
        """The slot of a uniform value."""
        key = (value.tobytes(), value.dtype.str)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.add(value.dtype)
            self.template[found] = value
        return found

    def piece(self, variable: str, offset_bytes: int, size_bytes: int) -> int:
        """The slot of a part of a parameter variable."""
        parts = self.pieces.setdefault(variable, {})
        key = (offset_bytes, size_bytes)
        if key not in parts:
            parts[key] = self.add(np.dtype(f"u{size_bytes}"))
        return parts[key]

    @property
    def constants(self) -> tuple[int, ...]:
        """Slots of uniform values."""
        return tuple(self._constants.values())

    @property
    def always_live(self) -> tuple[int, ...]:
        """Slots of all parts of parameters, which may be read at any time."""
        return tuple(slot for parts in self.pieces.values() for slot in parts.values())


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
    dead_after: list[
        tuple[int, ...]
    ]  # for each instruction slots that it reads or writes and that are not read after it
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
