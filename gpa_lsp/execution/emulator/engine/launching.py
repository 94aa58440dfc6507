"""A launch → the machine that runs it, its memory laid out and filled: :func:`build_machine`."""

from collections import deque
from collections.abc import Mapping
from itertools import count
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space, SpecialRegister
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import StaticInstruction, list_reachable
from gpa_lsp.execution.emulator.engine.arena import Arena, Region, fill_variable, view_bytes
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.functions import bind_function
from gpa_lsp.execution.emulator.engine.geometry import Geometry
from gpa_lsp.execution.emulator.engine.machine import (
    TEXTURE_HANDLE_BASE,
    TEXTURE_HANDLE_STEP,
    Machine,
    Texture,
    lay_out_shared,
)
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.engine.operands import WORKSPACE_REGISTERS
from gpa_lsp.execution.emulator.engine.tracing import Tracer
from gpa_lsp.execution.emulator.model import Buffer
from gpa_lsp.execution.launches.launch import LaunchDescription, find_cluster
from gpa_lsp.execution.launches.model import BufferInput, LaunchInputs
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count

_ALIGNMENT_BYTES = 16
HEAP_NAME = "device heap"
# Freed pieces that messages name by their own address and size; older ones are joined with their neighbours
_MOST_FREED = 4096
# Threads that the largest GPU holds at once: a cooperative launch needs all of its blocks to be resident
_MOST_RESIDENT_THREADS = 2048 * 192
WORKSPACE_BYTES = 64
# Workspace by which the blocks of a cooperative launch meet: its own size, and a barrier not yet reached. Source: the headers of cooperative groups
# in CUDA 13.0 (``details/driver_abi.h``).
WORKSPACE = (8).to_bytes(4, "little") + bytes(4)


class Heap:
    """Hands out pieces of one region, first fit.

    Args:
        region: where they lie.

    Attributes:
        region: where they lie.
        end: behind the last byte that was ever handed out.
        freed: addresses and sizes in bytes of the pieces that were given back, the last one first; not all of very many.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self.end = region.base
        self._free: list[tuple[int, int]] = [(region.base, region.size_bytes)]
        self._taken: dict[int, int] = {}
        self.freed: deque[tuple[int, int]] = deque(maxlen=_MOST_FREED)

    def allocate(self, size_bytes: int) -> int:
        """The address of so many bytes; 0 when there is no room or none are wanted."""
        if size_bytes <= 0:
            return 0
        wanted = -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        place = self._find_place(wanted)
        if place is None:
            self._free = self._join()
            place = self._find_place(wanted)
        if place is None:
            return 0
        start, size = self._free[place]
        self.end = max(self.end, start + wanted)
        self._free[place : place + 1] = [(start + wanted, size - wanted)] if size > wanted else []
        self._taken[start] = size_bytes
        return start

    def _find_place(self, wanted: int) -> int | None:
        return next((place for place, (_, size) in enumerate(self._free) if size >= wanted), None)

    def _join(self) -> list[tuple[int, int]]:
        """Free memory by address; neighbours are joined."""
        found: list[tuple[int, int]] = []
        for start, size in sorted(self._free):
            if found and sum(found[-1]) == start:
                found[-1] = (found[-1][0], found[-1][1] + size)
            else:
                found.append((start, size))
        return found

    def list_free(self) -> list[tuple[int, int]]:
        """Addresses and sizes in bytes of freed memory not handed out again, by address; neighbours are joined."""
        return [(start, min(size, self.end - start)) for start, size in self._join() if start < self.end]

    def list_pieces(self) -> list[int]:
        """Addresses of the pieces that are handed out."""
        return list(self._taken)

    def free(self, address: int) -> None:
        """Free a piece; addresses that were not handed out are ignored."""
        size_bytes = self._taken.pop(address, None)
        if size_bytes is None:
            return
        self.freed.appendleft((address, size_bytes))
        size = -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        if self._free and self._free[-1][0] == address + size:
            self._free[-1] = (address, size + self._free[-1][1])
            return
        self._free.insert(0, (address, size))


_HEAP_BYTES = 8 << 20  # what CUDA gives device code without being asked


def build_machine(
    module: PtxModule,
    kernel: PtxFunction,
    launch: LaunchDescription,
    inputs: LaunchInputs,
    *,
    meter: Meter,
    faults: FaultLog,
    instructions: tuple[StaticInstruction, ...],
    tracer: Tracer | None,
    arrays: Mapping[str, npt.NDArray[Any]],
) -> Machine:
    """Lay out memory and fill it.

    Args:
        tracer: None when nothing is recorded.

    Raises:
        BudgetReached: the arrays need more memory than allowed.
        InputError: an array of ``arrays`` is unknown or too large.
    """
    functions = list(list_reachable(module, kernel.name))
    offsets, static_bytes = lay_out_shared(module, functions, kernel)
    arena = Arena(meter, faults)
    regions = _lay_out(
        arena,
        module,
        inputs,
        heap_bytes=min(_HEAP_BYTES, max(meter.left_bytes // 4, 4096)),
        meets=_meets_all_blocks(functions, launch),
    )
    machine = Machine(
        module=module,
        kernel=kernel,
        geometry=Geometry(
            grid=launch.grid,
            block=launch.block,
            static_shared_bytes=static_bytes,
            dynamic_shared_bytes=launch.shared_bytes,
            workspace=0 if regions.workspace is None else regions.workspace.base,
            cluster=find_cluster(kernel, launch),
        ),
        meter=meter,
        faults=faults,
        arena=arena,
        tracer=tracer,
        instructions=instructions,
        shared_offsets=offsets,
    )
    _number_blocks(machine, functions)
    _fill(machine, inputs, regions, arrays)
    machine.bind = bind_function
    return machine


def _fill(machine: Machine, inputs: LaunchInputs, regions: "_Regions", arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Fill memory with the launch's arrays, variables and parameters."""
    machine.variables, machine.parameters = regions.variables, regions.parameters
    machine.heap = None if regions.heap is None else Heap(regions.heap)
    if regions.workspace is not None:
        machine.arena.bytes_of(regions.workspace)[: len(WORKSPACE)] = np.frombuffer(WORKSPACE, np.uint8)
    _check_names(arrays, {one.name for one in inputs.buffers} | set(regions.variables))
    for region, buffer in zip(regions.buffers, inputs.buffers, strict=True):
        _fill_buffer(machine.arena.bytes_of(region), buffer, arrays.get(buffer.name))
    _fill_variables(machine, inputs, arrays)
    _add_textures(machine, inputs, regions.buffers)
    _fill_parameters(machine, inputs, regions.buffers)


class _Regions(Struct, frozen=True, kw_only=True):
    """Regions of a launch: arrays, variables by name, parameters, the heap where ``malloc`` is called, and the workspace of cooperative launches."""

    buffers: list[Region]
    variables: dict[str, Region]
    parameters: Region
    heap: Region | None
    workspace: Region | None


def _meets_all_blocks(functions: list[PtxFunction], launch: LaunchDescription) -> bool:
    """Whether code reads the address of the cooperative workspace, and the launch can be a cooperative one."""
    return prod(launch.grid) * prod(launch.block) <= _MOST_RESIDENT_THREADS and any(
        isinstance(operand, SpecialRegister) and operand.name in WORKSPACE_REGISTERS
        for function in functions
        for instruction in function.instructions
        for operand in instruction.sources
    )


def _lay_out(arena: Arena, module: PtxModule, inputs: LaunchInputs, *, heap_bytes: int, meets: bool) -> _Regions:
    wanted = [
        name
        for name, one in module.variables.items()
        if one.space in (Space.GLOBAL, Space.CONST) and not one.is_texture
    ]
    places = [one.base_address for one in inputs.buffers]
    given = {number: _add_buffer(arena, inputs.buffers[number], base) for number, base in enumerate(places) if base}
    fixed = {
        name: _add_variable(arena, module.variables[name], inputs)
        for name in wanted
        if name in inputs.variable_addresses
    }
    buffers = [given.get(number) or _add_buffer(arena, one, None) for number, one in enumerate(inputs.buffers)]
    variables = {name: fixed.get(name) or _add_variable(arena, module.variables[name], inputs) for name in wanted}
    allocates = any(name in module.functions for name in ("malloc", "free"))
    regions = _Regions(
        buffers=buffers,
        variables=variables,
        parameters=arena.add("parameters", Space.PARAM, max(len(inputs.parameters), 1), is_array=False),
        heap=arena.add(HEAP_NAME, Space.GLOBAL, heap_bytes, is_array=False) if allocates else None,
        workspace=arena.add("grid workspace", Space.GLOBAL, WORKSPACE_BYTES, is_array=False) if meets else None,
    )
    arena.allocate()
    return regions


def _add_buffer(arena: Arena, buffer: BufferInput, base: int | None) -> Region:
    details: dict[str, Any] = {
        "element_bytes": buffer.element.bytes,
        "argument": buffer.argument,
        "dtype": buffer.data.dtype,
    }
    if base is None:
        return arena.add(buffer.name, Space.GLOBAL, buffer.data.nbytes, **details)
    return arena.add_at(base, buffer.name, Space.GLOBAL, buffer.data.nbytes, **details)


def _fill_buffer(memory: npt.NDArray[np.uint8], buffer: BufferInput, given: npt.NDArray[Any] | None) -> None:
    """Fill a region, which is zeros; arrays of zeros are left alone, so that their pages are never touched."""
    if not buffer.is_zero:
        memory[:] = view_bytes(buffer.data)
    if given is None:
        return
    if given.nbytes > len(memory):
        raise InputError(
            f"array {buffer.name} has {format_count(given.nbytes)} bytes, but the launch describes {format_count(len(memory))}",
            remedy="describe the array as large as it is",
        )
    memory[: given.nbytes] = view_bytes(given)


def _check_names(arrays: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(arrays) - known)
    if unknown:
        raise InputError(f"no array {unknown[0]}", remedy=f"there are: {', '.join(sorted(known)) or 'none'}")


def _number_blocks(machine: Machine, functions: list[PtxFunction]) -> None:
    place = 0
    if machine.tracer is None or not machine.tracer.settings.entries:
        return
    for function in functions:
        machine.block_bases[function.name] = place
        place += len(find_blocks(function).first)


def _add_variable(arena: Arena, variable: PtxVariable, inputs: LaunchInputs) -> Region:
    given = inputs.variables.get(variable.name)
    own = np.dtype(np.uint8) if variable.type is ScalarType.B128 else variable.type.natural_dtype
    details: dict[str, Any] = {
        "element_bytes": variable.type.bytes if given is None else given.dtype.itemsize,
        "dtype": own if given is None else given.dtype,
        "is_array": given is not None or not variable.name.startswith(("$", "__unnamed")),
    }
    base = inputs.variable_addresses.get(variable.name)
    size = max(variable.size_bytes, 1)
    if base is None:
        return arena.add(variable.name, variable.space, size, **details)
    return arena.add_at(base, variable.name, variable.space, size, **details)


def _fill_variables(machine: Machine, inputs: LaunchInputs, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    for name, region in machine.variables.items():
        given = arrays.get(name, inputs.variables.get(name))
        memory, variable = machine.arena.bytes_of(region), machine.module.variables[name]
        fill_variable(memory, variable, lambda symbol: machine.find_symbol(symbol, machine.kernel), given)


def _fill_parameters(machine: Machine, inputs: LaunchInputs, regions: list[Region]) -> None:
    assert machine.parameters is not None
    data = machine.arena.bytes_of(machine.parameters)
    data[: len(inputs.parameters)] = np.frombuffer(inputs.parameters, np.uint8)
    for slot in inputs.pointers:
        address = regions[slot.buffer].base + slot.offset_bytes
        start = slot.parameter_offset_bytes
        data[start : start + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
    for handle, texture in machine.textures.items():
        offset = texture.source.parameter_offset_bytes
        if offset is not None:
            data[offset : offset + 8] = np.frombuffer(handle.to_bytes(8, "little"), np.uint8)


def _add_textures(machine: Machine, inputs: LaunchInputs, regions: list[Region]) -> None:
    taken = {one.handle for one in inputs.textures}
    free = (one for one in count(TEXTURE_HANDLE_BASE, TEXTURE_HANDLE_STEP) if one not in taken)
    for source in inputs.textures:
        handle = next(free) if source.handle is None else source.handle
        region = regions[source.buffer]
        texels = machine.arena.bytes_of(region).view(source.texels.dtype)[: source.texels.size]
        seen = replace(source, texels=texels.reshape(source.texels.shape))
        machine.textures[handle] = Texture(source=seen, region=region)
        if source.parameter_offset_bytes is not None or source.handle is not None:
            continue
        variable = machine.variables.get(source.name)
        if variable is None:
            machine.texture_references[source.name] = handle
        else:
            machine.arena.bytes_of(variable)[:8] = np.frombuffer(handle.to_bytes(8, "little"), np.uint8)


def list_buffers(machine: Machine, inputs: LaunchInputs) -> tuple[Buffer, ...]:
    """All regions as a trace names them, by ascending base."""
    textures = {texture.region.name for texture in machine.textures.values()}
    spaces = {one.name: one.space for one in inputs.buffers}
    return tuple(
        Buffer(
            name=region.name,
            space=Space.TEXTURE
            if region.name in textures and spaces.get(region.name) is Space.TEXTURE
            else region.space,
            base=region.base,
            size_bytes=region.size_bytes,
            element_bytes=region.element_bytes,
            argument=region.argument,
        )
        for region in machine.arena.laid_out
        if region.is_array or region.name == HEAP_NAME
    )


def collect_arrays(machine: Machine) -> dict[str, npt.NDArray[Any]]:
    """Contents of the arrays, with the dtype of their elements, by name: views of the emulated memory.

    Variables come with the dtype they were given, or that of their declaration: bytes for structures.
    """
    out: dict[str, npt.NDArray[Any]] = {}
    for region in machine.arena.regions:
        if not region.is_array:
            continue
        data = machine.arena.bytes_of(region)
        size = len(data) // region.dtype.itemsize * region.dtype.itemsize
        out[region.name] = data[:size].view(region.dtype)
    return out
