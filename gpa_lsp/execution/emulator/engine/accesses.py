"""What is fixed of a memory instruction: :class:`Access`; and where its lanes go: :data:`Place`."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.values import Value

Place = tuple[tuple[Value, ...], Any, Value, Value]
"""Views, index, mask, bad lanes.

The views are arrays of the access's element type, one per element of a vector; ``view[index]`` is the element of each lane. The index, int64[n],
is valid (but meaningless) for lanes outside the mask. The mask, bool[n] or None for all
lanes, has the lanes that may access; the bad ones, bool[n] or None for none, wanted to and cannot: they read zero and store nothing."""


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
        guess_base: address of the region it went to last, less the offset.
        guess_space: of that region.
        guess_last: last offset in the region at which the access fits; -1 for none.
        guess_views: as in :data:`Place`.
    """

    __slots__ = (
        "align_mask", "bytes", "dtype", "elements", "guess_base", "guess_last", "guess_space", "guess_views",
        "instruction", "is_strong", "kind", "offset_bytes", "shift", "space", "wide_offset",
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
        self.guess_base = np.uint64(0)
        self.guess_space = space
        self.guess_last = -1
        self.guess_views: tuple[Value, ...] = ()
