"""Reads of textures, ``tex`` and ``tld4``, lane by lane, and queries of surfaces: typed Python of the core.

Only the base level of a texture exists; levels of detail are passed over. Filters weigh in double precision.

Source: CUDA C++ Programming Guide, "Texture Fetching" (nearest-point sampling, linear filtering with weights in 1/256, address modes), "Layered
Textures" and "Cubemap Textures"; PTX ISA 9.0, section 9.7.10 (tex, tld4).
"""

from enum import IntEnum
from typing import Literal

from gpa_lsp.execution.emulator.compiled.addresses import count_guarded, find_masks, frame_of, operand
from gpa_lsp.execution.emulator.compiled.memory import is_unmetered
from gpa_lsp.execution.emulator.compiled.model import FAILED, LANES, CoreMachine, Operation, Stop, Surface
from gpa_lsp.execution.emulator.compiled.rows import note_rows
from gpa_lsp.execution.emulator.semantics.floats import F16, NEAREST, narrow_double, widen
from gpa_lsp.execution.emulator.semantics.words import take
from gpa_lsp.foundation.machine_code.types import (
    Array,
    Pointer,
    Struct,
    as_bits,
    as_float,
    bits_of,
    f32,
    f64,
    fill,
    floor,
    lanes,
    local,
    put,
    round_even,
    s32,
    s64,
    u8,
    u16,
    u32,
    u64,
    view,
)

IN_TEXTURE = 6  # As in :class:`~gpa_lsp.code.ptx.model.Space`
UNKNOWN, OUTSIDE = 0, 1  # In place of addresses: the handle is no texture's; the coordinates lie outside
_FARTHEST = 2.0**40  # Coordinates further away lie here, near enough for integers
_FACES = 6
_LEAST = 2.0**-126  # The least normal number of single precision
_MOST = 1.7976931348623157e308
# Corners of ``tld4``, two bits each: right, then lower. Lower left, lower right, upper right, upper left
_GATHERED = 0b00_10_11_01


class Form(IntEnum):
    """Result of a read."""

    PLAIN = 0  # Up to four channels at a place
    CUBE = 1  # Those of a cubemap in a direction
    GATHER = 2  # One channel of the four texels around a place


class Mode(IntEnum):
    """Values outside a texture, by the names of launch descriptions."""

    CLAMP = 0
    BORDER = 1
    WRAP = 2
    MIRROR = 3


class Element(IntEnum):
    """Type of a channel of a texel."""

    UNSIGNED = 0
    SIGNED = 1
    HALF = 2
    BFLOAT = 3
    SINGLE = 4


class Read(Struct):
    """An instruction that reads a texture; places are those of operands, and of results of 32 or 16 bits (-1 for none)."""

    form: s32
    channel: s32  # that is gathered
    is_layered: s32
    coordinates: s32  # how many
    is_float: s32  # they are floating-point numbers
    is_whole: s32  # the results are integers
    result_bytes: s32
    layer: s32
    places: Array[s32, Literal[3]]
    results: Array[s32, Literal[4]]


class Texels(Struct):
    """Texels that a lane reads: along each axis two, by their distance in bytes, -1 where there is none, and the weight of the second one."""

    surface: s64
    first: s64  # distance of the first texel of the layer
    is_filtered: s32
    corners: s32  # how many texels
    at: Array[s64, Literal[6]]
    weights: Array[f64, Literal[3]]


def find_surface(machine: CoreMachine, handle: u64) -> s64:
    """The number of a texture or surface; -1 for none."""
    for number in range(machine.surface_count):
        if machine.surfaces[number].handle == handle:
            return number
    return FAILED


def modulo(value: s64, size: s64) -> s64:
    """The remainder of a division that rounds down."""
    found = value % size
    return found + size if found < 0 else found


def bring_near(value: f64, most: f64) -> f64:
    """A coordinate within limits; NaN counts as 0."""
    found = value if value == value else 0.0
    found = most if found > most else found
    return -most if found < -most else found


def fold(axis: f64, mode: s32) -> f64:
    """A normalized coordinate brought into [0, 1) by wrapping or mirroring."""
    whole = floor(axis)
    if mode == Mode.WRAP:
        return axis - whole
    if mode == Mode.MIRROR:
        fraction = axis - whole
        return fraction if whole * 0.5 == floor(whole * 0.5) else 1.0 - fraction
    return axis


def locate(surface: Surface, axis: s64, place: f64, mode: s32) -> s64:
    """Distance of the texel at a place along an axis; -1 where there is none."""
    index, size = s64(place), surface.shape[axis]
    if mode == Mode.BORDER:
        if index < 0 or index >= size:
            return FAILED
    elif mode == Mode.WRAP and surface.is_normalized != 0:
        index = modulo(index, size)
    elif mode == Mode.MIRROR and surface.is_normalized != 0:
        index = modulo(index, 2 * size)
        index = 2 * size - 1 - index if index >= size else index
    index = size - 1 if index >= size else index
    return (s64(0) if index < 0 else index) * surface.strides[axis]


def aim(machine: CoreMachine, read: Read, axis: s64, frame: Pointer[u8], lane: s64) -> f64:
    """A coordinate of a lane."""
    source = operand(frame, machine.constants, read.places[axis])
    if read.is_float != 0:
        return f64(as_float(view(source, u32)[lane]))
    return f64(view(source, s32)[lane])


def find_face(machine: CoreMachine, read: Read, frame: Pointer[u8], lane: s64, across: Pointer[f64]) -> s64:
    """The face of a cubemap in a direction, and normalized coordinates on it: the axis a direction is longest in chooses it."""
    x, y, z = (
        bring_near(aim(machine, read, 0, frame, lane), _MOST),
        bring_near(aim(machine, read, 1, frame, lane), _MOST),
        bring_near(aim(machine, read, 2, frame, lane), _MOST),
    )
    size_x, size_y, size_z = (x if x >= 0 else -x), (y if y >= 0 else -y), (z if z >= 0 else -z)
    face, longest, right, down = s64(5 if z < 0 else 4), size_z, -x if z < 0 else x, -y
    if size_x >= size_y and size_x >= size_z:
        face, longest, right = s64(1 if x < 0 else 0), size_x, z if x < 0 else -z
    elif size_y >= size_z:
        face, longest, right, down = s64(3 if y < 0 else 2), size_y, x, -z if y < 0 else z
    longest = _LEAST if longest < _LEAST else longest
    across[0] = f64(f32((right / longest + 1.0) / 2.0))
    across[1] = f64(f32((down / longest + 1.0) / 2.0))
    return face


def find_texels(machine: CoreMachine, read: Read, number: s64, frame: Pointer[u8], lane: s64, found: Texels) -> None:
    """Find what a lane reads of a texture."""
    surface, across, face = machine.surfaces[number], local(f64, 3), s64(0)
    axes, mode, is_normalized = surface.dimensions, surface.mode, surface.is_normalized
    if read.form == Form.CUBE:
        face = find_face(machine, read, frame, lane, across)
        axes, mode, is_normalized = s32(2), s32(Mode.CLAMP), s32(1)
    else:
        for axis in range(s64(axes)):
            across[axis] = aim(machine, read, axis, frame, lane) if axis < read.coordinates else 0.0
    if surface.dimensions == 1 and read.is_float == 0 and read.form != Form.GATHER:
        mode = s32(Mode.BORDER)  # reading linear memory beyond its end gives 0
    found.surface, found.first, found.corners = number, 0, 1
    found.is_filtered = s32(read.form != Form.GATHER and read.is_float != 0 and surface.is_filtered != 0)
    if found.is_filtered != 0:
        found.corners = 1 << axes
    if read.form == Form.GATHER:
        found.corners = 4
    for axis in range(s64(axes)):
        place = bring_near(across[axis], _FARTHEST)
        if is_normalized != 0 and read.is_float != 0:
            place = bring_near(fold(place, mode) * f64(surface.shape[axis]), _FARTHEST)
        first = floor(place)
        if found.corners > 1:
            first = floor(place - 0.5)
            found.weights[axis] = round_even((place - 0.5 - first) * 256.0) / 256.0
            found.at[2 * axis + 1] = locate(surface, axis, first + 1.0, mode)
        found.at[2 * axis] = locate(surface, axis, first, mode)
    if read.form == Form.CUBE or read.is_layered != 0:
        layer = s64(0)
        if read.is_layered != 0:
            layer = s64(view(operand(frame, machine.constants, read.layer), u32)[lane])
        layer = layer * _FACES + face if read.form == Form.CUBE else layer
        last = surface.extents[2] - 1
        found.first = (last if layer > last else layer) * surface.strides[2]


def find_address(machine: CoreMachine, read: Read, texels: Texels, corner: s64) -> u64:
    """Address of one of the texels that a lane reads; 0 for none."""
    surface, distance = machine.surfaces[texels.surface], texels.first
    axes = s64(2) if read.form == Form.CUBE else s64(surface.dimensions)
    code = _GATHERED >> 2 * corner & 3 if read.form == Form.GATHER else corner
    for axis in range(axes):
        along = texels.at[2 * axis + (code >> axes - 1 - axis & 1)]
        if along < 0:
            return 0
        distance += along
    return surface.base + u64(distance)


def as_number(surface: Surface, raw: u64) -> f64:
    """A channel as a number: of integers a fraction, where the texture says so."""
    if surface.element == Element.SINGLE:
        return f64(as_float(u32(raw)))
    if surface.element == Element.HALF:
        return f64(widen(u32(raw), F16))
    if surface.element == Element.BFLOAT:
        return f64(as_float(u32(raw) << 16))
    found = f64(raw) if surface.element == Element.UNSIGNED else f64(s64(raw))
    if surface.limit == 0:
        return found
    found = found / surface.limit
    return -1.0 if found < -1.0 else found


def read_channel(machine: CoreMachine, address: u64, surface: Surface, channel: s64) -> u64:
    """Bits of a channel of a texel, signs extended; 0 where there is none."""
    if address == 0 or channel >= surface.channels:
        return 0
    size = surface.channel_bytes
    raw = take(machine.arena + (address - machine.arena_base + u64(channel * s64(size))), size)
    if surface.element != Element.SIGNED:
        return raw
    unused = u64(64 - 8 * size)
    return u64(s64(raw << unused) >> s64(unused))


def weigh(machine: CoreMachine, read: Read, texels: Texels, channel: s64) -> f64:
    """A channel of the texels around a place, by their distances from it."""
    surface, found = machine.surfaces[texels.surface], f64(0.0)
    axes = s64(2) if read.form == Form.CUBE else s64(surface.dimensions)
    for corner in range(s64(texels.corners)):
        weight = f64(1.0)
        for axis in range(axes):
            fraction = texels.weights[axis]
            weight = weight * (fraction if (corner >> axes - 1 - axis & 1) != 0 else 1.0 - fraction)
        address = find_address(machine, read, texels, corner)
        found = found + weight * as_number(surface, read_channel(machine, address, surface, channel))
    return found


def give_result(read: Read, number: s64, frame: Pointer[u8], lane: s64, bits: u64) -> None:
    """Write a result of a lane."""
    place = read.results[number]
    if place >= 0:
        if read.result_bytes == 2:
            view(frame + place, u16)[lane] = u16(bits)
        else:
            view(frame + place, u32)[lane] = u32(bits)


def narrow_number(read: Read, value: f64) -> u64:
    """A number as the bits of a result; integers get those of single precision."""
    if read.result_bytes == 2:
        return u64(narrow_double(value, F16, NEAREST, 0))
    return u64(as_bits(f32(value)))


def read_lane(machine: CoreMachine, read: Read, number: s64, frame: Pointer[u8], lane: s64) -> None:
    """Read a texture for a lane."""
    texels, surface = local(Texels, 1), machine.surfaces[number]
    find_texels(machine, read, number, frame, lane, texels)
    keeps = read.is_whole != 0 and surface.element <= Element.SIGNED and texels.is_filtered == 0
    for result in range(4):
        corner = result if read.form == Form.GATHER else s64(0)
        channel = s64(read.channel) if read.form == Form.GATHER else result
        if texels.is_filtered != 0:
            give_result(read, result, frame, lane, narrow_number(read, weigh(machine, read, texels, channel)))
            continue
        raw = read_channel(machine, find_address(machine, read, texels, corner), surface, channel)
        give_result(read, result, frame, lane, raw if keeps else narrow_number(read, as_number(surface, raw)))


def note_texels(machine: CoreMachine, operation: Operation, read: Read, number: s64) -> s32:
    """Add rows of the texels of one texture that lanes read, one execution for each of a filter's; IDLE, or why not."""
    corner, corners = 0, 1
    while corner < corners:
        found = u32(0)
        for warp in range(machine.warps):
            frame, chosen = frame_of(machine, warp), machine.wrong[warp]
            handles = view(operand(frame, machine.constants, operation.b), u64)
            machine.masks[warp] = 0
            for lane in bits_of(chosen):
                if handles[lane] != machine.surfaces[number].handle:
                    continue
                texels = local(Texels, 1)
                find_texels(machine, read, number, frame, lane, texels)
                corners = s64(texels.corners)
                address = find_address(machine, read, texels, corner)
                machine.addresses[warp * LANES + lane] = address
                machine.masks[warp] |= u32(address != 0) << lane
            found |= machine.masks[warp]
        if found != 0:
            surface = machine.surfaces[number]
            stop = note_rows(machine, operation, s32(IN_TEXTURE), u64(surface.channels * surface.channel_bytes))
            if stop != Stop.IDLE:
                return stop
        corner += 1
    return Stop.IDLE


def read_texture(machine: CoreMachine, operation: Operation) -> s32:
    """Read textures for all lanes; IDLE where it is done, else why not. Lanes without a texture read zeros."""
    if find_masks(machine, operation) == 0:
        return Stop.IDLE
    if is_unmetered(machine) != 0:
        return Stop.METER
    count_guarded(machine, operation)
    read = view(machine.constants + ~operation.a, Read)[0]
    for warp in range(machine.warps):
        frame, mask = frame_of(machine, warp), machine.masks[warp]
        machine.wrong[warp] = mask
        if mask == 0:
            continue
        for result in range(4):
            if read.results[result] >= 0:
                fill(frame + read.results[result], 0, LANES * s64(read.result_bytes))
        handles = view(operand(frame, machine.constants, operation.b), u64)
        for lane in bits_of(mask):
            number = find_surface(machine, handles[lane])
            if number >= 0:
                read_lane(machine, read, number, frame, lane)
    if machine.traces_accesses != 0:
        for number in range(machine.surface_count):
            found = note_texels(machine, operation, read, number)
            if found != Stop.IDLE:
                return found
    return Stop.IDLE


# Surfaces


def surface_bases(machine, handles, mask):
    """Addresses of the first texels of textures by handle, for the lanes of a mask: u64, UNKNOWN for other handles."""
    held, found = local(u64, LANES), local(u64, LANES)
    put(held, handles)
    fill(found, UNKNOWN, 8 * LANES)
    for lane in bits_of(mask):
        number = find_surface(machine, held[lane])
        if number >= 0:
            found[lane] = machine.surfaces[number].base
    return lanes(found)


def step_along(machine, handles, places, addresses, axis, size, clamps, mask):
    """Addresses after one more coordinate: x in bytes, y or z. Outside, the nearest place is taken where it clamps, else OUTSIDE."""
    held, wanted, found = local(u64, LANES), local(s64, LANES), local(u64, LANES)
    put(held, handles)
    put(wanted, places)
    put(found, addresses)
    for lane in bits_of(mask):
        number = find_surface(machine, held[lane])
        if number < 0 or found[lane] <= OUTSIDE:
            continue
        surface = machine.surfaces[number]
        step = s64(1) if axis == 0 else surface.strides[axis]
        limit = surface.extents[axis] - (size if axis == 0 else 1)
        place = wanted[lane]
        within = limit if place > limit else place
        within = s64(0) if within < 0 else within
        found[lane] = found[lane] + u64(within * step) if clamps or within == place else u64(OUTSIDE)
    return lanes(found)


def surface_extents(machine, handles, axis, mask):
    """Width, height or depth of textures in texels: u64, 0 beyond their dimensions; all ones for handles of no texture."""
    held, found = local(u64, LANES), local(u64, LANES)
    put(held, handles)
    fill(found, 255, 8 * LANES)
    for lane in bits_of(mask):
        number = find_surface(machine, held[lane])
        if number >= 0:
            found[lane] = u64(machine.surfaces[number].shape[axis])
    return lanes(found)
