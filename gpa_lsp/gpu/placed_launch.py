"""A described launch in the memory of a GPU: :class:`PlacedLaunch` fills its arrays, launches, fills them again, and reads them back."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import UnsupportedInputError
from gpa_lsp.gpu.local_gpu import LocalGpu
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.launches.model import LaunchInputs
from gpa_lsp.ptx.model import PtxFunction

_ADDRESS_BYTES = 8
_REMEDY = "emulate it: gpa-lsp memory, or gpa-lsp trace without --on gpu"


class PlacedLaunch:
    """One launch of a kernel of a loaded module.

    Args:
        gpu: where.
        module: from :meth:`.local_gpu.LocalGpu.load`.
        function: the kernel.
        launch: grid, block and shared memory.
        inputs: of the launch.

    Raises:
        UnsupportedInputError: it has textures, or arrays that must lie at some address.
        InputError: the GPU has no room for its arrays.
    """

    def __init__(
        self, gpu: LocalGpu, module: Any, function: PtxFunction, launch: LaunchDescription, inputs: LaunchInputs
    ) -> None:
        if inputs.textures:
            message = f"passes the texture {inputs.textures[0].name}, and textures are not made on a GPU"
            raise UnsupportedInputError(message, path=launch.path, remedy=_REMEDY)
        placed = next((one.name for one in inputs.buffers if one.base_address is not None), None)
        if placed is not None or inputs.variable_addresses:
            name = placed or next(iter(inputs.variable_addresses))
            message = f"says where {name} lies, for others hold its address, and a GPU lays out memory itself"
            raise UnsupportedInputError(message, path=launch.path, remedy=_REMEDY)
        self._gpu = gpu
        self._module = module
        self._function = function
        self._inputs = inputs
        self._kernel = gpu.find_kernel(module, function.name)
        self.addresses = tuple(gpu.allocate(one.data.nbytes) for one in inputs.buffers)
        """Of each array, in the order of the inputs."""
        self.variables = {name: gpu.find_variable(module, name) for name in inputs.variables}
        """Address and bytes of each variable that is filled."""
        self.start = gpu.prepare(
            self._kernel,
            launch.grid,
            launch.block,
            shared_bytes=launch.shared_bytes,
            parameters=self._write_parameters(),
        )
        """Launches it."""
        self.fill()

    def fill(self) -> None:
        """Give the arrays and variables what the launch begins with; other variables stay as they are."""
        for address, one in zip(self.addresses, self._inputs.buffers, strict=True):
            self._gpu.write(address, one.data)
        for name, (address, size) in self.variables.items():
            self._gpu.write(address, self._inputs.variables[name].view(np.uint8)[:size])

    def read_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What the arrays hold now, by name."""
        return {
            one.name: self._gpu.read(address, one.data.nbytes).view(one.data.dtype)
            for address, one in zip(self.addresses, self._inputs.buffers, strict=True)
        }

    def _write_parameters(self) -> tuple[bytes, ...]:
        content = bytearray(self._inputs.parameters)
        for slot in self._inputs.pointers:
            address = self.addresses[slot.buffer] + slot.offset_bytes
            start = slot.parameter_offset_bytes
            content[start : start + _ADDRESS_BYTES] = address.to_bytes(_ADDRESS_BYTES, "little")
        return tuple(
            bytes(content[one.offset_bytes : one.offset_bytes + one.size_bytes]) for one in self._function.parameters
        )
