"""Launches kept with their data as descriptions that the emulator reads: :class:`Recorder`.

The heaviest one, or a chosen one, and some at even distances over all of them.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.execution.emulator.resident import ResidentMemory
from gpa_lsp.execution.launches.model import TextureInput
from gpa_lsp.execution.launches.pointer_uses import find_pointer_uses
from gpa_lsp.execution.launches.write_recording import Recording, choose_stem, is_program_variable, write_recording
from gpa_lsp.execution.programs.loaded_code import find_source
from gpa_lsp.execution.programs.messages import LaunchRequest
from gpa_lsp.execution.programs.model import RecordedLaunch
from gpa_lsp.execution.programs.session import KernelTally
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.numbers import format_bytes, format_count_of
from gpa_lsp.foundation.records import ColumnRecord

_POINTER_BYTES = 8
_TABLE = "_ZTV"
# Source: Itanium C++ ABI, virtual table layout: offset to top and type information stand before the functions
_TABLE_START_BYTES = 16

Words = npt.NDArray[np.uint64]


class ReachedMemory(Struct, kw_only=True):
    """Arrays, variables and textures that a launch can reach."""

    arrays: dict[int, int] = field(default_factory=dict)  # base of an allocation or variable → its bytes
    names: dict[int, str] = field(default_factory=dict)  # base → name, of variables
    textures: dict[int, TextureInput] = field(default_factory=dict)  # by handle
    has_addresses: bool = False  # arrays or variables hold addresses or handles of others

    @property
    def size_bytes(self) -> int:
        """Bytes of allocations and texels; variables are small."""
        arrays = sum(size for base, size in self.arrays.items() if base not in self.names)
        return arrays + sum(one.texels.nbytes for one in self.textures.values())


def find_reached_memory(tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> ReachedMemory:
    """Follow addresses and handles from the parameters and variables through the arrays.

    An array holds addresses where one of its words, aligned, is that of the first byte of something: addresses inside an allocation are too easily
    numbers. In arrays that hold addresses, those inside count, too.
    """
    found = ReachedMemory()
    regions = _Regions(tally, memory)
    for name, region in tally.module.resident.variables.items():
        if region.is_array and is_program_variable(name) and tally.module.resident.is_changed(name):
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


class _Regions:
    """All memory that an address can point into: allocations, variables, and device code's heap.

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
    """Words between the least and greatest wanted value; cheap, and empty for most arrays."""
    if not len(wanted):
        return words[:0]
    least, greatest = wanted.min(), wanted.max()
    near: Words = words[words - least <= greatest - least]
    return near


def _list_parameters(tally: KernelTally, request: LaunchRequest) -> Words:
    """The words of the parameters, and of their members."""
    contents = (request.parameters[one.offset_bytes :][: one.size_bytes] for one in tally.facts.kernel.parameters)
    words = (one[: len(one) // _POINTER_BYTES * _POINTER_BYTES] for one in contents)
    return np.frombuffer(b"".join(words), np.uint64)


def _read_words(memory: ResidentMemory, base: int, size: int) -> Words:
    return memory.bytes_at(base, size)[: size // _POINTER_BYTES * _POINTER_BYTES].view(np.uint64)


_TIME_SHARE = 0.1  # Copies of data may take this part of the time a program runs
_MOST_HELD = 4  # Launches of the largest size that are held at once, of all kernels
_MOST_SAMPLES = 8  # Launches of one kernel that are kept to compare them


class _Snapshot(ColumnRecord, frozen=True, kw_only=True):
    """A launch, and the memory it can reach as it was before."""

    request: LaunchRequest
    number: int  # among the launches of its kernel, from 1
    arrays: dict[int, npt.NDArray[np.uint8]]  # Base of the allocation or variable → its bytes
    names: dict[int, str]  # Of variables
    textures: dict[int, TextureInput]  # Handle → the texture, with texels of its own
    has_addresses: bool  # Arrays hold addresses or handles, so that replays keep all addresses
    warp_instructions: int = 0  # executed; known once it has ended

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays and texels."""
        return sum(data.nbytes for data in self.arrays.values()) + sum(
            one.texels.nbytes for one in self.textures.values()
        )


class _Samples(Struct, kw_only=True):
    """Some launches of one kernel, at a stride that doubles as their number grows."""

    stride: int = 1
    kept: list[_Snapshot] = field(default_factory=list)

    def add(self, one: _Snapshot) -> None:
        """Keep a launch if the stride hits it."""
        if (one.number - 1) % self.stride == 0:
            self.kept.append(one)
        while len(self.kept) > _MOST_SAMPLES:
            self.stride *= 2
            self.kept = [other for other in self.kept if (other.number - 1) % self.stride == 0]


class Recorder:
    """Copies what launches read, and keeps that of the heaviest and of some others.

    Args:
        limit_bytes: of the data of one launch, and of all that are kept to compare them.
        chosen: the launch of each kernel to keep instead, from 1; None for the heaviest.
    """

    def __init__(self, limit_bytes: int, chosen: int | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._chosen = chosen
        self._started = time.process_time()
        self._spent_s = 0.0
        self._kept: dict[int, _Snapshot] = {}
        self._samples: dict[int, _Samples] = {}
        self._refused: dict[int, str] = {}
        self._stems: set[str] = set()

    def watch(self, tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> Callable[[int], None] | None:
        """Copy what a launch reads, if time allows; gives a function to call with the launch's warp instructions."""
        key = id(tally)
        if self._chosen not in (None, tally.launches):
            return None
        begun = time.process_time()
        if key in self._kept and self._spent_s > _TIME_SHARE * (begun - self._started):
            return None
        snapshot, room = self._take(tally, request, memory), _MOST_HELD * self._limit_bytes
        self._spent_s += time.process_time() - begun
        if snapshot is None:
            return None

        def judge(warp_instructions: int) -> None:
            before = self._kept.get(key)
            kept = replace(snapshot, warp_instructions=warp_instructions)
            if before is None and _count_bytes(self._kept.values()) + snapshot.size_bytes > room:
                self._refused.setdefault(key, "too much is kept of other kernels")
            elif before is None or warp_instructions > before.warp_instructions:
                self._kept[key] = kept
                self._refused.pop(key, None)
            sampled = [one for samples in self._samples.values() for one in samples.kept]
            if self._chosen is None and _count_bytes(sampled) + snapshot.size_bytes <= self._limit_bytes:
                self._samples.setdefault(key, _Samples()).add(kept)

        return judge

    def _take(self, tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> _Snapshot | None:
        reached = find_reached_memory(tally, request, memory)
        held = reached.size_bytes
        if held > self._limit_bytes:
            limit = format_bytes(self._limit_bytes)
            self._refused.setdefault(
                id(tally), f"its arrays have {format_bytes(held)}; up to {limit} are kept: run a smaller problem"
            )
            return None
        return _Snapshot(
            request=request,
            number=tally.launches,
            arrays={base: memory.bytes_at(base, size).copy() for base, size in reached.arrays.items()},
            names=reached.names,
            textures={handle: replace(one, texels=one.texels.copy()) for handle, one in reached.textures.items()},
            has_addresses=reached.has_addresses,
        )

    def explain(self, tally: KernelTally) -> str:
        """Reason why no launch of a kernel was kept; empty if one was."""
        if id(tally) in self._kept:
            return ""
        is_short = self._chosen is not None and tally.launches < self._chosen
        otherwise = f"it was launched {format_count_of(tally.launches, 'time')}" if is_short else "none ran to its end"
        return self._refused.get(id(tally), otherwise)

    def write(self, tally: KernelTally, folder: Path) -> RecordedLaunch | None:
        """Write a kernel's chosen or heaviest launch and its data into a folder; None if none was kept.

        Raises:
            OSError: it cannot be written.
        """
        kept = self._kept.get(id(tally))
        return None if kept is None else self._write(tally, kept, folder)

    def write_others(self, tally: KernelTally, folder: Path) -> tuple[RecordedLaunch, ...]:
        """Write the launches kept for comparison.

        Raises:
            OSError: they cannot be written.
        """
        kept, samples = self._kept.get(id(tally)), self._samples.get(id(tally), _Samples())
        others = (one for one in samples.kept if kept is None or one.number != kept.number)
        return tuple(self._write(tally, one, folder) for one in others)

    def _write(self, tally: KernelTally, kept: _Snapshot, folder: Path) -> RecordedLaunch:
        folder.mkdir(parents=True, exist_ok=True)
        module = folder / tally.module.path.name
        with atomic_write(module, encoding=None) as stream:
            stream.write(tally.module.content)
        stem = choose_stem(tally.facts.kernel.name, self._stems)
        return RecordedLaunch(
            description=write_recording(_make_recording(tally, kept), folder, stem),
            module=module,
            warp_instructions=kept.warp_instructions,
            number=kept.number,
            source=find_source(tally.facts.kernel),
            is_heaviest=self._chosen is None and self._kept.get(id(tally)) is kept,
        )


def _count_bytes(kept: Iterable[_Snapshot]) -> int:
    return sum(one.size_bytes for one in kept)


def _make_recording(tally: KernelTally, snapshot: _Snapshot) -> Recording:
    kernel, request = tally.facts.kernel, snapshot.request
    return Recording(
        kernel=kernel.name,
        heading=f"Launch {snapshot.number} of this kernel, recorded while the program ran.",
        grid=request.grid,
        block=request.block,
        shared_bytes=request.shared_bytes,
        cluster=request.cluster,
        parameters=kernel.parameters,
        content=request.parameters,
        arrays=snapshot.arrays,
        variables=snapshot.names,
        sources=tally.facts.sources,
        uses=find_pointer_uses(kernel),
        textures=snapshot.textures,
        has_addresses=snapshot.has_addresses,
    )
