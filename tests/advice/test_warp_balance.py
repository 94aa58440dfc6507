"""Barriers: all waiting as published, and who comes late by execution counts."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.warp_balance import OPTIMIZER, find_late_causes
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import blame_by_hand, forget_code, write_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel

ONE_OF_EIGHT = """
MOV R7, RZ                     # b.cu:17 | selected=90          | x=100
tile:
@P0 BRA ready                  # b.cu:19 | selected=8           | x=800
FMUL R4, R4, R5                # b.cu:21 | selected=1           | x=100
inner:
FFMA R4, R4, R5, R6            # b.cu:9 | wait={work} selected=9 | x=2400
@P1 BRA inner                  # b.cu:8 | selected=10           | x=2400
STS [R7], R4                   # b.cu:22 | selected=1           | x=100
ready:
BAR.SYNC.DEFER_BLOCKING 0x0    # b.cu:24 | selected=8           | x=800
LDS R2, [R8]                   # b.cu:25 | barrier=700/600      | x=800
FADD R3, R2, R3                # b.cu:26 | selected=8           | x=800
BAR.SYNC.DEFER_BLOCKING 0x0    # b.cu:27 | selected=8           | x=800
@P2 BRA tile                   # b.cu:18 | barrier=40/30        | x=800
EXIT                           # b.cu:30 | selected=8           | x=100
"""
AT_BARRIERS = {(7, "barrier"): (6,), (10, "barrier"): (9,)}


def write(work: int = 80, **kernel):
    return write_subject(ONE_OF_EIGHT.format(work=work), AT_BARRIERS, **kernel)


def match(subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch), found
    return found


def silence(subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence), found
    return found


def test_warps_that_get_to_late_code_are_counted_before_the_loop_inside_it():
    """The inner loop's body executes more often than the barrier, but only an eighth of the warps enters it."""
    late = find_late_causes(write(), [6, 9])
    assert late.keys() == {6}
    assert (late[6].row, late[6].warps_ratio, late[6].samples) == (3, pytest.approx(1 / 8), 101)
    assert late[6].explained_samples == pytest.approx(101 * 7)


@pytest.mark.parametrize(("cause", "named"), [(2, 2), (0, 3)], ids=["in the late code", "before it"])
def test_late_code_is_named_by_what_it_waits_for(cause, named):
    text = ONE_OF_EIGHT.format(work=80)
    late = find_late_causes(write_subject(text, {**AT_BARRIERS, (3, "wait"): (cause,)}), [6])
    assert (late[6].row, late[6].samples) == (named, 101)


def test_all_waiting_is_matched_and_its_cause_named():
    found = match(write())
    (region,) = found.regions
    assert (region.scope.kind, region.samples, region.latency_samples) == (ScopeKind.LOOP, 740, 630)
    # 101 samples of one warp in eight explain 707 of waiting: all 700 at the first barrier.
    cause, other = region.hotspots
    assert (cause.def_row, cause.use_row, cause.samples) == (3, 6, 700)
    assert cause.note == "12 % of the warps execute it before the barrier"
    assert (other.def_row, other.use_row, other.samples) == (9, 10, 40)
    assert "line 24 of b.cu for the 12 % of them that execute" in region.hint
    assert "line 9 of b.cu" in region.hint
    assert found.hint.startswith("Spread the work that few warps do before the barrier over all of them")
    assert "101 samples of 12 % of the warps before the barrier at line 24 of b.cu" in found.reasons[1]


def test_late_code_takes_no_more_than_it_explains():
    (region,) = match(write(work=29)).regions
    assert region.samples == 740
    by_pair = {(hotspot.def_row, hotspot.use_row): hotspot.samples for hotspot in region.hotspots}
    assert by_pair == {(3, 6): pytest.approx(350), (6, 7): pytest.approx(350), (9, 10): 40}


def test_without_executions_the_barrier_keeps_the_blame():
    text = ONE_OF_EIGHT.format(work=80)
    for times in (" x=100", " x=800", " x=2400"):
        text = text.replace(times, "")
    found = match(write_subject(text, AT_BARRIERS))
    assert {hotspot.def_row for hotspot in found.regions[0].hotspots} == {6, 9}
    assert "by execution counts" in found.reasons[1]


@pytest.mark.parametrize(("capability", "splits"), [((7, 5), False), ((8, 0), True)])
def test_arriving_and_waiting_apart_is_for_hardware_that_can(capability, splits):
    assert ("cuda::barrier" in match(write(compute_capability=capability)).hint) is splits


def test_a_block_of_one_warp_needs_no_block_barrier():
    found = match(write(block=(32, 1, 1)))
    assert "`__syncwarp()`" in found.hint
    assert "is in a block of one warp" in found.regions[0].hint


TREE = """
STS [R9], R2                   # r.cu:10 | selected=8      | x=100
step:
BAR.SYNC 0x0                   # r.cu:19 | selected=8      | x=800
LDS R3, [R4]                   # r.cu:16 | barrier=90/80   | x=800
STS [R9], R3                   # r.cu:16 | short_scoreboard=50 | x=800
@P0 BRA step                   # r.cu:14 | selected=8      | x=800
EXIT
"""


def test_trees_in_shared_memory_are_told_to_shuffle():
    found = match(write_subject(TREE, {(2, "barrier"): (1,)}))
    assert "`__shfl_down_sync`" in found.hint
    assert "a step of shared-memory exchange in the loop at line" in found.regions[0].hint


FENCE = """
STG.E [R2.64], R4     # f.cu:4 | selected=8
MEMBAR.SC.{scope}     # f.cu:5 | selected=8
LDG.E R5, [R6.64]     # f.cu:6 | membar=200/150
EXIT
"""


@pytest.mark.parametrize(("scope", "words"), [("SYS", "the whole system"), ("GPU", "the GPU:"), ("CTA", "others")])
def test_fences_are_told_their_scope(scope, words):
    found = match(write_subject(FENCE.format(scope=scope), {(2, "membar"): (1,)}))
    assert words in found.regions[0].hint
    assert "narrowest fence" in found.hint


def test_without_waiting_it_says_so():
    found = silence(write_subject("BAR.SYNC 0x0  # b.cu:1 | selected=1\nEXIT", {}))
    assert (found.stage, found.message) == (SilenceStage.NOT_MATCHED, "no warp is stalled at a barrier or fence")


def test_without_a_disassembly_it_is_silent():
    assert silence(forget_code(write())).stage is SilenceStage.NO_CODE


def test_the_advice_is_priced_by_equation_2():
    subject = write()
    advice = OPTIMIZER.advise(subject)
    assert isinstance(advice, Advice)
    assert advice.speedup.uncapped == pytest.approx(subject.total_samples / (subject.total_samples - 740))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize(("role", "is_late"), [("original", True), ("improved", False)])
def test_in_real_code_the_work_of_the_first_warp_is_found(architecture, role, is_late):
    path = FIXTURES / "cubins" / architecture / f"barrier_imbalance_{role}.cubin"
    graph = make_up_kernel(path, Circumstances()).functions[0].graph
    assert graph is not None
    skipped = [
        row
        for region in graph.divergence_regions
        for row in range(region.set_instruction + 2, int(graph.first_instruction[region.target_block]) - 1)
    ]
    kernel = make_up_kernel(
        path, Circumstances(imbalance=400, executes=lambda row, times: times // 8 if row in skipped else times)
    )
    instructions = kernel.functions[0].instructions
    assert instructions is not None
    barriers = [row for row, text in enumerate(instructions.texts) if text.startswith("BAR")]
    causes = {(row + 1, "barrier"): (row,) for row in barriers}
    late = find_late_causes(blame_by_hand(kernel, causes), barriers)
    assert bool(late) is is_late
    if is_late:
        assert late.keys() == {barriers[0]}
        assert late[barriers[0]].warps_ratio == pytest.approx(1 / 8)
        assert late[barriers[0]].row in skipped
        found = match(blame_by_hand(kernel, causes))
        assert found.regions[0].hotspots[0].def_row == late[barriers[0]].row
