"""Inputs of an emulation: :class:`LaunchInputs`, parameter bytes, buffers, and the places of their addresses."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.records import ColumnRecord

# Of memory: arrays can be described to lie from here on. What is below is nobody's, so that null pointers are found.
FIRST_ADDRESS = 0x7_0000_0000
MOST_SPAN_BYTES = 64 << 30  # Of address space from there on; memory is taken as it is touched


class BufferInput(ColumnRecord, frozen=True, kw_only=True):
    """An array in global memory."""

    name: str  # of the argument
    space: Space  # GLOBAL, or TEXTURE for what is read through textures alone
    element: ScalarType  # type of its elements
    data: npt.NDArray[np.generic]  # one dimension, of the element's natural dtype, writable and nobody else's
    argument: int | None  # index of the kernel's parameter whose pointer goes here; None for a texture reference's
    is_zero: bool = False  # all elements are zero and no page of them was touched, so that they need not be copied
    base_address: int | None = None  # where it has to lie; None for anywhere


class PointerSlot(Struct, frozen=True, kw_only=True):
    """Eight bytes of the parameters that hold an address."""

    parameter_offset_bytes: int  # from the start of the parameters
    buffer: int  # index of the buffer
    offset_bytes: int = 0  # added to the address of its first byte


class TextureInput(ColumnRecord, frozen=True, kw_only=True):
    """A texture or surface."""

    name: str  # of the parameter, of the texture reference, or of the variable that holds the handle
    buffer: int  # index of the buffer with its texels
    # [depth, height, width, channels], a view of the buffer; height and depth are 1 below two and three dimensions. Layers take the place of depth.
    texels: npt.NDArray[np.generic]
    element: ScalarType  # type of a channel
    dimensions: int  # 1, 2 or 3
    is_linear_filter: bool  # bilinear filtering, else the nearest texel
    address_mode: str  # ``clamp``, ``border``, ``wrap`` or ``mirror``
    is_normalized: bool  # coordinates run from 0 to 1
    reads_normalized: bool  # integer texels are read as fractions
    # where the handle goes in the parameters; None for a texture reference, a variable of the module, and for a texture whose handle memory alone
    # holds
    parameter_offset_bytes: int | None
    handle: int | None = None  # that it must have; None for any


class LaunchInputs(ColumnRecord, frozen=True, kw_only=True):
    """Parameters, buffers and textures of a launch."""

    parameters: bytes  # of the kernel, zero where addresses and handles go
    buffers: tuple[BufferInput, ...]  # in the order of the arguments
    pointers: tuple[PointerSlot, ...]  # where their addresses go
    textures: tuple[TextureInput, ...] = ()  # where their handles go
    # name of a module variable → the elements it begins with, of their natural dtype, at most as many bytes as it has
    variables: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    variable_addresses: dict[str, int] = field(default_factory=dict)  # of those that have to lie somewhere


_POINTER_BYTES = 8

Bytes = npt.NDArray[np.uint8]


class MovedMemory:
    """Translation of addresses in recorded memory to those of a replay.

    Memory holds addresses where one of its words, aligned, is that of the first byte of an array: addresses inside one are too easily numbers. In
    memory that holds addresses, those inside count, too.

    Args:
        moves: address → bytes, and the new address.
    """

    def __init__(self, moves: Mapping[int, tuple[int, int]]) -> None:
        bases = sorted(moves)
        self._bases = np.array(bases, np.uint64)
        self._sizes = np.array([moves[base][0] for base in bases], np.uint64)
        self._added = np.array([moves[base][1] for base in bases], np.uint64) - self._bases

    def move_content(self, data: Bytes) -> Bytes:
        """An array with its addresses translated; itself if it holds none."""
        words = data[: data.nbytes // _POINTER_BYTES * _POINTER_BYTES].view(np.uint64)
        return self.move_parameters(data) if bool(np.isin(words, self._bases).any()) else data

    def move_parameters(self, data: Bytes) -> Bytes:
        """The same for data in which addresses inside arrays are expected, too."""
        whole = data.nbytes // _POINTER_BYTES * _POINTER_BYTES
        if not len(self._bases) or not whole:
            return data
        words = data[:whole].view(np.uint64)
        place = np.searchsorted(self._bases, words, side="right").astype(np.int64) - 1
        known = np.maximum(place, 0)
        inside = (place >= 0) & (words - self._bases[known] < self._sizes[known])
        moved = np.where(inside, words + self._added[known], words)
        return np.concatenate([moved.view(np.uint8), data[whole:]])
