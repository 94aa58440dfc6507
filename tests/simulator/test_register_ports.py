"""Registers are read through the ports of two banks, and kept where the compiler says so."""

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.simulator.program import NO_READS, RegisterReads, find_register_reads
from gpa_lsp.execution.simulator.sm_state import Sm, open_sm
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm, try_read_operands
from gpa_lsp.foundation.machine_code.loops import compiled
from tests.simulator.sm_notation import EXIT, FMA, make_block, make_model, make_program, sum_cycles

EVEN = RegisterReads(first=(2, 4, 6), count=(1, 1, 1))
KEPT = replace(EVEN, kept=(True, True, False))
PAIRS = RegisterReads(first=(2, 4, 6), count=(2, 2, 2))
TILE = RegisterReads(first=(4, 8, 12), count=(4, 2, 4))


def count_cycles(reads: RegisterReads, instructions: int, warps: int = 1, **changes: float) -> tuple[float, float]:
    """Cycles that one sub-core takes for instructions that all read the same, and those in which a warp was held for its registers."""
    program = make_program(*[(FMA, {})] * instructions, (EXIT, {"stall": 5}))
    program = replace(program, register_reads=[reads] * instructions + [NO_READS])
    run = simulate_sm(program, make_model(**changes), [make_block(program, warps=4 * warps)], 1, 100_000)
    return run.moments[-1].time, sum_cycles(run, "dispatch_stall")


def test_three_registers_of_one_bank_take_its_port_three_cycles() -> None:
    slow, held = count_cycles(EVEN, 100)
    fast, free = count_cycles(RegisterReads(first=(2, 3, -1), count=(1, 1, 0)), 100)
    assert free == 0
    assert held == 4 * 2 * 99  # four sub-cores, two cycles in front of each but the first
    assert slow - fast == pytest.approx(2 * 99, abs=3)


def test_what_is_kept_needs_no_port() -> None:
    assert count_cycles(KEPT, 100)[1] == 0


@compiled
def read_operands(sm: Sm, slot: int, time: float) -> bool:
    """Read operands as a sub-core does before it issues."""
    return try_read_operands(sm, slot, time)


def open_ports(reads: RegisterReads) -> Sm:
    """An SM whose first two warps are of one sub-core, in front of the same instruction."""
    program = replace(make_program((FMA, {})), register_reads=[reads])
    sm = open_sm(program, make_model(), [make_block(program, warps=2)], 1, 100)
    sm.warps["number"] = [0, 1]
    return sm


def test_what_another_warp_reads_is_not_kept() -> None:
    sm = open_ports(KEPT)
    free = sm.cores["port_free"][0]
    assert read_operands(sm, 0, 0.0)
    assert free.tolist() == [3.0, 0.0]
    assert read_operands(sm, 0, 3.0)
    assert free.tolist() == [4.0, 0.0]
    assert read_operands(sm, 1, 4.0)
    assert free.tolist() == [7.0, 0.0]


def test_what_cannot_be_read_in_time_leaves_the_ports_as_they_are() -> None:
    sm = open_ports(EVEN)
    assert read_operands(sm, 0, 0.0)
    assert not read_operands(sm, 1, 0.0)
    assert sm.cores["port_free"][0].tolist() == [3.0, 0.0]
    assert set(sm.cores["kept"][0].tolist()) == {-1}


def test_wide_banks_give_two_at_a_time() -> None:
    assert (
        count_cycles(EVEN, 100, bank_registers_per_cycle=2.0)[1] == 4 * 98
    )  # the window leaves a cycle for the second


def test_all_warps_that_could_issue_are_held() -> None:
    one, two = count_cycles(EVEN, 100)[1], count_cycles(EVEN, 100, warps=2)[1]
    assert two == 3 * one  # both while the first one issues, then the second alone


def test_what_takes_longer_than_the_window_is_read_all_the_same() -> None:
    assert count_cycles(TILE, 10)[0] < 100
    assert count_cycles(PAIRS, 10)[1] > 0


def test_operands_are_found_in_the_text() -> None:
    fused = find_register_reads("FFMA R0, R2.reuse, R3, R4", 0b001)
    wide = find_register_reads("IMAD.WIDE R6, R2, 0x4, R8.reuse", 0b100)
    added = find_register_reads("@P0 IADD3 R0, P1, R2, c[0x0][0x160], -R5", 0)
    assert fused == RegisterReads(first=(2, 3, 4), count=(1, 1, 1), kept=(True, False, False))
    assert wide == RegisterReads(first=(2, -1, 8), count=(1, 0, 2), kept=(False, False, True))
    assert added == RegisterReads(first=(2, -1, 5), count=(1, 0, 1))
    assert find_register_reads("MOV R0, RZ", 0) == NO_READS


def test_a_comparison_reads_its_first_operand() -> None:
    compared = find_register_reads("ISETP.GE.AND P4, PT, R66.reuse, R13, PT", 0b001)
    assert compared == RegisterReads(first=(66, 13, -1), count=(1, 1, 0), kept=(True, False, False))


def test_of_a_register_that_is_read_twice_the_place_that_is_marked_is_kept() -> None:
    assert find_register_reads("FMUL R0, R2.reuse, R2", 0b001).kept == (True, False, False)
    assert find_register_reads("FADD R0, R1, |R7.reuse|", 0b010).kept == (False, True, False)


def test_some_opcodes_leave_places_out() -> None:
    assert find_register_reads("HADD2 R16, R17, -R35.reuse", 0b100).first == (17, -1, 35)
    assert find_register_reads("IABS R10, R8.reuse", 0b010) == RegisterReads(
        first=(-1, 8, -1), count=(0, 1, 0), kept=(False, True, False)
    )
