"""Textures that a program makes of its memory: :func:`describe_texture`."""

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.model import TextureInput
from gpa_lsp.execution.programs.messages import TextureRequest

_ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
# Channel kind, as ``cudaChannelFormatKind``, and bytes → the type
_ELEMENTS = {
    (0, 1): ScalarType.S8, (0, 2): ScalarType.S16, (0, 4): ScalarType.S32,
    (1, 1): ScalarType.U8, (1, 2): ScalarType.U16, (1, 4): ScalarType.U32,
    (2, 2): ScalarType.F16, (2, 4): ScalarType.F32,
}  # fmt: skip


def describe_texture(wanted: TextureRequest, name: str) -> TextureInput | None:
    """The texture, for the emulator; None where its format is not emulated."""
    element = _ELEMENTS.get((wanted.channel_kind, wanted.channel_bytes))
    width, height, depth = wanted.size
    if element is None or not 1 <= wanted.channels <= 4 or width < 1 or wanted.address_mode >= len(_ADDRESS_MODES):
        return None
    shape = max(depth, 1), max(height, 1), width, wanted.channels
    return TextureInput(
        name=name,
        buffer=0,
        texels=np.broadcast_to(np.zeros(1, element.natural_dtype), shape),
        element=element,
        dimensions=3 if depth and not wanted.is_layered else 2 if height else 1,
        is_linear_filter=wanted.is_linear_filter,
        address_mode=_ADDRESS_MODES[wanted.address_mode],
        is_normalized=wanted.is_normalized,
        reads_normalized=wanted.reads_normalized,
        parameter_offset_bytes=None,
    )
