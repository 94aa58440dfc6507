"""Stores at the exit: all waves but one, and nothing for a single wave."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.store_drain import OPTIMIZER
from tests.advice.blamed_by_hand import forget_code, write_subject

FILL = """
IMAD.WIDE R2, R0, 0x8, R4   # f.cu:58 | selected=20
STG.E.64 [R2.64], R6        # f.cu:59 | selected=20
EXIT                        # f.cu:60 | selected=20
BRA 0x30                    # - | drain=140/120
"""
CAUSES = {(3, "drain"): (1,)}


def write(waves: float):
    return write_subject(FILL, CAUSES, metrics={"launch__waves_per_multiprocessor": waves})


def silence(subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence), found
    return found


def test_all_waves_but_one_are_matched_and_the_store_is_named():
    found = OPTIMIZER.match(write(10.0))
    assert isinstance(found, EliminationMatch)
    (region,) = found.regions
    assert (region.samples, region.latency_samples) == (pytest.approx(126), pytest.approx(108))
    assert (region.hotspots[0].def_row, region.hotspots[0].use_row) == (1, 3)
    assert region.hint == "The store at line 59 of f.cu is still in flight when its warps exit."
    assert "grid-stride loop" in found.hint
    assert "instead of 10 times" in found.hint


def test_a_single_wave_drains_once_anyway():
    found = silence(write(0.8))
    assert found.stage is SilenceStage.GATED
    assert found.message.startswith("140 samples stalled on stores at exit, but with 0.800 waves")


def test_without_draining_warps_it_says_so():
    assert (
        silence(write_subject("EXIT  # f.cu:60 | selected=20", {})).message
        == "no warp is stalled on its stores at exit"
    )


def test_without_a_disassembly_it_is_silent():
    assert silence(forget_code(write(10.0))).stage is SilenceStage.NO_CODE


def test_the_advice_is_priced_by_equation_2():
    advice = OPTIMIZER.advise(write(10.0))
    assert isinstance(advice, Advice)
    assert advice.speedup.uncapped == pytest.approx(200 / (200 - 126))
