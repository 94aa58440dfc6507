"""``shfl vote match redux movmatrix elect activemask``: exchanges between the lanes of a warp.

Lanes that name other members than the first of them exchange among themselves: tiles of half a warp meet at one instruction with masks of their own.
Source: PTX ISA 9.0, sections 9.7.9.5, 9.7.9.6 (shfl), 9.7.13.9 (vote), 9.7.13.10 (match), 9.7.13.12 (redux) and 9.7.14.5.17 (movmatrix).
"""

from collections.abc import Callable

from gpa_lsp.code.ptx.model import Pair, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import Family, Meaning, as_unsigned, find_word

S = ScalarType
_MODES = ("up", "down", "bfly", "idx")  # as functions below number them


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
