"""Operations of each type in a launch.

What the profiler counted comes first: predicated-on thread instructions of floating point (a multiply-add is two, a packed instruction works on
two halves), and the tensor cores' own operation counters. What it did not count is counted from the instructions and how often they were executed
(:mod:`gpa_lsp.diagnosis.analyses.roofline.opcode_operations`); integers always are, because the profiler's count has one for each instruction
whatever it does.
"""

from collections.abc import Iterator, Mapping

from gpa_lsp.diagnosis.analyses.roofline.instructions import Executions
from gpa_lsp.diagnosis.analyses.roofline.opcode_operations import count_thread_operations
from gpa_lsp.diagnosis.analyses.roofline.tensor_shapes import DESCRIPTOR_SHAPED, count_tensor_operations
from gpa_lsp.diagnosis.analyses.roofline.totals import Span, Total, read_total, sum_totals
from gpa_lsp.diagnosis.analyses.roofline_model import OperationCount
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.profile.model import Launch

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
        if rule is not None and rule.kind in sums:
            sums[rule.kind] += rule.operations * threads
    for mnemonic, warps in executions.warps.items():
        tensor = count_tensor_operations(mnemonic)
        if tensor is not None and tensor.kind in sums:
            sums[tensor.kind] += tensor.operations * warps
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
    """From counters that say how many instructions there were, and not what they did."""
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
