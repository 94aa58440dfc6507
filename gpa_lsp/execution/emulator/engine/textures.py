"""Textures and surfaces that lanes read by a handle: :class:`Texture`."""

from msgspec import Struct

from gpa_lsp.execution.emulator.engine.arena import Region
from gpa_lsp.execution.launches.model import TextureInput

TEXTURE_HANDLE_BASE = 0x5_0000_0000  # Handle of the first texture; the others follow every 64. They are no addresses.
TEXTURE_HANDLE_STEP = 64


class Texture(Struct, frozen=True, kw_only=True):
    """A texture with its memory."""

    source: TextureInput  # as described
    region: Region  # of its texels in global memory
