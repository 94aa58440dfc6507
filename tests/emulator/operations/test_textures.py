"""Texture reads against the programming guide's formulas, one lane at a time."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.texture_steps import gather_texture, sample_cube, sample_texture
from gpa_lsp.execution.launches.model import TextureInput

S = ScalarType
RANDOM = np.random.Generator(np.random.PCG64(8))


def make(
    texels: np.ndarray,
    element: ScalarType = S.F32,
    *,
    linear: bool = False,
    mode: str = "clamp",
    normalized: bool = False,
    fractions: bool = False,
) -> TextureInput:
    """A texture of [z, y, x, channels]."""
    dimensions = 3 if texels.shape[0] > 1 else 2 if texels.shape[1] > 1 else 1
    return TextureInput(
        name="texture",
        buffer=0,
        texels=texels,
        element=element,
        dimensions=dimensions,
        is_linear_filter=linear,
        address_mode=mode,
        is_normalized=normalized,
        reads_normalized=fractions,
        parameter_offset_bytes=None,
    )


def pick(texels: np.ndarray, x: int, mode: str) -> float:
    """One texel of a row; 0 outside when there is a border."""
    size = len(texels)
    if mode == "border":
        return float(texels[x]) if 0 <= x < size else 0.0
    if mode == "wrap":
        x %= size
    if mode == "mirror":
        x %= 2 * size
        x = x if x < size else 2 * size - 1 - x
    return float(texels[min(max(x, 0), size - 1)])


def fold(x: float, mode: str) -> float:
    if mode == "wrap":
        return x - math.floor(x)
    if mode == "mirror":
        fraction = x - math.floor(x)
        return fraction if math.floor(x) % 2 == 0 else 1 - fraction
    return x


COORDINATES = np.float32([-3.7, -1, -0.51, -0.25, 0, 0.3, 0.49, 0.5, 0.99, 1, 1.26, 2.5, 5.5, 6.9, 7, 8.2, 100])


@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror"])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_one_dimension(mode: str, *, linear: bool, normalized: bool) -> None:
    if not normalized and mode in ("wrap", "mirror"):
        return
    texels = RANDOM.standard_normal(8).astype(np.float32)
    texture = make(texels.reshape(1, 1, 8, 1), linear=linear, mode=mode, normalized=normalized)
    coordinates = COORDINATES / np.float32(4) if normalized else COORDINATES
    found = sample_texture(texture, (coordinates,), S.F32)
    for lane, given in enumerate(coordinates.tolist()):
        x = fold(given, mode) * 8 if normalized else given
        if linear:
            start = math.floor(x - 0.5)
            weight = round((x - 0.5 - start) * 256) / 256
            wanted = (1 - weight) * pick(texels, start, mode) + weight * pick(texels, start + 1, mode)
        else:
            wanted = pick(texels, math.floor(x), mode)
        assert found.values[0][lane] == np.float32(wanted), given
    assert found.texels.shape == (len(coordinates), 2 if linear else 1)
    assert not found.values[1].any()


def test_two_and_three_dimensions() -> None:
    texels = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
    solid = make(texels)
    x, y, z = np.float32([0.5, 3.9, 9]), np.float32([0, 2, -1]), np.float32([1.5, 0, 0])
    found = sample_texture(solid, (x, y, z), S.F32)
    assert np.array_equal(np.stack(found.values, 1), texels[[1, 0, 0], [0, 2, 0], [0, 3, 3]])
    assert found.texels[:, 0].tolist() == [12, 11, 3]
    flat = make(texels[:1], linear=True)
    found = sample_texture(flat, (np.float32([1.0]), np.float32([1.0])), S.F32)
    assert found.values[0][0] == texels[0, :2, :2, 0].mean()
    assert sorted(found.texels[0].tolist()) == [0, 1, 4, 5]


def test_integers_and_fractions() -> None:
    texels = np.array([0, 127, 255, 7], np.uint8).reshape(1, 1, 4, 1)
    whole = make(texels, S.U8)
    numbers = np.int32([0, 1, 2, 4, -1])
    assert sample_texture(whole, (numbers,), S.U32).values[0].tolist() == [0, 127, 255, 0, 0]
    assert sample_texture(whole, (numbers,), S.U32).texels[:, 0].tolist() == [0, 1, 2, -1, -1]
    fractions = make(texels, S.U8, fractions=True)
    assert sample_texture(fractions, (numbers[:3],), S.F32).values[0].tolist() == [0, np.float32(127 / 255), 1]
    signed = make(np.array([-128, -127, 127, 0], np.int8).reshape(1, 1, 4, 1), S.S8, fractions=True)
    assert sample_texture(signed, (numbers[:3],), S.F32).values[0].tolist() == [-1, -1, 1]
    filtered = make(texels, S.U8, fractions=True, linear=True)
    assert sample_texture(filtered, (np.float32([1.0]),), S.F32).values[0][0] == np.float32(127 / 255 / 2)


def test_halves() -> None:
    texels = np.float16([1.5, -2, 3, 4]).view(np.uint16).reshape(1, 1, 4, 1)
    texture = make(texels, S.F16)
    assert sample_texture(texture, (np.int32([0, 1]),), S.F32).values[0].tolist() == [1.5, -2]
    assert sample_texture(texture, (np.int32([0, 1]),), S.F16).values[0].view(np.float16).tolist() == [1.5, -2]


def test_gathering_four_texels() -> None:
    texels = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    found = gather_texture(make(texels), (np.float32([1.0, 0.0]), np.float32([1.0, 0.0])), 0, S.F32)
    assert np.stack(found.values, 1).tolist() == [[4, 5, 1, 0], [0, 0, 0, 0]]


def test_layers_have_texels_of_their_own_and_the_nearest_one_there_is_counts() -> None:
    texels = np.arange(3 * 2 * 4, dtype=np.float32).reshape(3, 2, 4, 1)
    layered = replace(make(texels, linear=True), dimensions=2)
    layers = np.int64([0, 2, 9])
    found = sample_texture(layered, (np.float32([0.5, 3.5, 1.0]), np.float32([0.5, 1.5, 0.5])), S.F32, layers)
    assert found.values[0].tolist() == [0, 23, 16.5]
    assert set(found.texels[2].tolist()) <= set(range(16, 24))
    lines = replace(make(texels[:, :1]), dimensions=1)
    found = sample_texture(lines, (np.float32([1.5, 9.0]),), S.F32, np.int64([1, 2]))
    assert found.values[0].tolist() == [texels[1, 0, 1, 0], texels[2, 0, 3, 0]]


def test_the_longest_axis_of_a_direction_chooses_the_face_of_a_cube() -> None:
    faces = np.broadcast_to(np.arange(12, dtype=np.float32).reshape(12, 1, 1, 1), (12, 2, 2, 1)).copy()
    cube = replace(make(faces), dimensions=2)
    x, y, z = np.float32([[5, 1, 1], [-5, 1, 1], [1, 5, 1], [1, -5, 1], [1, 1, 5], [1, 1, -5]]).T
    assert sample_cube(cube, (x, y, z), S.F32).values[0].tolist() == [0, 1, 2, 3, 4, 5]
    found = sample_cube(cube, (x, y, z), S.F32, np.ones(6, np.int64))
    assert found.values[0].tolist() == [6, 7, 8, 9, 10, 11]
    assert np.isfinite(sample_cube(cube, (np.float32([np.nan]),) * 3, S.F32).values[0]).all()


def test_hostile_coordinates() -> None:
    texture = make(np.ones((1, 1, 4, 1), np.float32), linear=True, mode="border", normalized=True)
    wild = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38])
    found = sample_texture(texture, (wild,), S.F32)
    assert found.values[0][1:].tolist() == [0, 0, 0, 0]
    assert np.isfinite(found.values[0]).all()
    with pytest.raises(ValueError, match="0 coordinates"):
        sample_texture(texture, (), S.F32)
