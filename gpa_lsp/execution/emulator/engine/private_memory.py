"""Shared memory of blocks and local memory of threads of a batch: :class:`BatchMemory`."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.engine.arena import ACCESS_WORDS
from gpa_lsp.execution.emulator.engine.faults import Access, FaultLog
from gpa_lsp.execution.emulator.engine.geometry import Geometry, WarpSet
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import DeviceError, FaultKind
from gpa_lsp.foundation.numbers import format_count

_REGISTER_BYTES = 8
_GRANULE_BYTES = 1024  # shared and local memory come in pieces of at most this size; beyond them a GPU finds no memory
_LARGEST_LOCAL_BYTES = 512 << 10  # what the hardware gives a thread (CUDA C++ programming guide, compute capabilities)


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
