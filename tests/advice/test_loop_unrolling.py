"""Loops whose turns wait one after the other."""

from typing import Any

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.diagnosis.advice.matches import HidingMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.loop_unrolling import OPTIMIZER
from gpa_lsp.diagnosis.advice.subject import Subject, build_subject
from gpa_lsp.diagnosis.advice.unroll_plans import choose_copies
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import blame_by_hand, forget_code, write_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel
from tests.rows.written import write_kernel

SOURCE = """__global__ void k(const float* x, float* y, int n) {
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    float v = x[i];
    sum += v * v;
  }
  y[threadIdx.x] = sum;
}
"""

LOOP = """
    MOV R8, RZ                        # k.cu:4 | selected=1 | x=10
loop:
    LDG.E.CONSTANT R0, [R4.64]        # k.cu:5 | selected=20 | x=640
    IADD3 R8, R8, 0x1, RZ             # k.cu:4 | selected=20 | x=640
    IADD3 R4, R4, 0x4, RZ             # k.cu:4 | selected=20 | x=640
    FMUL R2, R0, R0                   # k.cu:6 | long_scoreboard=300/290 selected=20 | x=640
    FADD R3, R3, R2                   # k.cu:6 | wait=60 selected=20 | x=640
    ISETP.GE.AND P0, PT, R8, R9, PT   # k.cu:4 | selected=20 | x=640
    @!P0 BRA loop                     # k.cu:4 | wait=12 selected=20 | x=640
    STG.E [R6.64], R3                 # k.cu:8 | selected=1 | x=10
    EXIT                              # k.cu:9
"""
CAUSES = {(4, "long_scoreboard"): (1,), (5, "wait"): (4,), (7, "wait"): (6,)}


def write(text: str = LOOP, causes: dict[tuple[int, str], tuple[int, ...]] | None = None, **kernel: Any) -> Subject:
    return write_subject(text, CAUSES if causes is None else causes, **{"sources": {"k.cu": SOURCE}, **kernel})


def match(subject: Subject) -> HidingMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, HidingMatch), found
    return found


def silence(subject: Subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence)
    return found


def test_a_loop_that_waits_for_a_load_each_turn_is_matched() -> None:
    found = match(write())
    (region,) = found.regions
    assert (region.scope.kind, region.scope.line) == (ScopeKind.LOOP, 4)
    # The load, the sum's addend and the loop's own branch; 364 samples without issue where 140 saw one: 8 copies.
    assert region.samples == 300 + 60 + 12
    assert region.active_samples == found.active_samples == 7 * 20 + 10
    assert region.latency_samples == pytest.approx((290 + 60 + 12) * (1 - 1 / 4))
    assert [(spot.def_row, spot.use_row) for spot in region.hotspots] == [(1, 4), (4, 5), (6, 7)]


def test_the_hint_names_the_loop_its_turns_and_what_it_waits_for() -> None:
    (region,) = match(write()).regions
    assert region.hint == (
        "Unroll the loop at line 4 of k.cu by 4 (`#pragma unroll 4` in place of `#pragma unroll 1` at line 3 of k.cu): 64 trips; stalls "
        "outnumber issues 2.41 : 1, most of them on the load of `x[i]` at line 5 of k.cu."
    )


def test_without_a_directive_in_the_source_one_is_proposed() -> None:
    (region,) = match(write(sources={})).regions
    assert region.hint.startswith("Unroll the loop at line 4 of k.cu by 4 (`#pragma unroll 4`): 64 trips")


def test_a_language_without_the_directive_gets_none() -> None:
    (region,) = match(write(LOOP.replace("k.cu", "k.f90"), sources={})).regions
    assert region.hint.startswith("Unroll the loop at line 4 of k.f90 by 4: 64 trips")


def test_a_list_that_is_walked_is_left_alone() -> None:
    found = silence(
        write(LOOP.replace("IADD3 R4, R4, 0x4, RZ", "IADD3 R4, R0, 0x4, RZ"), {(4, "long_scoreboard"): (1,)})
    )
    assert found.stage is SilenceStage.GATED
    assert found.message == (
        "the loop at line 4 of k.cu loses 58 % of the samples to dependences, but each iteration needs the result of the one before"
    )


def test_a_running_sum_is_left_out_of_what_copies_hide() -> None:
    found = match(
        write(
            LOOP.replace("ISETP.GE.AND P0, PT, R8, R9, PT   # k.cu:4 |", "FADD R3, R3, R2 # k.cu:6 | wait=50"),
            {**CAUSES, (6, "wait"): (5,), (7, "wait"): (5,)},
        )
    )
    (region,) = found.regions
    assert all(spot.def_row != 5 for spot in region.hotspots)
    assert any("partial sums" in caveat for caveat in found.caveats)
    assert "62 samples left out: each iteration needs the result of the one before" in found.reasons


def test_a_loaded_value_that_ends_the_loop_keeps_copies_from_loading_ahead() -> None:
    found = silence(write(LOOP.replace("R8, R9, PT   #", "R0, R9, PT   #")))
    assert found.message.endswith("but a loaded value decides whether the loop goes on")


def test_a_barrier_keeps_iterations_apart() -> None:
    text = LOOP.replace("LDG.E.CONSTANT R0", "LDS R0").replace(
        "IADD3 R8, R8, 0x1, RZ             #", "STS [R20], R21 #"
    )
    text = text.replace(
        "ISETP.GE.AND P0, PT, R8, R9, PT   # k.cu:4 | selected=20", "BAR.SYNC 0x0 # k.cu:7 | selected=20"
    )
    found = silence(write(text.replace("long_scoreboard", "short_scoreboard"), {(4, "short_scoreboard"): (1,)}))
    assert found.stage is SilenceStage.GATED
    assert found.message.endswith("loses 58 % of the samples to dependences, but a barrier separates the iterations")


def test_a_loop_that_loses_next_to_nothing_is_not_worth_telling() -> None:
    """Where most samples are elsewhere, nobody asks why this loop is not unrolled."""
    text = LOOP.replace("IADD3 R4, R4, 0x4, RZ", "IADD3 R4, R0, 0x4, RZ")
    text = text.replace("EXIT                              # k.cu:9", "EXIT  # k.cu:9 | selected=90000")
    assert silence(write(text, {(4, "long_scoreboard"): (1,)})).stage is SilenceStage.NOT_MATCHED


def test_a_store_that_may_write_what_is_loaded_is_named() -> None:
    text = LOOP.replace(".CONSTANT", "").replace(
        "FADD R3, R3, R2                   # k.cu:6 | wait=60", "STG.E [R6.64], R2 # k.cu:8 |"
    )
    found = match(write(text, {(4, "long_scoreboard"): (1,)}))
    (region,) = found.regions
    assert (
        "Iterations overlap only if the store to `y[threadIdx.x]` at line 8 of k.cu does not alias the loads"
        in region.hint
    )
    assert "`__restrict__`" in region.hint
    assert any(caveat.startswith("Whether the memory aliases") for caveat in found.caveats)


def test_what_iterations_may_skip_is_left_out() -> None:
    text = LOOP.replace("    LDG.E", "    @P1 BRA skip # k.cu:5 | selected=2 | x=640\n    LDG.E").replace(
        "    FADD R3, R3, R2 ", "skip:\n    FADD R3, R3, R2 "
    )
    found = silence(write(text, {(5, "long_scoreboard"): (2,)}))
    assert found.message.endswith("but not every iteration executes these instructions")


@pytest.mark.parametrize(("turns", "is_matched"), [(1, False), (3, False), (4, True), (64, True)])
def test_a_loop_of_few_iterations_is_left_alone(turns: int, is_matched: bool) -> None:
    subject = write(LOOP.replace("x=640", f"x={10 * turns}"))
    found = OPTIMIZER.match(subject)
    assert isinstance(found, HidingMatch) == is_matched
    if isinstance(found, Silence):
        assert found.stage is SilenceStage.GATED
        assert (
            found.message
            == f"the loop at line 4 of k.cu runs {turns} iteration{'s' if turns > 1 else ''} per entry, too few to overlap"
        )


def test_a_loop_that_was_unrolled_gains_what_is_left() -> None:
    loads, work = LOOP.splitlines()[3], LOOP.splitlines()[6]
    text = (
        LOOP.replace(loads, "\n".join([loads] * 4)).replace(work, "\n".join([work] * 4)).replace("0x1, RZ", "0x4, RZ")
    )
    (region,) = match(write(text, {(7, "long_scoreboard"): (1,)}, sources={})).regions
    assert region.hint.startswith("Unroll the loop at line 4 of k.cu by 8")
    assert "already unrolled by 4, 64 trips" in region.hint
    assert region.latency_samples == pytest.approx(290 * (1 - 4 / 8))


def test_a_loop_that_was_unrolled_enough_is_left_alone() -> None:
    loads, work = LOOP.splitlines()[3], LOOP.splitlines()[6]
    text = (
        LOOP.replace(loads, "\n".join([loads] * 16))
        .replace(work, "\n".join([work] * 16))
        .replace("0x1, RZ", "0x10, RZ")
    )
    found = silence(write(text, {(19, "long_scoreboard"): (1,)}))
    assert found.message == "the loop at line 4 of k.cu is already unrolled by 16"


def test_copies_must_fit_the_instruction_cache() -> None:
    filling = "    IADD3 R30, R31, R32, RZ   # k.cu:6 | selected=1\n" * 700
    found = silence(write(LOOP.replace("    FADD R3, R3, R2 ", f"{filling}    FADD R3, R3, R2 ")))
    assert found.stage is SilenceStage.GATED
    assert found.message.startswith("the loop at line 4 of k.cu has 707 instructions: unrolled by 2 it would not fit")


def test_too_many_registers_are_a_caveat() -> None:
    usual = match(write()).caveats[0]
    assert usual == "Unroll factor 4 needs about 3 more registers (32 of 255 in use now), which can lower occupancy."
    assert "(254 of 255 in use now) and would spill" in match(write(registers=254)).caveats[0]


def test_dependences_outside_loops_do_not_match() -> None:
    text = "LDG.E R0, [R4.64] # k.cu:5 | selected=1\nFMUL R2, R0, R0 # k.cu:6 | long_scoreboard=9\nEXIT"
    found = silence(write(text, {(1, "long_scoreboard"): (0,)}))
    assert found.stage is SilenceStage.NOT_MATCHED
    assert found.message == "1 stalled dependence, but none within one loop"


def test_without_code_nothing_is_said() -> None:
    assert silence(forget_code(write())).stage is SilenceStage.NO_CODE


@pytest.mark.parametrize("present", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("latency_ratio", [0.1, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("iterations", [4.0, 6.0, 100.0, float("inf")])
def test_copies_stay_within_what_there_is(present: int, latency_ratio: float, iterations: float) -> None:
    copies = choose_copies(present=present, iterations=iterations, latency_ratio=latency_ratio, most=1000)
    assert copies <= min(16, iterations)
    assert copies & (copies - 1) == 0


@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("sm", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_rolled_fixture_and_its_twin(sm: str) -> None:
    def advise(role: str) -> Advice | Silence:
        kernel = make_up_kernel(FIXTURES / "cubins" / sm / f"loop_not_unrolled_{role}.cubin", Circumstances(turns=16))
        return OPTIMIZER.advise(build_subject(kernel, blame_kernel(kernel)))

    before, after = advise("original"), advise("improved")
    assert isinstance(before, Advice)
    assert before.speedup.estimate > 1.2
    assert "`#pragma unroll 4` in place of `#pragma unroll 1` at line 12" in before.regions[0].hint
    assert isinstance(after, Silence)
    assert after.stage is SilenceStage.NOT_MATCHED


def test_inner_loops_count_for_the_loop_around_them_once() -> None:
    kernel = write_kernel(
        """
    outer:
        LDG.E.CONSTANT R0, [R4.64]        # k.cu:4 | selected=5
        IADD3 R4, R4, 0x4, RZ             # k.cu:4 | selected=5
        FMUL R2, R0, R0                   # k.cu:4 | long_scoreboard=100
    inner:
        LDG.E.CONSTANT R10, [R14.64]      # k.cu:5 | selected=5
        IADD3 R14, R14, 0x4, RZ           # k.cu:5 | selected=5
        FMUL R12, R10, R2                 # k.cu:5 | long_scoreboard=100
        @!P1 BRA inner                    # k.cu:5 | selected=5
        @!P0 BRA outer                    # k.cu:4 | selected=5
        EXIT
        """
    )
    found = match(blame_by_hand(kernel, {(2, "long_scoreboard"): (0,), (5, "long_scoreboard"): (3,)}))
    outer, inner = found.regions
    assert (outer.active_samples, inner.active_samples) == (30, 15)
    assert found.active_samples == 30
