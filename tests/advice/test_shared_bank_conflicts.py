"""Bank conflicts: the stalls of a shared access times its share of passes beyond the least."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.shared_bank_conflicts import OPTIMIZER
from tests.advice.blamed_by_hand import forget_code, write_subject

TRANSPOSE = """
B-:R-:W-:-:S04  STS [R13.X4], R4       # t.cu:14 | selected=4                          | x=100 shared_wavefronts=100 shared_wavefronts_ideal=100
B-:R-:W-:-:S05  BAR.SYNC 0x0           # t.cu:15 | selected=4                          | x=100
B-:R-:W0:-:S04  {load} R15, [R12.X4]   # t.cu:21 | mio_throttle=64/32                  | x=100 {columns}
B-:R-:W0:-:S04  LDS R17, [R14.X4]      # t.cu:22 | mio_throttle=10/5                   | x=100 shared_wavefronts=100 shared_wavefronts_ideal=100
B0:R-:W-:-:S04  FADD R2, R15, R17      # t.cu:23 | short_scoreboard=320/160 selected=4 | x=100
B-:R-:W-:-:S05  EXIT
"""
THIRTY_TWO = "shared_wavefronts=3200 shared_wavefronts_ideal=100"
BOTH_LOADS = {(4, "short_scoreboard"): (2, 3)}


def write(columns: str = THIRTY_TWO, load: str = "LDS"):
    return write_subject(TRANSPOSE.format(columns=columns, load=load), BOTH_LOADS)


def match(subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch), found
    return found


def test_stalls_of_the_access_with_conflicts_are_matched_by_its_share():
    (region,) = match(write()).regions
    assert region.samples == pytest.approx((64 + 160) * 31 / 32)
    assert region.latency_samples == pytest.approx((32 + 80) * 31 / 32)
    waiting, queueing = region.hotspots
    assert (waiting.def_row, waiting.use_row, waiting.is_separable) == (2, 4, False)
    assert (queueing.def_row, queueing.use_row, queueing.reason) == (2, None, "mio_throttle")
    assert waiting.note == "32 wavefronts where 1 would suffice"


@pytest.mark.parametrize(
    ("passes", "words"),
    [
        (3200, "32-way bank conflicts: its lanes are a multiple of 32 words (128 bytes) apart."),
        (800, "8-way bank conflicts: its lanes are 8 words (32 bytes) apart, or an odd multiple of that."),
        (270, "2.70-way bank conflicts."),
    ],
)
def test_the_hint_says_how_far_lanes_are_apart_where_that_shows(passes, words):
    (region,) = match(write(f"shared_wavefronts={passes} shared_wavefronts_ideal=100")).regions
    assert region.hint == f"The load at line 21 of t.cu has {words}"


def test_wide_accesses_do_not_tell_their_pitch():
    (region,) = match(write("shared_wavefronts=3200 shared_wavefronts_ideal=400", load="LDS.128")).regions
    assert region.hint == "The load at line 21 of t.cu has 8-way bank conflicts."


def test_padding_is_the_remedy_of_whole_columns_only():
    assert "`tile[32][32 + 1]`" in match(write()).hint
    assert "`tile[32][32 + 1]`" not in match(write("shared_wavefronts=400 shared_wavefronts_ideal=100")).hint


def test_the_figures_stand_in_the_reasons():
    assert "11.3× the minimum: 3,400 wavefronts where 300 would suffice" in match(write()).reasons[1]


def test_without_conflicts_it_says_so():
    found = OPTIMIZER.match(write("shared_wavefronts=100 shared_wavefronts_ideal=100"))
    assert isinstance(found, Silence)
    assert found.message == "shared accesses take 1.00× the minimum number of wavefronts"


def test_conflicts_nobody_waits_for_are_no_match():
    text = TRANSPOSE.format(columns=THIRTY_TWO, load="LDS").replace("mio_throttle=64/32", "selected=4")
    found = OPTIMIZER.match(write_subject(text, {(4, "short_scoreboard"): (3,)}))
    assert isinstance(found, Silence)
    assert found.message.startswith(
        "shared accesses take 11.3× the minimum number of wavefronts, but no warp is stalled"
    )


def test_atomics_are_no_bank_conflicts():
    text = """
    ATOMS.ADD RZ, [R2], R3  # h.cu:3 | mio_throttle=50 | x=10 shared_wavefronts=320 shared_wavefronts_ideal=10
    EXIT
    """
    found = OPTIMIZER.match(write_subject(text, {}))
    assert isinstance(found, Silence)
    assert found.message == "the kernel has no shared-memory loads or stores"


def test_the_advice_is_priced_by_equation_2():
    subject = write()
    advice = OPTIMIZER.advise(subject)
    assert isinstance(advice, Advice)
    matched = 224 * 31 / 32
    assert advice.speedup.uncapped == pytest.approx(subject.total_samples / (subject.total_samples - matched))


def test_without_a_disassembly_it_is_silent():
    found = OPTIMIZER.match(forget_code(write()))
    assert isinstance(found, Silence)
    assert found.stage is SilenceStage.NO_CODE
