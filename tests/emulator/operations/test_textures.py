"""Texture reads against the programming guide's formulas, one lane at a time, and against those of numpy."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription, TextureArgument
from gpa_lsp.execution.launches.model import TextureInput
from tests.emulator.oracle import textures as oracle
from tests.emulator.oracle.textures import TextureRead

S = ScalarType
RANDOM = np.random.Generator(np.random.PCG64(8))
_TEXT = """.version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 image, .param .u64 places, .param .u64 out) {{
.reg .b32 %r<8>; .reg .{word} %v<4>; .reg .b64 %d<8>;
ld.param.u64 %d1, [image]; ld.param.u64 %d2, [places]; ld.param.u64 %d3, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d4, %r0, 16;
mul.wide.u32 %d7, %r0, {row}; add.u64 %d5, %d2, %d4; add.u64 %d6, %d3, %d7; ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%d5];
{name}.v4.{result}.{given} {{%v0, %v1, %v2, %v3}}, [%d1, {{{coordinates}}}]; st.global.v4.{word} [%d6], {{%v0, %v1, %v2, %v3}}; ret; }}"""
_COORDINATES = {
    "1d": "%r1", "2d": "%r1, %r2", "3d": "%r1, %r2, %r3, %r3", "a1d": "%r4, %r1", "a2d": "%r4, %r1, %r2, %r2", "cube": "%r1, %r2, %r3, %r3",
    "acube": "%r4, %r1, %r2, %r3",
}  # fmt: skip


def read(
    texture: TextureInput,
    coordinates: tuple[np.ndarray, ...],
    result: ScalarType,
    layer: np.ndarray | None = None,
    *,
    name: str = "",
) -> TextureRead:
    """Reads of the core, by at most 32 lanes."""
    shape = name.rpartition(".")[2] or f"{'' if layer is None else 'a'}{texture.dimensions}d"
    lanes, given = len(coordinates[0]), "f32" if coordinates[0].dtype.kind == "f" else "s32"
    places = np.zeros((lanes, 4), np.uint32)
    for number, one in enumerate(coordinates):
        places[:, number] = one.astype(np.float32 if given == "f32" else np.int32).view(np.uint32)
    places[:, 3] = 0 if layer is None else layer
    word = {"f32": "f32", "f16": "b16"}.get(result.value, "b32")
    text = _TEXT.format(
        name=name or f"tex.{shape}",
        coordinates=_COORDINATES[shape],
        given=given,
        result=result.value,
        word=word,
        row=4 * result.natural_dtype.itemsize,
    )
    texels = texture.texels
    if texture.element is S.F16:
        texels = texels.view(np.float16)
    elif texture.element is S.BF16:
        texels = (texels.astype(np.uint32) << 16).view(np.float32)
    depth, height, width, channels = texels.shape
    array = ArrayArgument(
        name="texels",
        type=texture.element,
        count=texels.size,
        generator=Generator.VALUES,
        values=tuple(texels.ravel().tolist()),
    )
    dimensions = texture.dimensions
    image = TextureArgument(
        name="image", array=array, channels=channels, width=width, height=height if dimensions > 1 else 0,
        depth=depth if dimensions == 3 else 0, layers=depth if dimensions < 3 and depth > 1 else 0, is_linear_filter=texture.is_linear_filter,
        address_mode=texture.address_mode, is_normalized=texture.is_normalized, reads_normalized=texture.reads_normalized,
    )  # fmt: skip
    given_places = ArrayArgument(
        name="places", type=S.U32, count=places.size, generator=Generator.VALUES, values=tuple(places.ravel().tolist())
    )
    natural = result.natural_dtype
    out = ArrayArgument(name="out", type=S.U16 if natural.itemsize == 2 else S.U32, count=4 * lanes)
    launch = LaunchDescription(kernel="k", block=(lanes, 1, 1), grid=(1, 1, 1), arguments=(image, given_places, out))
    emulation = emulate(parse_ptx(text, name="k.ptx"), launch, trace=TraceSettings())
    assert emulation.faults == ()
    assert emulation.trace is not None
    rows = emulation.trace.accesses
    base = next(one.base for one in emulation.trace.buffers if one.name == "texels")
    chosen = np.flatnonzero(rows.space == int(Space.TEXTURE))
    indexes = np.full((lanes, len(chosen)), -1)
    for column, row in enumerate(chosen.tolist()):
        among = np.flatnonzero(np.uint32(rows.lane_mask[row]) >> np.arange(lanes, dtype=np.uint32) & 1)
        first = int(rows.first_address[row])
        addresses = rows.addresses[first : first + len(among)].astype(np.int64) - base
        indexes[among, column] = addresses // (
            channels * texels.itemsize if texture.element is not S.BF16 else 2 * channels
        )
    found = emulation.arrays["out"].view(natural).reshape(lanes, 4)
    return TextureRead(values=(found[:, 0], found[:, 1], found[:, 2], found[:, 3]), texels=indexes)


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
    found = read(texture, (coordinates,), S.F32)
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
    found = read(solid, (x, y, z), S.F32)
    assert np.array_equal(np.stack(found.values, 1), texels[[1, 0, 0], [0, 2, 0], [0, 3, 3]])
    assert found.texels[:, 0].tolist() == [12, 11, 3]
    flat = make(texels[:1], linear=True)
    found = read(flat, (np.float32([1.0]), np.float32([1.0])), S.F32)
    assert found.values[0][0] == texels[0, :2, :2, 0].mean()
    assert sorted(found.texels[0].tolist()) == [0, 1, 4, 5]


def test_integers_and_fractions() -> None:
    texels = np.array([0, 127, 255, 7], np.uint8).reshape(1, 1, 4, 1)
    whole = make(texels, S.U8)
    numbers = np.int32([0, 1, 2, 4, -1])
    assert read(whole, (numbers,), S.U32).values[0].tolist() == [0, 127, 255, 0, 0]
    assert read(whole, (numbers,), S.U32).texels[:, 0].tolist() == [0, 1, 2, -1, -1]
    fractions = make(texels, S.U8, fractions=True)
    assert read(fractions, (numbers[:3],), S.F32).values[0].tolist() == [0, np.float32(127 / 255), 1]
    signed = make(np.array([-128, -127, 127, 0], np.int8).reshape(1, 1, 4, 1), S.S8, fractions=True)
    assert read(signed, (numbers[:3],), S.F32).values[0].tolist() == [-1, -1, 1]
    filtered = make(texels, S.U8, fractions=True, linear=True)
    assert read(filtered, (np.float32([1.0]),), S.F32).values[0][0] == np.float32(127 / 255 / 2)


def test_halves() -> None:
    texels = np.float16([1.5, -2, 3, 4]).view(np.uint16).reshape(1, 1, 4, 1)
    texture = make(texels, S.F16)
    assert read(texture, (np.int32([0, 1]),), S.F32).values[0].tolist() == [1.5, -2]
    assert read(texture, (np.int32([0, 1]),), S.F16).values[0].view(np.float16).tolist() == [1.5, -2]


def test_gathering_four_texels() -> None:
    texels = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    found = read(make(texels), (np.float32([1.0, 0.0]), np.float32([1.0, 0.0])), S.F32, name="tld4.r.2d")
    assert np.stack(found.values, 1).tolist() == [[4, 5, 1, 0], [0, 0, 0, 0]]


def test_layers_have_texels_of_their_own_and_the_nearest_one_there_is_counts() -> None:
    texels = np.arange(3 * 2 * 4, dtype=np.float32).reshape(3, 2, 4, 1)
    layered = replace(make(texels, linear=True), dimensions=2)
    layers = np.int64([0, 2, 9])
    found = read(layered, (np.float32([0.5, 3.5, 1.0]), np.float32([0.5, 1.5, 0.5])), S.F32, layers)
    assert found.values[0].tolist() == [0, 23, 16.5]
    assert set(found.texels[2].tolist()) <= set(range(16, 24))
    lines = replace(make(texels[:, :1]), dimensions=1)
    found = read(lines, (np.float32([1.5, 9.0]),), S.F32, np.int64([1, 2]))
    assert found.values[0].tolist() == [texels[1, 0, 1, 0], texels[2, 0, 3, 0]]


def test_the_longest_axis_of_a_direction_chooses_the_face_of_a_cube() -> None:
    faces = np.broadcast_to(np.arange(12, dtype=np.float32).reshape(12, 1, 1, 1), (12, 2, 2, 1)).copy()
    cube = replace(make(faces), dimensions=2)
    x, y, z = np.float32([[5, 1, 1], [-5, 1, 1], [1, 5, 1], [1, -5, 1], [1, 1, 5], [1, 1, -5]]).T
    assert read(cube, (x, y, z), S.F32, name="tex.cube").values[0].tolist() == [0, 1, 2, 3, 4, 5]
    found = read(cube, (x, y, z), S.F32, np.ones(6, np.int64), name="tex.acube")
    assert found.values[0].tolist() == [6, 7, 8, 9, 10, 11]
    assert np.isfinite(read(cube, (np.float32([np.nan]),) * 3, S.F32, name="tex.cube").values[0]).all()


def test_hostile_coordinates() -> None:
    texture = make(np.ones((1, 1, 4, 1), np.float32), linear=True, mode="border", normalized=True)
    wild = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38])
    found = read(texture, (wild,), S.F32)
    assert found.values[0][1:].tolist() == [0, 0, 0, 0]
    assert np.isfinite(found.values[0]).all()


_SIZES = {
    "1d": (1, 1, 8),
    "2d": (1, 6, 8),
    "3d": (5, 6, 8),
    "a1d": (4, 1, 8),
    "a2d": (4, 6, 8),
    "cube": (6, 8, 8),
    "acube": (12, 8, 8),
}
_DTYPES = {
    S.U8: np.uint8, S.S8: np.int8, S.U16: np.uint16, S.S16: np.int16, S.U32: np.uint32, S.S32: np.int32, S.F16: np.uint16, S.BF16: np.uint16,
    S.F32: np.float32,
}  # fmt: skip


def _draw_texels(element: ScalarType, shape: tuple[int, ...]) -> np.ndarray:
    if element.is_integer:
        limits = np.iinfo(_DTYPES[element])
        return RANDOM.integers(limits.min, limits.max, shape, _DTYPES[element], endpoint=True)
    numbers = RANDOM.uniform(-2, 2, shape).astype(np.float32)
    if element is S.F16:
        return numbers.astype(np.float16).view(np.uint16)
    return (numbers.view(np.uint32) >> 16).astype(np.uint16) if element is S.BF16 else numbers


@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror"])
@pytest.mark.parametrize("shape", list(_SIZES))
def test_reads_are_those_of_numpy(shape: str, mode: str) -> None:
    dimensions = 2 if "cube" in shape else int(shape[-2])
    for number, element in enumerate(_DTYPES):
        linear, fractions = bool(RANDOM.integers(2)), bool(RANDOM.integers(2))
        normalized = mode in ("wrap", "mirror") or bool(RANDOM.integers(2))
        texels = _draw_texels(element, (*_SIZES[shape], (1, 2, 4)[number % 3]))
        texture = make(texels, element, linear=linear, mode=mode, normalized=normalized, fractions=fractions)
        texture = replace(texture, dimensions=dimensions)
        result = (S.F32, S.U32, S.F16, S.S32)[number % 4]
        low, high = (-1.6, 2.3) if normalized else (-4, 14)
        count = 3 if "cube" in shape else dimensions
        coordinates = tuple(RANDOM.uniform(low, high, 32).astype(np.float32) for _ in range(count))
        layer = np.arange(32) % 5 if shape[0] == "a" else None
        found = read(texture, coordinates, result, layer, name=f"tex.{shape}")
        if "cube" in shape:
            expected = oracle.sample_cube(texture, coordinates, result, layer)
        else:
            expected = oracle.sample_texture(texture, coordinates, result, layer)
        _compare(found, expected)
        if shape == "2d":
            gathered = oracle.gather_texture(texture, coordinates, number % 4, result)
            _compare(read(texture, coordinates, result, name=f"tld4.{'rgba'[number % 4]}.2d"), gathered)


def _compare(found: TextureRead, expected: TextureRead) -> None:
    for one, other in zip(found.values, expected.values, strict=True):
        assert one.tobytes() == other.tobytes()
    read_by_some = expected.texels[:, (expected.texels >= 0).any(axis=0)]
    assert found.texels.tolist() == read_by_some.tolist()
