"""What a launch's own counters state about its GPU: peaks per cycle, slices of L2, clocks.

A metric's ``.peak_sustained`` is the most the unit can count in one cycle of its clock; ``.avg`` is of one unit, ``.sum`` of all of them.
All of it is NVIDIA's own word on the GPU the launch ran on, so it goes before every table.

Source:
    NVIDIA, Nsight Compute Profiling Guide, Metrics Structure (peak rates, sub-metrics) and Metrics Decoder (units and quantities).
"""

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_count, format_number
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.profile.model import Device, Launch

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


class CounterPeak(Struct, frozen=True, kw_only=True):
    """A peak per cycle of the whole GPU as a launch states it."""

    per_cycle: float  # operations or bytes
    source: str  # the metrics it was read from


def read_positive(launch: Launch, *names: str) -> tuple[str, float] | None:
    """The first of these metrics that is above zero, with its name; None when there is none. Launches that failed hold zeros."""
    for name in names:
        value = launch.read_number(name)
        if value is not None and _SMALLEST < value < _LARGEST:
            return name, value
    return None


def read_operation_peaks(launch: Launch) -> dict[OperationKind, CounterPeak]:
    """Operations per SM cycle of the whole GPU, by type; types whose peak was not collected are missing."""
    peaks: dict[OperationKind, CounterPeak] = {}
    for kind, name, operations in _PEAK_METRICS:
        found = read_positive(launch, name)
        if found is not None and kind not in peaks:
            factor = "" if operations == 1 else f" × {format_number(operations)}"
            peaks[kind] = CounterPeak(per_cycle=found[1] * operations, source=f"{name}{factor}")
    return peaks


def read_dram_peak(launch: Launch) -> CounterPeak | None:
    """Bytes per DRAM cycle of the whole GPU; None when not collected."""
    found = read_positive(launch, "dram__bytes.sum.peak_sustained")
    return None if found is None else CounterPeak(per_cycle=found[1], source=found[0])


def read_l1_peak(launch: Launch) -> CounterPeak | None:
    """Bytes per SM cycle that all L1 write back to registers; None when not collected (it is since Nsight Compute 2025.1)."""
    found = read_positive(launch, "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained")
    return None if found is None else CounterPeak(per_cycle=found[1], source=found[0])


def read_l2_peak(launch: Launch) -> CounterPeak | None:
    """Bytes per L2 cycle between all slices and the SMs; None when not collected.

    ``lts__t_sectors`` has a higher peak on 8.0 and 9.0 (3 sectors per slice, and not 2), because it also counts what comes from DRAM and from
    the other half of L2. Published bandwidths are those to the SMs: 5,120 bytes per cycle on A100 are 80 slices of 2 sectors.
    """
    stated = read_positive(launch, "derived__lts__lts2xbar_bytes.sum.peak_sustained")
    if stated is not None:
        return CounterPeak(per_cycle=stated[1], source=stated[0])
    sectors = read_positive(launch, "lts__t_sectors_srcunit_tex.avg.peak_sustained")
    slices = count_l2_slices(launch)
    if sectors is None or slices is None:
        return None
    source = f"{sectors[0]} × {SECTOR_BYTES} bytes × {format_count(slices)} slices"
    return CounterPeak(per_cycle=sectors[1] * SECTOR_BYTES * slices, source=source)


def count_l2_slices(launch: Launch) -> float | None:
    """How many L2 slices ``lts__`` metrics are summed over; None when the launch does not say.

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
