"""An architecture's table → operations and bytes per cycle of one SM, with their sources."""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.gpu.arch.figures import Figure, Status, Unknown
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.gpu.device.products import Accumulation, list_accumulation_architectures


class Rate(Struct, frozen=True, kw_only=True):
    """Something per cycle of one SM, of one slice of L2 or of the whole GPU."""

    per_cycle: float  # operations or bytes
    source: str  # citation, one clause
    is_certain: bool  # False where the table only assumes it


# Type, field of :class:`~gpa_lsp.gpu.arch.sections.Throughput`, operations of one thread's instruction (a pair of halves is two)
_INSTRUCTION_RATES: tuple[tuple[OperationKind, str, int], ...] = (
    (OperationKind.FP64, "fp64_instructions_per_cycle", 2),
    (OperationKind.FP32, "fp32_instructions_per_cycle", 2),
    (OperationKind.FP16, "fp16_instructions_per_cycle", 4),
    (OperationKind.SPECIAL, "mufu_instructions_per_cycle", 1),
)

# Type and field; the figures are of a whole SM, dense. FP16 is the rate with FP16 accumulation, the highest there is.
_TENSOR_RATES: tuple[tuple[OperationKind, str], ...] = (
    (OperationKind.TENSOR_FP64, "tensor_fp64_flops_per_cycle"),
    (OperationKind.TENSOR_TF32, "tensor_tf32_flops_per_cycle"),
    (OperationKind.TENSOR_FP16, "tensor_fp16_flops_per_cycle"),
    (OperationKind.TENSOR_BF16, "tensor_bf16_flops_per_cycle"),
    (OperationKind.TENSOR_FP8, "tensor_fp8_flops_per_cycle"),
    (OperationKind.TENSOR_FP4, "tensor_fp4_flops_per_cycle"),
    (OperationKind.TENSOR_INT8, "tensor_int8_ops_per_cycle"),
)

# Types whose only form accumulates in FP32, and their full rate as a part of FP16's
_ACCUMULATED_IN_FP32: tuple[tuple[OperationKind, float], ...] = (
    (OperationKind.TENSOR_BF16, 1.0),
    (OperationKind.TENSOR_TF32, 0.5),
)


def list_operation_rates(
    architecture: Architecture, accumulation: Accumulation | None = None
) -> dict[OperationKind, Rate]:
    """Operations per cycle of one SM at most, by type. Types it lacks, or that the table does not know, are missing.

    A multiply-add is two operations in every type, integers included: so the vendor counts its peaks.

    Args:
        architecture: the table.
        accumulation: the board's rate of tensor instructions that accumulate in FP32; None when the board is unknown: the full rate is then
            taken, uncertain. Without effect on architectures all of whose boards have the same.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> rates = list_operation_rates(find_architecture((8, 0)))
    >>> rates[OperationKind.FP32].per_cycle, rates[OperationKind.FP64].per_cycle, rates[OperationKind.TENSOR_FP16].per_cycle
    (128.0, 64.0, 2048.0)
    >>> rates = list_operation_rates(find_architecture((8, 6)), Accumulation.HALF)
    >>> rates[OperationKind.TENSOR_FP16].per_cycle, rates[OperationKind.TENSOR_BF16].per_cycle
    (1024.0, 512.0)
    """
    rates = dict(_iterate_table(architecture))
    fastest = rates.get(OperationKind.TENSOR_FP16)
    if fastest is None or architecture.compute_capability not in list_accumulation_architectures():
        return rates
    for kind, part in _ACCUMULATED_IN_FP32:
        if kind in rates:
            half = 0.5 if accumulation is Accumulation.HALF else 1.0
            is_certain = fastest.is_certain and accumulation is not None
            rates[kind] = Rate(per_cycle=fastest.per_cycle * part * half, source=fastest.source, is_certain=is_certain)
    return rates


def _iterate_table(architecture: Architecture) -> Iterator[tuple[OperationKind, Rate]]:
    sm, throughput = architecture.sm, architecture.throughput
    threads = sm.sub_partitions_per_sm.value * sm.warp_size_threads.value
    for kind, name, operations in _INSTRUCTION_RATES:
        rate = read_rate(architecture, getattr(throughput, name), threads * operations)
        if rate is not None:
            yield kind, rate
    lanes = read_rate(architecture, sm.int32_lanes_per_sm, 2)
    if lanes is not None:
        yield OperationKind.INT32, lanes
    for kind, name in _TENSOR_RATES:
        rate = read_rate(architecture, getattr(throughput, name))
        if rate is not None:
            yield kind, rate


def read_rate(
    architecture: Architecture, figure: Figure[float] | Figure[int] | Unknown, factor: float = 1
) -> Rate | None:
    """A figure of the table times a factor; None when it is unknown or zero (the unit is not there)."""
    if isinstance(figure, Unknown) or figure.value <= 0:
        return None
    return Rate(
        per_cycle=float(figure.value * factor),
        source=f"{architecture.name}: {architecture.sources[figure.sources[0]]}",
        is_certain=figure.status is not Status.ASSUMED,
    )
