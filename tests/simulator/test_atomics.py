"""Atomic operations that meet at one address of L2."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.execution.simulator.machine import find_traffic
from gpa_lsp.execution.simulator.program import Kind, OpcodeCourse, read_program
from gpa_lsp.execution.simulator.reasons import SmRun
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.kernel.join import list_unmeasured_kernels
from tests.simulator.sm_notation import (
    ALU,
    EXIT,
    STORE,
    find_share,
    make_block,
    make_model,
    make_program,
    make_walk,
    read_cycles,
    walk_block,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"
REDUCTION = OpcodeCourse(kind=Kind.REDUCTION, unit=0, interval=3.0, is_lg=True, is_long=True, latency=33.0)
ATOMIC = replace(REDUCTION, kind=Kind.ATOMIC, uses_l1=False)
BLOCKS, WARPS = 40, 8


def simulate(course: OpcodeCourse, *, lanes: int, is_one: bool, **changes: float) -> SmRun:
    """Blocks whose warps do one operation each, in a sector of their own or all in one."""
    program = make_program((course, {"write": 0}), (ALU, {"wait": 1}), (EXIT, {"stall": 5}))
    blocks = []
    for number in range(BLOCKS):
        block = make_block(program, warps=WARPS, sectors=1, first=number << 10)
        passes = np.where(block.passes > 0, lanes, 0).astype(np.int32)
        sectors = np.zeros_like(block.sectors) if is_one else 4 * block.sectors
        blocks.append(replace(block, passes=passes, sectors=sectors))
    return simulate_sm(program, make_model(**changes), blocks, 4, 100_000)


@pytest.mark.parametrize("course", [REDUCTION, ATOMIC])
def test_one_address_is_served_one_after_the_other(course: OpcodeCourse) -> None:
    operations = BLOCKS * WARPS * 32
    run = simulate(course, lanes=32, is_one=True)
    assert run.moments[-1].time == pytest.approx(3.0 * operations, rel=0.02)
    shared = simulate(course, lanes=32, is_one=True, atomic_cycles=20.0)
    assert shared.moments[-1].time == pytest.approx(20.0 * 3.0 * operations, rel=0.02)


@pytest.mark.parametrize("course", [REDUCTION, ATOMIC])
def test_addresses_that_nothing_meets_at_do_not_wait(course: OpcodeCourse) -> None:
    apart = [simulate(course, lanes=1, is_one=False, atomic_cycles=one) for one in (1.0, 1000.0)]
    assert apart[0].moments[-1].time == apart[1].moments[-1].time < 10_000


@pytest.mark.parametrize("course", [REDUCTION, ATOMIC])
def test_sectors_of_one_line_are_served_by_one_slice(course: OpcodeCourse) -> None:
    program = make_program((replace(course, interval=1.0), {"write": 0}), (ALU, {"wait": 1}), (EXIT, {"stall": 5}))
    blocks = [make_block(program, warps=WARPS, sectors=4) for _ in range(BLOCKS)]
    one_line = [replace(block, sectors=block.sectors % 4) for block in blocks]
    run = simulate_sm(program, make_model(atomic_cycles=10.0), one_line, 4, 100_000)
    assert run.moments[-1].time == pytest.approx(10.0 * 4 * BLOCKS * WARPS, rel=0.05)


def test_reductions_wait_as_stores_do_and_what_returns_something_as_loads_do() -> None:
    reduced, returned = (simulate(course, lanes=32, is_one=True) for course in (REDUCTION, ATOMIC))
    program = make_program((REDUCTION, {}), (EXIT, {"stall": 5}))
    block = make_block(program, warps=WARPS, sectors=1)
    block.passes[::2] = 32
    alone = simulate_sm(program, make_model(), [replace(block, sectors=np.zeros_like(block.sectors))], 1, 1000)
    assert find_share(returned, "long_scoreboard") > 0.5
    assert find_share(reduced, "long_scoreboard") + find_share(reduced, "drain") > 0.3
    assert read_cycles(alone, 2)["drain"] > 0.8 * 3.0 * 32 * sum(range(1, WARPS))


@pytest.mark.parametrize(("fixture", "cycles"), [("global_atomics_original", 1.0), ("few_blocks_improved", 3.0)])
def test_additions_of_floats_hold_an_address_longer(fixture: str, cycles: float) -> None:
    path = FIXTURES / "cubins" / "sm_80" / f"{fixture}.cubin"
    (kernel,), _ = list_unmeasured_kernels(read_cubin(path.read_bytes(), path=path))
    program = read_program(kernel.rows, find_architecture((8, 0)))
    found = {one for one, kind in zip(program.interval, program.kind, strict=True) if kind == Kind.REDUCTION}
    assert found == {cycles}


@pytest.mark.parametrize(
    ("course", "own", "mate", "meeting"),
    [
        (REDUCTION, [5], [5], 100),
        (ATOMIC, [5, 6], [5, 7], 100),
        (ATOMIC, [5], [6], 1),
        (REDUCTION, [1, 2, 3, 4, 5, 6, 7, 8], [8, 9, 10, 11, 12, 13, 14, 15], 1),
        (STORE, [5], [5], 1),
    ],
    ids=["all in one", "some in one", "apart", "by chance", "no atomics"],
)
def test_blocks_meet_where_they_share_addresses(
    course: OpcodeCourse, own: list[int], mate: list[int], meeting: float
) -> None:
    walk = make_walk((100, 1, 1), *(walk_block((at, 0, 0), one, wavefronts=32) for at, one in ((0, own), (99, mate))))
    found = find_traffic(walk, make_program((course, {})), np.array([4]), (0, 0, 0))
    assert found.meeting_blocks == meeting
