"""Coalescing: the stalls of an access times its share of sectors beyond the least, and what is said about the stride."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, MemoryLevel, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.global_coalescing import OPTIMIZER
from gpa_lsp.kernel.scopes import ScopeKind
from gpa_lsp.profile.model import RuleResult, RuleSpeedup
from tests.advice.blamed_by_hand import blame_by_hand, forget_code, write_subject
from tests.rows.written import write_kernel

STRIDED = """
B-:R-:W-:-:S04  IMAD.WIDE R2, R0, 0x100, R8  # k.cu:3 | selected=2 | x=100
loop:
B-:R-:W2:-:S02  LDG.E R4, [R2.64]            # k.cu:5 | lg_throttle=100/90 | x=100 {strided}
B-:R-:W3:-:S02  LDG.E R5, [R6.64]            # k.cu:6 | lg_throttle=10/9   | x=100 {plain}
B23:R-:W-:-:S04 FFMA R9, R4, R5, R9          # k.cu:7 | long_scoreboard=400/360 selected=20 | x=100
B-:R-:W-:-:S04  IADD3 R6, R6, 0x80, RZ       # k.cu:4 | selected=20 | x=100
B-:R-:W-:-:S05  @P0 BRA loop                 # k.cu:4 | selected=20 | x=100
B-:R-:W-:-:S05  EXIT
"""
ROWS_APART = "global_sectors=3200 global_sectors_ideal=400 global_tag_requests=3200 thread_executions_true=3200"
PLAIN = "global_sectors=400 global_sectors_ideal=400 global_tag_requests=100 thread_executions_true=3200"
CAUSES = {(3, "long_scoreboard"): (1, 2)}


def write(strided: str, plain: str = PLAIN, **kernel):
    return write_subject(STRIDED.format(strided=strided, plain=plain), CAUSES, **kernel)


def match(subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch), found
    return found


def test_the_share_beyond_the_least_of_each_blamed_stall_is_matched():
    found = match(write(ROWS_APART))
    (region,) = found.regions
    assert (region.scope.kind, region.scope.line) == (ScopeKind.LOOP, 4)
    # 7/8 of the sectors are too many: of 100 samples in the queue, and of its half of 400 waiting for two loads.
    assert region.samples == pytest.approx((100 + 200) * 7 / 8)
    assert region.latency_samples == pytest.approx((90 + 180) * 7 / 8)
    waiting, queueing = region.hotspots
    assert (waiting.def_row, waiting.use_row, waiting.reason, waiting.is_separable) == (1, 3, "long_scoreboard", False)
    assert (queueing.def_row, queueing.use_row, queueing.reason, queueing.is_separable) == (
        1,
        None,
        "lg_throttle",
        True,
    )
    assert waiting.note == "32 sectors per request where 4 would suffice"
    assert found.relieves == (MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM)
    assert "4.50× the minimum: 3,600 sectors where 800 would suffice" in found.reasons[1]


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        (ROWS_APART, "adjacent threads are 128 bytes or more apart"),
        (ROWS_APART.replace("global_tag_requests=3200", "global_tag_requests=1600"), "about 64 bytes apart"),
        (ROWS_APART.replace("global_tag_requests=3200", ""), "32 bytes or more apart"),
        (
            ROWS_APART.replace("global_sectors=3200", "global_sectors=800"),
            "with 4 bytes each, were about 8 bytes apart",
        ),
        (ROWS_APART.replace("global_sectors=3200", "global_sectors=500"), "do not start at a multiple of 32 bytes"),
    ],
)
def test_the_hint_names_the_access_and_how_far_its_threads_are_apart(counters, words):
    (region,) = match(write(counters)).regions
    assert "line 5 of k.cu" in region.hint
    assert words in region.hint


def test_the_source_names_the_expression():
    source = "\n" * 4 + "  sum += rows[i * 64 + j] *\n    x[j];\n"
    (region,) = match(write(ROWS_APART, sources={"k.cu": source})).regions
    assert "`rows[i * 64 + j]`" in region.hint


def test_misaligned_warps_get_another_remedy_than_strides():
    strided, shifted = match(write(ROWS_APART)), match(write(ROWS_APART.replace("sectors=3200", "sectors=500", 1)))
    assert "adjacent elements" in strided.hint
    assert "multiple of 32 bytes" in shifted.hint


def test_without_executions_nothing_is_said_of_requests():
    text = STRIDED.format(strided=ROWS_APART, plain=PLAIN).replace("x=100", "")
    (region,) = match(write_subject(text, CAUSES)).regions
    assert region.samples == pytest.approx(300 * 7 / 8)
    assert region.hint == "The load at line 5 of k.cu touches more sectors than its data needs."


def test_sectors_that_l1_answers_are_no_traffic():
    absorbed = match(write(ROWS_APART, metrics={"lts__t_sectors_srcunit_tex.sum": 700.0}))
    passed_on = match(write(ROWS_APART, metrics={"lts__t_sectors_srcunit_tex.sum": 3500.0}))
    assert absorbed.relieves == (MemoryLevel.L1,)
    assert "L1 serves" in absorbed.caveats[1]
    assert MemoryLevel.DRAM in passed_on.relieves
    assert len(passed_on.caveats) == 1


def test_the_profilers_own_rule_is_quoted():
    kernel = write_kernel(STRIDED.format(strided=ROWS_APART, plain=PLAIN))
    rule = RuleResult(
        identifier="UncoalescedGlobalAccess",
        name="",
        section="",
        speedups=(RuleSpeedup(percent=31.25, is_global=True),),
    )
    launch = replace(kernel.launches[0], rules=(rule,))
    found = match(blame_by_hand(replace(kernel, launches=(launch,)), CAUSES))
    assert found.reasons[-1] == "Nsight Compute's own rule estimates 31 % of the run time"


def test_coalesced_accesses_are_no_match_and_the_figure_is_told():
    found = OPTIMIZER.match(write(PLAIN))
    assert isinstance(found, Silence)
    assert found.message == "global accesses move 1.00× the minimum number of sectors"


def test_an_excess_nobody_waits_for_is_no_match():
    text = STRIDED.format(strided=ROWS_APART, plain=PLAIN).replace("lg_throttle=100/90", "selected=100")
    found = OPTIMIZER.match(write_subject(text, {(3, "long_scoreboard"): (2,)}))
    assert isinstance(found, Silence)
    assert found.message.startswith("global accesses move 4.50× the minimum number of sectors, but no warp is stalled")


def test_atomics_are_left_to_their_own_remedy():
    text = """
    RED.E.ADD.STRONG.GPU [R2.64], R4  # k.cu:5 | lg_throttle=100 | x=100 global_sectors=3200 global_sectors_ideal=400
    EXIT
    """
    found = OPTIMIZER.match(write_subject(text, {}))
    assert isinstance(found, Silence)
    assert found.message == "the kernel has no global loads or stores"


def test_accesses_side_by_side_are_left_to_merging():
    narrow = "long_scoreboard=0 | x=100 global_sectors=1600 global_sectors_ideal=400 thread_executions_true=3200"
    text = f"""
    IMAD.WIDE R2, R0, 0x10, R8   # k.cu:3 | selected=2 | x=100
    LDG.E R4, [R2.64]            # k.cu:5 | {narrow}
    LDG.E R5, [R2.64+0x4]        # k.cu:5 | {narrow}
    LDG.E R6, [R2.64+0x8]        # k.cu:5 | {narrow}
    LDG.E R7, [R2.64+0xc]        # k.cu:5 | {narrow}
    FADD R4, R4, R5              # k.cu:6 | long_scoreboard=100 | x=100
    EXIT
    """
    found = OPTIMIZER.match(write_subject(text, {(5, "long_scoreboard"): (1, 2, 3, 4)}))
    assert isinstance(found, Silence)
    assert found.message.endswith("but merging adjacent accesses covers those with stalls")


def test_the_advice_is_priced_by_equation_2():
    subject = write(ROWS_APART)
    advice = OPTIMIZER.advise(subject)
    assert isinstance(advice, Advice)
    matched = 300 * 7 / 8
    assert advice.speedup.uncapped == pytest.approx(subject.total_samples / (subject.total_samples - matched))
    assert advice.group == "memory traffic"


def test_without_a_disassembly_it_is_silent():
    found = OPTIMIZER.match(forget_code(write(ROWS_APART)))
    assert isinstance(found, Silence)
    assert found.stage is SilenceStage.NO_CODE
