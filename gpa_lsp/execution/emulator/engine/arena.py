"""Global memory: one array of bytes with fixed virtual addresses, :class:`Arena`; marks of the words that launches have touched, :class:`Marks`."""

import math
import mmap
from collections.abc import Callable, Iterable, Sequence
from enum import IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxVariable, Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.faults import Access, FaultLog
from gpa_lsp.execution.emulator.engine.geometry import I64, Value, WarpSet
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.model import DeviceError, FaultKind, PassedEnd
from gpa_lsp.execution.launches.model import FIRST_ADDRESS, MOST_SPAN_BYTES
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes, format_count
from gpa_lsp.foundation.records import ColumnRecord

WORD_BYTES = 4
CHUNK_BYTES = 512  # allocations begin at multiples of it
_WORD_SHIFT, _CHUNK_SHIFT = WORD_BYTES.bit_length() - 1, CHUNK_BYTES.bit_length() - 1


class Mark(IntFlag):
    """Use of a word by a launch; the compiled core has the same bits. Higher bits are free for other uses."""

    READ = 1
    # A word written in part counts as read, too: its other bytes still matter
    WRITTEN = 2


class Marks:
    """Marks of all bytes of a memory.

    Args:
        words: uint8, zeros, one for each :data:`WORD_BYTES`.
        chunks: uint8, zeros, one for each :data:`CHUNK_BYTES`.
    """

    def __init__(self, words: npt.NDArray[np.uint8], chunks: npt.NDArray[np.uint8]) -> None:
        self.words = words
        self.chunks = chunks

    def mark(self, offset: int, size_bytes: int, marks: Mark) -> None:
        """Mark a stretch of the memory; ``offset`` is in bytes from its beginning."""
        if size_bytes > 0:
            last = offset + size_bytes - 1
            self.words[offset >> _WORD_SHIFT : (last >> _WORD_SHIFT) + 1] |= np.uint8(marks)
            self.chunks[offset >> _CHUNK_SHIFT : (last >> _CHUNK_SHIFT) + 1] |= np.uint8(marks)


ARENA_BASE = FIRST_ADDRESS  # Virtual address of the first byte
_ALIGNMENT_BYTES = 512
_POINTER_BYTES = 8
_NULL_BYTES = 4096  # An address below is a member of a structure at 0
_GAP_BYTES = 512
_FARTHEST_BYTES = 1 << 30  # Behind the end of an array, an address may still have been meant for it
# log2 of the bytes that GPUs map at once: an address with an allocation in the same piece of memory is no illegal one
_MAPPED_BITS = np.uint64(21)
# in front of an allocation, where a GPU often has another one
_NEAR_BYTES = np.uint64(64 << 10)


class Region(ColumnRecord, frozen=True, kw_only=True):
    """One buffer."""

    name: str  # of the argument or variable
    space: Space  # GLOBAL, CONST or PARAM
    base: int  # virtual address
    size_bytes: int  # of it
    element_bytes: int = 1  # of one element
    argument: int | None = None  # index of the parameter; None for variables
    dtype: "np.dtype[Any]" = np.dtype(np.uint8)  # of the elements, as the arrays are given back
    is_array: bool = True  # given back at the end


def find_room(size_bytes: int) -> int:
    """Bytes from the beginning of a region to that of the next one: its own, and a gap; a multiple of the alignment."""
    return -(-(size_bytes + _GAP_BYTES) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def view_bytes(data: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of an array; a copy where it is not contiguous."""
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)


def fill_variable(
    memory: npt.NDArray[np.uint8],
    variable: PtxVariable,
    find_address: Callable[[str], int | None],
    given: npt.NDArray[Any] | None = None,
) -> None:
    """Fill the bytes of a module's variable: initial bytes, then addresses of symbols, then what a launch gives it.

    Args:
        find_address: of a symbol; None for unknown ones, whose places stay as they are.
        given: None for nothing; what is longer than the variable is cut off.
    """
    if variable.initial:
        memory[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)[: len(memory)]
    for offset, symbol, added in variable.initial_symbols:
        address = find_address(symbol)
        if address is not None and offset + 8 <= len(memory):
            memory[offset : offset + 8].view(np.uint64)[0] = (address + added) % (1 << 64)
    if given is not None:
        raw = view_bytes(given)[: len(memory)]
        memory[: len(raw)] = raw


def make_zeros(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Zeros that take memory only as they are touched, even where the system would refuse as many bytes at once."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return np.frombuffer(mmap.mmap(-1, size_bytes, flags=flags), np.uint8)


class Arena:
    """Buffers, laid out one after the other with gaps that no access may touch.

    Args:
        meter: counts its bytes.
        faults: where bad accesses are noted.

    Attributes:
        data: all bytes from :data:`ARENA_BASE` on.
        regions: memory that may be accessed, by address.
        version: counts how often they have changed since the launch began.
        marks: where accesses are noted; None where they are not.
        list_pointers: gives, by number of a static instruction and lane, the pointers that the address may be made of, each with the
            number of the instruction that loaded it, if one did; none where that is not known.
    """

    def __init__(self, meter: Meter, faults: FaultLog) -> None:
        self._meter = meter
        self._faults = faults
        self._end = 0
        self._given: list[Region] = []
        self.regions: list[Region] = []
        self._freed: tuple[Region, ...] = ()
        self._whole: tuple[Region, ...] = ()
        self._excluded: tuple[Region, tuple[tuple[int, int], ...]] | None = None
        self.version = 0
        self.marks: Marks | None = None
        self.list_pointers: Callable[[int, int], Sequence[tuple[int, int | None]]] = lambda *_: ()
        self.data: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._bases: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._lasts: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._is_fixed: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def add(self, name: str, space: Space, size_bytes: int, **details: Any) -> Region:
        """Lay out a region, before :meth:`allocate`; the details are those of :class:`Region`."""
        base = ARENA_BASE + self._end
        region = Region(name=name, space=space, base=base, size_bytes=size_bytes, **details)
        self.regions.append(region)
        self._end += find_room(size_bytes)
        return region

    def add_at(self, base: int, name: str, space: Space, size_bytes: int, **details: Any) -> Region:
        """Lay out a region at an address, before any other with :meth:`add`; see there.

        Raises:
            InputError: there is no such address, or another region lies there.
        """
        end = base + size_bytes
        if not ARENA_BASE <= base <= end <= ARENA_BASE + MOST_SPAN_BYTES:
            raise InputError(
                f"{name} cannot lie at 0x{base:x}",
                remedy=f"addresses from 0x{ARENA_BASE:x} to 0x{ARENA_BASE + MOST_SPAN_BYTES:x} are possible",
            )
        near = next((one for one in self._given if base < one.base + one.size_bytes and one.base < end), None)
        if near is not None:
            raise InputError(f"{name} at 0x{base:x} overlaps {near.name}", remedy="record the launch again")
        region = Region(name=name, space=space, base=base, size_bytes=size_bytes, **details)
        self._given.append(region)
        self.regions.append(region)
        self._end = max(self._end, find_room(end - ARENA_BASE))
        return region

    def allocate(self) -> None:
        """Take the memory, all zeros.

        Raises:
            BudgetReached: it is more than allowed.
            InputError: the arrays lie so far apart that this computer has no room for what is between them.
        """
        self._end = max(self._end, _ALIGNMENT_BYTES)
        if self._given:
            self._meter.hold(sum(one.size_bytes for one in self.regions), "memory of the arrays")
            try:
                self.data = make_zeros(self._end)
            except OSError as error:
                message = f"no room for arrays that lie {format_bytes(self._end)} apart: {error.strerror or error}"
                raise InputError(message, remedy="give them a base_address nearer to each other") from None
            self.regions.sort(key=lambda region: region.base)
        else:
            self._meter.hold(self._end, "memory of the arrays")
            self.data = np.zeros(self._end, np.uint8)
        self._index()

    def adopt(self, data: npt.NDArray[np.uint8], regions: Iterable[Region], *, freed: Iterable[Region] = ()) -> None:
        """Use existing memory in place of :meth:`allocate`."""
        self.regions = sorted(regions, key=lambda region: region.base)
        self._freed = tuple(freed)
        self.data = data
        self._end = len(data)
        self._index()

    def exclude(self, region: Region, pieces: Sequence[tuple[int, int]], freed: Iterable[tuple[int, int]]) -> None:
        """Forbid accesses to pieces of a region, and to nothing else of it.

        Args:
            pieces: addresses and sizes in bytes, in the order of the addresses, apart from each other.
        """
        if self._excluded is None:
            self._whole = tuple(self.regions)
        kept, start = [], region.base
        for base, size in (*pieces, (region.base + region.size_bytes, 0)):
            if base > start:
                kept.append(replace(region, base=start, size_bytes=base - start))
            start = base + size
        others = (one for one in self._whole if one.base != region.base)
        self.regions = sorted((*others, *kept), key=lambda one: one.base)
        self._excluded = region, (*freed, *pieces)
        self.version += 1
        self._index()

    @property
    def laid_out(self) -> tuple[Region, ...]:
        """The regions as they were before pieces of one were excluded."""
        return tuple(self.regions) if self._excluded is None else self._whole

    def _index(self) -> None:
        self._bases = np.array([region.base for region in self.regions], np.uint64)
        self._lasts = np.array([region.size_bytes for region in self.regions], np.int64)
        self._is_fixed = np.array([region.space is not Space.GLOBAL for region in self.regions], np.bool_)

    def bytes_of(self, region: Region) -> npt.NDArray[np.uint8]:
        """The region's bytes, a view."""
        start = region.base - ARENA_BASE
        return self.data[start : start + region.size_bytes]

    def read_bytes(self, address: int, limit: int) -> bytes:
        """Bytes from an address to the end of its region, at most so many; none outside all regions."""
        for region in self.regions:
            if region.base <= address < region.base + region.size_bytes:
                found = self.bytes_of(region)[address - region.base :][:limit]
                if self.marks is not None:
                    self.marks.mark(address - ARENA_BASE, len(found), Mark.READ)
                return found.tobytes()
        return b""

    def count_bytes(self, address: int) -> int:
        """Bytes from an address to the end of its region; 0 outside all regions."""
        ends = (one.base + one.size_bytes for one in self.regions if one.base <= address < one.base + one.size_bytes)
        return next(ends, address) - address

    def write_bytes(self, address: int, data: bytes) -> None:
        """Write from an address to the end of its region at most; nothing outside all regions."""
        for region in self.regions:
            if region.base <= address < region.base + region.size_bytes:
                place = self.bytes_of(region)[address - region.base :][: len(data)]
                place[:] = np.frombuffer(data, np.uint8)[: len(place)]
                if self.marks is not None:
                    self.marks.mark(address - ARENA_BASE, len(place), Mark.READ | Mark.WRITTEN)

    def report(self, access: Access, _: Space, warps: WarpSet, lanes: Value, addresses: Value) -> None:
        """Note what is wrong with an access.

        Args:
            lanes: int64[k] of the warps, which may not access what they want.
            addresses: uint64[k] of theirs.
        """
        region: Value = np.searchsorted(self._bases, addresses, side="right") - 1
        inside = np.zeros(len(lanes), np.bool_)
        fixed = np.zeros(len(lanes), np.bool_)
        if len(self._bases):
            offset = (addresses - self._bases[region]).view(I64)
            inside = (region >= 0) & (offset >= 0) & (offset <= self._lasts[region] - access.bytes)
            fixed = inside & self._is_fixed[region] & (access.kind is not AccessKind.LOAD)
        misaligned = inside & ((addresses & np.uint64(access.bytes - 1)) != 0)
        fixed &= ~misaligned
        for kind, chosen in (
            (FaultKind.MISALIGNED, misaligned),
            (FaultKind.WRITE_TO_CONSTANT, fixed),
            (FaultKind.OUT_OF_BOUNDS, ~misaligned & ~fixed),
        ):
            places = np.flatnonzero(chosen)
            if len(places):
                message, passed = "", None
                if not self._faults.is_known(kind, access.instruction):
                    address, number = int(addresses[places[0]]), int(region[places[0]])
                    is_outside = kind is FaultKind.OUT_OF_BOUNDS
                    pointed, holder = (
                        self._find_pointed(access.instruction, int(lanes[places[0]])) if is_outside else (None, "")
                    )
                    message = self._describe(kind, access, address, number, pointed) + holder
                    if kind is FaultKind.OUT_OF_BOUNDS:
                        passed = self._find_passed(address, number, pointed)
                if kind is FaultKind.MISALIGNED:
                    self._faults.end_on_gpu(DeviceError.MISALIGNED_ADDRESS)
                elif kind is FaultKind.OUT_OF_BOUNDS and not self._is_mapped(addresses[places], region[places]).all():
                    self._faults.end_on_gpu(DeviceError.ILLEGAL_ADDRESS)
                self._faults.add_lanes(
                    kind, message, warps, lanes[places], instruction=access.instruction, passed=passed
                )

    def _is_mapped(self, addresses: Value, region: Value) -> Value:
        """Whether a GPU has memory at each address: those near a region. ``region`` is the index of the one below each, -1 for none."""
        if len(self._bases) == 0:
            return np.zeros(len(addresses), np.bool_)
        pages = addresses >> _MAPPED_BITS
        last = (self._bases + self._lasts.astype(np.uint64) - np.uint64(1)) >> _MAPPED_BITS
        above = self._bases[np.minimum(region + 1, len(self._bases) - 1)]
        near = (above >> _MAPPED_BITS == pages) | (above - addresses <= _NEAR_BYTES)
        return ((region >= 0) & (last[region] == pages)) | near

    def _find_pointed(self, instruction: int, lane: int) -> tuple[Region | None, str]:
        """The region that the pointer of a lane's access leads to, None where it is not known; with it, where a loaded pointer lies."""
        found = {
            region.base: (region, pointer, load)
            for pointer, load in self.list_pointers(instruction, lane)
            if (region := self._find_around(pointer)) is not None
        }
        if len(found) != 1:
            return None, ""
        ((region, pointer, load),) = found.values()
        holder = None if load is None else self._find_pointed(load, lane)[0]
        return region, "" if holder is None else _place_pointer(pointer, holder, self.bytes_of(holder))

    def _find_around(self, address: int) -> Region | None:
        """The region that an address lies in; None outside of all."""
        number = int(np.searchsorted(self._bases, np.uint64(address), side="right")) - 1
        found = self.regions[number] if number >= 0 else None
        return found if found is not None and address < found.base + found.size_bytes else None

    def _find_passed(self, address: int, number: int, pointed: Region | None) -> PassedEnd:
        near = pointed or self._find_nearest(address, number)
        if near is None or self._find_freed(address, number) is not None:
            return PassedEnd()
        return PassedEnd(array=near.name, offset_bytes=address - near.base, size_bytes=near.size_bytes)

    def _describe(self, kind: FaultKind, access: Access, address: int, number: int, pointed: Region | None) -> str:
        what = f"{ACCESS_WORDS[access.kind]} of {access.bytes} bytes at 0x{address:x}"
        if kind is FaultKind.MISALIGNED:
            return f"{what}: not a multiple of {access.bytes}"
        freed = self._find_freed(address, number)
        if freed is not None:
            name = freed.name and f" of {freed.name}"
            size = f"{format_count(freed.size_bytes)} bytes at 0x{freed.base:x}"
            return f"{what}: in memory that was freed, byte {format_count(address - freed.base)}{name} ({size})"
        near = pointed or self._find_nearest(address, number)
        if near is None:
            return f"{what}: {'a null pointer' if address < _NULL_BYTES else 'no array is near'}"
        offset = address - near.base
        if kind is FaultKind.WRITE_TO_CONSTANT:
            return f"{what}: byte {offset} of {near.name}, which is constant"
        return f"{what}: {_place_outside(near, offset)}{'' if pointed else _NEAREST}"

    def _find_freed(self, address: int, number: int) -> Region | None:
        """The memory at an address that the program freed last; None where there is memory now, or never was any that is known."""
        if number >= 0 and address < self.regions[number].base + self.regions[number].size_bytes:
            return None
        found = next((one for one in self._freed if one.base <= address < one.base + one.size_bytes), None)
        if found is not None or self._excluded is None:
            return found
        region, pieces = self._excluded
        piece = next(((base, size) for base, size in pieces if base <= address < base + size), None)
        return piece and replace(region, name="", base=piece[0], size_bytes=piece[1])

    def _find_nearest(self, address: int, number: int) -> Region | None:
        """The region an address most likely meant: the one whose end or beginning is nearest.

        Variables, constants and parameters lie behind the arrays, where indices that are too large end up: far behind them, none of them was meant.
        """
        above = self.regions[number + 1] if number + 1 < len(self.regions) else None
        before = math.inf if above is None else above.base - address
        below = self._find_below(address, number)
        if before <= _GAP_BYTES // 2 and (below is None or (above is not None and above.space is not Space.PARAM)):
            return above  # no pointer leads to parameters
        if above is None or above.space is not Space.GLOBAL or before > _FARTHEST_BYTES:
            return below
        is_meant = above.argument is not None or before <= max(above.size_bytes, _GAP_BYTES)
        is_nearer = below is None or before < address - below.base - below.size_bytes
        return above if is_meant and is_nearer else below

    def _find_below(self, address: int, number: int) -> Region | None:
        """The region whose end an address most likely passed; None where none is near enough."""
        below = [
            one
            for one in reversed(self.regions[: number + 1])
            if address - one.base - one.size_bytes <= _FARTHEST_BYTES
        ]
        for one in below:
            beyond = address - one.base - one.size_bytes
            if one.argument is not None or beyond <= max(one.size_bytes, _GAP_BYTES // 2):
                return one
        return next((one for one in below if one.space is Space.GLOBAL), None)


# Suffix of a message that names the nearest array because the pointer of the access is unknown
_NEAREST = " (the nearest array; which one its pointer leads to is not known)"


def _place_pointer(pointer: int, holder: Region, held: npt.NDArray[np.uint8]) -> str:
    """Suffix of a message that names the array a pointer was loaded from, and its place there if it stands there once."""
    words = held[: len(held) // _POINTER_BYTES * _POINTER_BYTES].view(np.uint64)
    places = np.flatnonzero(words == np.uint64(pointer)).tolist()
    if len(places) != 1:
        return f" (through a pointer in {holder.name})"
    return f" (through the pointer at byte {format_count(places[0] * _POINTER_BYTES)} of {holder.name})"


def _place_outside(region: Region, offset: int) -> str:
    """Place of an access that begins ``offset`` bytes from the start of a region and is not all in it, in words."""
    if offset < 0 or offset % region.element_bytes:
        before = _describe_offset(offset, region.element_bytes)
        return f"{before} {region.name}, which has {region.size_bytes} bytes"
    count = region.size_bytes // region.element_bytes
    if region.element_bytes == 1 and region.argument is None:
        return f"byte {format_count(offset)} of {region.name}, which has {format_count(count)} bytes"
    return f"element {offset // region.element_bytes} of {region.name}, which has {count}"


def _describe_offset(offset: int, element_bytes: int) -> str:
    """Place of an address that is no element of an array, in words.

    >>> _describe_offset(-4, 4), _describe_offset(-2048, 4), _describe_offset(5, 4)
    ('4 bytes before', '2,048 bytes (512 elements) before', 'byte 5 of')
    """
    if offset >= 0:
        return f"byte {offset} of"
    elements, rest = divmod(-offset, element_bytes)
    counted = f" ({format_count(elements)} elements)" if elements > 1 and not rest and element_bytes > 1 else ""
    return f"{format_count(-offset)} bytes{counted} before"


# Kinds of access in messages
ACCESS_WORDS = {
    AccessKind.LOAD: "load",
    AccessKind.STORE: "store",
    AccessKind.ATOMIC: "atomic access",
    AccessKind.REDUCTION: "atomic access",
}
