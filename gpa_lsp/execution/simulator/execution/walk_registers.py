"""Registers and predicates of warps, and marks of those without a known value: typed Python, executed as machine code."""

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.execution.simulator.execution.walk_model import CoreWalk, Extension, File, PredicateBit, SourceRow, StepRow
from gpa_lsp.foundation.machine_code.types import (
    LANES,
    Pointer,
    all_lanes,
    lanes,
    lanes_of,
    mask_of,
    put,
    s32,
    s64,
    u8,
    u32,
    u64,
)

ALL_LANES = 0xFFFFFFFF


def read_predicate(walk: CoreWalk, predicate: s32, warp: s64) -> u32:
    """The lanes in which a predicate holds."""
    place = s64(predicate & 7) * walk.warps + warp
    found = u32(0)
    if predicate & PredicateBit.UNIFORM:
        found = spread(u32(walk.uniform_predicates[place]))
    else:
        found = mask_of(lanes(walk.predicates + place * LANES) != 0)
    return ~found if predicate & PredicateBit.NEGATED else found


def write_predicate(walk: CoreWalk, predicate: s32, index: s64, value: u32) -> None:
    """A predicate, in the lanes that execute; of a uniform one, lane 0 counts."""
    if predicate < 0:
        return
    place = s64(predicate & 7) * walk.warps + walk.chosen[index]
    if predicate & PredicateBit.UNIFORM:
        walk.uniform_predicates[place] = u8(value & 1)
    else:
        marks = walk.predicates + place * LANES
        put(marks, u8(lanes_of(value)) if lanes_of(walk.bits[index]) else lanes(marks))


def read(walk: CoreWalk, source: SourceRow, index: s64, to: Pointer[u64]) -> None:
    """The 32 values of a source."""
    place = s64(source.number) * walk.warps + walk.chosen[index]
    value = all_lanes(source.value)
    if source.file == File.REGISTER:
        value = u64(lanes(walk.registers + place * LANES))
        if source.is_pair != 0:
            value |= u64(lanes(walk.registers + (place + walk.warps) * LANES)) << 32
    elif source.file == File.UNIFORM:
        one = u64(walk.uniform[place])
        if source.is_pair != 0:
            one |= u64(walk.uniform[place + walk.warps]) << 32
        value = all_lanes(one)
    elif source.file == File.SPECIAL:
        value = u64(lanes(walk.specials + place * LANES))
    elif source.file == File.BARRIER:
        value = u64(lanes(walk.barriers + place * LANES))
    elif source.file == File.EXECUTING:
        value = all_lanes(u64(walk.bits[index]))
    value = value >> source.shift & source.mask
    if source.scale != 1:
        value *= source.scale
    value = (value ^ source.flip) + source.added
    if source.extension == Extension.ZERO:
        value &= ALL_LANES
    elif source.extension == Extension.SIGN:
        value = u64(s64(value << 32) >> 32)
    put(to, value)


def write(walk: CoreWalk, step: StepRow, word: s64, index: s64, values: Pointer[u32]) -> None:
    """A register of the target, in the lanes that execute; of a uniform one, what lane 0 has counts."""
    if step.target < 0:
        return
    place = (s64(step.target) + word) * walk.warps + walk.chosen[index]
    if step.target_file == File.UNIFORM:
        walk.uniform[place] = values[0]
    else:
        to = (walk.registers if step.target_file == File.REGISTER else walk.barriers) + place * LANES
        put(to, lanes(values) if lanes_of(walk.bits[index]) else lanes(to))


def find_unknown(walk: CoreWalk, first: s32, count: s32, index: s64) -> u32:
    """The lanes of a chosen warp in which any of some resources is not known."""
    found = u32(0)
    if walk.has_unknown != 0:
        for place in range(s64(first), s64(first) + s64(count)):
            found |= walk.unknown[s64(walk.resources[place]) * walk.warps + walk.chosen[index]]
    return found


def is_touched(walk: CoreWalk, step: StepRow) -> u32:
    """Whether anything that a step reads or writes is not known anywhere."""
    found = u32(0)
    if walk.has_unknown != 0:
        for place in range(s64(step.read_count)):
            found |= walk.tainted[walk.resources[step.first_read + place]]
        for place in range(s64(step.write_count)):
            found |= walk.tainted[walk.resources[step.first_write + place]]
    return found


def mark(walk: CoreWalk, step: StepRow, unknown: Pointer[u32]) -> None:
    """Note in which lanes what a step wrote is not known."""
    for index in range(walk.count):
        walk.has_unknown |= unknown[index] & walk.bits[index] != 0
    for place in range(s64(step.first_write), s64(step.first_write) + s64(step.write_count)):
        resource = s64(walk.resources[place])
        kind, marks = resource >> 8, walk.unknown + resource * walk.warps
        for index in range(walk.count):
            warp, written, found = walk.chosen[index], walk.bits[index], unknown[index] & walk.bits[index]
            if kind == ResourceKind.UNIFORM_REGISTER or kind == ResourceKind.UNIFORM_PREDICATE:
                written, found = spread(written), spread(found)
            marks[warp] = found | (marks[warp] & ~written)
        any_lane = u32(0)
        for warp in range(walk.warps):
            any_lane |= marks[warp]
        walk.tainted[resource] = u8(any_lane != 0)


def spread(bits: u32) -> u32:
    """All lanes, where there is one."""
    return u32(ALL_LANES) if bits != 0 else u32(0)
