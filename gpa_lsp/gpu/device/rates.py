"""Rates per cycle with their sources: what an architecture's table gives per SM, and what a launch's counters state about its GPU.

A metric's ``.peak_sustained`` is the most the unit can count in one cycle of its clock; ``.avg`` is of one unit, ``.sum`` of all of them. It is
NVIDIA's statement about the GPU the launch ran on, so it goes before every table.

Source:
    NVIDIA, Nsight Compute Profiling Guide, Metrics Structure (peak rates, sub-metrics) and Metrics Decoder (units and quantities).
"""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_count, format_number
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, Status, Unknown
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.gpu.device.products import Accumulation, list_accumulation_architectures
from gpa_lsp.profile.model import Device, Launch


class Rate(Struct, frozen=True, kw_only=True):
    """A rate per cycle of one SM, of one slice of L2 or of the whole GPU."""

    per_cycle: float  # operations or bytes
    source: str  # citation or metrics, one clause
    is_certain: bool = True  # False where the table only assumes it


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


SECTOR_BYTES = 32  # A sector, the unit L2 and L1 count in

_SMALLEST, _LARGEST = 1e-9, 1e25  # No count, rate or attribute of a GPU is as small or as large; broken files hold such
_MOST_SLICES = 10_000

# Type, metric, and operations per counted thing. Of several metrics of one type the first that a launch has counts: on 9.0 the instructions of warp
# groups (HGMMA, IGMMA) reach the peak, those of warps (HMMA, IMMA) two thirds of it. Metrics without ``sparsity_off`` count sparse operations, which
# are not done.
_PEAK_METRICS: tuple[tuple[OperationKind, str, float], ...] = (
    (OperationKind.FP32, "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", 2),
    (OperationKind.FP64, "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", 2),
    (OperationKind.FP16, "sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained", 4),
    (OperationKind.TENSOR_FP64, "sm__ops_path_tensor_src_fp64.sum.peak_sustained", 1),
    (OperationKind.TENSOR_TF32, "sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_TF32, "sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_FP16, "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_FP16, "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_BF16, "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_BF16, "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_FP8, "sm__ops_path_tensor_src_fp8_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_FP8, "sm__ops_path_tensor_src_fp8_dst_fp16_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_FP4, "sm__ops_path_tensor_src_fp4_dst_fp32_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_INT8, "sm__ops_path_tensor_op_igmma_src_int8_sparsity_off.sum.peak_sustained", 1),
    (OperationKind.TENSOR_INT8, "sm__ops_path_tensor_op_imma_src_int8_sparsity_off.sum.peak_sustained", 1),
)


def read_positive(launch: Launch, *names: str) -> tuple[str, float] | None:
    """The first of these metrics that is above zero, with its name; None when there is none. Launches that failed hold zeros."""
    for name in names:
        value = launch.read_number(name)
        if value is not None and _SMALLEST < value < _LARGEST:
            return name, value
    return None


def read_operation_peaks(launch: Launch) -> dict[OperationKind, Rate]:
    """Operations per SM cycle of the whole GPU, by type; types whose peak was not collected are missing."""
    peaks: dict[OperationKind, Rate] = {}
    for kind, name, operations in _PEAK_METRICS:
        found = read_positive(launch, name)
        if found is not None and kind not in peaks:
            factor = "" if operations == 1 else f" × {format_number(operations)}"
            peaks[kind] = Rate(per_cycle=found[1] * operations, source=f"{name}{factor}")
    return peaks


def read_dram_peak(launch: Launch) -> Rate | None:
    """Bytes per DRAM cycle of the whole GPU; None when not collected."""
    return _read_rate(launch, "dram__bytes.sum.peak_sustained")


def read_l1_peak(launch: Launch) -> Rate | None:
    """Bytes per SM cycle that all L1 write back to registers; None when not collected (it is since Nsight Compute 2025.1)."""
    return _read_rate(launch, "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained")


def read_l2_peak(launch: Launch) -> Rate | None:
    """Bytes per L2 cycle between all slices and the SMs; None when not collected.

    ``lts__t_sectors`` has a higher peak on 8.0 and 9.0 (3 sectors per slice, and not 2), because it also counts what comes from DRAM and from
    the other half of L2. Published bandwidths are those to the SMs: 5,120 bytes per cycle on A100 are 80 slices of 2 sectors.
    """
    if (stated := _read_rate(launch, "derived__lts__lts2xbar_bytes.sum.peak_sustained")) is not None:
        return stated
    sectors = read_positive(launch, "lts__t_sectors_srcunit_tex.avg.peak_sustained")
    slices = count_l2_slices(launch)
    if sectors is None or slices is None:
        return None
    source = f"{sectors[0]} × {SECTOR_BYTES} bytes × {format_count(slices)} slices"
    return Rate(per_cycle=sectors[1] * SECTOR_BYTES * slices, source=source)


def _read_rate(launch: Launch, name: str) -> Rate | None:
    found = read_positive(launch, name)
    return None if found is None else Rate(per_cycle=found[1], source=found[0])


def count_l2_slices(launch: Launch) -> float | None:
    """The number of L2 slices that ``lts__`` metrics are summed over; None when the launch does not say.

    The quotient of a sum and an average says it best; ``l2s_count`` of the device agrees on 7.0 to 9.0 and is twice as many on 12.0.
    """
    for name in ("lts__cycles_elapsed", "lts__t_sectors"):
        total, average = launch.read_number(f"{name}.sum"), launch.read_number(f"{name}.avg")
        if total is not None and average is not None and 0 < average <= total <= average * _MOST_SLICES:
            return float(round(total / average))
    capability = launch.device.compute_capability
    if capability is None or capability[0] > 9:
        return None
    return read_attribute(launch.device, "l2s_count")


def read_attribute(device: Device, name: str) -> float | None:
    """A device attribute as a number above zero, by its name without ``device__attribute_``; None when there is none."""
    value = device.attributes.get(f"device__attribute_{name}", device.attributes.get(name))
    if value is None or isinstance(value, str):
        return None
    number = float(value)
    return number if _SMALLEST < number < _LARGEST else None
