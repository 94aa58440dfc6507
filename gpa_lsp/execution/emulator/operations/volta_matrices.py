"""``mma.m8n8k4`` of halves: four products by the four quad pairs of a warp.

Lanes 4q … 4q+3 and 16+4q … 16+4q+3 work on product q. Source: PTX ISA 9.0, section 9.7.14.5.1.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.matrix_numbers import pack, register_type, unpack
from gpa_lsp.execution.emulator.operations.model import WarpOperation

S = ScalarType
_LANES = np.arange(32)
_QUAD = _LANES % 16 // 4
_LOW = _LANES % 4
_HIGH = np.where(_LANES < 16, 0, 4)

Places = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _place_factor(*, along_lane: bool) -> Places:
    """Row and column of A (of B: turned) [32, 4]: a row per lane, or a column per lane."""
    elements = np.arange(4)[None, :]
    if along_lane:
        return np.broadcast_to((_LOW + _HIGH)[:, None], (32, 4)), np.broadcast_to(elements, (32, 4))
    return elements + _HIGH[:, None], np.broadcast_to(_LOW[:, None], (32, 4))


def _place_sum(kind: ScalarType) -> Places:
    """Row and column of C and D [32, 8]."""
    element = np.arange(8)[None, :]
    lane = _LANES[:, None]
    if kind is S.F16:
        return np.broadcast_to((_LOW + _HIGH)[:, None], (32, 8)), np.broadcast_to(element, (32, 8))
    return (lane & 1) + (element & 2) + _HIGH[:, None], (element & 4) + (lane & 2) + (element & 1)


def bind_volta(
    instruction: PtxInstruction, types: tuple[ScalarType, ScalarType, ScalarType, ScalarType]
) -> WarpOperation | None:
    """Bind ``mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype``."""
    layouts = [word for word in instruction.suffixes if word in ("row", "col")]
    result, _, right, addend = types
    sums = {S.F16: 4, S.F32: 8}
    if len(layouts) != 2 or right is not S.F16 or result not in sums or addend not in sums:
        return None
    counts = [len(source.elements) if isinstance(source, Vector) else 1 for source in instruction.sources]
    if counts != [2, 2, sums[addend]]:
        return None
    left_row, left_column = _place_factor(along_lane=layouts[0] == "row")
    right_column, right_row = _place_factor(along_lane=layouts[1] == "col")
    given, wanted = _place_sum(addend), _place_sum(result)
    quad = _QUAD[:, None]

    def evaluate(active: Any, *sources: Any) -> Any:
        registers = [np.broadcast_to(source, active.shape) for source in sources]
        a = np.empty((len(active), 4, 8, 4))
        b = np.empty((len(active), 4, 4, 8))
        total = np.empty((len(active), 4, 8, 8))
        a[:, quad, left_row, left_column] = unpack(np.stack(registers[:2], -1), S.F16)
        b[:, quad, right_row, right_column] = unpack(np.stack(registers[2:4], -1), S.F16)
        total[:, quad, given[0], given[1]] = unpack(np.stack(registers[4:], -1), addend)
        total += np.matmul(a, b)
        packed = pack(total[:, quad, wanted[0], wanted[1]], result)
        return tuple(packed[..., index] for index in range(packed.shape[-1]))

    return WarpOperation(
        evaluate=evaluate,
        source_types=(*(S.U32,) * 4, *(register_type(addend),) * sums[addend]),
        result_types=(register_type(result),) * sums[result],
    )
