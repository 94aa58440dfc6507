"""The device runtime library, for kernels that launch kernels (dynamic parallelism): :class:`DeviceRuntime`.

A thread's launch waits in a queue until the thread's grid ends or the thread synchronizes; a GPU may run it at any time after the launch.
Source: CUDA C++ programming guide, CUDA dynamic parallelism; ``cuda_device_runtime_api.h`` of CUDA 13.0.
"""

from collections.abc import Callable
from math import prod
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.execution.emulator.engine.arena import Arena
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES, Value
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES

PREFIXES = ("__cudaCDP2", "__cudaDeviceSynchronize")  # What the names of its functions begin with
_SUFFIX = "_ptsz"  # Of functions of programs whose default stream is the thread's own
_TAIL_LAUNCH = 3  # The stream whose work begins when the grid has ended
_ROOM_BYTES = 16
_INVALID_VALUE, _OUT_OF_MEMORY, _INVALID_CONFIGURATION = 1, 2, 9
_MOST_THREADS = 1024


class DeviceLaunch(Struct, frozen=True, kw_only=True):
    """A launch by a thread."""

    kernel: str  # its linkage name
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    shared_bytes: int  # dynamic shared memory
    parameters: bytes = b""  # bytes of all of them; none until it is launched


Work = DeviceLaunch | Callable[[], None]


class _Heap(Protocol):
    def allocate(self, size_bytes: int) -> int: ...

    def free(self, address: int) -> None: ...


class _Machine(Protocol):
    """The parts of a machine that the runtime uses."""

    arena: Arena
    heap: _Heap

    def follow_heap(self) -> None: ...

    def print_text(self, text: str) -> bool: ...


class DeviceRuntime:
    """Launches by the kernels of one module that have not run yet.

    Args:
        kernels: address → linkage name and bytes of the parameters of each.
        buffers: hands out room for parameters.

    Attributes:
        run_queued: runs what waits, while a kernel waits for it, and gives what that printed.
        refused: launches that there was no room for.
    """

    def __init__(self, kernels: dict[int, tuple[str, int]], buffers: _Heap) -> None:
        self._kernels = kernels
        self._buffers = buffers
        self._wanted: dict[int, DeviceLaunch] = {}
        self._queued: list[Work] = []
        self._tails: list[Work] = []
        self._handles = 0
        self._last_error = 0
        self.refused = 0
        self.run_queued: Callable[[], str] = str

    def take_all(self) -> list[Work]:
        """Take all waiting work, in order."""
        taken = [*self._queued, *self._tails]
        self._queued, self._tails = [], []
        return taken

    def take_queued(self) -> "tuple[list[Work], list[Work]]":
        """Take the work that a thread waits for, and the work of tail launches, which is to be given back."""
        queued, tails = self._queued, self._tails
        self._queued, self._tails = [], []
        return queued, tails

    def give_back(self, tails: list[Work]) -> None:
        """Give tail launches back: they begin when the grid has ended."""
        self._tails[:0] = tails

    def find_function(self, machine: _Machine, name: str) -> "Callable[[Fragment, list[Value], int], Value] | None":
        """Implementation of one of its functions; None for one that is not emulated."""
        calls: dict[str, Callable[[_Lane], int]] = {
            "GetParameterBufferV2": self._get_buffer,
            "LaunchDeviceV2": self._launch,
            "StreamCreateWithFlags": self._make_handle,
            "EventCreateWithFlags": self._make_handle,
            "MemcpyAsync": self._copy,
            "MemsetAsync": self._fill,
            "GetLastError": self._take_error,
            "PeekAtLastError": lambda lane: self._last_error,
            "Malloc": self._allocate,
            "Free": self._free,
            "GetDevice": lambda lane: lane.write(0, 0, 4),
            "GetDeviceCount": lambda lane: lane.write(0, 1, 4),
        }
        calls |= dict.fromkeys(_WITHOUT_EFFECT, lambda lane: 0)
        if name.startswith("__cudaDeviceSynchronize"):
            return lambda fragment, values, static: self._wait(machine)
        call = calls.get(name.removeprefix("__cudaCDP2").removesuffix(_SUFFIX))
        if call is None:
            return None

        def execute(fragment: Fragment, values: list[Value], static: int) -> Value:
            del static
            warps, lanes = fragment.warps, fragment.warps.lanes
            columns = [np.broadcast_to(value, (lanes,)) for value in values]
            numbers = np.broadcast_to(warps.column("lane"), (lanes,))
            bases = np.repeat(warps.slots() * warps.blocks.geometry.shared_stride_bytes, WARP_LANES)
            out = np.zeros(lanes, np.uint64)
            for lane in np.flatnonzero(fragment.active()).tolist():
                caller = _Lane(
                    machine=machine,
                    fragment=fragment,
                    number=int(numbers[lane]),
                    shared_base=int(bases[lane]),
                    words=[int(column[lane]) for column in columns],
                )
                out[lane] = call(caller)
            return out

        return execute

    def _wait(self, machine: _Machine) -> Value:
        machine.print_text(self.run_queued())
        return np.uint64(0)

    def _get_buffer(self, lane: "_Lane") -> int:
        kernel = self._kernels.get(lane.words[0])
        grid, block = ((xy & 0xFFFFFFFF, xy >> 32, z & 0xFFFFFFFF) for xy, z in (lane.words[1:3], lane.words[3:5]))
        if kernel is None or not prod(grid) or not 0 < prod(block) <= _MOST_THREADS:
            self._last_error = _INVALID_CONFIGURATION
            return 0
        address = self._buffers.allocate(max(kernel[1], _ROOM_BYTES))
        self.refused += not address
        if address:
            self._wanted[address] = DeviceLaunch(
                kernel=kernel[0], grid=grid, block=block, shared_bytes=lane.take(5, 4), parameters=bytes(kernel[1])
            )
        return address

    def _launch(self, lane: "_Lane") -> int:
        address, stream = lane.words[:2]
        wanted = self._wanted.pop(address, None)
        if wanted is None:
            return _INVALID_VALUE
        given = lane.machine.arena.read_bytes(address, len(wanted.parameters))
        self._buffers.free(address)
        return self._queue(stream, replace(wanted, parameters=given))

    def _queue(self, stream: int, work: Work) -> int:
        """Add work to a stream; gives that all is well."""
        (self._tails if stream == _TAIL_LAUNCH else self._queued).append(work)
        return 0

    def _take_error(self, lane: "_Lane") -> int:
        del lane
        error, self._last_error = self._last_error, 0
        return error

    def _make_handle(self, lane: "_Lane") -> int:
        self._handles += 1
        return lane.write(0, (1 << 32) + self._handles, 8)  # no small number: those name streams of the library's own

    def _allocate(self, lane: "_Lane") -> int:
        address = lane.machine.heap.allocate(lane.words[1])
        lane.machine.follow_heap()
        lane.write(0, address, 8)
        return 0 if address else _OUT_OF_MEMORY

    def _free(self, lane: "_Lane") -> int:
        lane.machine.heap.free(lane.words[0])
        lane.machine.follow_heap()
        return 0

    def _copy(self, lane: "_Lane") -> int:
        target, source, size = lane.words[:3]
        arena = lane.machine.arena

        def copy() -> None:
            arena.write_bytes(target, arena.read_bytes(source, size))

        return self._queue(lane.words[4], copy)

    def _fill(self, lane: "_Lane") -> int:
        target, value, size = lane.words[:3]
        arena = lane.machine.arena

        def fill() -> None:
            arena.write_bytes(target, bytes([value & 0xFF]) * min(size, arena.count_bytes(target)))

        return self._queue(lane.words[3], fill)


# All work is done in the order it was given
_WITHOUT_EFFECT = (
    "StreamDestroy", "StreamWaitEvent", "EventRecord", "EventRecordWithFlags", "EventDestroy",
)  # fmt: skip


class _Lane(Struct, frozen=True, kw_only=True):
    """A thread that calls."""

    machine: _Machine  # the launch at work
    fragment: Fragment  # it belongs to
    number: int  # of it in the batch
    shared_base: int  # of its block's shared memory, in that of the batch
    words: list[int]  # its arguments, 8 bytes each; wider ones take several

    def take(self, place: int, size_bytes: int) -> int:
        """An argument of fewer bytes."""
        return self.words[place] & ((1 << 8 * size_bytes) - 1)

    def write(self, place: int, value: int, size_bytes: int) -> int:
        """Write to where an argument points; gives that all is well."""
        address, data = self.words[place], value.to_bytes(size_bytes, "little")
        if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES:
            self.fragment.batch.memory.write_local(self.number, address - LOCAL_WINDOW, data)
        elif SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
            self.fragment.batch.memory.write_shared(self.shared_base, address - SHARED_WINDOW, data)
        else:
            self.machine.arena.write_bytes(address, data)
        return 0
