"""Shared memory of blocks and local memory of threads of a batch: :class:`BatchMemory`."""

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.engine.accesses import Access, Place
from gpa_lsp.execution.emulator.engine.arena import ACCESS_WORDS
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.geometry import Geometry, WarpSet
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import DeviceError, FaultKind
from gpa_lsp.foundation.numbers import format_count

_REGISTER_BYTES = 8
_GRANULE_BYTES = 1024  # shared and local memory come in pieces of at most this size; beyond them a GPU finds no memory
_LARGEST_LOCAL_BYTES = 512 << 10  # what the hardware gives a thread (CUDA C++ programming guide, compute capabilities)


class _Area(Struct):
    """What belongs to one block or thread: where it begins in elements (int64[n], or uniform), and its bytes."""

    space: Space
    base: Value
    size_bytes: int


class BatchMemory:
    """Bytes of shared memory, by block, and of local memory, by lane.

    Args:
        geometry: of the launch.
        block_count: of the batch.
        meter: counts what is held.
        faults: where bad accesses are noted.
    """

    def __init__(self, geometry: Geometry, block_count: int, meter: Meter, faults: FaultLog) -> None:
        self.geometry = geometry
        self._meter = meter
        self._faults = faults
        self._lanes = block_count * geometry.lanes_per_block
        self._held_bytes = block_count * geometry.shared_stride_bytes
        meter.hold(self._held_bytes, "shared memory")
        self._shared: npt.NDArray[np.uint8] = np.zeros(max(self._held_bytes, 16), np.uint8)
        self._local: npt.NDArray[np.uint8] = np.zeros(16, np.uint8)
        self._local_stride_bytes = 0
        self._views: dict[tuple[Space, Any, int], tuple[Value, ...]] = {}

    @property
    def shared(self) -> npt.NDArray[np.uint8]:
        """Shared memory, block after block."""
        return self._shared

    @property
    def local(self) -> npt.NDArray[np.uint8]:
        """Local memory, lane after lane; another array once it has grown."""
        return self._local

    @property
    def local_stride_bytes(self) -> int:
        """Local memory of each lane."""
        return self._local_stride_bytes

    def close(self) -> None:
        """Give the memory back."""
        self._meter.release(self._held_bytes)
        self._held_bytes = 0

    def resolve_shared(self, access: Access, warps: WarpSet, address: Value, mask: Value) -> Place:
        """Find what lanes access, see :meth:`.Arena.resolve`; addresses are uint32 or uint64 from the start of shared memory."""
        base = warps.column(f"shared.{access.shift}")
        return self._resolve(access, warps, address, mask, _Area(Space.SHARED, base, self.geometry.shared_bytes))

    def resolve_local(self, access: Access, warps: WarpSet, address: Value, mask: Value) -> Place:
        """Find what lanes access, see :meth:`.Arena.resolve`; addresses are from the start of the thread's local memory."""
        lanes = warps.column("lane")
        base = lanes * np.int64(self._local_stride_bytes >> access.shift)
        return self._resolve(access, warps, address, mask, _Area(Space.LOCAL, base, self._local_stride_bytes))

    def take_shared(self, slots: npt.NDArray[np.int64], address: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Read 16 bytes at each of some addresses.

        Args:
            slots: int64[x], blocks of the batch.
            address: int64[x, r], multiples of 16 within the shared memory of those blocks.

        Returns:
            uint32[x, r, 4].
        """
        units = self._shared.view(np.uint64).reshape(-1, 2)
        index = (slots[:, None] * np.int64(self.geometry.shared_stride_bytes) + address) >> 4
        return units.take(index, axis=0).view(np.uint32)

    def hold(self, size_bytes: int, what: str) -> None:
        """Account for more that the batch holds.

        Raises:
            BudgetReached: it is more than allowed.
        """
        self._meter.hold(size_bytes, what)
        self._held_bytes += size_bytes

    def reserve_local(self, size_bytes: int) -> None:
        """Make sure that each thread has so much local memory.

        Raises:
            BudgetReached: it is more than allowed.
        """
        if size_bytes <= self._local_stride_bytes:
            return
        stride = max(size_bytes, 2 * self._local_stride_bytes if self._local_stride_bytes else size_bytes)
        stride = min(-(-stride // 16) * 16, max(_LARGEST_LOCAL_BYTES, -(-size_bytes // 16) * 16))
        self.hold(self._lanes * (stride - self._local_stride_bytes), "local memory")
        grown = np.zeros(self._lanes * stride, np.uint8)
        if self._local_stride_bytes:
            old = self._local.reshape(self._lanes, -1)
            grown.reshape(self._lanes, stride)[:, : self._local_stride_bytes] = old
        self._local = grown
        self._local_stride_bytes = stride
        self._views = {key: views for key, views in self._views.items() if key[0] is not Space.LOCAL}

    def read_local(self, lane: int, offset_bytes: int, limit: int) -> bytes:
        """Bytes of a thread's local memory, at most so many.

        Args:
            limit: how many at most.
        """
        start = lane * self._local_stride_bytes
        return self._local[start + offset_bytes : start + min(offset_bytes + limit, self._local_stride_bytes)].tobytes()

    def write_local(self, lane: int, offset_bytes: int, data: bytes) -> None:
        """Write to a thread's local memory, as far as it goes: see :meth:`read_local`."""
        start = lane * self._local_stride_bytes
        place = self._local[start + offset_bytes : start + min(offset_bytes + len(data), self._local_stride_bytes)]
        place[:] = np.frombuffer(data, np.uint8)[: len(place)]

    def write_shared(self, base: int, offset_bytes: int, data: bytes) -> None:
        """Write to a block's shared memory, as far as it goes; the block's begins at ``base``."""
        place = self._shared[base + offset_bytes : base + min(offset_bytes + len(data), self.geometry.shared_bytes)]
        place[:] = np.frombuffer(data, np.uint8)[: len(place)]

    def _resolve(self, access: Access, warps: WarpSet, address: Value, mask: Value, area: "_Area") -> Place:
        base, size_bytes, space = area.base, area.size_bytes, area.space
        views = self._views_of(space, access)
        last = size_bytes - access.bytes
        if not address.ndim:
            address = np.full(warps.lanes, (int(address) + access.offset_bytes) % (1 << 32), np.uint32)
        elif access.offset_bytes:
            address = address + address.dtype.type(access.offset_bytes % (1 << 8 * address.dtype.itemsize))
        checked = address if mask is None else np.where(mask, address, address.dtype.type(0))
        bits = int(np.bitwise_or.reduce(checked))
        bad = None
        if last < 0 or bits & access.align_mask or (bits > last and int(checked.max()) > last):
            mask, bad = self._find_bad(access, warps, address, mask, area)
            if last < 0:
                return views, np.zeros(warps.lanes, np.int64), mask, bad
            checked = np.where(mask, address, address.dtype.type(0))
        index = checked.astype(np.int64)
        if access.shift:
            index >>= access.shift
        index += base
        return views, index, mask, bad

    def _find_bad(
        self, access: Access, warps: WarpSet, address: Value, mask: Value, area: "_Area"
    ) -> tuple[Value, Value]:
        last = area.size_bytes - access.bytes
        wide = address.astype(np.uint64)
        outside = wide > np.uint64(last) if last >= 0 else np.ones(len(wide), np.bool_)
        wanted = np.ones(len(wide), np.bool_) if mask is None else mask
        bad = wanted & ((wide & np.uint64(access.align_mask) != 0) | outside)
        lanes = np.flatnonzero(bad)
        self.report(access, area.space, warps, lanes, wide[lanes])
        return wanted & ~bad, bad

    def report(self, access: Access, space: Space, warps: WarpSet, lanes: Value, addresses: Value) -> None:
        """Note what is wrong with an access to shared or local memory.

        Args:
            lanes: int64[k] of the warps, which may not access what they want.
            addresses: uint64[k] of theirs, from where the memory begins.
        """
        is_shared = space is Space.SHARED
        size = self.geometry.shared_bytes if is_shared else self._local_stride_bytes
        last = size - access.bytes
        outside = addresses > np.uint64(last) if last >= 0 else np.ones(len(addresses), np.bool_)
        owner = "the block's shared" if is_shared else "the thread's local"
        for kind, wrong in ((FaultKind.OUT_OF_BOUNDS, outside), (FaultKind.MISALIGNED, ~outside)):
            if not wrong.any():
                continue
            found = addresses[wrong]
            what = f"{ACCESS_WORDS[access.kind]} of {access.bytes} bytes at byte {format_count(int(found[0]))}"
            reason = f"not a multiple of {access.bytes}"
            if kind is FaultKind.MISALIGNED:
                self._faults.end_on_gpu(DeviceError.MISALIGNED_ADDRESS)
            else:
                if int(found.max()) + access.bytes > -(-size // _GRANULE_BYTES) * _GRANULE_BYTES:
                    self._faults.end_on_gpu(DeviceError.LAUNCH_FAILURE)
                reason = f"{owner} memory has {format_count(size)} bytes"
            self._faults.add_lanes(kind, f"{what}: {reason}", warps, lanes[wrong], instruction=access.instruction)

    def _views_of(self, space: Space, access: Access) -> tuple[Value, ...]:
        key = (space, access.dtype, access.elements)
        found = self._views.get(key)
        if found is None:
            data = self._shared if space is Space.SHARED else self._local
            view = data.view(access.dtype)
            found = self._views[key] = tuple(view[k:] for k in range(access.elements))
        return found
