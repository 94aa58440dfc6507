"""``prmt``: four bytes picked from eight.

Source: PTX ISA 9.0, section 9.7.9.7.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from tests.emulator.oracle.model import Family, LaneOperation, same_types

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
    return same_types(_permute if mode is None else _permute_by_mode(mode), S.U32, 3)


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
