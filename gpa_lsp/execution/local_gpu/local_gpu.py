"""A GPU of this computer, through the CUDA driver: :class:`LocalGpu` loads modules, keeps memory, launches, and copies back.

Every call of the driver that launches kernels of users stands here. ``cuda-python`` is optional (``gpa-lsp[cuda]``), and is loaded only when asked
for.
"""

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.model import LaunchInputs, MovedMemory
from gpa_lsp.foundation.errors import InputError, ToolError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes, format_seconds
from gpa_lsp.gpu.device.cuda_driver import call_driver, decode_name, name_error, open_device, read_attribute

_NAME_BYTES = 256
_NOT_READY = 600
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 20e-6, 5e-3
_INSTALL = "run it on a computer with an NVIDIA GPU and its driver, with gpa-lsp[cuda] installed"

Dim3 = tuple[int, int, int]


class GpuFacts(Struct, frozen=True, kw_only=True):
    """Properties of a GPU to launch on."""

    name: str  # of the product
    compute_capability: tuple[int, int]  # major and minor
    free_bytes: int  # of its memory, when it was opened


class LocalGpu:
    """A GPU in its primary context; a context manager.

    Args:
        needed_for: what it is wanted for, for messages: "tracing on a GPU".
        index: which, as the driver counts them.
        driver: the driver's bindings; None imports them. Tests give a scripted one.

    Raises:
        MissingToolError: no bindings, no driver, or no such GPU; says which.
        ToolError: the driver refuses.
    """

    def __init__(self, *, needed_for: str, index: int = 0, driver: Any = None) -> None:
        self._driver, self._device = open_device(needed_for=needed_for, install=_INSTALL, index=index, driver=driver)
        self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", self._device))
        self._modules: list[Any] = []
        self._held: dict[int, Any] = {}
        self._events: tuple[Any, Any] | None = None
        self.facts = self._read_facts()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def load(self, image: bytes) -> Any:
        """Load a cubin or PTX.

        Raises:
            ToolError: the driver refuses it: it is for another GPU, or newer than the driver.
        """
        module = self._call("cuModuleLoadData", image if image[:4] == b"\x7fELF" else image.rstrip(b"\0") + b"\0")
        self._modules.append(module)
        return module

    def find_kernel(self, module: Any, name: str) -> Any:
        """A kernel of a module, by its mangled name."""
        return self._call("cuModuleGetFunction", module, name.encode())

    def find_variable(self, module: Any, name: str) -> tuple[int, int]:
        """Address and bytes of a variable of a module."""
        address, size = self._call("cuModuleGetGlobal", module, name.encode())
        return int(address), int(size)

    def allocate(self, size_bytes: int) -> int:
        """The address of fresh memory, all zeros, which stays until it is freed or the GPU is closed.

        Raises:
            InputError: there is no room for it.
        """
        free_bytes = self.read_free_bytes()
        if size_bytes > free_bytes:
            message = f"needs {format_bytes(size_bytes)} more, and the GPU has {format_bytes(free_bytes)} free"
            raise InputError(message, path=None, remedy="give smaller arrays, or less room for what is recorded")
        address = self._call("cuMemAlloc", max(size_bytes, 1))
        self._held[int(address)] = address
        self._call("cuMemsetD8", address, 0, max(size_bytes, 1))
        return int(address)

    def read_free_bytes(self) -> int:
        """Free bytes of its memory, now."""
        return int(self._call("cuMemGetInfo")[0])

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cuMemFree", self._held.pop(address))

    def write(self, address: int, data: npt.NDArray[Any]) -> None:
        """Copy an array to the GPU."""
        held = np.ascontiguousarray(data)
        if held.nbytes:
            self._call("cuMemcpyHtoD", address, held.ctypes.data, held.nbytes)

    def read(self, address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Copy bytes from the GPU."""
        into = np.zeros(size_bytes, np.uint8)
        if size_bytes:
            self._call("cuMemcpyDtoH", into.ctypes.data, address, size_bytes)
        return into

    def prepare(
        self, kernel: Any, grid: Dim3, block: Dim3, *, shared_bytes: int, parameters: Sequence[bytes]
    ) -> Callable[[], None]:
        """Function that launches a kernel, as often as it is called.

        Args:
            kernel: from :meth:`find_kernel`.
            grid: blocks in x, y, z.
            block: threads in x, y, z.
            shared_bytes: dynamic shared memory of a block.
            parameters: bytes of each, in order.
        """
        if shared_bytes:  # more than what the static part leaves of 48 KiB has to be allowed
            which = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", kernel, which, shared_bytes)
        held = [ctypes.create_string_buffer(one, len(one)) for one in parameters]
        addresses = (ctypes.c_void_p * max(len(held), 1))(*(ctypes.addressof(one) for one in held))
        held.append(addresses)  # type: ignore[arg-type]  # so that they live as long as what points to them

        def start() -> None:
            assert held
            self._call("cuLaunchKernel", kernel, *grid, *block, shared_bytes, 0, ctypes.addressof(addresses), 0)

        return start

    def wait(self, limit_s: float) -> float:
        """Wait until all work is done; returns the seconds that took.

        Raises:
            ToolError: it took too long, or the kernel did something that ended it. The GPU can be used no more by this process then.
        """
        begun = time.monotonic()
        pause_s = _SHORTEST_WAIT_S
        while True:
            failed = self._driver.cuStreamQuery(0)[0]
            spent_s = time.monotonic() - begun
            if int(failed) == 0:
                return spent_s
            if int(failed) != _NOT_READY:
                raise ToolError("the kernel", f"ended with {name_error(self._driver, failed)}")
            if spent_s > limit_s:
                raise ToolError("the kernel", f"timed out after {format_seconds(limit_s)}")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_WAIT_S)

    def clear(self, address: int, size_bytes: int) -> None:
        """Fill memory with zeros."""
        self._call("cuMemsetD8", address, 0, size_bytes)

    def time_ns(self, start: Callable[[], object], limit_s: float) -> float:
        """Nanoseconds that started work takes on the GPU; errors as of :meth:`wait`."""
        if self._events is None:
            self._events = (self._call("cuEventCreate", 0), self._call("cuEventCreate", 0))
        begin, end = self._events
        self._call("cuEventRecord", begin, 0)
        start()
        self._call("cuEventRecord", end, 0)
        self.wait(limit_s)
        return float(self._call("cuEventElapsedTime", begin, end)) * 1e6

    def read_attribute(self, name: str) -> int | None:
        """An attribute by its name in reports (``l2_cache_size``); None if the driver does not know it."""
        return read_attribute(self._driver, self._device, name)

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        """Releases modules and memory that are taken meanwhile, unless the GPU has become unusable."""
        modules, held = list(self._modules), set(self._held)
        try:
            yield
        except ToolError:
            raise  # whatever is asked of its context from now on fails as well
        except BaseException:
            self._give_back(modules, held)
            raise
        self._give_back(modules, held)

    def _give_back(self, modules: list[Any], held: set[int]) -> None:
        """Release all but the given ones."""
        for module in self._modules[len(modules) :]:
            self._call("cuModuleUnload", module)
        self._modules = modules
        for address in [one for one in self._held if one not in held]:
            self.free(address)

    def close(self) -> None:
        """Release everything; errors of the driver are ignored."""
        for event in self._events or ():
            self._driver.cuEventDestroy(event)
        self._events = None
        for module in self._modules:
            self._driver.cuModuleUnload(module)
        for address in self._held.values():
            self._driver.cuMemFree(address)
        self._modules, self._held = [], {}
        self._driver.cuDevicePrimaryCtxRelease(self._device)

    def _read_facts(self) -> GpuFacts:
        major, minor = (
            read_attribute(self._driver, self._device, f"compute_capability_{part}") for part in ("major", "minor")
        )
        if major is None or minor is None:
            raise ToolError("the CUDA driver", "does not report the compute capability of this GPU")
        return GpuFacts(
            name=decode_name(self._call("cuDeviceGetName", _NAME_BYTES, self._device)),
            compute_capability=(major, minor),
            free_bytes=self.read_free_bytes(),
        )

    def _call(self, name: str, *arguments: Any) -> Any:
        return call_driver(self._driver, name, *arguments)


_ADDRESS_BYTES = 8
_REMEDY = "emulate it: gpa-lsp predict, or gpa-lsp predict trace without --on gpu"


class PlacedLaunch:
    """One launch of a kernel of a loaded module.

    Args:
        gpu: where.
        module: from :meth:`.local_gpu.LocalGpu.load`.
        function: the kernel.
        launch: grid, block and shared memory.
        inputs: of the launch.

    Attributes:
        addresses: of the arrays, in the order of the inputs.
        variables: address and bytes of each variable that is filled.
        start: launches it.

    Raises:
        UnsupportedInputError: it has textures.
        InputError: the GPU has no room for its arrays.
    """

    def __init__(
        self, gpu: LocalGpu, module: Any, function: PtxFunction, launch: LaunchDescription, inputs: LaunchInputs
    ) -> None:
        if inputs.textures:
            message = f"passes the texture {inputs.textures[0].name}, and textures are not made on a GPU"
            raise UnsupportedInputError(message, path=launch.path, remedy=_REMEDY)
        self._gpu = gpu
        self._module = module
        self._function = function
        self._inputs = inputs
        self._kernel = gpu.find_kernel(module, function.name)
        self.addresses = tuple(gpu.allocate(one.data.nbytes) for one in inputs.buffers)
        self.variables = {name: gpu.find_variable(module, name) for name in inputs.variables}
        self._moved = self._find_moves()
        parameters = self._write_parameters()
        self.start = gpu.prepare(
            self._kernel, launch.grid, launch.block, shared_bytes=launch.shared_bytes, parameters=parameters
        )
        self.fill()

    def fill(self) -> None:
        """Copy the initial contents to the arrays and variables that the launch fills."""
        for address, one in zip(self.addresses, self._inputs.buffers, strict=True):
            data = one.data if one.base_address is None else self._moved.move_content(one.data.view(np.uint8))
            self._gpu.write(address, data)
        for name, (address, size) in self.variables.items():
            given = self._inputs.variables[name].view(np.uint8)[:size]
            self._gpu.write(
                address, self._moved.move_content(given) if name in self._inputs.variable_addresses else given
            )

    def read_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Contents of the arrays, by name."""
        return {
            one.name: self._gpu.read(address, one.data.nbytes).view(one.data.dtype)
            for address, one in zip(self.addresses, self._inputs.buffers, strict=True)
        }

    def _find_moves(self) -> MovedMemory:
        """Moves of arrays from their described addresses, which other arrays hold, to those on the GPU."""
        moves = {
            one.base_address: (one.data.nbytes, address)
            for address, one in zip(self.addresses, self._inputs.buffers, strict=True)
            if one.base_address is not None
        }
        for name, base in self._inputs.variable_addresses.items():
            address, size = self.variables[name]
            moves[base] = (size, address)
        return MovedMemory(moves)

    def _write_parameters(self) -> tuple[bytes, ...]:
        given = np.frombuffer(self._inputs.parameters, np.uint8)
        content = bytearray(self._moved.move_parameters(given).tobytes())
        for slot in self._inputs.pointers:
            address = self.addresses[slot.buffer] + slot.offset_bytes
            start = slot.parameter_offset_bytes
            content[start : start + _ADDRESS_BYTES] = address.to_bytes(_ADDRESS_BYTES, "little")
        return tuple(
            bytes(content[one.offset_bytes : one.offset_bytes + one.size_bytes]) for one in self._function.parameters
        )
