"""An architecture's table → operations and bytes per cycle of one SM, with their sources."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpa_lsp.arch.figures import Figure, Status, Unknown
from gpa_lsp.arch.model import Architecture
from gpa_lsp.machine.model import OperationKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Something per cycle of one SM, or of one slice of L2.

    Attributes:
        per_cycle: operations or bytes.
        source: citation, one clause.
        is_certain: False where the table only assumes it.
    """

    per_cycle: float
    source: str
    is_certain: bool


_INSTRUCTION_RATES: tuple[tuple[OperationKind, str, int], ...] = (
    (OperationKind.FP32, "fp32_instructions_per_cycle", 2),
    (OperationKind.FP64, "fp64_instructions_per_cycle", 2),
    (OperationKind.FP16, "fp16_instructions_per_cycle", 4),
    (OperationKind.SPECIAL, "mufu_instructions_per_cycle", 1),
)
"""Type, field of :class:`~gpa_lsp.arch.sections.Throughput`, operations of one thread's instruction (a pair of halves is two)."""

_TENSOR_RATES: tuple[tuple[OperationKind, str], ...] = (
    (OperationKind.TENSOR_FP64, "tensor_fp64_flops_per_cycle"),
    (OperationKind.TENSOR_TF32, "tensor_tf32_flops_per_cycle"),
    (OperationKind.TENSOR_FP16, "tensor_fp16_flops_per_cycle"),
    (OperationKind.TENSOR_BF16, "tensor_bf16_flops_per_cycle"),
    (OperationKind.TENSOR_FP8, "tensor_fp8_flops_per_cycle"),
    (OperationKind.TENSOR_FP4, "tensor_fp4_flops_per_cycle"),
    (OperationKind.TENSOR_INT8, "tensor_int8_ops_per_cycle"),
)
"""Type and field; the figures are of a whole SM, dense."""


def list_operation_rates(architecture: Architecture) -> dict[OperationKind, Rate]:
    """Operations per cycle of one SM at most, by type. Types it lacks, or that the table does not know, are missing.

    A multiply-add is two operations in every type, integers included: so the vendor counts its peaks.

    >>> from gpa_lsp.arch.lookup import find_architecture
    >>> rates = list_operation_rates(find_architecture((8, 0)))
    >>> rates[OperationKind.FP32].per_cycle, rates[OperationKind.FP64].per_cycle, rates[OperationKind.TENSOR_FP16].per_cycle
    (128.0, 64.0, 2048.0)
    """
    return dict(_iterate_operation_rates(architecture))


def _iterate_operation_rates(architecture: Architecture) -> Iterator[tuple[OperationKind, Rate]]:
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
        rate = read_rate(architecture, getattr(throughput, name), 1)
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
