"""Loads asked for too late."""

from typing import Any

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.diagnosis.advice.matches import HidingMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.code_reordering import OPTIMIZER
from gpa_lsp.diagnosis.advice.subject import Subject, build_subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel

SOURCE = """__global__ void k(const float* x, float* y, int n) {
  float a = y[1] * 2;
  float b = a * a;
  float v = x[i];
  v = v * v + b;
  b = sqrt(a);
}
"""

STRAIGHT = """
    IMAD.WIDE R4, R9, 0x4, R6         # k.cu:2 | selected=1
    FADD R10, R11, R12                # k.cu:2 | selected=7
    FADD R13, R10, R12                # k.cu:3 | selected=8
    LDG.E R2, [R4.64]                 # k.cu:4 | selected=1
    FMUL R3, R2, R2                   # k.cu:5 | long_scoreboard=100/90 selected=1
    FADD R14, R3, R1                  # k.cu:5 | selected=1
    FMUL R15, R10, R11                # k.cu:6 | selected=3
    EXIT                              # k.cu:7
"""


def write(text: str, causes: dict[tuple[int, str], tuple[int, ...]], **kernel: Any) -> Subject:
    return write_subject(text, causes, **{"sources": {"k.cu": SOURCE}, **kernel})


def match(subject: Subject) -> HidingMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, HidingMatch), found
    return found


def silence(subject: Subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence)
    return found


def test_a_load_below_code_that_does_not_make_its_address_could_be_issued_earlier() -> None:
    found = match(write(STRAIGHT, {(4, "long_scoreboard"): (3,)}))
    (region,) = found.regions
    assert region.scope.kind is ScopeKind.FUNCTION
    # 15 samples in the two additions above, 3 in the product below; that is all that can fill 90.
    assert (region.samples, region.latency_samples, region.active_samples) == (100, 18, 18)
    assert region.hint == (
        "The load of `x[i]` at line 4 of k.cu could issue 2 instructions earlier, before line 2 of k.cu, along with the computation of its address; "
        "1 instruction (from line 6 of k.cu on) could run before its value is used at line 5 of k.cu."
    )


def test_a_wait_shorter_than_what_could_fill_it_counts_no_further() -> None:
    found = match(write(STRAIGHT.replace("100/90", "10/9"), {(4, "long_scoreboard"): (3,)}))
    assert [region.latency_samples for region in found.regions] == [9]


def test_a_load_whose_address_is_made_just_before_is_left_alone() -> None:
    text = STRAIGHT.replace("IMAD.WIDE R4, R9, 0x4, R6         #", "FADD R11, R11, R12 #")
    text = text.replace("FADD R13, R10, R12                #", "IMAD.WIDE R4, R10, 0x4, R6        #")
    text = text.replace("FMUL R15, R10, R11", "FMUL R15, R14, R11")
    found = silence(write(text, {(4, "long_scoreboard"): (3,)}))
    assert found.stage is SilenceStage.GATED
    assert found.message == "1 load issued as early as operands allow"


def test_a_store_in_front_of_a_load_is_named() -> None:
    text = STRAIGHT.replace("FADD R13, R10, R12                # k.cu:3", "STG.E [R20.64], R10                # k.cu:2")
    found = match(write(text, {(4, "long_scoreboard"): (3,)}))
    (region,) = found.regions
    assert region.active_samples == 3
    blocked = silence(write(text.replace("FMUL R15, R10, R11", "FMUL R15, R14, R11"), {(4, "long_scoreboard"): (3,)}))
    assert blocked.message == (
        "1 load issued as early as operands allow; 1 must stay behind a store that may write what they read"
    )


def test_what_another_wait_holds_up_cannot_come_first() -> None:
    text = STRAIGHT.replace(
        "    LDG.E R2,", "    LDG.E R22, [R4.64+0x4]            # k.cu:4 | selected=1\n    LDG.E R2,"
    ).replace(
        "FMUL R15, R10, R11                # k.cu:6 | selected=3",
        "FMUL R15, R22, R11 # k.cu:6 | long_scoreboard=50 selected=3",
    )
    found = match(write(text, {(5, "long_scoreboard"): (4,), (7, "long_scoreboard"): (3,)}))
    assert "1 instruction" not in " ".join(region.hint for region in found.regions)


LOOP = """
    MOV R8, RZ                        # k.cu:1 | selected=1
loop:
    LDG.E.CONSTANT R0, [R4.64]        # k.cu:4 | selected=10
    IADD3 R8, R8, 0x1, RZ             # k.cu:3 | selected=10
    IADD3 R4, R4, 0x4, RZ             # k.cu:3 | selected=10
    FFMA R0, R11, R12, R0             # k.cu:5 | long_scoreboard=300/290 selected=10
    FMUL R11, R0, R0                  # k.cu:5 | wait=40 selected=10
    ISETP.GE.AND P0, PT, R8, R9, PT   # k.cu:3 | selected=10
    @!P0 BRA loop                     # k.cu:3 | selected=10
    EXIT                              # k.cu:7
"""


def test_in_a_loop_the_load_of_the_next_turn_is_proposed() -> None:
    found = match(write(LOOP, {(4, "long_scoreboard"): (1,)}))
    (region,) = found.regions
    assert (region.scope.kind, region.scope.line) == (ScopeKind.LOOP, 3)
    assert region.active_samples == region.latency_samples == 30
    assert region.hint == (
        "Issue the load of `x[i]` at line 4 of k.cu one iteration ahead, into a second variable: its value is used 3 instructions later at line 5 "
        "of k.cu, and 3 instructions of the loop at line 3 of k.cu need neither."
    )
    assert found.hint.startswith("Software-pipeline the loop")
    assert any("past the last iteration" in caveat for caveat in found.caveats)


def test_a_list_that_is_walked_has_no_next_turn_to_load() -> None:
    text = LOOP.replace("IADD3 R4, R4, 0x4, RZ", "IADD3 R4, R0, 0x4, RZ").replace(
        "FFMA R0, R11, R12, R0 ", "FFMA R3, R4, R12, R0 "
    )
    text = text.replace("FMUL R11, R0, R0 ", "FMUL R11, R3, R3 ").replace(
        "ISETP.GE.AND P0, PT, R8", "ISETP.GE.AND P0, PT, R11"
    )
    found = silence(write(text, {(4, "long_scoreboard"): (1,)}))
    assert found.stage is SilenceStage.GATED


def test_a_volatile_load_is_not_done_a_turn_before_its_time() -> None:
    text = LOOP.replace(".CONSTANT", ".STRONG.SYS")
    (region,) = match(write(text, {(4, "long_scoreboard"): (1,)})).regions
    assert region.latency_samples == 10  # the comparison, which could come first
    assert "iteration ahead" not in region.hint


def test_a_barrier_before_the_next_load_is_given_as_the_reason() -> None:
    text = LOOP.replace("LDG.E.CONSTANT R0", "LDS R0").replace(
        "IADD3 R8, R8, 0x1, RZ             #", "STS [R20], R21 #"
    )
    text = text.replace("ISETP.GE.AND P0, PT, R8, R9, PT   #", "BAR.SYNC 0x0 #").replace("long", "short")
    found = silence(write(text, {(4, "short_scoreboard"): (1,)}))
    assert found.message == "1 load issued as early as operands allow; 1 must stay behind a barrier"


def test_shared_memory_counts_a_turn_ahead_only() -> None:
    text = STRAIGHT.replace("LDG.E R2, [R4.64]", "LDS R2, [R4]").replace("long", "short")
    assert silence(write(text, {(4, "short_scoreboard"): (3,)})).stage is SilenceStage.GATED
    ahead = LOOP.replace("LDG.E.CONSTANT R0", "LDS R0").replace("long", "short")
    assert match(write(ahead, {(4, "short_scoreboard"): (1,)})).regions[0].latency_samples == 30


def test_arithmetic_and_parameters_are_the_compilers_business() -> None:
    text = """
        LDC R4, c[0x0][0x160]             # k.cu:1 | selected=1
        FADD R10, R11, R12                # k.cu:2 | selected=7
        MUFU.RCP R5, R4                   # k.cu:2 | short_scoreboard=40
        FMUL R6, R5, R4                   # k.cu:3 | short_scoreboard=40
        FADD R7, R6, R4                   # k.cu:3 | wait=40
        EXIT
    """
    found = silence(write(text, {(2, "short_scoreboard"): (0,), (3, "short_scoreboard"): (2,), (4, "wait"): (3,)}))
    assert found.stage is SilenceStage.NOT_MATCHED


def test_an_asynchronous_copy_is_another_remedys() -> None:
    text = STRAIGHT.replace("LDG.E R2, [R4.64] ", "LDGSTS.E [R2], [R4.64] ")
    assert silence(write(text, {(4, "long_scoreboard"): (3,)})).stage is SilenceStage.NOT_MATCHED


def test_a_loop_in_a_loop_draws_on_its_own_code_alone() -> None:
    text = f"""
    outer:
        LDG.E.CONSTANT R40, [R44.64]      # k.cu:2 | selected=10
        FADD R41, R40, R42                # k.cu:2 | long_scoreboard=50
    {LOOP.replace("    MOV R8, RZ                        # k.cu:1 | selected=1", "").replace("    EXIT                              # k.cu:7", "")}
        IADD3 R44, R44, 0x4, RZ           # k.cu:2 | selected=10
        @!P2 BRA outer                    # k.cu:2 | selected=10
        EXIT
    """
    found = match(write(text, {(1, "long_scoreboard"): (0,), (5, "long_scoreboard"): (2,)}))
    outer, inner = sorted(found.regions, key=lambda region: region.scope.row)
    assert inner.active_samples == 30
    # The outer load may be issued before the whole inner loop of 70 samples, its own turn's other code included.
    assert outer.active_samples > inner.active_samples
    assert outer.latency_samples == 50


def test_without_code_nothing_is_said() -> None:
    assert silence(forget_code(write(STRAIGHT, {}))).stage is SilenceStage.NO_CODE


@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("sm", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_late_load_and_its_twin(sm: str) -> None:
    def advise(role: str) -> Advice | Silence:
        kernel = make_up_kernel(FIXTURES / "cubins" / sm / f"short_def_use_{role}.cubin", Circumstances())
        return OPTIMIZER.advise(build_subject(kernel, blame_kernel(kernel)))

    before, after = advise("original"), advise("improved")
    assert isinstance(before, Advice)
    assert before.speedup.estimate > 1.08
    assert before.regions[0].hint.startswith(
        "Issue the load of `in[step * n + i]` at line 22 of original.cu one iteration ahead"
    )
    assert isinstance(after, Silence) or after.speedup.estimate - 1 < 0.3 * (before.speedup.estimate - 1)
