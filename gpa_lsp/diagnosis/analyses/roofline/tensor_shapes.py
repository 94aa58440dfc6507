"""How many operations a tensor instruction is, from the shape its mnemonic names.

A matrix product of m·n·k multiply-adds is 2·m·n·k operations. Sparse forms name the k of the matrix before half of it was left out; what is
done, and what stands under a dense roof, is half of that.
"""

import re
from functools import lru_cache

from msgspec import Struct

from gpa_lsp.gpu.device.model import OperationKind

# The modifier of a warp's matrix instruction → m, n, k. Source: the modifiers nvdisasm writes for ``mma.sync`` of these PTX shapes.
_SHAPES = {
    "884": (8, 8, 4),
    "8816": (8, 8, 16),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
}

_SPELT_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")

_WARPS_OF_GROUP = 4  # Every warp of a warp group executes the group's instruction once

# Volta splits the 2,048 operations of four 8×8×4 products into four steps where it adds in 32 bits, and into two where it adds in 16. Source: Raihan,
# Goli and Aamodt, "Modeling Deep Learning Accelerator Enabled GPUs", ISPASS 2019, section III (HMMA sets and steps).
VOLTA_STEP_OPERATIONS = {"F32": 512, "F16": 1024}

_WARP_KINDS = {
    "HMMA": OperationKind.TENSOR_FP16,
    "IMMA": OperationKind.TENSOR_INT8,
    "DMMA": OperationKind.TENSOR_FP64,
    "QMMA": OperationKind.TENSOR_FP8,
    "OMMA": OperationKind.TENSOR_FP4,
}
_GROUP_KINDS = {
    "HGMMA": OperationKind.TENSOR_FP16,
    "IGMMA": OperationKind.TENSOR_INT8,
    "QGMMA": OperationKind.TENSOR_FP8,
}
_OTHER_INPUTS = {"BF16": OperationKind.TENSOR_BF16, "TF32": OperationKind.TENSOR_TF32}
_INTEGER_BYTES = frozenset({"S8", "U8"})

# Tensor instructions whose shape is in a descriptor, and not in their text. (Products of single bits are of none of our types.)
DESCRIPTOR_SHAPED = frozenset({"UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"})


class TensorOperations(Struct, frozen=True, kw_only=True):
    """What one warp's execution of a tensor instruction does."""

    kind: OperationKind  # type of its inputs
    operations: float  # dense ones, a multiply-add being two


@lru_cache(maxsize=1024)
def count_tensor_operations(mnemonic: str) -> TensorOperations | None:
    """Operations of one warp's execution; None for other instructions, and for those whose shape or type is none we know.

    >>> count_tensor_operations("HMMA.16816.F32.BF16")
    TensorOperations(kind=<OperationKind.TENSOR_BF16: 'BF16 tensor'>, operations=4096.0)
    >>> count_tensor_operations("HGMMA.64x128x16.F32").operations
    65536.0
    >>> count_tensor_operations("HMMA.SP.16832.F32").operations
    4096.0
    >>> count_tensor_operations("HMMA.884.F32.F32.STEP2").operations
    512.0
    """
    opcode, *modifiers = mnemonic.split(".")
    kind = _WARP_KINDS.get(opcode) or _GROUP_KINDS.get(opcode)
    if kind is None or (kind is OperationKind.TENSOR_INT8 and not _INTEGER_BYTES & set(modifiers)):
        return None
    kind = next((_OTHER_INPUTS[one] for one in modifiers if one in _OTHER_INPUTS), kind)
    if any(one.startswith("STEP") for one in modifiers):
        return TensorOperations(
            kind=kind, operations=float(VOLTA_STEP_OPERATIONS["F32" if "F32" in modifiers else "F16"])
        )
    shape = _find_shape(modifiers)
    if shape is None:
        return None
    rows, columns, depth = shape
    operations = 2.0 * rows * columns * depth
    if "SP" in modifiers:
        operations /= 2
    if opcode in _GROUP_KINDS:
        operations /= _WARPS_OF_GROUP
    return TensorOperations(kind=kind, operations=operations)


def _find_shape(modifiers: list[str]) -> tuple[int, int, int] | None:
    for modifier in modifiers:
        spelt = _SPELT_SHAPE.fullmatch(modifier)
        if spelt is not None:
            rows, columns, depth = spelt.groups()
            return int(rows), int(columns), int(depth)
        if modifier in _SHAPES:
            return _SHAPES[modifier]
    return None
