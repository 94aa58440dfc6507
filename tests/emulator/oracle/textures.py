"""Reads of textures in numpy: :func:`sample_texture`, :func:`sample_cube`, :func:`gather_texture`.

Source: CUDA C++ Programming Guide, "Texture Fetching" (nearest-point sampling, linear filtering with weights in 1/256, address modes), "Layered
Textures" and "Cubemap Textures"; PTX ISA 9.0, section 9.7.10 (tex, tld4). Only the base level of a texture exists.
"""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_limits
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


def sample_texture(
    texture: TextureInput, coordinates: tuple[Any, ...], result_type: ScalarType, layer: Indexes | None = None
) -> TextureRead:
    """Read a texture as ``tex.1d|2d|3d|a1d|a2d.v4`` does.

    Args:
        layer: int64[n], of a layered texture; the nearest one there is is read. None for the first.
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
    with np.errstate(over="ignore"):  # what is too large for a half is infinite
        values = numbers.astype(np.float16 if result_type is S.F16 else np.float32)
    bits = values.view(np.uint16) if result_type is S.F16 else values
    if result_type.is_integer:
        bits = bits.view(result_type.natural_dtype)
    columns = [np.ascontiguousarray(bits[:, place]) for place in range(bits.shape[1])]
    columns += [np.zeros(len(bits), bits.dtype)] * (4 - len(columns))
    return columns[0], columns[1], columns[2], columns[3]
