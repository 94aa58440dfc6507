"""Slow doubles hold the one unit of an SM, products of matrices the tensor core of a sub-core, for as long as they take."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.execution.simulator.program import FP64_UNIT, Kind, OpcodeCourse, find_tensor_cycles, read_program
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.device.products import Accumulation
from gpa_lsp.gpu.device.rates import list_operation_rates
from gpa_lsp.kernel.join import list_unmeasured_kernels
from tests.simulator.sm_notation import EXIT, make_block, make_model, make_program

CUBIN = Path(__file__).parents[2] / "fixtures" / "cubins" / "sm_80" / "double_constant_original.cubin"
DOUBLE = OpcodeCourse(kind=Kind.SPECIAL, unit=FP64_UNIT, latency=40.0, interval=16.0, is_shared_unit=True)


@pytest.mark.parametrize(
    ("capability", "interval"), [((7, 5), 16.0), ((8, 6), 16.0), ((8, 9), 16.0), ((12, 0), 16.0), ((8, 0), None)]
)
def test_arithmetic_and_conversions_hold_the_unit_of_the_sm(
    capability: tuple[int, int], interval: float | None
) -> None:
    (kernel,), _ = list_unmeasured_kernels(read_cubin(CUBIN.read_bytes(), path=CUBIN))
    program = read_program(kernel.rows, find_architecture(capability))
    names = [kernel.rows.mnemonic(row) for row in range(len(kernel.rows))]
    meant = [row for row, name in enumerate(names) if name[:4] in ("DFMA", "DADD", "DMUL") or name.startswith("F2F")]
    assert {names[row][:3] for row in meant} >= {"F2F"} and len({names[row][0] for row in meant}) == 2
    for row in meant:
        if interval is None:
            assert program.unit[row] != FP64_UNIT, names[row]
        else:
            held = (program.unit[row], program.interval[row], program.is_shared_unit[row])
            assert held == (FP64_UNIT, interval, True)


def test_sub_cores_wait_for_each_other() -> None:
    program = make_program(*[(DOUBLE, {"write": 0})] * 20, (EXIT, {"stall": 5, "wait": 1}))
    for warps in (1, 4, 8):
        run = simulate_sm(program, make_model(), [make_block(program, warps=warps)], 1, 10_000)
        assert run.moments[-1].time == pytest.approx(16.0 * 20 * warps, rel=0.15)


@pytest.mark.parametrize(
    ("capability", "accumulation", "mnemonic", "cycles"),
    [
        ((8, 6), Accumulation.FULL, "HMMA.1688.F16", 8.0),
        ((8, 6), Accumulation.FULL, "HMMA.16816.F16", 16.0),
        ((8, 6), Accumulation.FULL, "IMMA.8816.S8.S8.SAT", 4.0),
        ((8, 6), Accumulation.FULL, "HMMA.16816.F32", 16.0),
        ((8, 6), Accumulation.HALF, "HMMA.16816.F32", 32.0),
        ((8, 0), None, "HMMA.16816.F32", 8.0),
        ((8, 0), None, "IMMA.16832.S8.S8.SAT", 8.0),
        ((9, 0), None, "HMMA.16816.F32", 6.0),
    ],
)
def test_products_take_as_long_as_tensor_cores_need_for_them(
    capability: tuple[int, int], accumulation: Accumulation | None, mnemonic: str, cycles: float
) -> None:
    """The first three are what an A40 counted."""
    architecture = find_architecture(capability)
    peaks = {kind: rate.per_cycle for kind, rate in list_operation_rates(architecture, accumulation).items()}
    assert find_tensor_cycles(mnemonic, architecture.name, peaks) == pytest.approx(cycles)
