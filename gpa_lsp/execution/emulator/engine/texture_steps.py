"""Textures and surfaces: ``tex`` and ``tld4``."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Operand, Space, TextureAddress
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, guarded_mask
from gpa_lsp.execution.emulator.engine.machine import Machine, Texture
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.model import flatten
from gpa_lsp.execution.emulator.semantics.modifiers import find_limits
from gpa_lsp.execution.launches.model import TextureInput
from gpa_lsp.foundation.records import ColumnRecord

S = ScalarType
Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]
_FARTHEST = 2.0**40
_FACES = 6


class TextureRead(ColumnRecord, frozen=True, kw_only=True):
    """Texels read by n lanes."""

    # four arrays [n] of the result type's natural dtype; channels the texture lacks are 0
    values: tuple[Any, Any, Any, Any]
    # int64[n, k], linear indexes of the texels read by each lane, in the order z, y, x of the array; −1 for none (outside, with border addresses). k
    # is 1 without filtering, else 2, 4 or 8.
    texels: Indexes


_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}
_LAYERED = frozenset({"a1d", "a2d", "acube"})
_CUBES = frozenset({"cube", "acube"})
_CHANNELS = {"r": 0, "g": 1, "b": 2, "a": 3}
Sampler = Callable[[Texture, tuple[Any, ...], Any], TextureRead]


def find_surface_shape(suffixes: tuple[str, ...]) -> tuple[int, bool]:
    """Number of coordinates of an instruction, and whether the index of a layer precedes them.

    Raises:
        UnsupportedInstruction: the shape is not known.
    """
    found = next((_DIMENSIONS[word] for word in suffixes if word in _DIMENSIONS), None)
    if found is None:
        raise UnsupportedInstruction("texture of this shape")
    return found, not _LAYERED.isdisjoint(suffixes)


def _find_address(binder: Binder) -> TextureAddress:
    operand = binder.instruction.sources[0]
    if not isinstance(operand, TextureAddress):
        raise UnsupportedInstruction("texture operand of this kind")
    return operand


def bind_read(binder: Binder) -> None:
    """``tex`` and ``tld4``."""
    instruction = binder.instruction
    operand = _find_address(binder)
    dimensions, _ = find_surface_shape(instruction.suffixes)
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
    """The slot of the layer, None where there are none, and the other coordinates."""
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
    """Textures with the lanes that use them; invalid handles are faults."""
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


# Reading textures: :func:`sample_texture`, :func:`sample_cube`, :func:`gather_texture`.
#
# Source: CUDA C++ Programming Guide, "Texture Fetching" (nearest-point sampling, linear filtering with weights in
# 1/256, address modes); PTX ISA 9.0, section 9.7.10 (tex, tld4); Programming Guide, "Layered Textures" and "Cubemap
# Textures". Only the base level of a texture exists; levels of detail are passed over.


def sample_texture(
    texture: TextureInput, coordinates: tuple[Any, ...], result_type: ScalarType, layer: Indexes | None = None
) -> TextureRead:
    """Read a texture as ``tex.1d|2d|3d|a1d|a2d.v4`` does.

    Args:
        layer: int64[n], of a layered texture; the nearest one there is is read. None for the first.

    Raises:
        ValueError: fewer coordinates than dimensions.
    """
    axes = _prepare_axes(texture, coordinates)
    sizes = _find_sizes(texture)
    start = _find_layer(texture, layer)
    if np.issubdtype(np.asarray(coordinates[0]).dtype, np.floating) and _filters(texture):
        return _filter_linearly(texture, axes, sizes, result_type, start)
    is_fetch = texture.dimensions == 1 and not np.issubdtype(np.asarray(coordinates[0]).dtype, np.floating)
    mode = "border" if is_fetch else texture.address_mode  # reading linear memory beyond its end gives 0
    places = [_address(np.floor(axis), size, mode, texture) for axis, size in zip(axes, sizes, strict=True)]
    index, inside = _join(places, sizes)
    index = index + start
    texels = _read_texels(texture, index, inside)
    return TextureRead(values=_convert(texels, texture, result_type), texels=np.where(inside, index, -1)[:, None])


def sample_cube(
    texture: TextureInput, direction: tuple[Any, Any, Any], result_type: ScalarType, cube: Indexes | None = None
) -> TextureRead:
    """Read a cubemap as ``tex.cube|acube.v4`` does, edges not filtered across: the axis a direction is longest in chooses the face.

    Args:
        result_type: see :func:`sample_texture`.
        cube: int64[n], of a layered cubemap; None for the first.
    """
    x, y, z = (np.nan_to_num(np.asarray(one, np.float64)) for one in direction)
    sizes = np.abs(x), np.abs(y), np.abs(z)
    is_x = (sizes[0] >= sizes[1]) & (sizes[0] >= sizes[2])
    is_y = ~is_x & (sizes[1] >= sizes[2])
    longest = np.maximum(np.where(is_x, sizes[0], np.where(is_y, sizes[1], sizes[2])), np.finfo(np.float32).tiny)
    face = np.where(is_x, np.where(x < 0, 1, 0), np.where(is_y, np.where(y < 0, 3, 2), np.where(z < 0, 5, 4)))
    across = np.where(is_x, np.where(x < 0, z, -z), np.where(is_y | (z >= 0), x, -x))
    down = np.where(is_y, np.where(y < 0, -z, z), -y)
    places = tuple(((one / longest + 1.0) / 2.0).astype(np.float32) for one in (across, down))
    seen = replace(texture, dimensions=2, is_normalized=True, address_mode="clamp")
    return sample_texture(seen, places, result_type, face if cube is None else cube * _FACES + face)


def _find_layer(texture: TextureInput, layer: Indexes | None) -> Any:
    """Texels before the first of each lane's layer."""
    if layer is None:
        return 0
    layers, height, width, _ = texture.texels.shape
    return np.clip(layer, 0, layers - 1) * (height * width)


def gather_texture(
    texture: TextureInput, coordinates: tuple[Any, Any], channel: int, result_type: ScalarType
) -> TextureRead:
    """Read one channel of the four texels around a point as ``tld4.2d`` does: lower left, lower right, upper right, upper left."""
    axes = _prepare_axes(texture, coordinates)
    sizes = _find_sizes(texture)
    first = [np.floor(axis - 0.5) for axis in axes]
    values, indexes = [], []
    for right, lower in ((0, 1), (1, 1), (1, 0), (0, 0)):
        places = [
            _address(start + step, size, texture.address_mode, texture)
            for start, step, size in zip(first, (right, lower), sizes, strict=True)
        ]
        index, inside = _join(places, sizes)
        texels = _read_texels(texture, index, inside)
        values.append(_convert(texels, texture, result_type)[channel])
        indexes.append(np.where(inside, index, -1))
    return TextureRead(values=(values[0], values[1], values[2], values[3]), texels=np.stack(indexes, axis=1))


def _filters(texture: TextureInput) -> bool:
    """Whether reads are filtered: only those as floating point can be."""
    return texture.is_linear_filter and (texture.element.is_float or texture.reads_normalized)


def _find_sizes(texture: TextureInput) -> tuple[int, ...]:
    """Texels in x, y, z."""
    depth, height, width, _ = texture.texels.shape
    return (width, height, depth)[: texture.dimensions]


def _prepare_axes(texture: TextureInput, coordinates: tuple[Any, ...]) -> list[Floats]:
    """Coordinates in texels; NaN counts as 0, and what is far outside is brought near enough for integers."""
    if len(coordinates) < texture.dimensions:
        raise ValueError(f"{len(coordinates)} coordinates for {texture.dimensions} dimensions")
    axes = []
    for values, size in zip(coordinates, _find_sizes(texture), strict=False):
        given = np.atleast_1d(np.asarray(values))
        axis = np.nan_to_num(given.astype(np.float64), nan=0.0, posinf=_FARTHEST, neginf=-_FARTHEST)
        if texture.is_normalized and np.issubdtype(given.dtype, np.floating):
            axis = _fold(axis, texture.address_mode) * size
        axes.append(np.clip(axis, -_FARTHEST, _FARTHEST))
    return [np.broadcast_to(axis, np.broadcast_shapes(*(other.shape for other in axes))) for axis in axes]


def _fold(axis: Floats, mode: str) -> Floats:
    """Normalized coordinates brought into [0, 1) by wrapping or mirroring."""
    if mode == "wrap":
        return axis - np.floor(axis)
    if mode == "mirror":
        whole = np.floor(axis)
        fraction = axis - whole
        return np.where(np.mod(whole, 2) == 0, fraction, 1.0 - fraction)
    return axis


def _address(place: Floats, size: int, mode: str, texture: TextureInput) -> tuple[Indexes, npt.NDArray[np.bool_]]:
    """Texel numbers along one axis, and whether there is such a texel."""
    index = place.astype(np.int64)
    if mode == "border":
        return np.clip(index, 0, size - 1), (index >= 0) & (index < size)
    if mode == "wrap" and texture.is_normalized:
        index = np.mod(index, size)
    elif mode == "mirror" and texture.is_normalized:
        index = np.mod(index, 2 * size)
        index = np.minimum(index, 2 * size - 1 - index)
    return np.clip(index, 0, size - 1), np.ones(len(index), np.bool_)


def _join(
    places: list[tuple[Indexes, npt.NDArray[np.bool_]]], sizes: tuple[int, ...]
) -> tuple[Indexes, npt.NDArray[np.bool_]]:
    """Linear texel indexes, and whether all axes are inside."""
    index, inside = places[-1]
    for (place, is_inside), size in zip(reversed(places[:-1]), reversed(sizes[:-1]), strict=True):
        index = index * size + place
        inside = inside & is_inside
    return index, inside


def _read_texels(texture: TextureInput, index: Indexes, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.generic]:
    """[n, channels]; zeros outside."""
    channels = texture.texels.shape[3]
    texels = texture.texels.reshape(-1, channels)[index]
    texels[~inside] = 0
    return texels


def _as_numbers(texels: npt.NDArray[Any], texture: TextureInput) -> Floats:
    """Texels as float64: halves widened, integers as fractions where the texture says so."""
    if texture.element is S.F16:
        return texels.view(np.float16).astype(np.float64)
    if texture.element is S.BF16:
        return (texels.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    numbers = texels.astype(np.float64)
    if texture.reads_normalized and texture.element.is_integer:
        limit = float(find_limits(texture.element)[1])
        return np.maximum(numbers / limit, -1.0)
    return numbers


def _filter_linearly(
    texture: TextureInput, axes: list[Floats], sizes: tuple[int, ...], result_type: ScalarType, first_texel: Any
) -> TextureRead:
    """Weighted sums of the 2, 4 or 8 nearest texels."""
    starts = [np.floor(axis - 0.5) for axis in axes]
    weights = [np.rint((axis - 0.5 - start) * 256.0) / 256.0 for axis, start in zip(axes, starts, strict=True)]
    total: Any = 0.0
    indexes = []
    for corner in product((0, 1), repeat=len(axes)):
        places = [
            _address(start + step, size, texture.address_mode, texture)
            for start, step, size in zip(starts, corner, sizes, strict=True)
        ]
        index, inside = _join(places, sizes)
        index = index + first_texel
        weight: Any = 1.0
        for step, fraction in zip(corner, weights, strict=True):
            weight = weight * (fraction if step else 1.0 - fraction)
        total = total + weight[:, None] * _as_numbers(_read_texels(texture, index, inside), texture)
        indexes.append(np.where(inside, index, -1))
    return TextureRead(values=_spread(total, result_type), texels=np.stack(indexes, axis=1))


def _convert(texels: npt.NDArray[Any], texture: TextureInput, result_type: ScalarType) -> tuple[Any, Any, Any, Any]:
    """Texels as the result type, without filtering: integers keep their value."""
    if result_type.is_integer and texture.element.is_integer:
        dtype = result_type.natural_dtype
        columns = [texels[:, place].astype(dtype) for place in range(texels.shape[1])]
        columns += [np.zeros(len(texels), dtype)] * (4 - len(columns))
        return columns[0], columns[1], columns[2], columns[3]
    return _spread(_as_numbers(texels, texture), result_type)


def _spread(numbers: Floats, result_type: ScalarType) -> tuple[Any, Any, Any, Any]:
    """float64[n, channels] as four arrays. An integer result gets the bits of the float32."""
    values = numbers.astype(np.float16 if result_type is S.F16 else np.float32)
    bits = values.view(np.uint16) if result_type is S.F16 else values
    if result_type.is_integer:
        bits = bits.view(result_type.natural_dtype)
    columns = [np.ascontiguousarray(bits[:, place]) for place in range(bits.shape[1])]
    columns += [np.zeros(len(bits), bits.dtype)] * (4 - len(columns))
    return columns[0], columns[1], columns[2], columns[3]
