"""Where the registers of a kernel lie in the frame of each warp: :class:`FrameLayout`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.blocks import PtxBlocks
from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.execution.emulator.compiled.model import LANES
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction
from gpa_lsp.execution.emulator.engine.lives import Lives
from gpa_lsp.execution.emulator.engine.values import Value

_SCRATCH = 8
_SCRATCH_BYTES = 8 * LANES
_ALIGNMENT = 32


class FrameLayout:
    """Places of values in a frame, and constants, which all warps share.

    Registers that live within one basic block share their places with others; those that may be read before they are written hold zeros.

    Args:
        function: the kernel.
        bound: the kernel, bound.
        blocks: of the function.
        lives: how long its registers live.

    Attributes:
        columns: special registers that stay the same for each lane, name and axis → place.
        frame_bytes: of a frame.
        zeroed: bytes of it that are zeros before a warp begins; what is behind them is written before it is read.
    """

    def __init__(self, function: PtxFunction, bound: BoundFunction, blocks: PtxBlocks, lives: Lives) -> None:
        self._bound = bound
        self._places: dict[int, int] = {}
        self._constants: list[bytes] = []
        self._constant_places: dict[bytes, int] = {}
        self._constant_bytes = 0
        self.columns: dict[tuple[str, str], int] = {}
        self._scratch = 0
        self.frame_bytes = _SCRATCH * _SCRATCH_BYTES
        registers = len(function.registers)
        wide = {slot for slots in blocks.live_in for slot in slots}
        for segment in bound.segments:
            wide.update(slot for slot in segment.live_in if slot >= registers)
        wide.add(registers)  # the carry flag
        self._local = _find_local(blocks, lives) - wide
        wide.update(slot for slots in (*lives.written, *lives.dead_after) for slot in slots if slot not in self._local)
        for slot in sorted(wide):
            if slot not in bound.constants:
                self._places[slot] = self._take(bound.dtypes[slot].itemsize)
        self.zeroed = slice(_SCRATCH * _SCRATCH_BYTES, self.frame_bytes)
        self._place_local(blocks, lives)

    def _take(self, itemsize: int) -> int:
        place = self.frame_bytes
        self.frame_bytes += -(-itemsize * LANES // _ALIGNMENT) * _ALIGNMENT
        return place

    def _place_local(self, blocks: PtxBlocks, lives: Lives) -> None:
        """Registers of one block each, which take the places of those that are dead."""
        free: dict[int, list[int]] = {}
        for first, last in zip(blocks.first, blocks.last, strict=True):
            ends = {slot: index for index in range(first, last + 1) for slot in lives.dead_after[index]}
            for index in range(first, last + 1):
                for slot in lives.written[index]:
                    if slot not in self._places:
                        size = self._bound.dtypes[slot].itemsize
                        self._places[slot] = free[size].pop() if free.get(size) else self._take(size)
                for slot in lives.dead_after[index]:
                    if slot in self._local and ends[slot] == index:
                        free.setdefault(self._bound.dtypes[slot].itemsize, []).append(self._places[slot])

    def find(self, slot: int) -> int | None:
        """The place of a slot; a constant's is complemented. None where it has none beyond its instruction."""
        if slot in self._bound.constants:
            return self.constant(self._bound.template[slot])
        return self._places.get(slot)

    def constant(self, value: Value) -> int:
        """The place of a constant, complemented."""
        return self._keep(value.tobytes() * LANES)

    def table(self, numbers: list[int]) -> int:
        """The place of numbers of 32 bits among the constants, complemented."""
        return self._keep(np.array(numbers, np.int32).tobytes())

    def _keep(self, raw: bytes) -> int:
        found = self._constant_places.get(raw)
        if found is None:
            found = self._constant_places[raw] = ~self._constant_bytes
            padded = raw.ljust(-(-len(raw) // _ALIGNMENT) * _ALIGNMENT, b"\0")
            self._constants.append(padded)
            self._constant_bytes += len(padded)
        return found

    def column(self, name: str, axis: str) -> int:
        """The place of a special register that stays the same for each lane: uint32."""
        key = (name, axis)
        if key not in self.columns:
            self.columns[key] = self._take(4)
        return self.columns[key]

    def begin_scratch(self) -> None:
        """All scratch is free again."""
        self._scratch = 0

    def scratch(self) -> int | None:
        """A place for one instruction; None where none is left."""
        if self._scratch == _SCRATCH:
            return None
        self._scratch += 1
        return (self._scratch - 1) * _SCRATCH_BYTES

    def build_constants(self) -> npt.NDArray[np.uint8]:
        """All constants, as the core reads them."""
        return np.frombuffer(b"".join(self._constants).ljust(_SCRATCH_BYTES, b"\0"), np.uint8)

    def dtype(self, slot: int) -> "np.dtype[Any]":
        """Of what a slot holds."""
        return self._bound.dtypes[slot]


def _find_local(blocks: PtxBlocks, lives: Lives) -> set[int]:
    """Slots that instructions of one block alone know."""
    owners: dict[int, int] = {}
    for block, (first, last) in enumerate(zip(blocks.first, blocks.last, strict=True)):
        for index in range(first, last + 1):
            for slot in (*lives.written[index], *lives.dead_after[index]):
                owners[slot] = block if owners.get(slot, block) == block else -1
    return {slot for slot, block in owners.items() if block >= 0}
