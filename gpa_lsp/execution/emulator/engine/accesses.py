"""What is fixed of a memory instruction: :class:`Access`; and where its lanes go: :data:`Place`."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.values import Value

Place = tuple[tuple[Value, ...], Any, Value, Value]
"""Views, index, mask, bad lanes.

The views are arrays of the access's element type, one per element of a vector; ``view[index]`` is the element of each lane. The index is an
``int`` when all lanes go to one address, else int64[n], valid (but meaningless) for lanes outside the mask. The mask, bool[n] or None for all
lanes, has the lanes that may access; the bad ones, bool[n] or None for none, wanted to and cannot: they read zero and store nothing."""


class AddressMemo:
    """What the addresses in a register came to last: accesses of the same register with different offsets need not work it out again.

    Attributes:
        users: accesses that share it.
        low: lowest address of the lanes that access.
        high: highest one.
        bits: those that are set in any distance from the lowest one.
        index: int64[n], distances in elements; for private memory with the start of each lane's own added.
    """

    __slots__ = ("_address", "_mask", "_shift", "bits", "high", "index", "low", "users")

    def __init__(self, shift: int) -> None:
        self.users = 0
        self._shift = shift
        self._address: Value = None
        self._mask: Value = None
        self.low = 0
        self.high = 0
        self.bits = 0
        self.index: Value = None

    def update(self, address: Value, mask: Value, base: Value) -> bool:
        """Work it out, unless it is known.

        Args:
            mask: bool[n]; None for all lanes.
        """
        if address is self._address and mask is self._mask:
            return True
        lane = 0 if mask is None else int(mask.argmax())
        if mask is not None and not mask[lane]:
            return False
        first = address[lane]
        distance = (address - first).view(np.dtype(f"i{address.dtype.itemsize}"))
        if mask is not None:
            distance = np.where(mask, distance, distance.dtype.type(0))
        lowest = int(distance.min())
        if lowest:
            distance = distance - distance.dtype.type(lowest)
        self.low = int(first) + lowest
        self.bits = int(np.bitwise_or.reduce(distance))
        self.high = self.low + int(distance.max())
        index = distance.astype(np.int64, copy=distance.dtype.itemsize == 8 and self._shift > 0)
        if self._shift:
            index >>= self._shift
        if base is not None:
            index = index + base
        self.index, self._address, self._mask = index, address, mask
        return True


class Access:
    """A memory instruction, and the region of global memory it went to last.

    Attributes:
        instruction: static instruction.
        kind: what it does.
        space: as it says.
        dtype: of an element.
        elements: of a vector; 1 for others.
        offset_bytes: added to the address by the instruction.
        bytes: of all elements.
        shift: log2 of the element's bytes.
        align_mask: bits of an address that must be 0.
        is_strong: volatile, relaxed, acquire, release and atomic accesses: they do not race with each other.
        memo: of the register its address is in; None when there is none.
        view_start: where the views of the place found last begin in the block's shared memory of the batch, in elements.
        guess_base: address of the region it went to last, less the offset.
        guess_start: address of that region.
        guess_space: of that region.
        guess_last: last offset in the region at which the access fits; -1 for none.
        guess_views: as in :data:`Place`.
    """

    __slots__ = (
        "align_mask", "bytes", "dtype", "elements", "guess_base", "guess_last", "guess_space", "guess_start", "guess_views",
        "instruction", "is_strong", "kind", "memo", "offset_bytes", "shift", "space", "view_start", "wide_offset",
    )  # fmt: skip

    def __init__(
        self,
        *,
        instruction: int,
        kind: AccessKind,
        space: Space,
        dtype: "np.dtype[Any]",
        elements: int = 1,
        offset_bytes: int = 0,
        is_strong: bool = False,
    ) -> None:
        self.instruction = instruction
        self.kind = kind
        self.space = space
        self.dtype = dtype
        self.elements = elements
        self.offset_bytes = offset_bytes
        self.wide_offset = np.uint64(offset_bytes % (1 << 64))
        self.bytes = dtype.itemsize * elements
        self.shift = dtype.itemsize.bit_length() - 1
        self.align_mask = self.bytes - 1
        self.is_strong = is_strong
        self.memo: AddressMemo | None = None
        self.view_start = 0
        self.guess_base = np.uint64(0)
        self.guess_start = 0
        self.guess_space = space
        self.guess_last = -1
        self.guess_views: tuple[Value, ...] = ()
