"""Lowering of texture and surface instructions: ``tex``, ``tld4``, ``suld``, ``sust``, ``txq`` and ``suq``."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction, Space, TextureAddress
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered, Report
from gpa_lsp.execution.emulator.compiled.model import SURFACE, TEXTURE
from gpa_lsp.execution.emulator.compiled.textures import Element, Form, Mode
from gpa_lsp.execution.emulator.engine.machine import Texture
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.model import find_limits, flatten

_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}
_LAYERED = frozenset({"a1d", "a2d", "acube"})


_CUBES = frozenset({"cube", "acube"})
_CHANNELS = {"r": 0, "g": 1, "b": 2, "a": 3}
_ELEMENTS = {
    ScalarType.F16: Element.HALF, ScalarType.BF16: Element.BFLOAT, ScalarType.F32: Element.SINGLE,
}  # fmt: skip


def list_surfaces(textures: dict[int, Texture]) -> "npt.NDArray[Any]":
    """Textures as the core reads them, by ascending handles; one more where there are none."""
    table = np.zeros(max(len(textures), 1), SURFACE)
    for row, handle in zip(table, sorted(textures), strict=False):
        texture = textures[handle]
        source, kind = texture.source, texture.source.element
        depth, height, width, channels = source.texels.shape
        extents = (width, height, depth)
        row["handle"], row["base"] = handle, texture.region.base
        row["extents"] = (width * channels * source.texels.itemsize, height, depth)
        row["shape"] = [size if axis < source.dimensions else 0 for axis, size in enumerate(extents)]
        row["strides"] = source.texels.strides[2::-1]
        is_fraction = source.reads_normalized and kind.is_integer
        row["limit"] = float(find_limits(kind)[1]) if is_fraction else 0.0
        row["element"] = _ELEMENTS.get(kind, Element.SIGNED if kind.is_signed else Element.UNSIGNED)
        row["mode"] = Mode[source.address_mode.upper()]
        row["channels"], row["channel_bytes"], row["dimensions"] = channels, source.texels.itemsize, source.dimensions
        row["is_filtered"] = source.is_linear_filter and (kind.is_float or source.reads_normalized)
        row["is_normalized"] = source.is_normalized
    return table


def lower_read(lowering: Lowering) -> None:
    """``tex`` and ``tld4``, on textures of one to three dimensions, in layers, and cubes."""
    instruction = lowering.instruction
    words, operand = instruction.suffixes, _find_address(instruction)
    count, is_layered = _find_shape(words)
    if len(instruction.types) < 2:
        raise NotLowered
    result, given = instruction.types[:2]
    form = Form.GATHER if instruction.opcode == "tld4" else Form.PLAIN if _CUBES.isdisjoint(words) else Form.CUBE
    if form is Form.GATHER and "2d" not in words:
        raise NotLowered("gathering from a texture of this shape")
    handle = lowering.read(operand.handle, ScalarType.U64)
    found = "u8(surface_bases(machine, a(u64), mask) != 0)"
    check_handle(lowering, lowering.compute(8, found, exchanges=True, a=handle), handle)
    coordinates = flatten(operand.coordinates)
    layer = lowering.read(coordinates.pop(0), ScalarType.U32) if is_layered else 0
    if given not in (ScalarType.F32, ScalarType.S32):
        raise NotLowered("coordinates of this type")
    places = [lowering.read(one, given) for one in coordinates[:count]]
    destinations, size = flatten(instruction.destinations), result.natural_dtype.itemsize
    if size not in (2, 4):
        raise NotLowered("results of this type")
    held = [-1 if one is None else lowering.take_scratch() for one in destinations]
    channel = next((_CHANNELS[word] for word in words if word in _CHANNELS), 0)
    table = [form, channel, is_layered, len(places), given.is_float, result.is_integer, size, layer]
    table += [*places, *[0] * (3 - len(places)), *held, *[-1] * (4 - len(held))]
    lowering.emit(TEXTURE, a=lowering.frames.table(table), b=handle)
    for place, one in zip(held, destinations, strict=True):
        if one is not None:
            lowering.give(place, one, result)


def lower_surface(lowering: Lowering) -> None:
    """``suld.b`` and ``sust.b``: an access where the coordinates lie within; else zeros are read, and nothing is written."""
    instruction = lowering.instruction
    operand, kind = _find_address(instruction), instruction.types[-1]
    if instruction.suffixes[:1] != ("b",):
        raise NotLowered("formatted surfaces")
    is_store = instruction.opcode == "sust"
    vector = flatten(instruction.sources[1:2]) if is_store else flatten(instruction.destinations)
    handle = lowering.read(operand.handle, ScalarType.U64)
    address = _find_texels(lowering, operand, handle, len(vector) * kind.bytes)
    least = "1" if "trap" in instruction.suffixes else "0"
    fine = lowering.compute(8, f"u8(a(u64) > {least})", a=address)
    check_handle(lowering, fine, handle)
    inside = lowering.compute(8, "u8(a(u64) > 1)", a=address)
    guard = lowering.narrow(inside)
    fields = {
        "a": address, "address_bytes": 8, "space": int(Space.GLOBAL), "elements": len(vector), "element_bytes": kind.bytes,
        "shown_as": int(Space.TEXTURE),
    }  # fmt: skip
    if is_store:
        lowering.store(fields, [lowering.read(one, kind) for one in vector], is_guarded=False, **guard)
        return
    held = [lowering.take_scratch() for _ in vector]
    lowering.load(fields, held, is_guarded=False, **guard)
    bits = 8 * kind.bytes
    for place, result in zip(held, vector, strict=True):
        value = LaneFunction(bits, f"a(u{bits}) if b(u8) != 0 else u{bits}(0)")
        lowering.emit(value, is_guarded=False, a=place, b=inside, result=place, result_bytes=kind.bytes)
        lowering.give(place, result, kind)


def _find_address(instruction: PtxInstruction) -> TextureAddress:
    operand = instruction.sources[0]
    if not isinstance(operand, TextureAddress):
        raise NotLowered("texture operand of this kind")
    return operand


def _find_shape(suffixes: tuple[str, ...]) -> tuple[int, bool]:
    """Number of coordinates of an instruction, and whether the index of a layer precedes them."""
    found = next((_DIMENSIONS[word] for word in suffixes if word in _DIMENSIONS), None)
    if found is None:
        raise NotLowered("texture of this shape")
    return found, not _LAYERED.isdisjoint(suffixes)


def check_handle(lowering: Lowering, fine: int, handle: int) -> None:
    """Report lanes whose handle is no texture's, or whose coordinates lie outside it: where the number at a place is 0."""
    textures = lowering.machine.textures

    def describe(number: int) -> str:
        if number not in textures:
            return f"0x{number:x} is not a texture"
        return f"coordinates outside the surface {textures[number].source.name}"

    lowering.check(fine, Report(FaultKind.OUT_OF_BOUNDS, describe), of=handle)


def _find_texels(lowering: Lowering, operand: TextureAddress, handle: int, size: int) -> int:
    """The place of the address that coordinates lead to; 1 where they lead outside, 0 where the handle is that of no surface."""
    words = lowering.instruction.suffixes
    address = lowering.compute(64, "surface_bases(machine, a(u64), mask)", exchanges=True, a=handle)
    coordinates = flatten(operand.coordinates)
    dimensions, is_layered = _find_shape(words)
    axes = [(0, "u32", 2)] if is_layered else []
    axes += [(number + is_layered, "s32", number) for number in range(dimensions)]
    clamps = int("clamp" in words)
    for number, kind, axis in axes:
        place = lowering.read(coordinates[number], ScalarType(kind))
        value = f"step_along(machine, a(u64), s64(b({kind})), c(u64), {axis}, {size}, {clamps}, mask)"
        function = LaneFunction(64, value, "", True)
        lowering.emit(function, is_guarded=False, a=handle, b=place, c=address, result=address, result_bytes=8)
    return address


def lower_query(lowering: Lowering) -> None:
    """``txq`` and ``suq``: an extent of a texture."""
    instruction = lowering.instruction
    axis = next(
        (place for place, word in enumerate(("width", "height", "depth")) if word in instruction.suffixes), None
    )
    if axis is None:
        raise NotLowered("query of this property")
    operand = instruction.sources[0]
    named = operand.handle if isinstance(operand, TextureAddress) else getattr(operand, "base", operand)
    handle = lowering.read(named, ScalarType.U64)
    found = lowering.compute(64, f"surface_extents(machine, a(u64), {axis}, mask)", exchanges=True, a=handle)
    known = lowering.compute(8, "u8(a(u64) >> 63 == 0)", a=found)
    check_handle(lowering, known, handle)
    low = lowering.compute(32, "u32(a(u64)) if b(u8) != 0 else u32(0)", a=found, b=known)
    lowering.give(low, instruction.destinations[0], ScalarType.U32)
