"""How much code the instruction caches hold."""

from msgspec import Struct

from gpa_lsp.gpu.arch.model import Architecture


class InstructionCaches(Struct, frozen=True, kw_only=True):
    """Capacity of the first one; code beyond it is fetched again in every iteration of a loop."""

    first_bytes: int  # of a sub-partition's own cache (L0)
    # somebody measured them on this architecture; otherwise they are taken to be as on the nearest one
    is_measured: bool


_KIB = 1024

_MEASURED = {
    (7, 0): InstructionCaches(first_bytes=12 * _KIB, is_measured=True),
    (7, 5): InstructionCaches(first_bytes=16 * _KIB, is_measured=True),
    (8, 0): InstructionCaches(first_bytes=32 * _KIB, is_measured=True),
    (8, 6): InstructionCaches(first_bytes=16 * _KIB, is_measured=True),
}
"""By the capability whose table an architecture has.

Source: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (arXiv:1804.06826) and "Dissecting the NVidia Turing
T4 GPU via Microbenchmarking" (arXiv:1903.07486) for 7.0 and 7.5; YKTian-x2b, AmpereArchViaMicroBenchMark, InstructionCache_Size, for 8.6 (RTX
3060, measured) and 8.0 (as cited there)."""

# Of architectures nobody has measured in public: as on 8.0, the largest known, so that nothing is called too large wrongly
_ASSUMED = InstructionCaches(first_bytes=32 * _KIB, is_measured=False)


def find_instruction_caches(architecture: Architecture | None) -> InstructionCaches:
    """The caches of an architecture.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> find_instruction_caches(find_architecture((8, 8))).first_bytes
    16384
    >>> find_instruction_caches(None).is_measured
    False
    """
    return _ASSUMED if architecture is None else _MEASURED.get(architecture.table_of, _ASSUMED)
