"""What a launch can reach of a program's memory: :func:`find_reached_memory`."""

from collections.abc import Iterable
from dataclasses import field

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.engine.arena import Region
from gpa_lsp.emulator.resident import ResidentMemory
from gpa_lsp.launches.model import TextureInput
from gpa_lsp.programs.messages import LaunchRequest
from gpa_lsp.programs.session import KernelTally

_POINTER_BYTES = 8
_TABLE = "_ZTV"
_TABLE_START_BYTES = 16
"""Source: Itanium C++ ABI, virtual table layout: offset to top and type information stand before the functions."""

Words = npt.NDArray[np.uint64]


@dataclass(slots=True, kw_only=True)
class ReachedMemory:
    """Arrays, variables and textures.

    Attributes:
        arrays: base of an allocation or variable → its bytes.
        names: base → name, of variables.
        textures: by handle.
        has_addresses: arrays or variables hold addresses or handles of others.
    """

    arrays: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    textures: dict[int, TextureInput] = field(default_factory=dict)
    has_addresses: bool = False

    @property
    def size_bytes(self) -> int:
        """Of allocations and texels; variables are small."""
        arrays = sum(size for base, size in self.arrays.items() if base not in self.names)
        return arrays + sum(one.texels.nbytes for one in self.textures.values())


def find_reached_memory(tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> ReachedMemory:
    """Follow addresses and handles from the parameters and variables through the arrays.

    An array holds addresses where one of its words, aligned, is that of the first byte of something: addresses inside an allocation are too easily
    numbers. In arrays that hold addresses, those inside count, too.

    Args:
        tally: the kernel.
        request: its launch.
        memory: as it is before the launch.
    """
    found = ReachedMemory()
    regions = _Regions(tally, memory)
    for name, region in tally.module.resident.variables.items():
        if is_kept(name, region) and tally.module.resident.is_changed(name):
            found.arrays[region.base], found.names[region.base] = region.size_bytes, name
    parameters = _list_parameters(tally, request)
    found.textures |= regions.list_textures(parameters)
    first = regions.list_reached(parameters)
    found.has_addresses = any(base in regions.names for base in first)
    waiting = [*found.arrays.items(), *first.items()]
    found.arrays |= first
    while waiting:
        base, size = waiting.pop()
        words = _read_words(memory, base, size)
        textures, held = regions.list_textures(words), regions.list_held(words)
        found.has_addresses |= bool(textures or held)
        found.textures |= textures
        for other, other_size in held.items():
            if other not in found.arrays:
                found.arrays[other] = other_size
                waiting.append((other, other_size))
    found.names |= {base: regions.names[base] for base in found.arrays if base in regions.names}
    return found


def is_kept(name: str, region: Region) -> bool:
    """Whether a variable is one of the program's, and no text or table of the compiler's."""
    return region.is_array and not name.startswith(("$", "__unnamed"))


class _Regions:
    """Everything an address can be of: allocations, variables, and what device code allocated.

    Attributes:
        names: base → name, of variables.
    """

    def __init__(self, tally: KernelTally, memory: ResidentMemory) -> None:
        variables = tally.module.resident.variables
        self.names = {region.base: name for name, region in variables.items()}
        sizes = {region.base: region.size_bytes for region in (*memory.allocations, *variables.values())}
        heap = memory.heap
        if heap.end > heap.region.base:
            sizes[heap.region.base] = heap.end - heap.region.base
        # Objects with virtual functions point behind the first two words of their table.
        tables = [base + _TABLE_START_BYTES for base, name in self.names.items() if name.startswith(_TABLE)]
        self._whole = np.array([*sizes, *tables, *heap.list_pieces()], np.uint64)
        self._bases = np.array(sorted(sizes), np.uint64)
        self._sizes = np.array([sizes[int(base)] for base in self._bases], np.uint64)
        self._textures = {handle: one.source for handle, one in memory.textures.items()}
        self._handles = np.array(sorted(memory.textures), np.uint64)

    def list_textures(self, words: Words) -> dict[int, TextureInput]:
        """Textures whose handle is among the words."""
        near = _find_between(words, self._handles)
        return {int(one): self._textures[int(one)] for one in self._handles[np.isin(self._handles, near)]}

    def list_reached(self, words: Words) -> dict[int, int]:
        """Regions that a word points into: base → bytes."""
        if not len(self._bases):
            return {}
        place = np.searchsorted(self._bases, words, side="right").astype(np.int64) - 1
        near = words[place >= 0]
        place = place[place >= 0]
        chosen = np.unique(place[near - self._bases[place] < self._sizes[place]])
        return {int(self._bases[one]): int(self._sizes[one]) for one in chosen}

    def list_held(self, words: Words) -> dict[int, int]:
        """Regions that words of an array point into, where one of them is the address of a whole one."""
        if bool(np.isin(self._whole, _find_between(words, self._whole)).any()):
            return self.list_reached(words)
        return {}


def _find_between(words: Words, wanted: Words) -> Words:
    """The words from the least to the greatest of those that are looked for: of most arrays none, and to search all would take long."""
    if not len(wanted):
        return words[:0]
    least, greatest = wanted.min(), wanted.max()
    near: Words = words[words - least <= greatest - least]
    return near


def _list_parameters(tally: KernelTally, request: LaunchRequest) -> Words:
    """The words of the parameters, and of their members."""
    words: list[int] = []
    for parameter in tally.facts.kernel.parameters:
        content = request.parameters[parameter.offset_bytes : parameter.offset_bytes + parameter.size_bytes]
        words += _split(content)
    return np.array(words, np.uint64)


def _split(content: bytes) -> Iterable[int]:
    for place in range(0, len(content) - _POINTER_BYTES + 1, _POINTER_BYTES):
        yield int.from_bytes(content[place : place + _POINTER_BYTES], "little")


def _read_words(memory: ResidentMemory, base: int, size: int) -> Words:
    return memory.bytes_at(base, size)[: size // _POINTER_BYTES * _POINTER_BYTES].view(np.uint64)
