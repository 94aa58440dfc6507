"""Textures and surfaces: ``tex``, ``tld4``, ``txq``, ``suld``, ``sust``."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import Operand, Space, TextureAddress
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.lane_steps import guarded_mask
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.memory_steps import store_lanes
from gpa_lsp.execution.emulator.engine.textures import Texture
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.operations.textures import TextureRead, gather_texture, sample_cube, sample_texture

_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}
_LAYERED = frozenset({"a1d", "a2d", "acube"})
_CUBES = frozenset({"cube", "acube"})
_CHANNELS = {"r": 0, "g": 1, "b": 2, "a": 3}
Sampler = Callable[[Texture, tuple[Any, ...], Any], TextureRead]


def bind_texture(binder: Binder) -> None:
    """``tex``, ``tld4``, ``txq``, ``suld`` and ``sust``, on textures of one to three dimensions, in layers, and cubes.

    Raises:
        UnsupportedInstruction: other forms.
    """
    match binder.instruction.opcode:
        case "tex" | "tld4":
            _bind_read(binder)
        case "txq" | "suq":
            _bind_query(binder)
        case "suld" | "sust":
            _bind_surface(binder)
        case _:
            raise UnsupportedInstruction


def _find_dimensions(binder: Binder) -> int:
    found = next((_DIMENSIONS[word] for word in binder.instruction.suffixes if word in _DIMENSIONS), None)
    if found is None:
        raise UnsupportedInstruction("texture of this shape")
    return found


def _find_address(binder: Binder) -> TextureAddress:
    operand = binder.instruction.sources[0]
    if not isinstance(operand, TextureAddress):
        raise UnsupportedInstruction("texture operand of this kind")
    return operand


def _bind_read(binder: Binder) -> None:
    instruction = binder.instruction
    operand = _find_address(binder)
    dimensions = _find_dimensions(binder)
    if len(instruction.types) < 2:
        raise UnsupportedInstruction
    result_type, coordinate_type = instruction.types[:2]
    handle = binder.read(operand.handle, ScalarType.U64)
    layer, rest = _split_layer(binder, operand)
    coordinates = [binder.read(one, coordinate_type) for one in rest[:dimensions]]
    slots = [binder.write(one, result_type) for one in flatten(instruction.destinations)]
    sample = _make_sampler(binder, result_type)
    dtype, natural = coordinate_type.natural_dtype, result_type.natural_dtype
    machine, guard, static = binder.machine, binder.guard, binder.static

    def step(fragment: Fragment) -> None:
        lanes = fragment.warps.lanes
        out = [np.zeros(lanes, natural) for _ in slots]
        mask = guarded_mask(fragment, guard)
        places = [np.broadcast_to(read_as(fragment, slot, dtype), (lanes,)) for slot in coordinates]
        layers = None if layer is None else _read_layer(fragment, layer)
        for texture, where in _part_by_handle(machine, fragment, handle, mask, static):
            chosen = np.flatnonzero(where)
            read = sample(texture, tuple(place[chosen] for place in places), None if layers is None else layers[chosen])
            for value, found in zip(out, read.values, strict=False):
                value[chosen] = found
            _trace(machine, fragment, static, texture, chosen=chosen, read=read)
        for slot, value in zip(slots, out, strict=True):
            fragment.registers[slot] = value

    binder.steps.append(step)
    binder.finish()


def _make_sampler(binder: Binder, result_type: ScalarType) -> Sampler:
    instruction = binder.instruction
    if instruction.opcode == "tex" and _CUBES & set(instruction.suffixes):
        return lambda texture, places, layer: sample_cube(
            texture.source, (places[0], places[1], places[2]), result_type, layer
        )
    if instruction.opcode == "tex":
        return lambda texture, places, layer: sample_texture(texture.source, places, result_type, layer)
    if "2d" not in instruction.suffixes:
        raise UnsupportedInstruction("gathering from a texture of this shape")
    channel = next((_CHANNELS[word] for word in instruction.suffixes if word in _CHANNELS), 0)
    return lambda texture, places, layer: gather_texture(texture.source, (places[0], places[1]), channel, result_type)


def _split_layer(binder: Binder, operand: TextureAddress) -> tuple[int | None, list[Operand | None]]:
    """The slot of the layer, which stands first where there are layers, and the other coordinates."""
    given = flatten(operand.coordinates)
    if not _LAYERED & set(binder.instruction.suffixes):
        return None, given
    return binder.read(given[0], ScalarType.U32), given[1:]


def _read_layer(fragment: Fragment, slot: int) -> Value:
    layers = np.broadcast_to(read_as(fragment, slot, np.dtype(np.uint32)), (fragment.warps.lanes,))
    return layers.astype(np.int64)


def _part_by_handle(
    machine: Machine, fragment: Fragment, handle: int, mask: Value, static: int
) -> Iterator[tuple[Texture, Value]]:
    """Textures with the lanes that use them; handles of none are noted."""
    handles = np.broadcast_to(read_as(fragment, handle, np.dtype(np.uint64)), mask.shape)
    for number in np.unique(handles[mask]).tolist():
        where = mask & (handles == number)
        texture = machine.textures.get(number)
        if texture is None:
            machine.faults.add_lanes(
                FaultKind.OUT_OF_BOUNDS,
                f"0x{number:x} is not a texture",
                fragment.warps,
                np.flatnonzero(where),
                instruction=static,
            )
            continue
        yield texture, where


def _trace(
    machine: Machine, fragment: Fragment, static: int, texture: Texture, *, chosen: Value, read: TextureRead
) -> None:
    """Record each texel that lanes read; a filtered read is several executions."""
    if machine.tracer is None or Space.TEXTURE in machine.tracer.settings.spaces_left_out:
        return
    size = texture.source.texels.shape[-1] * texture.source.texels.itemsize
    for texels in read.texels.T:
        mask = np.zeros(fragment.warps.lanes, np.bool_)
        mask[chosen] = texels >= 0
        if not mask.any():
            continue
        addresses = np.zeros(fragment.warps.lanes, np.uint64)
        addresses[chosen] = (texture.region.base + texels * size).astype(np.uint64)
        machine.tracer.record_addresses(
            static, fragment, Space.TEXTURE, size_bytes=size, addresses=addresses, mask=mask
        )


def _bind_query(binder: Binder) -> None:
    """``txq`` and ``suq``: what the texture is."""
    instruction = binder.instruction
    operand = instruction.sources[0]
    source = operand.handle if isinstance(operand, TextureAddress) else getattr(operand, "base", operand)
    axis = next((word for word in instruction.suffixes if word in ("width", "height", "depth")), None)
    if axis is None:
        raise UnsupportedInstruction("query of this property")
    handle = binder.read(source, ScalarType.U64)
    result = binder.write(instruction.destinations[0], ScalarType.U32)
    machine, guard, static = binder.machine, binder.guard, binder.static
    place = {"depth": 0, "height": 1, "width": 2}[axis]

    def step(fragment: Fragment) -> None:
        out = np.zeros(fragment.warps.lanes, np.uint32)
        mask = guarded_mask(fragment, guard)
        for texture, where in _part_by_handle(machine, fragment, handle, mask, static):
            used = place >= 3 - texture.source.dimensions
            out[where] = texture.source.texels.shape[place] if used else 0
        fragment.registers[result] = out

    binder.steps.append(step)
    binder.finish()


def _bind_surface(binder: Binder) -> None:
    """``suld.b`` and ``sust.b``: bytes of a surface, x counted in bytes. What is outside reads zero, or the nearest byte with ``.clamp``."""
    instruction = binder.instruction
    if instruction.suffixes[:1] != ("b",):
        raise UnsupportedInstruction("formatted surfaces")
    operand = _find_address(binder)
    dimensions = _find_dimensions(binder)
    kind = instruction.types[-1]
    is_store = instruction.opcode == "sust"
    vector = flatten(instruction.sources[1:2]) if is_store else flatten(instruction.destinations)
    handle = binder.read(operand.handle, ScalarType.U64)
    layer, rest = _split_layer(binder, operand)
    coordinates = [binder.read(one, ScalarType.S32) for one in rest[:dimensions]]
    if is_store:
        slots = [binder.read(one, kind) for one in vector]
    else:
        slots = [binder.write(one, kind) for one in vector]
    access = Access(
        instruction=binder.static,
        kind=AccessKind.STORE if is_store else AccessKind.LOAD,
        space=Space.GLOBAL,
        dtype=kind.storage_dtype,
        elements=len(slots),
    )
    surface = _Surface(
        machine=binder.machine,
        access=access,
        handle=handle,
        coordinates=coordinates,
        layer=layer,
        slots=slots,
        guard=binder.guard,
        clamps="clamp" in instruction.suffixes,
        traps="trap" in instruction.suffixes,
    )
    binder.steps.append(surface.store if is_store else surface.load)
    binder.finish()


class _Surface(Struct, frozen=True, kw_only=True):
    """One ``suld`` or ``sust``."""

    machine: Machine  # knows the surfaces
    access: Access  # what is read or written
    handle: int  # slot of the handle
    coordinates: list[int]  # slots of x (in bytes), y and z
    layer: int | None  # slot of the layer; None without layers
    slots: list[int]  # of the values
    guard: int | None  # slot of its guard; None without one
    clamps: bool  # coordinates outside mean the nearest ones inside
    traps: bool  # they are an error

    def load(self, fragment: Fragment) -> None:
        """Read all elements; zeros outside."""
        out = [np.zeros(fragment.warps.lanes, self.access.dtype) for _ in self.slots]
        for views, index, allowed in self._resolve(fragment):
            for value, view in zip(out, views, strict=True):
                found = view[index] if type(index) is int else view.take(index, mode="wrap")
                np.copyto(value, found, where=allowed)
        for slot, value in zip(self.slots, out, strict=True):
            fragment.registers[slot] = value

    def store(self, fragment: Fragment) -> None:
        """Write all elements; nothing outside."""
        for views, index, allowed in self._resolve(fragment):
            for slot, view in zip(self.slots, views, strict=True):
                store_lanes(view, index, read_as(fragment, slot, self.access.dtype), allowed)

    def _resolve(self, fragment: Fragment) -> Iterator[tuple[tuple[Value, ...], Any, Value]]:
        """Views, index and mask of the lanes of each surface."""
        machine, access = self.machine, self.access
        mask = guarded_mask(fragment, self.guard)
        places = [
            np.broadcast_to(read_as(fragment, slot, np.dtype(np.int32)), mask.shape).astype(np.int64)
            for slot in self.coordinates
        ]
        if self.layer is not None:
            places += [np.zeros_like(places[0])] * (2 - len(places)) + [_read_layer(fragment, self.layer)]
        for texture, where in _part_by_handle(machine, fragment, self.handle, mask, access.instruction):
            offset, inside = _find_bytes(texture, places, access.bytes, clamps=self.clamps)
            wrong = np.flatnonzero(where & ~inside)
            if self.traps and len(wrong):
                message = f"coordinates outside the surface {texture.source.name}"
                machine.faults.add_lanes(
                    FaultKind.OUT_OF_BOUNDS, message, fragment.warps, wrong, instruction=access.instruction
                )
            address = (texture.region.base + offset).astype(np.uint64)
            views, index, allowed, _ = machine.arena.resolve(access, fragment.warps, address, where & inside)
            if machine.tracer is not None:
                machine.tracer.record(access, fragment, Space.TEXTURE, address, allowed)
            yield views, index, allowed


def _find_bytes(texture: Texture, places: list[Value], size: int, *, clamps: bool) -> tuple[Value, Value]:
    """Offset of each lane's bytes in the surface, and whether they are in it."""
    depth, height, width, channels = texture.source.texels.shape
    pitch = width * channels * texture.source.texels.itemsize
    limits = (pitch - size, height - 1, depth - 1)
    steps = (1, pitch, pitch * height)
    offset: Value = np.zeros(len(places[0]), np.int64)
    inside: Value = np.ones(len(places[0]), np.bool_)
    for place, limit, step in zip(places, limits, steps, strict=False):
        within = np.clip(place, 0, max(limit, 0))
        inside &= (place == within) | clamps
        offset += within * step
    return offset, inside
