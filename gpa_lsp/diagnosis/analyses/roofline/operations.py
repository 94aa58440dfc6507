"""Operations of each type in a launch.

What the profiler counted comes first: predicated-on thread instructions of floating point (a multiply-add is two, a packed instruction works on
two halves), and the tensor cores' own operation counters. What it did not count is counted from the instructions and how often they were executed
(:func:`count_thread_operations`, :func:`count_tensor_operations`); integers always are, because the profiler counts one for each instruction,
multiply-adds too.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from gpa_lsp.diagnosis.analyses.model import OperationCount
from gpa_lsp.diagnosis.analyses.roofline.counts import Executions, Span, Total, read_total, sum_totals
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.profile.model import Launch

# How many operations a tensor instruction is, from the shape its mnemonic names.
#
# A matrix product of m·n·k multiply-adds is 2·m·n·k operations. Sparse forms name the k of the matrix before half of it was left out; what is
# done, and what stands under a dense roof, is half of that.

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


@lru_cache(maxsize=1024)
def count_tensor_operations(mnemonic: str) -> tuple[OperationKind, float] | None:
    """Type of the inputs and operations of one warp's execution, dense ones, a multiply-add being two.

    None for other instructions, and for those whose shape or type is unknown.

    >>> count_tensor_operations("HMMA.16816.F32.BF16")
    (<OperationKind.TENSOR_BF16: 'BF16 tensor'>, 4096.0)
    >>> count_tensor_operations("HGMMA.64x128x16.F32")[1]
    65536.0
    >>> count_tensor_operations("HMMA.SP.16832.F32")[1]
    4096.0
    >>> count_tensor_operations("HMMA.884.F32.F32.STEP2")[1]
    512.0
    """
    opcode, *modifiers = mnemonic.split(".")
    kind = _WARP_KINDS.get(opcode) or _GROUP_KINDS.get(opcode)
    if kind is None or (kind is OperationKind.TENSOR_INT8 and not _INTEGER_BYTES & set(modifiers)):
        return None
    kind = next((_OTHER_INPUTS[one] for one in modifiers if one in _OTHER_INPUTS), kind)
    if any(one.startswith("STEP") for one in modifiers):
        return kind, float(VOLTA_STEP_OPERATIONS["F32" if "F32" in modifiers else "F16"])
    shape = _find_shape(modifiers)
    if shape is None:
        return None
    rows, columns, depth = shape
    operations = 2.0 * rows * columns * depth
    if "SP" in modifiers:
        operations /= 2
    if opcode in _GROUP_KINDS:
        operations /= _WARPS_OF_GROUP
    return kind, operations


def _find_shape(modifiers: list[str]) -> tuple[int, int, int] | None:
    for modifier in modifiers:
        spelt = _SPELT_SHAPE.fullmatch(modifier)
        if spelt is not None:
            rows, columns, depth = spelt.groups()
            return int(rows), int(columns), int(depth)
        if modifier in _SHAPES:
            return _SHAPES[modifier]
    return None


# How many operations of which type an instruction does for one thread, as a table of opcodes.
#
# Floating point: an addition or a multiplication is one, a multiply-add two, as the profiler's own roofline counts; comparisons, minima, selections
# and conversions are none. Packed instructions do it for each of their halves.
#
# Integers: what an instruction does to one thread's integers is one operation (an addition, a bitwise function, a shift, a comparison), and a
# multiply-add is two, like everywhere; moves, selections, byte permutations and conversions are none, and so is the uniform datapath, which works
# once for the whole warp on a unit of its own. ``IADD3`` and ``LEA`` are one each: more often than not their third operand is RZ or a carry, which
# the opcode does not tell. The profiler's ``…_op_integer_pred_on`` counts one for each integer instruction, multiply-adds too.

_FP64, _FP32, _FP16 = OperationKind.FP64, OperationKind.FP32, OperationKind.FP16
_INT32, _SPECIAL = OperationKind.INT32, OperationKind.SPECIAL


# Opcode → type, operations of one thread, why
_TABLE: dict[str, tuple[OperationKind, int, str]] = {
    "DADD": (_FP64, 1, "an addition"),
    "DMUL": (_FP64, 1, "a multiplication"),
    "DFMA": (_FP64, 2, "a multiply-add"),
    "FADD": (_FP32, 1, "an addition"),
    "FADD32I": (_FP32, 1, "an addition"),
    "FMUL": (_FP32, 1, "a multiplication"),
    "FMUL32I": (_FP32, 1, "a multiplication"),
    "FFMA": (_FP32, 2, "a multiply-add"),
    "FFMA32I": (_FP32, 2, "a multiply-add"),
    "FADD2": (_FP32, 2, "an addition of pairs"),
    "FMUL2": (_FP32, 2, "a multiplication of pairs"),
    "FFMA2": (_FP32, 4, "a multiply-add of pairs"),
    "FHADD": (_FP32, 1, "an addition of a half to a float"),
    "FHFMA": (_FP32, 2, "a multiply-add of halves to a float"),
    "FSWZADD": (_FP32, 1, "an addition across a quad"),
    "HADD2": (_FP16, 2, "an addition of pairs"),
    "HADD2_32I": (_FP16, 2, "an addition of pairs"),
    "HMUL2": (_FP16, 2, "a multiplication of pairs"),
    "HMUL2_32I": (_FP16, 2, "a multiplication of pairs"),
    "HFMA2": (_FP16, 4, "a multiply-add of pairs"),
    "HFMA2_32I": (_FP16, 4, "a multiply-add of pairs"),
    "MUFU": (_SPECIAL, 1, "a special function"),
    "IMAD": (_INT32, 2, "a multiply-add"),
    "IMAD32I": (_INT32, 2, "a multiply-add"),
    "IMUL": (_INT32, 1, "a multiplication"),
    "IMUL32I": (_INT32, 1, "a multiplication"),
    "IDP": (_INT32, 8, "four multiply-adds of bytes"),
    "IDP4A": (_INT32, 8, "four multiply-adds of bytes"),
    "VABSDIFF": (_INT32, 1, "a difference"),
    "VABSDIFF4": (_INT32, 4, "four differences of bytes"),
    "VIADDMNMX": (_INT32, 2, "an addition and a comparison"),
    "VIMNMX3": (_INT32, 2, "two comparisons"),
    **dict.fromkeys(
        ("IADD3", "IADD", "IADD2", "IADD32I", "VIADD", "ISCADD", "ISCADD32I", "LEA", "IABS"), (_INT32, 1, "an addition")
    ),
    **dict.fromkeys(("IMNMX", "VIMNMX", "ISETP", "ISET", "ICMP"), (_INT32, 1, "a comparison")),
    **dict.fromkeys(("LOP3", "LOP", "LOP32I", "BMSK", "SGXT", "BFE", "BFI"), (_INT32, 1, "a bitwise function")),
    **dict.fromkeys(("SHF", "SHL", "SHR", "VSHL", "VSHR"), (_INT32, 1, "a shift")),
    **dict.fromkeys(("POPC", "FLO", "BREV"), (_INT32, 1, "a count or reversal of bits")),
}

# (opcode, first modifier) → what it is instead. ``IMAD.MOV``, ``IMAD.U32``, ``IMAD.IADD`` and ``IMAD.SHL`` are the compiler's way to move, add and
# shift on the pipe of multiplications.
_MODIFIED: dict[tuple[str, str], tuple[int, str]] = {
    ("IMAD", "MOV"): (0, "a move"),
    ("IMAD", "U32"): (0, "a move"),
    ("IMAD", "IADD"): (1, "an addition"),
    ("IMAD", "SHL"): (1, "a shift"),
    ("IDP", "2A"): (4, "two multiply-adds"),
    ("HADD2", "F32"): (0, "a conversion of a half"),
}


@lru_cache(maxsize=4096)
def count_thread_operations(mnemonic: str) -> tuple[OperationKind, int, str] | None:
    """Type and number of operations of an instruction per thread whose guard holds, with the reason; None for one that has none.

    >>> count_thread_operations("FFMA.FTZ")
    (<OperationKind.FP32: 'FP32'>, 2, 'a multiply-add')
    >>> count_thread_operations("HFMA2.MMA")[1]
    4
    >>> count_thread_operations("IMAD.MOV.U32") is None, count_thread_operations("IMAD.WIDE.U32")[1]
    (True, 2)
    """
    opcode, *modifiers = mnemonic.split(".")
    entry = _TABLE.get(opcode)
    if entry is None:
        return None
    kind, operations, reason = entry
    if modifiers and (opcode, modifiers[0]) in _MODIFIED:
        operations, reason = _MODIFIED[(opcode, modifiers[0])]
    return (kind, operations, reason) if operations else None


_Terms = tuple[tuple[tuple[str, ...], float], ...]


def _name_counted(*operations: tuple[str, int]) -> _Terms:
    """Names of the predicated-on counters of SASS operations, by sub-partition and by SM, and operations of one of them."""
    return tuple(
        (tuple(f"{unit}__sass_thread_inst_executed_op_{name}_pred_on" for unit in ("smsp", "sm")), float(factor))
        for name, factor in operations
    )


# Counters (without suffix) and operations of one count. A thread's half-precision instruction works on a pair: the profiler's own ``…hfma…_x4`` is
# four times the count.
COUNTED: dict[OperationKind, _Terms] = {
    OperationKind.FP64: _name_counted(("dadd", 1), ("dmul", 1), ("dfma", 2)),
    OperationKind.FP32: _name_counted(("fadd", 1), ("fmul", 1), ("ffma", 2)),
    OperationKind.FP16: _name_counted(("hadd", 2), ("hmul", 2), ("hfma", 4)),
}

_TENSOR = "sm__ops_path_tensor"
# Sets of counters that add up to a type's operations; the first that a launch has is read. Sparse operations count as if they were dense.
_TENSOR_COUNTED: dict[OperationKind, tuple[tuple[str, ...], ...]] = {
    OperationKind.TENSOR_FP64: (("src_fp64",),),
    OperationKind.TENSOR_TF32: (("src_tf32_dst_fp32",),),
    OperationKind.TENSOR_FP16: (("src_fp16",), ("src_fp16_dst_fp16", "src_fp16_dst_fp32")),
    OperationKind.TENSOR_BF16: (("src_bf16_dst_fp32",),),
    OperationKind.TENSOR_FP8: (
        ("src_fp8",),
        ("src_fp8_sparsity_off", "src_fp8_sparsity_on"),
        (
            "src_fp8_dst_fp16_sparsity_off",
            "src_fp8_dst_fp16_sparsity_on",
            "src_fp8_dst_fp32_sparsity_off",
            "src_fp8_dst_fp32_sparsity_on",
        ),
    ),
    OperationKind.TENSOR_FP4: (("src_fp4_dst_fp32_sparsity_off", "src_fp4_dst_fp32_sparsity_on"),),
    OperationKind.TENSOR_INT8: (("src_int8",),),
}

_SHAPELESS_COUNTED: dict[OperationKind, tuple[str, ...]] = {
    OperationKind.TENSOR_FP16: (
        "sm__inst_executed_pipe_tensor_op_hmma",
        "sm__inst_executed_pipe_tensor",
        "smsp__inst_executed_pipe_tensor",
    ),
    OperationKind.TENSOR_INT8: ("sm__inst_executed_pipe_tensor_op_imma",),
    OperationKind.TENSOR_FP64: ("sm__inst_executed_pipe_tensor_op_dmma",),
}
# Compute capability from which on → operations of the largest instruction of a warp; used where nothing tells the shape
_ASSUMED_OPERATIONS: dict[OperationKind, Mapping[int, int]] = {
    OperationKind.TENSOR_FP16: {70: 512, 72: 512, 75: 2048, 80: 4096},
    OperationKind.TENSOR_INT8: {72: 2048, 75: 2048, 80: 8192},
    OperationKind.TENSOR_FP64: {80: 512, 90: 4096},
}

INTEGER_COUNTERS = (
    "smsp__sass_thread_inst_executed_op_integer_pred_on",
    "sm__sass_thread_inst_executed_op_integer_pred_on",
)


def count_operations(launch: Launch, span: Span, executions: Executions | None) -> dict[OperationKind, OperationCount]:
    """Operations of one launch.

    Args:
        span: its time and cycles.
        executions: of its instructions; None when unknown.
    """
    executed = {} if executions is None else _count_executed(executions)
    found: dict[OperationKind, OperationCount] = {}
    for kind in OperationKind:
        count = _read_counted(launch, span, kind) or executed.get(kind) or _assume(launch, span, kind)
        if count is not None:
            found[kind] = count
    return found


def _read_counted(launch: Launch, span: Span, kind: OperationKind) -> OperationCount | None:
    total: Total | None = None
    if kind in COUNTED:
        total = sum_totals(launch, span, COUNTED[kind], f"{COUNTED[kind][0][0][0]} and its like, multiply-adds twice")
    for names in _TENSOR_COUNTED.get(kind, ()):
        terms = tuple(((f"{_TENSOR}_{name}",), 1.0) for name in names)
        total = total or sum_totals(launch, span, terms)
    return None if total is None else OperationCount(kind=kind, operations=total.value, source=total.source)


def _count_executed(executions: Executions) -> dict[OperationKind, OperationCount]:
    sums = dict.fromkeys(_list_countable(executions), 0.0)
    for mnemonic, threads in executions.threads.items():
        rule = count_thread_operations(mnemonic)
        if rule is not None and rule[0] in sums:
            sums[rule[0]] += rule[1] * threads
    for mnemonic, warps in executions.warps.items():
        tensor = count_tensor_operations(mnemonic)
        if tensor is not None and tensor[0] in sums:
            sums[tensor[0]] += tensor[1] * warps
    return {
        kind: OperationCount(
            kind=kind,
            operations=operations,
            source=executions.source,
            is_exact=kind.is_tensor or executions.are_threads_exact or not operations,
        )
        for kind, operations in sums.items()
    }


def _list_countable(executions: Executions) -> Iterator[OperationKind]:
    """Types that executions tell: tensor types only if warps were counted and every tensor instruction names its shape."""
    shapeless = any(mnemonic.split(".")[0] in DESCRIPTOR_SHAPED for mnemonic in executions.warps)
    for kind in OperationKind:
        if not kind.is_tensor or (executions.warps and not shapeless):
            yield kind


def _assume(launch: Launch, span: Span, kind: OperationKind) -> OperationCount | None:
    """Assume operations from counters of instructions that do not say what these did."""
    if kind is OperationKind.INT32:
        total = read_total(launch, span, INTEGER_COUNTERS)
        words = "one per instruction"
        factor: float | None = 1.0
    else:
        total = read_total(launch, span, _SHAPELESS_COUNTED.get(kind, ()))
        factor = _find_assumed(kind, launch.device.compute_capability)
        words = f"× {format_number(factor)}, the largest shape assumed" if factor else ""
    if total is None or (factor is None and total.value > 0):
        return None
    return OperationCount(
        kind=kind,
        operations=total.value * (factor or 0.0),
        source=f"{total.source}, {words}" if words else total.source,
        is_exact=total.value == 0,
    )


def _find_assumed(kind: OperationKind, capability: tuple[int, int] | None) -> float | None:
    table = _ASSUMED_OPERATIONS.get(kind, {})
    if capability is None:
        return None
    number = capability[0] * 10 + capability[1]
    since = max((start for start in table if start <= number), default=None)
    return None if since is None else float(table[since])
