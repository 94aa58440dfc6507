"""Fewer transactions: throttled accesses as published, narrow ones side by side, repeated ones."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import MemoryLevel, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.memory_transaction_reduction import OPTIMIZER
from gpa_lsp.kernel.dataflow.adjacent_accesses import find_access_runs
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.unmeasured import list_unmeasured_kernels
from tests.advice.blamed_by_hand import Causes, forget_code, write_subject
from tests.rows.written import write_kernel


def match(subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch), found
    return found


def silence(subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence), found
    return found


def list_runs(text: str, **kernel) -> list[tuple[tuple[int, ...], int]]:
    return [(run.rows, run.bytes_each) for run in find_access_runs(write_kernel(text, **kernel).rows)]


# ---- as published

PLAIN = """
LDG.E R4, [R2.64]  # k.cu:5 | lg_throttle=80/60 | x=10 {counters}
STG.E [R6.64], R4  # k.cu:6 | lg_throttle=20/20 long_scoreboard=300 | x=10
STL [R1], R4       # k.cu:6 | lg_throttle=50
RED.E.ADD [R8.64], R4  # k.cu:7 | lg_throttle=40
EXIT
"""
WAITS_FOR_LOAD = {(1, "long_scoreboard"): (0,)}


def test_throttled_global_accesses_match_but_for_what_the_widest_would_keep():
    found = match(write_subject(PLAIN.format(counters=""), WAITS_FOR_LOAD))
    (region,) = found.regions
    assert (region.samples, region.latency_samples) == (100 * 12 / 16, 80 * 12 / 16)
    assert {hotspot.def_row for hotspot in region.hotspots} == {0, 1}, (
        "local accesses and atomics have remedies of their own"
    )
    assert found.relieves == ()
    assert found.hint.startswith("Let each thread access several adjacent elements with one instruction")
    assert "all that wider ones could save are counted" in found.caveats[0]


def test_accesses_of_the_widest_kind_have_nothing_to_save():
    text = PLAIN.replace("LDG.E ", "LDG.E.128 ").replace("STG.E ", "STG.E.128 ").format(counters="")
    assert silence(write_subject(text, WAITS_FOR_LOAD)).message.startswith(
        "other suggestions cover the 190 samples on a full memory queue"
    )


def test_what_coalescing_would_remove_is_left_to_it():
    counters = "global_sectors=320 global_sectors_ideal=80"
    (region,) = match(write_subject(PLAIN.format(counters=counters), WAITS_FOR_LOAD)).regions
    assert region.samples == pytest.approx((80 * 80 / 320 + 20) * 12 / 16)


def test_without_throttling_and_patterns_it_is_silent_with_the_reason():
    text = PLAIN.replace("lg_throttle", "wait").format(counters="")
    assert silence(write_subject(text, WAITS_FOR_LOAD)).message.startswith("no warp is stalled on a full memory queue")


def test_throttling_that_others_explain_is_told_in_figures():
    text = "STL [R1], R4  # k.cu:6 | lg_throttle=50\nLDG.E R4, [R2.64]  # k.cu:7 | selected=1\nEXIT"
    assert silence(write_subject(text, {})).message.startswith(
        "other suggestions cover the 50 samples on a full memory queue"
    )


def test_kernels_without_global_accesses_are_silent():
    assert (
        silence(write_subject("LDS R4, [R2]  # k.cu:5 | mio_throttle=9", {})).message
        == "the kernel has no global loads or stores"
    )


def test_without_a_disassembly_it_is_silent():
    assert silence(forget_code(write_subject(PLAIN.format(counters=""), {}))).stage is SilenceStage.NO_CODE


# ---- narrow accesses side by side

FOUR = """
IMAD.WIDE R2, R0, {scale}, R8  # k.cu:3
LDG.E R7, [R2.64+0xc]          # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
LDG.E R5, [R2.64+0x4]          # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
LDG.E R4, [R2.64]              # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
LDG.E R6, [R2.64+0x8]          # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
FADD R4, R4, R5                # k.cu:6 | long_scoreboard=400/400
EXIT
"""
ALL_FOUR: Causes = {(5, "long_scoreboard"): (1, 2, 3, 4)}


def test_three_of_four_accesses_side_by_side_would_go():
    found = match(write_subject(FOUR.format(scale="0x10", counters=""), ALL_FOUR))
    (region,) = found.regions
    # Nobody counted sectors: whether less would be asked for is unknown, and the wait for the data stays.
    assert region.samples == pytest.approx(160 * 3 / 4)
    assert "its 3 neighbours of 4 bytes can be one access of 16 bytes (`float4` or `uint4`)." in region.hint
    assert region.hotspots[0].note == "one of 4 adjacent accesses"
    assert "one wide load or store" in found.hint
    assert found.reasons[1] == "4 narrow accesses"
    assert any("aligned to its size" in caveat for caveat in found.caveats)


def test_the_wait_goes_as_far_as_sectors_are_asked_for_repeatedly():
    counters = "global_sectors=1600 global_sectors_ideal=400 thread_executions_true=3200"
    (region,) = match(write_subject(FOUR.format(scale="0x10", counters=counters), ALL_FOUR)).regions
    assert region.samples == pytest.approx((160 + 400) * 3 / 4)


@pytest.mark.parametrize(
    ("scale", "counters", "rows"),
    [
        ("0x10", "", [(3, 2, 4, 1)]),
        ("0x8", "", [(4, 1), (3, 2)]),
        ("0x4", "", []),
        ("R9", "", []),
        ("R9", "global_sectors=1600 thread_executions_true=3200", [(3, 2, 4, 1)]),
        ("R9", "global_sectors=800 thread_executions_true=3200", [(4, 1), (3, 2)]),
        ("R9", "global_sectors=400 thread_executions_true=3200", []),
        ("R9", "global_sectors=200 thread_executions_true=3200", [(3, 2, 4, 1)]),
    ],
)
def test_threads_must_stand_a_multiple_of_the_wide_access_apart(scale, counters, rows):
    """A stencil reads x[i - 1], x[i], x[i + 1] at neighbouring addresses, too, but no wide access is aligned in every thread."""
    assert list_runs(FOUR.format(scale=scale, counters=counters)) == [(found, 4) for found in rows]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        # A constant register holds the multiplier, as on older architectures.
        ("MOV R9, 0x8\nIMAD.WIDE R2, R0, R9, R6\nLDG.E R4, [R2.64]\nLDG.E R5, [R2.64+0x4]", [((2, 3), 4)]),
        ("LEA R2, P0, R0, R6, 0x4\nSTG.E.64 [R2.64+0x8], R4\nSTG.E.64 [R2.64], R8", [((2, 1), 8)]),
        # The base changes in between.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64]\nIADD3 R2, R2, 0x8, RZ\nLDG.E R5, [R2.64+0x4]", []),
        # Two blocks.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64]\n@P0 BRA next\nnext:\nLDG.E R5, [R2.64+0x4]", []),
        # One of them under a guard.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64]\n@P0 LDG.E R5, [R2.64+0x4]", []),
        # The pair does not begin at a aligned to its size.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64+0x4]\nLDG.E R5, [R2.64+0x8]", []),
        # As wide as it gets.
        ("IMAD.WIDE R2, R0, 0x20, R6\nLDG.E.128 R4, [R2.64]\nLDG.E.128 R8, [R2.64+0x10]", []),
        # Volatile.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E.STRONG.SYS R4, [R2.64]\nLDG.E.STRONG.SYS R5, [R2.64+0x4]", []),
        # Shared memory is another matter.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDS R4, [R2]\nLDS R5, [R2+0x4]", []),
    ],
)
def test_what_can_be_merged(text, runs):
    assert list_runs(f"{text}\nEXIT") == runs


def read_fixture(fixtures: Path, architecture: str, name: str) -> Kernel:
    path = fixtures / "cubins" / architecture / f"{name}.cubin"
    (kernel,), _ = list_unmeasured_kernels(read_cubin(path.read_bytes(), path=path))
    return kernel


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_pair_of_narrow_loads_is_told_apart(fixtures, architecture):
    narrow = find_access_runs(read_fixture(fixtures, architecture, "narrow_loads_original").rows)
    assert sorted((len(run.rows), run.merged_bytes) for run in narrow) == [(4, 16), (4, 16)]
    wide = find_access_runs(read_fixture(fixtures, architecture, "narrow_loads_improved").rows)
    assert wide == ()


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", ["strided_access_improved", "bank_conflict_original", "branch_divergence_original"])
def test_kernels_whose_threads_are_neighbours_have_nothing_to_merge(fixtures, architecture, name):
    assert find_access_runs(read_fixture(fixtures, architecture, name).rows) == ()


# ---- repeated loads

LOOP = """
MOV R6, RZ              # k.cu:2 | selected=1 | x=10
loop:
LDG.E{modifiers} R4, [R2.64]  # k.cu:5 | lg_throttle=20/20 | x={executions} {counters}
FADD R5, R4, R5         # k.cu:6 | long_scoreboard=200/200 | x={executions}
{between}
@P0 BRA loop            # k.cu:4 | selected=20 | x={executions}
EXIT
"""
WAITS_IN_LOOP = {(2, "long_scoreboard"): (1,)}


def write_loop(between: str = "IADD3 R6, R6, 0x1, RZ", modifiers: str = "", executions: int = 100, counters: str = ""):
    text = LOOP.format(between=between, modifiers=modifiers, executions=executions, counters=counters)
    return write_subject(text, WAITS_IN_LOOP)


def test_a_load_whose_loop_leaves_its_address_alone_is_needed_once():
    found = match(write_loop())
    (region,) = found.regions
    assert region.samples == pytest.approx((20 + 200) * 0.9)
    assert "reads the same address in every iteration: load it once before the loop." in region.hint
    assert any("__restrict__" in caveat for caveat in found.caveats)
    assert "once before the loop" in found.hint


def test_stores_in_the_loop_explain_why_the_compiler_loads_again():
    (region,) = match(write_loop(between="STG.E [R8.64], R5")).regions
    assert "stores or barriers in the loop keep the compiler from doing" in region.hint


@pytest.mark.parametrize(
    "changed",
    [{"between": "IADD3 R2, R2, 0x4, RZ"}, {"modifiers": ".STRONG.GPU"}, {"executions": 12}],
    ids=["address changes", "means to look again", "hardly a loop"],
)
def test_other_loads_in_loops_keep_their_waits(changed):
    (region,) = match(write_loop(**changed)).regions
    assert region.samples == 15
    assert region.hint == ""


def test_loads_of_one_address_for_the_whole_warp_go_to_constant_memory():
    changing = {"between": "IADD3 R2, R2, 0x4, RZ", "counters": "global_sectors=100 thread_executions_true=3200"}
    found = match(write_loop(**changing))
    (region,) = found.regions
    assert "in constant memory" in found.hint
    assert region.samples == 20, "constant memory takes all of them, however wide"
    assert "reads the same for all threads of a warp: constant memory" in region.hint


def test_an_array_that_may_be_larger_than_constant_memory_goes_to_shared_memory():
    """20,000 executions may read 20,000 addresses of 4 bytes: more than 64 KiB."""
    changing = {"between": "IADD3 R2, R2, 0x4, RZ", "counters": "global_sectors=20000 thread_executions_true=640000"}
    found = match(write_loop(**changing, executions=20000))
    (region,) = found.regions
    assert "constant" not in found.hint + region.hint
    assert "one load per block into shared memory serves all its warps" in region.hint


def test_wide_accesses_relieve_l1_and_nothing_behind_it():
    counters = "global_sectors=1600 global_sectors_ideal=400 thread_executions_true=3200"
    found = match(write_subject(FOUR.format(scale="0x10", counters=counters), ALL_FOUR))
    assert found.relieves == (MemoryLevel.L1,)
