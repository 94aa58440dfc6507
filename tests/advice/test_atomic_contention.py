"""Atomics: what adding up first would save, by threads, sectors, passes and tries."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.atomic_contention import OPTIMIZER
from tests.advice.blamed_by_hand import blame_by_hand, forget_code, write_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel

HISTOGRAM = """
{atomic} # h.cu:6 | {reason}=80/60 selected=10 | x=100 {counters}
FADD R7, R7, R6                # h.cu:7 | long_scoreboard=200/180 selected=10
EXIT                           # h.cu:8 | drain=20/20 selected=2
"""
RETURNS = "ATOMG.E.ADD.STRONG.GPU PT, R6, [R4.64], R7"
FORGETS = "RED.E.ADD.STRONG.GPU [R4.64], R7"
SHARED = "ATOMS.ADD R6, [R4], R7"
CAUSES = {(1, "long_scoreboard"): (0,), (2, "drain"): (0,)}


def write(atomic: str, counters: str = "", reason: str = "lg_throttle", **kernel):
    return write_subject(HISTOGRAM.format(atomic=atomic, counters=counters, reason=reason), CAUSES, **kernel)


def match(subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch), found
    return found


def silence(subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence), found
    return found


@pytest.mark.parametrize("atomic", [RETURNS, FORGETS])
def test_everything_that_waits_for_an_atomic_is_matched_without_counters(atomic):
    found = match(write(atomic))
    (region,) = found.regions
    assert (region.samples, region.latency_samples) == (300, 260)
    assert {(hotspot.use_row, hotspot.reason) for hotspot in region.hotspots} == {
        (None, "lg_throttle"),
        (1, "long_scoreboard"),
        (2, "drain"),
    }
    assert found.reasons[0].startswith("300 samples stalled on atomics")


@pytest.mark.parametrize(
    ("counters", "saved", "words"),
    [
        ("global_sectors=100 thread_executions_true=3200", 31 / 32, "32 threads per warp in 1 sector"),
        ("global_sectors=800 thread_executions_true=3200", 3 / 4, "32 threads per warp in 8 sectors"),
        (
            "global_sectors=100 thread_executions_true=100",
            3 / 4,
            "and the warps of a block queue for it",
        ),
    ],
    ids=["one address", "some", "reduced in the warp"],
)
def test_what_adding_up_first_would_save(counters, saved, words):
    (region,) = match(write(FORGETS, counters, grid=(25, 1, 1), block=(128, 1, 1))).regions
    assert region.samples == pytest.approx(300 * saved)
    assert words in region.hint


def test_an_old_value_that_is_used_has_to_reach_each_thread():
    counters = "global_sectors=100 thread_executions_true=3200"
    assert "The old value is used" in match(write(RETURNS, counters)).hint
    assert "The old value is used" in match(write(RETURNS, "global_sectors=100 thread_executions_true=100")).hint
    assert match(write(FORGETS, counters)).hint.startswith("Aggregate before the global atomic")


def test_only_sums_of_floats_change_with_their_order():
    assert not any("Floating-point" in caveat for caveat in match(write(FORGETS)).caveats)
    floats = match(write("RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R7"))
    assert any("Floating-point" in caveat for caveat in floats.caveats)


def test_one_atomic_a_block_is_the_least():
    """100 blocks of 4 warps make it 100 times: somebody has added up in the block before."""
    counters = "global_sectors=100 thread_executions_true=100"
    found = silence(write(FORGETS, counters, grid=(100, 1, 1), block=(128, 1, 1)))
    assert found.stage is SilenceStage.NOT_MATCHED
    assert found.message.endswith("or a block does only one")


@pytest.mark.parametrize("sectors", [3200, 400], ids=["scattered", "neighbouring words"])
def test_threads_with_addresses_of_their_own_do_not_contend(sectors):
    found = silence(write(FORGETS, f"global_sectors={sectors} thread_executions_true=3200"))
    assert found.message.startswith("300 samples stalled on atomics, but threads use separate addresses")


def test_shared_atomics_count_by_their_passes():
    counters = "shared_wavefronts=400 shared_wavefronts_ideal=100"
    found = match(write(SHARED, counters, reason="mio_throttle"))
    assert found.regions[0].samples == pytest.approx(300 * 3 / 4)
    assert "private counters" in found.hint


SPIN = """
MOV R6, RZ                              # s.cu:3 | selected=1                 | x=100
again:
FADD R5, R6, R7                         # s.cu:5 | selected=4 {waits}         | x=400
ATOM.E.CAS.STRONG.GPU PT, R4, [R2], R6, R5 # s.cu:6 | lg_throttle=10 selected=4 | x=400 {counters}
ISETP.NE.AND P0, PT, R4, R6, PT         # s.cu:7 | long_scoreboard=400 selected=4 | x=400
@P0 BRA again                           # s.cu:7 | selected=4                 | x=400
EXIT                                    # s.cu:9 | selected=1                 | x=100
"""


def test_compare_and_swap_loops_lose_their_later_tries():
    counters = "global_sectors=12800 thread_executions_true=12800"
    found = match(write_subject(SPIN.format(waits="", counters=counters), {(3, "long_scoreboard"): (2,)}))
    (region,) = found.regions
    assert region.samples == pytest.approx(410 * 3 / 4)
    assert "takes 4 attempts to succeed" in region.hint
    assert "instead of a compare-and-swap loop" in found.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LDG.E R2, [R4.64]  # h.cu:1 | lg_throttle=9\nEXIT", "the kernel has no atomics"),
        (f"{FORGETS}  # h.cu:1 | selected=9 not_selected=3\nEXIT", "no warp is stalled on the kernel's atomics"),
        ("SYNCS.ARRIVE.TRANS64 RZ, [R4], R5  # h.cu:1 | short_scoreboard=9\nEXIT", "the kernel has no atomics"),
    ],
    ids=["none", "only issued", "barrier objects"],
)
def test_without_waiting_atomics_it_says_so(text, message):
    assert silence(write_subject(text, {})).message == message


def test_without_a_disassembly_it_is_silent():
    assert silence(forget_code(write(FORGETS))).stage is SilenceStage.NO_CODE


def test_the_advice_is_priced_by_equation_2():
    subject = write(RETURNS)
    advice = OPTIMIZER.advise(subject)
    assert isinstance(advice, Advice)
    assert advice.speedup.uncapped == pytest.approx(subject.total_samples / (subject.total_samples - 300))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_in_real_code_the_atomic_in_the_loop_is_found(architecture):
    kernel = make_up_kernel(
        FIXTURES / "cubins" / architecture / "global_atomics_original.cubin", Circumstances(sectors=(20, 20))
    )
    instructions, graph = kernel.functions[0].instructions, kernel.functions[0].graph
    assert instructions is not None
    assert graph is not None
    (atomic,) = [row for row, text in enumerate(instructions.texts) if text.startswith("RED")]
    waiting = int(kernel.functions[0].all_samples[:, kernel.reasons.index("long_scoreboard")].argmax())
    found = OPTIMIZER.match(blame_by_hand(kernel, {(waiting, "long_scoreboard"): (atomic,)}))
    assert isinstance(found, EliminationMatch)
    (region,) = found.regions
    assert region.hotspots[0].def_row == atomic
    assert region.samples == pytest.approx(sum(hotspot.samples for hotspot in region.hotspots))
    assert "in shared-memory counters" in found.hint
