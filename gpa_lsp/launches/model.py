"""What an emulation starts from: :class:`LaunchInputs`, parameter bytes, buffers, and where their addresses go."""

from dataclasses import field

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.model import Space
from gpa_lsp.ptx.scalar_types import ScalarType

FIRST_ADDRESS = 0x7_0000_0000
"""Of memory: arrays can be described to lie from here on. What is below is nobody's, so that null pointers are found."""
MOST_SPAN_BYTES = 64 << 30
"""Of address space from there on; memory is taken as it is touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferInput:
    """An array in global memory.

    Attributes:
        name: of the argument.
        space: GLOBAL, or TEXTURE for what is read through textures alone.
        element: type of its elements.
        data: one dimension, of the element's natural dtype, writable and nobody else's.
        argument: index of the kernel's parameter whose pointer goes here; None for a texture reference's.
        is_zero: all elements are zero and no page of them was touched, so that they need not be copied.
        base_address: where it has to lie; None for anywhere.
    """

    name: str
    space: Space
    element: ScalarType
    data: npt.NDArray[np.generic] = field(repr=False)
    argument: int | None
    is_zero: bool = False
    base_address: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerSlot:
    """Eight bytes of the parameters that hold an address.

    Attributes:
        parameter_offset_bytes: from the start of the parameters.
        buffer: index of the buffer.
        offset_bytes: added to the address of its first byte.
    """

    parameter_offset_bytes: int
    buffer: int
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextureInput:
    """A texture or surface.

    Attributes:
        name: of the parameter, of the texture reference, or of the variable that holds the handle.
        buffer: index of the buffer with its texels.
        texels: [depth, height, width, channels], a view of the buffer; height and depth are 1 below two and three dimensions. Layers take the
            place of depth.
        element: type of a channel.
        dimensions: 1, 2 or 3.
        is_linear_filter: bilinear filtering, else the nearest texel.
        address_mode: ``clamp``, ``border``, ``wrap`` or ``mirror``.
        is_normalized: coordinates run from 0 to 1.
        reads_normalized: integer texels are read as fractions.
        parameter_offset_bytes: where the handle goes in the parameters; None for a texture reference, a variable of the module, and for a
            texture whose handle memory alone holds.
        handle: that it must have; None for any.
    """

    name: str
    buffer: int
    texels: npt.NDArray[np.generic] = field(repr=False)
    element: ScalarType
    dimensions: int
    is_linear_filter: bool
    address_mode: str
    is_normalized: bool
    reads_normalized: bool
    parameter_offset_bytes: int | None
    handle: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInputs:
    """All of it.

    Attributes:
        parameters: of the kernel, zero where addresses and handles go.
        buffers: in the order of the arguments.
        pointers: where their addresses go.
        textures: where their handles go.
        variables: name of a module variable → the elements it begins with, of their natural dtype, at most as many bytes as it has.
        variable_addresses: of those that have to lie somewhere.
    """

    parameters: bytes = field(repr=False)
    buffers: tuple[BufferInput, ...]
    pointers: tuple[PointerSlot, ...]
    textures: tuple[TextureInput, ...] = ()
    variables: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict, repr=False)
    variable_addresses: dict[str, int] = field(default_factory=dict)
