"""Texture reads of the core are those of the oracle."""

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
        if number % 3 == 1 and not normalized and "cube" not in shape:
            coordinates = tuple(np.floor(one).astype(np.int32) for one in coordinates)
        elif "cube" not in shape:
            coordinates[0][:4] = [np.inf, -np.inf, 3e38, -3e38]
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
