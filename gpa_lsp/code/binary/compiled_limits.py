"""What an image says about the bounds a kernel was compiled under, and which accesses to local memory are spills."""

import struct
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.elf import read_elf
from gpa_lsp.code.binary.elf_attributes import Attribute, walk_records
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin
from gpa_lsp.foundation.distinct import find_distinct

_INFO_PREFIX = ".nv.info."
_SPILL_KIND = 1
_THREE = struct.Struct("<III")
_PAIR_BYTES = 8


class CompiledLimits(Struct, frozen=True, kw_only=True):
    """The bounds of one function."""

    # threads of a block that ``__launch_bounds__`` or ``__block_size__`` names; None without one
    most_threads: int | None = None
    is_block_required: bool = False  # blocks must be of exactly that size
    register_cap: int | None = None  # registers per thread the compiler was allowed; None when not stored
    # pc offsets of the stores and reloads of spilled registers, ascending. Empty where nothing was spilled, and in images of compilers that do not
    # say (before CUDA 13).
    spill_offsets: tuple[int, ...] = ()


def read_compiled_limits(cubin: Cubin) -> Mapping[str, CompiledLimits]:
    """The bounds of the functions of an image, by mangled name; functions without any are missing.

    Args:
        cubin: the image.

    Raises:
        InputError: the image is damaged.
    """
    elf = read_elf(cubin.image, path=cubin.path)
    found: dict[str, CompiledLimits] = {}
    for index, name in enumerate(elf.section_names):
        function = name.removeprefix(_INFO_PREFIX)
        if function != name and function in cubin.functions:
            size = cubin.functions[function].size_bytes
            found[function] = _read_limits(elf.section_bytes(index), size, place=elf.place(index))
    return found


def _read_limits(data: bytes, size_bytes: int, *, place: str) -> CompiledLimits:
    most_threads: int | None = None
    is_required = False
    cap: int | None = None
    spills: tuple[int, ...] = ()
    for attribute, value, payload in walk_records(data, path=None, place=place):
        if attribute in (Attribute.MAX_THREADS, Attribute.REQUIRED_THREADS) and len(payload) >= _THREE.size:
            x, y, z = _THREE.unpack_from(payload)
            # What must be counts more than what may be.
            if attribute == Attribute.REQUIRED_THREADS or not is_required:
                most_threads = x * max(y, 1) * max(z, 1) or None
            is_required = is_required or attribute == Attribute.REQUIRED_THREADS
        elif attribute == Attribute.REGISTER_CAP:
            cap = value or None
        elif attribute == Attribute.ANNOTATIONS:
            spills = _read_spills(payload, size_bytes)
    return CompiledLimits(
        most_threads=most_threads, is_block_required=is_required, register_cap=cap, spill_offsets=spills
    )


def _read_spills(payload: bytes, size_bytes: int) -> tuple[int, ...]:
    """Offsets that lie outside the function, or between instructions, are damage and passed over."""
    pairs = np.frombuffer(payload, dtype="<u4", count=len(payload) // _PAIR_BYTES * 2).reshape(-1, 2)
    offsets = pairs[pairs[:, 0] == _SPILL_KIND, 1].astype(np.int64)
    kept = offsets[(offsets < size_bytes) & (offsets % INSTRUCTION_BYTES == 0)]
    return tuple(find_distinct(kept).tolist())
