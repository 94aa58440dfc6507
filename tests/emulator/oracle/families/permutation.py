"""``prmt``: four bytes picked from eight.

Source: PTX ISA 9.0, section 9.7.9.7.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.modifiers import find_literal
from tests.emulator.oracle.lanes import over_lanes
from tests.emulator.oracle.model import Family, LaneOperation

Function = Callable[..., Any]
S = ScalarType

# Bytes that the modes pick, lowest first, by the low two bits of the selector
MODES: dict[str, tuple[tuple[int, ...], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind ``prmt.b32{.mode}``."""
    if instruction.types != (S.B32,):
        return None
    mode = next((word for word in instruction.suffixes if word in MODES), None)
    selector = find_literal(instruction, 2)
    if selector is not None:
        evaluate = _build_fixed(_read_selector(selector, mode))
    else:
        evaluate = over_lanes(_permute if mode is None else _permute_by_mode(mode))
    return LaneOperation(evaluate=evaluate, source_types=(S.U32,) * 3, result_types=(S.U32,))


def _read_selector(selector: int, mode: str | None) -> tuple[tuple[int, bool], ...]:
    """Source of each byte of the result, lowest first, and whether only its sign is copied."""
    if mode is not None:
        return tuple((byte, False) for byte in MODES[mode][selector & 3])
    nibbles = [selector >> (4 * place) & 0xF for place in range(4)]
    return tuple((nibble & 7, nibble >= 8) for nibble in nibbles)


def _build_fixed(picks: tuple[tuple[int, bool], ...]) -> Function:
    """Bytes that come from one source and move equally far are moved together: a mask and a shift."""
    moves: dict[tuple[int, int], int] = {}
    signs: list[tuple[int, int, int]] = []
    for place, (byte, is_sign) in enumerate(picks):
        source, within = divmod(byte, 4)
        if is_sign:
            signs.append((source, within, place))
        else:
            key = (source, 8 * (place - within))
            moves[key] = moves.get(key, 0) | 0xFF << (8 * place)
    steps = [_build_move(source, distance, mask) for (source, distance), mask in moves.items()]
    steps += [_build_sign(*sign) for sign in signs]
    if len(steps) == 1:
        (only,) = steps
        return lambda a, b, _c: only((a, b))
    first, *rest = steps

    def evaluate(a: Any, b: Any, _c: Any) -> Any:
        sources = a, b
        result = first(sources)
        for step in rest:
            result = np.bitwise_or(result, step(sources))
        return result

    return evaluate


def _build_move(source: int, distance: int, mask: int) -> Function:
    """Bits moved up by a distance (negative: down), and cut to the mask of where they arrive."""
    kept = np.uint32(mask)
    shift = np.uint32(abs(distance))
    if distance == 0:
        return (lambda s: s[source]) if mask == 0xFFFF_FFFF else (lambda s: np.bitwise_and(s[source], kept))
    move: Function = np.left_shift if distance > 0 else np.right_shift
    arriving = 0xFFFF_FFFF << distance & 0xFFFF_FFFF if distance > 0 else 0xFFFF_FFFF >> -distance
    if mask == arriving:
        return lambda s: move(s[source], shift)
    return lambda s: np.bitwise_and(move(s[source], shift), kept)


def _build_sign(source: int, within: int, place: int) -> Function:
    """The highest bit of a byte, eight times."""
    up, low, factor = np.uint32(8 * within + 7), np.uint32(1), np.uint32(0xFF << (8 * place))
    return lambda s: np.multiply(np.bitwise_and(np.right_shift(s[source], up), low), factor)


Words = npt.NDArray[np.uint32]


def _permute(a: Words, b: Words, selector: Words) -> Words:
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    result = np.zeros(len(a), np.uint32)
    for place in range(4):
        nibble = selector >> np.uint32(4 * place) & np.uint32(0xF)
        byte = (both >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(np.uint32) & np.uint32(0xFF)
        signs = (byte >> np.uint32(7)) * np.uint32(0xFF)
        result |= np.where(nibble >= 8, signs, byte) << np.uint32(8 * place)
    return result


def _permute_by_mode(mode: str) -> Function:
    table = np.array([sum(byte << (4 * place) for place, byte in enumerate(row)) for row in MODES[mode]], np.uint32)
    return lambda a, b, selector: _permute(a, b, table[selector & np.uint32(3)])


FAMILY = Family(opcodes=("prmt",), bind=bind)
