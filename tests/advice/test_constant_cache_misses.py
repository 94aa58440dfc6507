"""Constants: operands that missed, constants each thread indexes for itself, and the hint for each case."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.constant_cache_misses import OPTIMIZER
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import blame_by_hand, forget_code, write_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel

CODE = """
MOV R2, c[0x0][0x160]       # k.cu:4 | imc_miss=30/30 selected=2
loop:
LDC R6, c[0x3][R3]          # k.cu:9 | mio_throttle=5 selected=10
FADD R7, R6, R7             # k.cu:9 | short_scoreboard=120/100 selected=10
FADD R7, R7, c[0x3][0x40]   # k.cu:10 | imc_miss=40/40 selected=10
FADD R7, R7, c[0x2][0x8]    # k.cu:11 | imc_miss=1/1 selected=10
@P0 BRA loop                # k.cu:8 | selected=10
EXIT                        # k.cu:12 | selected=2
"""
WAITS_FOR_LOAD = {(2, "short_scoreboard"): (1,)}


def write(text: str = CODE, waves: float = 10.0):
    return write_subject(text, WAITS_FOR_LOAD, metrics={"launch__waves_per_multiprocessor": waves})


def match(text: str = CODE) -> EliminationMatch:
    found = OPTIMIZER.match(write(text))
    assert isinstance(found, EliminationMatch), found
    return found


def test_misses_and_waits_for_loaded_constants_are_matched():
    in_loop, before = match().regions
    assert (in_loop.scope.kind, in_loop.samples, in_loop.latency_samples) == (ScopeKind.LOOP, 161, 141)
    assert (before.scope.kind, before.samples) == (ScopeKind.FUNCTION, 27)
    assert match().reasons == (
        "71 samples stalled on operands that missed, 120 on loads of constants",
        "outside loops 90 % of them count, since the first blocks on an SM always miss",
    )


def test_first_constants_of_a_single_wave_are_nobodys_fault():
    found = OPTIMIZER.match(write("MOV R2, c[0x0][0x160]  # k.cu:4 | imc_miss=30/30 selected=2\nEXIT", waves=0.5))
    assert isinstance(found, Silence)
    assert found.stage is SilenceStage.NOT_MATCHED
    assert found.message == "30 samples stalled on the kernel's first constants, as in every launch"


ONE_TURN = """
MOV R2, c[0x0][0x160]       # k.cu:4 | selected=2 | x=100
loop:
FADD R7, R7, c[0x0][0x168]  # k.cu:9 | imc_miss=40/40 selected=10 | x={times}
@P0 BRA loop                # k.cu:8 | selected=10 | x={times}
EXIT                        # k.cu:12 | selected=2 | x=100
"""


def test_a_loop_that_never_turns_fetches_its_constants_once():
    again = OPTIMIZER.match(write(ONE_TURN.format(times=1600), waves=0.5))
    assert isinstance(again, EliminationMatch)
    assert "in every iteration of the loop" in again.regions[0].hint
    once = OPTIMIZER.match(write(ONE_TURN.format(times=100), waves=0.5))
    assert isinstance(once, Silence)
    assert once.stage is SilenceStage.NOT_MATCHED
    several_waves = OPTIMIZER.match(write(ONE_TURN.format(times=100), waves=2.0))
    assert isinstance(several_waves, EliminationMatch)
    assert several_waves.regions[0].samples == 20
    assert "warps are stalled on the first fetch" in several_waves.regions[0].hint


def test_each_pair_says_which_constants_and_how_they_are_addressed():
    notes = {hotspot.def_row: hotspot.note for region in match().regions for hotspot in region.hotspots}
    assert notes == {
        0: "kernel parameters",
        1: "`__constant__` variables, indexed per thread",
        3: "`__constant__` variables",
        4: "compiler constants",
    }


def test_the_hints_tell_the_three_cases_apart():
    in_loop, before = match().regions
    assert "at line 9 of k.cu indexes `__constant__` variables per thread" in in_loop.hint
    assert "at line 10 of k.cu uses `__constant__` variables in every iteration of the loop" in in_loop.hint
    assert (
        before.hint
        == "The MOV at line 4 of k.cu uses kernel parameters once in the function at line 4 of k.cu: warps are stalled on the first fetch."
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (CODE, "to shared memory"),
        (CODE.replace("short_scoreboard=120/100", "wait=1"), "few and adjacent"),
        (CODE.replace("short_scoreboard=120/100", "wait=1").replace("imc_miss=40/40", "wait=1"), "grid-stride loop"),
    ],
    ids=["indexed", "in a loop", "once"],
)
def test_the_remedy_is_that_of_the_largest_case(line, words):
    assert words in match(line).hint


def test_an_index_that_the_whole_warp_shares_is_no_index_of_each_thread():
    (_, before) = match(CODE.replace("c[0x3][R3]", "c[0x3][UR4]")).regions
    notes = {
        hotspot.def_row: hotspot.note
        for region in match(CODE.replace("[R3]", "[UR4]")).regions
        for hotspot in region.hotspots
    }
    assert notes[1] == "`__constant__` variables"
    assert before.samples == 27


def test_constants_loaded_anew_in_every_turn_belong_into_registers():
    found = match(CODE.replace("c[0x3][R3]", "c[0x0][0x14]"))
    assert "at line 9 of k.cu reloads kernel parameters in every iteration of the loop" in found.regions[0].hint
    assert found.hint.startswith("Copy what the loop needs")


def test_without_stalls_for_constants_it_says_so():
    found = OPTIMIZER.match(write_subject("MOV R2, c[0x0][0x160]  # k.cu:4 | selected=2\nEXIT", {}))
    assert isinstance(found, Silence)
    assert (found.stage, found.message) == (SilenceStage.NOT_MATCHED, "no warp is stalled on a constant")


def test_without_a_disassembly_it_is_silent():
    found = OPTIMIZER.match(forget_code(write_subject(CODE, WAITS_FOR_LOAD)))
    assert isinstance(found, Silence)
    assert found.stage is SilenceStage.NO_CODE


def test_the_advice_is_priced_by_equation_2():
    subject = write()
    advice = OPTIMIZER.advise(subject)
    assert isinstance(advice, Advice)
    assert advice.matched_samples == 188
    assert advice.speedup.uncapped == pytest.approx(subject.total_samples / (subject.total_samples - 188))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_in_real_code_the_indexed_load_is_found_and_its_twin_has_none(architecture):
    folder = FIXTURES / "cubins" / architecture
    kernel = make_up_kernel(folder / "constant_indexed_original.cubin", Circumstances())
    instructions = kernel.functions[0].instructions
    assert instructions is not None
    (load,) = [row for row, text in enumerate(instructions.texts) if "c[0x3][R" in text]
    (use,) = [
        row
        for row in range(load + 1, load + 8)
        if instructions.control.wait_mask[row] >> int(instructions.control.write_barrier[load]) & 1
    ]
    found = OPTIMIZER.match(blame_by_hand(kernel, {(use, "short_scoreboard"): (load,)}))
    assert isinstance(found, EliminationMatch)
    assert found.regions[0].hotspots[0].def_row == load
    assert "shared memory" in found.hint
    twin = make_up_kernel(folder / "constant_indexed_improved.cubin", Circumstances()).functions[0].instructions
    assert twin is not None
    assert not any("c[0x3][R" in text for text in twin.texts)
