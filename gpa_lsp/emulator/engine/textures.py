"""Textures and surfaces that lanes read by a handle: :class:`Texture`."""

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.engine.arena import Region
from gpa_lsp.launches.model import TextureInput

TEXTURE_HANDLE_BASE = 0x5_0000_0000
"""Handle of the first texture; the others follow every 64. They are no addresses."""
TEXTURE_HANDLE_STEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Texture:
    """A texture with its memory.

    Attributes:
        source: as described.
        region: of its texels in global memory.
    """

    source: TextureInput
    region: Region
