"""Doubles on GPUs where they are slow go through one unit of the SM, and what converts them, too."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.execution.simulator.program import FP64_UNIT, Kind, OpcodeCourse, read_program
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from gpa_lsp.gpu.arch.lookup import find_architecture
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
            assert (program.unit[row], program.interval[row], program.is_shared_unit[row]) == (
                FP64_UNIT,
                interval,
                True,
            )


def test_sub_cores_wait_for_each_other() -> None:
    program = make_program(*[(DOUBLE, {"write": 0})] * 20, (EXIT, {"stall": 5, "wait": 1}))
    for warps in (1, 4, 8):
        run = simulate_sm(program, make_model(), [make_block(program, warps=warps)], 1, 10_000)
        assert run.moments[-1].time == pytest.approx(16.0 * 20 * warps, rel=0.15)
