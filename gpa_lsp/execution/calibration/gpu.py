"""A GPU of this computer, through the CUDA driver: load a cubin, run it, time it. :class:`Gpu` is what the measuring needs of it."""

import ctypes
import struct
from types import TracebackType
from typing import Any, Protocol, Self

from gpa_lsp.execution.calibration.model import GpuFacts, Timing
from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.gpu.device.cuda_driver import call_driver, decode_name, open_device, read_attribute

_NEED = "measuring ceilings"
_INSTALL = "run it on a computer with an NVIDIA GPU, its driver and gpa-lsp[cuda], and copy the file that it writes"
_NAME_BYTES = 256
# Cycles and nanoseconds of block 0, two spare words, and the place of the stores that never happen
_OUT_BYTES = (4 + 1024) * 8


class Gpu(Protocol):
    """What is needed of a GPU to measure it."""

    @property
    def facts(self) -> GpuFacts:
        """What has to be known of it."""
        ...

    def load(self, image: bytes) -> int:
        """Load a cubin with a kernel ``benchmark``; the answer names it to :meth:`run`."""
        ...

    def count_resident_blocks(self, kernel: int, threads: int) -> int:
        """Blocks of this size that one SM holds."""
        ...

    def run(self, kernel: int, blocks: int, threads: int, arguments: tuple[int, ...], turns: int) -> Timing:
        """Run once and wait. ``arguments`` are 64-bit ones between the output and the number of turns; for arithmetic one 32-bit seed."""
        ...

    def allocate(self, size_bytes: int) -> int:
        """The address of fresh memory, which stays allocated until the GPU is closed."""
        ...


class CudaGpu:
    """A GPU through ``cuda.bindings.driver``.

    Args:
        index: which, as the driver counts them.
        driver: the driver's bindings; None imports them. Tests give a scripted one.

    Raises:
        MissingToolError: no bindings, no driver, or no such GPU; says which.
        ToolError: the driver refuses.
    """

    def __init__(self, index: int = 0, driver: Any = None) -> None:
        self._driver, self._device = open_device(needed_for=_NEED, install=_INSTALL, index=index, driver=driver)
        self._context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._call("cuCtxSetCurrent", self._context)
        self._addresses: list[Any] = []
        self._modules: list[Any] = []
        self._functions: list[Any] = []
        self._events = (self._call("cuEventCreate", 0), self._call("cuEventCreate", 0))
        self._out = self._keep(_OUT_BYTES)
        self._facts = self._read_facts()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def facts(self) -> GpuFacts:
        """What has to be known of it."""
        return self._facts

    def load(self, image: bytes) -> int:
        """Load a cubin; the answer names its kernel."""
        module = self._call("cuModuleLoadData", image)
        self._modules.append(module)
        self._functions.append(self._call("cuModuleGetFunction", module, b"benchmark"))
        return len(self._functions) - 1

    def count_resident_blocks(self, kernel: int, threads: int) -> int:
        """Blocks of this size that one SM holds."""
        return int(self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self._functions[kernel], threads, 0))

    def run(self, kernel: int, blocks: int, threads: int, arguments: tuple[int, ...], turns: int) -> Timing:
        """Run once and wait."""
        # One argument is the seed of an arithmetic benchmark; two are address and size of a working set.
        types: tuple[Any, ...] = (ctypes.c_uint32,) if len(arguments) == 1 else (ctypes.c_uint64,) * len(arguments)
        values = (int(self._out), *arguments, turns)
        kinds = (ctypes.c_uint64, *types, ctypes.c_int32)
        begin, end = self._events
        self._call("cuMemsetD8", self._out, 0, _OUT_BYTES)
        self._call("cuEventRecord", begin, 0)
        self._call("cuLaunchKernel", self._functions[kernel], blocks, 1, 1, threads, 1, 1, 0, 0, (values, kinds), 0)
        self._call("cuEventRecord", end, 0)
        self._call("cuEventSynchronize", end)
        milliseconds = float(self._call("cuEventElapsedTime", begin, end))
        raw = bytearray(16)
        self._call("cuMemcpyDtoH", raw, self._out, len(raw))
        cycles, nanoseconds = struct.unpack("<QQ", raw)
        return Timing(seconds=milliseconds / 1e3, sm_cycles=cycles, block_seconds=nanoseconds / 1e9)

    def allocate(self, size_bytes: int) -> int:
        """The address of fresh memory, filled with zeros."""
        address = self._keep(size_bytes)
        self._call("cuMemsetD8", address, 0, size_bytes)
        return int(address)

    def close(self) -> None:
        """Give everything back."""
        for event in self._events:
            self._driver.cuEventDestroy(event)
        for module in self._modules:
            self._driver.cuModuleUnload(module)
        for address in self._addresses:
            self._driver.cuMemFree(address)
        self._driver.cuDevicePrimaryCtxRelease(self._device)

    def _keep(self, size_bytes: int) -> Any:
        address = self._call("cuMemAlloc", size_bytes)
        self._addresses.append(address)
        return address

    def _read_facts(self) -> GpuFacts:
        name = decode_name(self._call("cuDeviceGetName", _NAME_BYTES, self._device))
        free, _ = self._call("cuMemGetInfo")
        version = int(self._call("cuDriverGetVersion"))
        memory_khz = read_attribute(self._driver, self._device, "memory_clock_rate")
        return GpuFacts(
            name=name,
            compute_capability=(
                self._attribute("compute_capability_major"),
                self._attribute("compute_capability_minor"),
            ),
            sm_count=self._attribute("multiprocessor_count"),
            l2_bytes=self._attribute("l2_cache_size"),
            free_bytes=int(free),
            memory_clock_hz=memory_khz * 1e3 if memory_khz else None,
            driver_version=f"{version // 1000}.{version % 1000 // 10}",
        )

    def _attribute(self, name: str) -> int:
        found = read_attribute(self._driver, self._device, name)
        if found is None:
            raise ToolError("the CUDA driver", f"does not report the {name.replace('_', ' ')} of this GPU")
        return found

    def _call(self, name: str, *arguments: Any) -> Any:
        return call_driver(self._driver, name, *arguments)
