# ruff: noqa: N802 - the names are the driver's
"""A CUDA driver that takes the times it is told: it keeps memory, counts calls, and checks that what is used was given and not yet given back."""

import ctypes
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

READY, ILLEGAL_ADDRESS, BAD_IMAGE = 0, 700, 200
FREE_BYTES = 1 << 26
L2_BYTES = 1 << 20


class Attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 1
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 2
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 3
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 4
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 5


class FunctionAttribute(IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class TimedDriver:
    """Answers as ``cuda.bindings.driver`` does: an error code, then values.

    Args:
        times_ms: of the launches, over and over.
        capability: of the GPU.
        ending: what a launch ends with.
        devices: that there are.
        refuses: an image with these bytes in it is not loaded.
        free_bytes: of its memory, before anything is taken.
    """

    CUdevice_attribute = Attribute
    CUfunction_attribute = FunctionAttribute

    def __init__(
        self,
        times_ms: Sequence[float] = (0.04,),
        *,
        capability: tuple[int, int] = (8, 0),
        ending: int = READY,
        devices: int = 1,
        refuses: bytes = b"",
        free_bytes: int = FREE_BYTES,
    ) -> None:
        self.times_ms = times_ms
        self.ending = ending
        self.devices = devices
        self.refuses = refuses
        self.free_bytes = free_bytes
        self.parameter_count = 0  # Of the kernel, which are then read at each launch, eight bytes each
        self.calls: Counter[str] = Counter()
        self.order: list[str] = []
        self.memory: dict[int, bytearray] = {}
        self.given: set[int] = set()  # Every address that was given, ever
        self.modules: dict[int, bytes] = {}
        self.events: set[int] = set()
        self.parameters: list[bytes] = []
        self.grids: list[tuple[int, ...]] = []
        self._values = {1: capability[0], 2: capability[1], 3: 108, 4: L2_BYTES, 5: 1_410_000}
        self._next = 1 << 20

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cu"):
            self.calls[name] += 1
            self.order.append(name)
        return super().__getattribute__(name)

    def cuInit(self, _: int) -> tuple[int]:
        return (READY,)

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return READY, self.devices

    def cuDeviceGet(self, index: int) -> tuple[int, int]:
        return READY, index

    def cuDevicePrimaryCtxRetain(self, _: int) -> tuple[int, int]:
        return READY, 1

    def cuDevicePrimaryCtxRelease(self, _: int) -> tuple[int]:
        return (READY,)

    def cuCtxSetCurrent(self, _: int) -> tuple[int]:
        return (READY,)

    def cuDeviceGetName(self, length: int, _: int) -> tuple[int, bytes]:
        return READY, b"Timed GPU".ljust(length, b"\0")

    def cuDeviceGetAttribute(self, which: int, _: int) -> tuple[int, int]:
        return READY, self._values[which]

    def cuMemGetInfo(self) -> tuple[int, int, int]:
        return READY, self.free_bytes - sum(map(len, self.memory.values())), self.free_bytes

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        self._next += 1 << 30
        self.memory[self._next] = bytearray(b"\xcc" * size)
        self.given.add(self._next)
        return READY, self._next

    def cuMemFree(self, address: int) -> tuple[int]:
        del self.memory[address]
        return (READY,)

    def cuMemsetD8(self, address: int, value: int, size: int) -> tuple[int]:
        assert size <= len(self.memory[address])
        self.memory[address][:size] = bytes([value]) * size
        return (READY,)

    def cuMemcpyHtoD(self, address: int, source: int, size: int) -> tuple[int]:
        assert size <= len(self.memory[address])
        self.memory[address][:size] = ctypes.string_at(source, size)
        return (READY,)

    def cuMemcpyDtoH(self, into: int, address: int, size: int) -> tuple[int]:
        ctypes.memmove(into, bytes(self.memory[address][:size]), size)
        return (READY,)

    def cuModuleLoadData(self, image: bytes) -> tuple[int, ...]:
        if self.refuses and self.refuses in image:
            return (BAD_IMAGE, 0)
        self._next += 1
        self.modules[self._next] = image
        return READY, self._next

    def cuModuleUnload(self, module: int) -> tuple[int]:
        del self.modules[module]
        return (READY,)

    def cuModuleGetFunction(self, module: int, name: bytes) -> tuple[int, tuple[int, bytes]]:
        assert module in self.modules
        return READY, (module, name)

    def cuEventCreate(self, _: int) -> tuple[int, int]:
        self._next += 1
        self.events.add(self._next)
        return READY, self._next

    def cuEventDestroy(self, event: int) -> tuple[int]:
        self.events.remove(event)
        return (READY,)

    def cuEventRecord(self, event: int, _: int) -> tuple[int]:
        assert event in self.events
        return (READY,)

    def cuEventElapsedTime(self, begin: int, end: int) -> tuple[int, float]:
        assert {begin, end} <= self.events
        return READY, self.times_ms[(self.calls["cuLaunchKernel"] - 1) % len(self.times_ms)]

    def cuStreamQuery(self, _: int) -> tuple[int]:
        return (self.ending,)

    def cuGetErrorName(self, error: int) -> tuple[int, bytes]:
        return READY, {ILLEGAL_ADDRESS: b"CUDA_ERROR_ILLEGAL_ADDRESS", BAD_IMAGE: b"CUDA_ERROR_INVALID_IMAGE"}[error]

    def cuFuncSetAttribute(self, *_: int) -> tuple[int]:
        return (READY,)

    def cuLaunchKernel(self, kernel: tuple[int, bytes], *rest: Any) -> tuple[int]:
        assert kernel[0] in self.modules
        pointers = (ctypes.c_void_p * self.parameter_count).from_address(rest[8]) if self.parameter_count else ()
        self.parameters = [ctypes.string_at(one or 0, 8) for one in pointers]
        self.grids.append(tuple(rest[:6]))
        return (READY,)
