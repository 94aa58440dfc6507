"""``shfl vote match redux movmatrix``: what lanes of a warp tell one another.

Source: PTX ISA 9.0, sections 9.7.9.5, 9.7.9.6 (shfl), 9.7.13.9 (vote), 9.7.13.10 (match), 9.7.13.12 (redux) and 9.7.14.5.17 (movmatrix).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Pair, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import SIGNED, as_unsigned
from tests.emulator.oracle.model import Family, WarpOperation
from tests.emulator.oracle.single import build_extreme, canonicalise

Function = Callable[..., Any]
S = ScalarType
_LANES = np.arange(32)


def bind(instruction: PtxInstruction) -> WarpOperation | None:
    """Bind an exchange between the lanes of a warp, with or without a member mask."""
    return _BINDERS[instruction.opcode](instruction)


def _find_word(instruction: PtxInstruction, words: tuple[str, ...]) -> str | None:
    return next((word for word in instruction.suffixes if word in words), None)


def _has_pair(instruction: PtxInstruction) -> bool:
    return bool(instruction.destinations) and isinstance(instruction.destinations[0], Pair)


def _bind_shuffle(instruction: PtxInstruction) -> WarpOperation | None:
    """``shfl{.sync}.mode.b32 d{|p}, a, b, c{, members}``."""
    mode = _find_word(instruction, ("up", "down", "bfly", "idx"))
    if mode is None:
        return None
    synchronises = "sync" in instruction.suffixes
    pair = _has_pair(instruction)

    def evaluate(active: Any, a: Any, b: Any, c: Any, *_members: Any) -> Any:
        lanes, inside = _find_lanes(mode, *(np.broadcast_to(one, active.shape) for one in (b, c)))
        values = np.take_along_axis(np.broadcast_to(a, active.shape), lanes, axis=1)
        return (values, inside) if pair else values

    return WarpOperation(
        evaluate=evaluate,
        source_types=(S.U32,) * (4 if synchronises else 3),
        result_types=(S.U32, S.PRED) if pair else (S.U32,),
        member_mask_source=3 if synchronises else None,
    )


def _find_lanes(mode: str, b: Any, c: Any) -> tuple[Any, Any]:
    distance = np.bitwise_and(b, 31).astype(np.int64)
    clamp = np.bitwise_and(c, 31).astype(np.int64)
    segment = np.bitwise_and(np.right_shift(c, c.dtype.type(8)), 31).astype(np.int64)
    lowest = np.bitwise_and(_LANES, segment)
    highest = np.bitwise_or(lowest, np.bitwise_and(clamp, ~segment))
    if mode == "up":
        lane = _LANES - distance
        inside = lane >= highest
    else:
        if mode == "down":
            lane = _LANES + distance
        elif mode == "bfly":
            lane = np.bitwise_xor(_LANES, distance)
        else:
            lane = np.bitwise_or(lowest, np.bitwise_and(distance, ~segment))
        inside = lane <= highest
    return np.where(inside, lane, _LANES), inside


def pack_mask(lanes: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """bool[…, 32] as uint32[…, 1], lane 0 in the lowest bit."""
    return np.packbits(lanes, axis=-1, bitorder="little").view("<u4")


def _by_members(evaluate: Function) -> Function:
    """Sets of lanes of a warp that name the same members: tiles of half a warp meet at one instruction with masks of their own."""

    def run(active: Any, *sources: Any) -> Any:
        members = sources[-1]
        first = np.take_along_axis(members, active.argmax(axis=1)[:, None], axis=1)
        others = active & (members != first)
        if not others.any():
            return evaluate(active, *sources)
        results = evaluate(active & ~others, *sources)
        rest = run(others, *sources)
        if isinstance(results, tuple):
            return tuple(np.where(others, *pair) for pair in zip(rest, results, strict=True))
        return np.where(others, rest, results)

    return run


def _bind_vote(instruction: PtxInstruction) -> WarpOperation | None:
    """``vote{.sync}.all|any|uni.pred p, {!}a{, members}`` and ``vote{.sync}.ballot.b32 d, {!}a{, members}``."""
    mode = _find_word(instruction, ("all", "any", "uni", "ballot"))
    if mode is None:
        return None
    synchronises = "sync" in instruction.suffixes

    def evaluate(active: Any, a: Any, *_members: Any) -> Any:
        holds = np.logical_and(active, a)
        if mode == "ballot":
            result: Any = pack_mask(holds)
        elif mode == "any":
            result = holds.any(axis=1, keepdims=True)
        else:
            result = (holds == active).all(axis=1, keepdims=True)
            if mode == "uni":
                result = np.logical_or(result, ~holds.any(axis=1, keepdims=True))
        return np.broadcast_to(result, active.shape)

    return WarpOperation(
        evaluate=_by_members(evaluate) if synchronises else evaluate,
        source_types=(S.PRED, S.U32) if synchronises else (S.PRED,),
        result_types=(S.U32,) if mode == "ballot" else (S.PRED,),
        member_mask_source=1 if synchronises else None,
    )


def _bind_match(instruction: PtxInstruction) -> WarpOperation | None:
    """``match.any.sync.type d, a, members`` and ``match.all.sync.type d{|p}, a, members``."""
    mode = _find_word(instruction, ("any", "all"))
    if mode is None or len(instruction.types) != 1 or instruction.types[0] not in (S.B32, S.B64):
        return None
    pair = _has_pair(instruction)
    sources = (as_unsigned(instruction.types[0]), S.U32)

    def match_any(active: Any, a: Any, _members: Any) -> Any:
        a = np.broadcast_to(a, active.shape)
        same = np.logical_and(a[:, :, None] == a[:, None, :], active[:, None, :])
        return pack_mask(same)[..., 0]

    def match_all(active: Any, a: Any, _members: Any) -> Any:
        a = np.broadcast_to(a, active.shape)
        first = np.take_along_axis(a, active.argmax(axis=1)[:, None], axis=1)
        same = ((a == first) | ~active).all(axis=1, keepdims=True)
        mask = np.broadcast_to(np.where(same, pack_mask(active), np.uint32(0)), active.shape)
        return (mask, np.broadcast_to(same, active.shape)) if pair else mask

    return WarpOperation(
        evaluate=_by_members(match_any if mode == "any" else match_all),
        source_types=sources,
        result_types=(S.U32, S.PRED) if pair else (S.U32,),
        member_mask_source=1,
    )


def _bind_reduction(instruction: PtxInstruction) -> WarpOperation | None:
    """``redux.sync.op.type d, a, members``."""
    operation = _find_word(instruction, ("add", "min", "max", "and", "or", "xor"))
    if operation is None or len(instruction.types) != 1:
        return None
    kind = instruction.types[0]
    if kind is S.F32:
        return _bind_float_reduction(instruction, operation)
    if kind not in (S.U32, S.S32, S.B32):
        return None
    kind = kind if kind in SIGNED and operation in ("min", "max") else S.U32
    dtype = kind.natural_dtype
    function, identity = _REDUCTIONS[operation]
    neutral = dtype.type(identity(np.iinfo(dtype)))

    def evaluate(active: Any, a: Any, _members: Any) -> Any:
        values = np.where(active, a, neutral)
        return np.broadcast_to(function.reduce(values, axis=1, keepdims=True, dtype=dtype), active.shape)

    return WarpOperation(
        evaluate=_by_members(evaluate), source_types=(kind, S.U32), result_types=(kind,), member_mask_source=1
    )


_REDUCTIONS: dict[str, tuple[Any, Callable[[Any], int]]] = {
    "add": (np.add, lambda _limits: 0),
    "min": (np.minimum, lambda limits: int(limits.max)),
    "max": (np.maximum, lambda limits: int(limits.min)),
    "and": (np.bitwise_and, lambda limits: int(limits.max)),
    "or": (np.bitwise_or, lambda _limits: 0),
    "xor": (np.bitwise_xor, lambda _limits: 0),
}


def _bind_float_reduction(instruction: PtxInstruction, operation: str) -> WarpOperation | None:
    """``redux.sync.min|max{.abs}{.NaN}.f32``."""
    if operation not in ("min", "max"):
        return None
    words = instruction.suffixes
    choose = build_extreme(S.F32, greatest=operation == "max", keeps_nan="NaN" in words, by_magnitude=False)
    takes_magnitude, keeps_nan = "abs" in words, "NaN" in words
    neutral = np.float32(np.nan if not keeps_nan else (-np.inf if operation == "max" else np.inf))

    def evaluate(active: Any, a: Any, _members: Any) -> Any:
        values = np.where(active, np.abs(a) if takes_magnitude else a, neutral)
        while values.shape[1] > 1:
            half = values.shape[1] // 2
            values = choose(np.ascontiguousarray(values[:, :half]), np.ascontiguousarray(values[:, half:]))
        return np.broadcast_to(canonicalise(values), active.shape)

    return WarpOperation(
        evaluate=_by_members(evaluate), source_types=(S.F32, S.U32), result_types=(S.F32,), member_mask_source=1
    )


def _bind_transposition(instruction: PtxInstruction) -> WarpOperation | None:
    """``movmatrix.sync.aligned.m8n8.trans.b16 d, a``: an 8×8 matrix of 16-bit elements, two of a row in each lane."""
    if instruction.types != (S.B16,) or "trans" not in instruction.suffixes:
        return None

    def evaluate(active: Any, a: Any) -> Any:
        words = np.ascontiguousarray(np.broadcast_to(a, active.shape))
        matrix = words.view(np.uint16).reshape(-1, 8, 8)
        return np.ascontiguousarray(matrix.transpose(0, 2, 1)).reshape(-1, 64).view(np.uint32)

    return WarpOperation(evaluate=evaluate, source_types=(S.U32,), result_types=(S.U32,))


_BINDERS: dict[str, Callable[[PtxInstruction], WarpOperation | None]] = {
    "shfl": _bind_shuffle,
    "vote": _bind_vote,
    "match": _bind_match,
    "redux": _bind_reduction,
    "movmatrix": _bind_transposition,
}

FAMILY = Family(opcodes=tuple(_BINDERS), bind=bind)
