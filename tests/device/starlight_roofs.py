"""The theoretical roofs as Starlight reckons them, to set beside ours: :func:`reckon_starlight_roofs`.

Source:
    Starlight, section 4.2 (the RTX A5000), and the ratios of its public code.
"""

from dataclasses import dataclass

from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind

_L1_BYTES_PER_SM = 128
_L2_BYTES_PER_SM = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StarlightRoofs:
    """Starlight's roofs at the machine's clocks.

    Attributes:
        fp32_ops_per_s: cores × clock × 2, as ours.
        int32_ops_per_s: the same as FP32. So it is on 7.0, 7.5, 8.0 and 12.0; half of it on 8.6, 8.9, 9.0 and 10.0.
        fp16_ops_per_s: twice FP32. So it is on 7.0, 7.5 and 9.0; four times on 8.0, as much as FP32 on 8.6, 8.9 and 12.0.
        fp64_ops_per_s: FP32 / 32. So it is on 7.5; FP32 / 2 on 7.0, 8.0, 9.0 and 10.0, FP32 / 64 on 8.6, 8.9 and 12.0.
        l1_bytes_per_s: SMs × 128 bytes, as ours.
        l2_bytes_per_s: SMs × 32 bytes at the SMs' clock. Ours counts L2 slices, which are what answers: 48 slices of 32 bytes on an RTX
            A5000, and not 64 SMs of 32 bytes.
        dram_bytes_per_s: as ours.
    """

    fp32_ops_per_s: float
    int32_ops_per_s: float
    fp16_ops_per_s: float
    fp64_ops_per_s: float
    l1_bytes_per_s: float
    l2_bytes_per_s: float
    dram_bytes_per_s: float | None


def reckon_starlight_roofs(machine: Machine) -> StarlightRoofs | None:
    """Starlight's roofs of a machine; None without a clock, the number of SMs or an FP32 peak.

    >>> from gpa_lsp.gpu.device.find import find_machine_by_name
    >>> roofs = reckon_starlight_roofs(find_machine_by_name("RTX A5000"))
    >>> round(roofs.fp32_ops_per_s / 1e9, 2), round(roofs.l1_bytes_per_s / 1e9, 2), round(roofs.l2_bytes_per_s / 1e9, 2)
    (27770.88, 13885.44, 3471.36)
    """
    peak, clock_hz, sm_count = machine.find_peak(OperationKind.FP32), machine.clocks.sm_hz, machine.sm_count
    if peak is None or peak.ops_per_s is None or clock_hz is None or sm_count is None:
        return None
    dram = machine.find_bandwidth(MemoryLevel.DRAM)
    return StarlightRoofs(
        fp32_ops_per_s=peak.ops_per_s,
        int32_ops_per_s=peak.ops_per_s,
        fp16_ops_per_s=2 * peak.ops_per_s,
        fp64_ops_per_s=peak.ops_per_s / 32,
        l1_bytes_per_s=sm_count * _L1_BYTES_PER_SM * clock_hz,
        l2_bytes_per_s=sm_count * _L2_BYTES_PER_SM * clock_hz,
        dram_bytes_per_s=None if dram is None else dram.bytes_per_s,
    )
