"""``shfl vote match redux movmatrix elect activemask``: what lanes of a warp tell one another.

Lanes that name other members than the first of them exchange among themselves: tiles of half a warp meet at one instruction with masks of their own.
Source: PTX ISA 9.0, sections 9.7.9.5, 9.7.9.6 (shfl), 9.7.13.9 (vote), 9.7.13.10 (match), 9.7.13.12 (redux) and 9.7.14.5.17 (movmatrix).
"""

from collections.abc import Callable

from gpa_lsp.code.ptx.model import Pair, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.floats import canonical, greatest, least, or_nan
from gpa_lsp.execution.emulator.semantics.model import Family, Meaning, find_word
from gpa_lsp.execution.emulator.semantics.modifiers import as_unsigned
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

S = ScalarType
_MODES = ("up", "down", "bfly", "idx")  # as functions below number them


def find_lane(mode, b, c):
    """The lane that each lane reads from, which may be beyond its segment."""
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
    """Whether that is within its segment."""
    segment = c >> 8 & 31
    bound = (s32(lane_numbers()) & segment) | (c & ~segment & 31)
    if mode == 0:
        return find_lane(mode, b, c) >= bound
    return find_lane(mode, b, c) <= bound


def shuffle(mode, values, b, c):
    """What each lane reads; its own where it reads from no lane of its segment."""
    return pick(values, u32((find_lane(mode, b, c) & 31) if is_inside(mode, b, c) else s32(lane_numbers())))


def by_members(function, values, members, mask):
    """What a function gives the lanes of each set that name the same members: u32."""
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
    """Whether it holds for one."""
    return u32(holds & among != 0)


def vote_all(holds, among):
    """For all."""
    return u32(~holds & among == 0)


def vote_uni(holds, among):
    """For all or for none."""
    return u32((~holds & among == 0) | (holds & among == 0))


def match_any(values, among):
    """The lanes that hold the same."""
    found = local(u32, LANES)
    fill(found, 0, 4 * LANES)
    for lane in bits_of(among):
        found[lane] = mask_of(values == values[lane]) & among
    return lanes(found)


def match_all(values, among):
    """All lanes where all hold the same, else none."""
    return among if mask_of(values == values[trailing_zeros(among)]) & among == among else u32(0)


def reduce_add(values, among):
    """Their sum."""
    return total(values if lanes_of(among) else 0)


def reduce_and(values, among):
    """The bits that all have."""
    return ~union(~values if lanes_of(among) else 0)


def reduce_or(values, among):
    """Those that any has."""
    return union(values if lanes_of(among) else 0)


def reduce_xor(values, among):
    """Those that an odd number of them has."""
    return odd(values if lanes_of(among) else 0)


def reduce_min(values, among):
    """The lowest."""
    return u32(lowest(values if lanes_of(among) else values[trailing_zeros(among)]))


def reduce_max(values, among):
    """The highest."""
    return u32(highest(values if lanes_of(among) else values[trailing_zeros(among)]))


def reduce_floats(function, values, among):
    """Of f32 by a function of two."""
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
    """The lowest lane that is named."""
    named = mask_of((members >> u32(lane_numbers()) & 1) != 0) & mask
    return trailing_zeros(named) & 31


def find(instruction: PtxInstruction) -> Meaning | None:
    """An exchange between the lanes of a warp, with or without a member mask."""
    return _FINDERS[instruction.opcode](instruction)


def _has_pair(instruction: PtxInstruction) -> bool:
    return bool(instruction.destinations) and isinstance(instruction.destinations[0], Pair)


def _find_shuffle(instruction: PtxInstruction) -> Meaning | None:
    """``shfl{.sync}.mode.b32 d{|p}, a, b, c{, members}``."""
    word = find_word(instruction, _MODES)
    if word is None:
        return None
    mode, synchronises, pair = _MODES.index(word), "sync" in instruction.suffixes, _has_pair(instruction)
    values = (f"shuffle({mode}, a(u32), b(s32), c(s32))", f"u8(is_inside({mode}, b(s32), c(s32)))")
    return Meaning(
        sources=(S.U32,) * (4 if synchronises else 3),
        results=(S.U32, S.PRED) if pair else (S.U32,),
        values=values if pair else values[:1],
        exchanges=True,
        members=3 if synchronises else None,
    )


def _find_vote(instruction: PtxInstruction) -> Meaning | None:
    """``vote{.sync}.all|any|uni.pred p, {!}a{, members}`` and ``vote{.sync}.ballot.b32 d, {!}a{, members}``."""
    mode = find_word(instruction, ("all", "any", "uni", "ballot"))
    if mode is None:
        return None
    synchronises, is_ballot = "sync" in instruction.suffixes, mode == "ballot"
    function = "ballot" if is_ballot else f"vote_{mode}"
    holds = "mask_of(a(u8) != 0)"
    value = f"by_members({function}, {holds}, b(u32), mask)" if synchronises else f"{function}({holds}, mask)"
    return Meaning(
        sources=(S.PRED, S.U32) if synchronises else (S.PRED,),
        results=(S.U32,) if is_ballot else (S.PRED,),
        values=(value if is_ballot else f"u8({value})",),
        exchanges=True,
        members=1 if synchronises else None,
    )


def _find_match(instruction: PtxInstruction) -> Meaning | None:
    """``match.any.sync.type d, a, members`` and ``match.all.sync.type d{|p}, a, members``."""
    mode = find_word(instruction, ("any", "all"))
    if mode is None or len(instruction.types) != 1 or instruction.types[0] not in (S.B32, S.B64):
        return None
    source, pair = as_unsigned(instruction.types[0]), _has_pair(instruction)
    found = f"by_members(match_{mode}, a({source.value}), b(u32), mask)"
    return Meaning(
        sources=(source, S.U32),
        results=(S.U32, S.PRED) if pair else (S.U32,),
        values=(found, f"u8({found} != 0)") if pair else (found,),
        exchanges=True,
        members=1,
    )


def _find_reduction(instruction: PtxInstruction) -> Meaning | None:
    """``redux.sync.op.type d, a, members`` and ``redux.sync.min|max{.abs}{.NaN}.f32``."""
    word = find_word(instruction, ("add", "min", "max", "and", "or", "xor"))
    if word is None or len(instruction.types) != 1 or instruction.types[0] not in (S.U32, S.S32, S.B32, S.F32):
        return None
    kind = instruction.types[0]
    if kind is S.F32:
        if word not in ("min", "max"):
            return None
        value = "magnitude(a(f32))" if "abs" in instruction.suffixes else "a(f32)"
        name = "least" if word == "min" else "greatest"
        name = f"{name}_or_nan" if "NaN" in instruction.suffixes else name
    else:
        kind = kind if kind is S.S32 and word in ("min", "max") else S.U32
        name, value = word, f"a({kind.value})"
    found = f"by_members(reduce_{name}, {value}, b(u32), mask)"
    return Meaning(sources=(kind, S.U32), results=(kind,), values=(found,), exchanges=True, members=1)


def _find_transposition(instruction: PtxInstruction) -> Meaning | None:
    """``movmatrix.sync.aligned.m8n8.trans.b16 d, a``."""
    if instruction.types != (S.B16,) or "trans" not in instruction.suffixes:
        return None
    return Meaning(sources=(S.U32,), results=(S.U32,), values=("transpose(a(u32))",), exchanges=True)


def _find_leader(instruction: PtxInstruction) -> Meaning:
    """``elect.sync d|p, members``: the lowest lane named, as the hardware chooses today."""
    value = "elect(a(u32), mask)"
    values = (value, f"u8(u32(lane_numbers()) == {value})") if _has_pair(instruction) else (value,)
    return Meaning(sources=(S.U32,), results=(S.U32, S.PRED)[: len(values)], values=values, exchanges=True, members=0)


def _find_active(instruction: PtxInstruction) -> Meaning:
    """``activemask``: the lanes of the warp that are together here."""
    return Meaning(sources=(), results=(S.U32,), values=("standing",), exchanges=True)


_FINDERS: dict[str, Callable[[PtxInstruction], Meaning | None]] = {
    "shfl": _find_shuffle, "vote": _find_vote, "match": _find_match, "redux": _find_reduction, "movmatrix": _find_transposition,
    "elect": _find_leader, "activemask": _find_active,
}  # fmt: skip

FAMILY = Family(opcodes=tuple(_FINDERS), find=find)
