"""A described launch in the memory of a GPU: :class:`PlacedLaunch` fills its arrays, launches, fills them again, and reads them back."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.model import LaunchInputs
from gpa_lsp.execution.launches.moved_memory import MovedMemory
from gpa_lsp.execution.local_gpu.local_gpu import LocalGpu
from gpa_lsp.foundation.errors import UnsupportedInputError

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
        """Of each array, in the order of the inputs."""
        self.variables = {name: gpu.find_variable(module, name) for name in inputs.variables}
        """Address and bytes of each variable that is filled."""
        self._moved = self._find_moves()
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
            data = one.data if one.base_address is None else self._moved.move_content(one.data.view(np.uint8))
            self._gpu.write(address, data)
        for name, (address, size) in self.variables.items():
            given = self._inputs.variables[name].view(np.uint8)[:size]
            self._gpu.write(
                address, self._moved.move_content(given) if name in self._inputs.variable_addresses else given
            )

    def read_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What the arrays hold now, by name."""
        return {
            one.name: self._gpu.read(address, one.data.nbytes).view(one.data.dtype)
            for address, one in zip(self.addresses, self._inputs.buffers, strict=True)
        }

    def _find_moves(self) -> MovedMemory:
        """From where a description says that arrays lie, for others hold their addresses, to where the GPU has them."""
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
