"""Exchanges between the lanes of a warp, for PTX and SASS: typed Python."""

from gpa_lsp.execution.emulator.semantics.floats import canonical, greatest, least, or_nan
from gpa_lsp.foundation.machine_code.types import (
    LANES,
    as_bits,
    bits_of,
    fill,
    highest,
    lane_numbers,
    lanes,
    lanes_of,
    local,
    lowest,
    mask_of,
    odd,
    pick,
    put,
    s32,
    total,
    trailing_zeros,
    u32,
    union,
)


def find_lane(mode, b, c):
    """The lane that each lane reads from, which may lie outside its segment.

    Args:
        mode: 0 up, 1 down, 2 butterfly, 3 index.
    """
    lane, distance = s32(lane_numbers()), b & 31
    segment = c >> 8 & 31
    if mode == 0:
        return lane - distance
    if mode == 1:
        return lane + distance
    if mode == 2:
        return lane ^ distance
    return (lane & segment) | (distance & ~segment)


def is_inside(mode, b, c):
    """Whether the lane that each lane reads from lies in its segment."""
    segment = c >> 8 & 31
    bound = (s32(lane_numbers()) & segment) | (c & ~segment & 31)
    if mode == 0:
        return find_lane(mode, b, c) >= bound
    return find_lane(mode, b, c) <= bound


def shuffle(mode, values, b, c):
    """Values that lanes read; a lane's own where it reads from no lane of its segment."""
    return pick(values, u32((find_lane(mode, b, c) & 31) if is_inside(mode, b, c) else s32(lane_numbers())))


def by_members(function, values, members, mask):
    """Apply a function to each set of lanes that name the same members: u32."""
    found, left = local(u32, LANES), mask
    fill(found, 0, 4 * LANES)
    while left != 0:
        among = mask_of(members == members[trailing_zeros(left)]) & left
        put(found, function(values, among) if lanes_of(among) else lanes(found))
        left = left & ~among
    return lanes(found)


def ballot(holds, among):
    """The lanes for which something holds."""
    return holds & among


def vote_any(holds, among):
    """Whether something holds for any lane."""
    return u32(holds & among != 0)


def vote_all(holds, among):
    """Whether something holds for all lanes."""
    return u32(~holds & among == 0)


def vote_uni(holds, among):
    """Whether something holds for all lanes or for none."""
    return u32((~holds & among == 0) | (holds & among == 0))


def match_any(values, among):
    """The lanes with the same value as each lane."""
    found = local(u32, LANES)
    fill(found, 0, 4 * LANES)
    for lane in bits_of(among):
        found[lane] = mask_of(values == values[lane]) & among
    return lanes(found)


def match_all(values, among):
    """All lanes where all have the same value, else none."""
    return among if mask_of(values == values[trailing_zeros(among)]) & among == among else u32(0)


def reduce_add(values, among):
    """Sum of the lanes' values."""
    return total(values if lanes_of(among) else 0)


def reduce_and(values, among):
    """Bits set in all lanes' values."""
    return ~union(~values if lanes_of(among) else 0)


def reduce_or(values, among):
    """Bits set in any lane's value."""
    return union(values if lanes_of(among) else 0)


def reduce_xor(values, among):
    """Bits set in an odd number of lanes' values."""
    return odd(values if lanes_of(among) else 0)


def reduce_min(values, among):
    """Lowest of the lanes' values."""
    return u32(lowest(values if lanes_of(among) else values[trailing_zeros(among)]))


def reduce_max(values, among):
    """Highest of the lanes' values."""
    return u32(highest(values if lanes_of(among) else values[trailing_zeros(among)]))


def reduce_floats(function, values, among):
    """Reduce f32 values by a function of two."""
    found = values[trailing_zeros(among)]
    for lane in bits_of(among):
        found = function(found, values[lane])
    return as_bits(canonical(found))


def least_or_nan(a, b):
    """The lesser, or NaN."""
    return or_nan(a, b, least(a, b))


def greatest_or_nan(a, b):
    """The greater, or NaN."""
    return or_nan(a, b, greatest(a, b))


def reduce_least(values, among):
    """The least number."""
    return reduce_floats(least, values, among)


def reduce_greatest(values, among):
    """The greatest number."""
    return reduce_floats(greatest, values, among)


def reduce_least_or_nan(values, among):
    """The least, or NaN where one is."""
    return reduce_floats(least_or_nan, values, among)


def reduce_greatest_or_nan(values, among):
    """The greatest, or NaN where one is."""
    return reduce_floats(greatest_or_nan, values, among)


def transpose(values):
    """Elements of 16 bits of an 8×8 matrix, two of a row in each lane."""
    lane = u32(lane_numbers())
    row = lane >> 2
    source, half = (lane & 3) * 8 + (row >> 1), (row & 1) * 16
    return (pick(values, source) >> half & 0xFFFF) | (pick(values, source + 4) >> half) << 16


def elect(members, mask):
    """The lowest lane of the members."""
    named = mask_of((members >> u32(lane_numbers()) & 1) != 0) & mask
    return trailing_zeros(named) & 31
