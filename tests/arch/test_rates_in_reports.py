"""Rates of the tables against what real reports count: instructions by opcode, and how busy NVIDIA says their pipe was."""

from collections import Counter

import pytest

from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.profile.model import Launch
from tests.real_reports import REPORTS, read_launches

pytestmark = pytest.mark.corpus

# Opcodes of the XU pipe and the rate each stands for.
XU_RATES = {
    "MUFU": "mufu_instructions_per_cycle",
    "I2F": "conversion_instructions_per_cycle",
    "F2I": "float_to_int_instructions_per_cycle",
    "FLO": "bit_count_instructions_per_cycle",
}
XU_OTHERS = ("F2F", "FRND", "POPC", "BREV", "FCHK")  # Opcodes that take the same pipe


def count_opcodes(launch: Launch, metric_name: str) -> Counter[str]:
    metric = launch.metrics.get(metric_name)
    counted: Counter[str] = Counter()
    if metric is not None:
        for opcode, value in zip(metric.instance_ids, metric.instance_values, strict=True):
            counted[str(opcode)] += int(value)
    return counted


def count_cycles(launch: Launch) -> float | None:
    names = ("sm__cycles_elapsed.avg", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")
    return next((value for name in names if (value := launch.read_number(name))), None)


def test_the_xu_pipe_runs_at_the_rate_of_its_opcodes() -> None:
    """Instructions / (SMs · cycles · busy share) is the pipe's peak; a quarter of it is the rate of one sub-partition."""
    seen: dict[tuple[int, int], set[str]] = {}
    for name in REPORTS:
        for launch in read_launches(name):
            opcodes = count_opcodes(launch, "sass__inst_executed_per_opcode")
            percent = launch.read_number("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed")
            cycles, capability = count_cycles(launch), launch.device.compute_capability
            if not opcodes or not percent or not cycles or capability is None or launch.device.sm_count is None:
                continue
            instructions = sum(opcodes[opcode] for opcode in (*XU_RATES, *XU_OTHERS))
            if instructions == 0:
                continue
            per_sub_partition = instructions / (launch.device.sm_count * cycles * percent / 100) / 4
            throughput = find_architecture(capability).throughput
            for opcode, field in XU_RATES.items():
                if opcodes[opcode]:
                    assert getattr(throughput, field).value == pytest.approx(per_sub_partition, rel=0.005), (
                        name,
                        opcode,
                    )
                    seen.setdefault(capability, set()).add(opcode)
    assert seen[(7, 0)] >= {"MUFU", "I2F", "F2I"}
    assert seen[(8, 0)] >= {"MUFU", "I2F", "F2I"}
    assert seen[(8, 6)] >= {"MUFU", "I2F", "F2I", "FLO"}
    assert seen[(9, 0)] >= {"MUFU", "I2F", "F2I"}


def test_l1_writes_back_128_bytes_per_cycle_to_registers() -> None:
    """Rates of 8.0 and 8.6: cycles of write-back = warp loads · bytes of a thread · 32 / 128, where the launch has no other loads than these."""
    widths = {"LDG.E": 4, "LDG.E.STRONG.GPU": 4, "LDG.E.LTC128B.128": 16, "LDL.LU": 4, "LDL.LU.64": 8, "LDG.E.128": 16}
    expected = {"a100_cutlass_sm80_2024.1.ncu-rep": (8, 0), "rtx3090_mergesort_2023.1.ncu-rep": (8, 6)}
    for name, capability in expected.items():
        checked = 0
        for launch in read_launches(name):
            assert launch.device.compute_capability == capability
            opcodes = count_opcodes(launch, "sass__inst_executed_per_opcode_with_modifier_all")
            loads = {opcode: count for opcode, count in opcodes.items() if opcode.startswith(("LDG.", "LDL", "ATOM"))}
            written = launch.read_number("l1tex__lsu_writeback_active_mem_lg.sum")
            if not written or not loads or not set(loads) <= set(widths):
                continue
            loaded_bytes = sum(count * 32 * widths[opcode] for opcode, count in loads.items())
            width = find_architecture(capability).caches.l1_bytes_per_cycle.value
            assert loaded_bytes / written == pytest.approx(width, rel=0.05)
            checked += 1
        assert checked > 0, name
