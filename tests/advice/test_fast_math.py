"""Accurate divisions, roots and functions: what counts, how called routines are shared, what is said, and a measured before and after."""

import json
import re
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Category, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.fast_math import OPTIMIZER
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.scopes import ScopeKind
from gpa_lsp.profile.read import read_profile
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.conftest import find_corpus
from tests.dataflow.written_arithmetic import DIVISION, DIVISION_CAUSES

CORPUS = find_corpus()
BASELINE = "v100_miniweather_baseline_2022.2.ncu-rep"

OWN_SAMPLES = 1 + 1 + 1 + (9 + 1) + 8 + 8 + 8 + 8 + 8 + 1 + 1 + 12 + 2 + 4 + 6
"""Of the division's chain, test, branch and call in the caller: all that is on its rows but the wait for the load (500) and, from the row that
stores, the wait for the result (20)."""
RESULT_SAMPLES = 8 + 20
"""Of the last steps: the check's operand, and the store that waits for the quotient."""
ROUTINE_SAMPLES = 30 + 60 + 10


def match(subject: Subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch)
    return found


def test_everything_blamed_on_the_division_counts_and_the_wait_for_its_operand_does_not() -> None:
    subject = write_subject(DIVISION, DIVISION_CAUSES)
    (region,) = match(subject).regions
    on_rows = int(subject.rows.all_samples[[1, 2, 3, *range(5, 18), 20, 21, 22]].sum())
    assert region.samples == pytest.approx(on_rows - 500 + 20)
    assert region.samples == pytest.approx(OWN_SAMPLES + RESULT_SAMPLES + ROUTINE_SAMPLES)
    assert (region.scope.kind, region.scope.file, region.scope.line) == (ScopeKind.LINE, "k.cu", 4)
    assert sum(hotspot.samples for hotspot in region.hotspots) == pytest.approx(region.samples)
    assert all((hotspot.def_row, hotspot.use_row) != (0, 8) for hotspot in region.hotspots)
    last_step = next(hotspot for hotspot in region.hotspots if hotspot.use_row == 18)
    assert (last_step.def_row, last_step.samples) == (10, 20)


def test_the_hint_names_operation_line_slow_path_and_what_flags_cannot_do() -> None:
    found = match(write_subject(DIVISION, DIVISION_CAUSES))
    assert found.hint.startswith("The FP64 division at line 4 of k.cu takes 16 instructions, plus a routine of 3")
    assert "in 25 % of executions" in found.hint
    assert "no compiler flag" in found.hint
    assert any("last bit" in caveat for caveat in found.caveats)


def test_the_source_names_the_division_and_a_constant_divisor() -> None:
    source = "double f(const double* x)\n{\n  double a = x[0];\n  double b = a / 12.0;\n  return b;\n}\n"
    text = DIVISION.replace("MUFU.RCP64H R7, R23 ", "MUFU.RCP64H R7, 12 ", 1)
    found = match(write_subject(text, DIVISION_CAUSES, sources={"k.cu": source}))
    assert "`a / 12.0` at line 4" in found.hint
    assert "The divisor `12.0` is a constant: multiply by its reciprocal" in found.hint


TWO_CALLERS = """
        BSSY B6, first                                           # k.cu:3 | selected=1 | x=300
        MUFU.RCP64H R7, R23                                      # k.cu:3 | selected=1 | x=300
        DFMA R4, R6, R6, R8                                      # k.cu:3 | selected=1 | x=300
        FSETP.GT.AND P0, PT, |R5|, 1.469367938527859385e-39, PT  # k.cu:3 | selected=1 | x=300
        @P0 BRA first                                            # k.cu:3 | selected=1 | x=300
        CALL.REL.NOINC $k$__cuda_sm20_div_rn_f64_full            # k.cu:3 | selected=1 | x=30
    first:
        BSYNC B6                                                 # k.cu:3 | selected=1 | x=300
        BSSY B6, second                                          # k.cu:9 | selected=1 | x=300
        MUFU.RCP64H R7, R23                                      # k.cu:9 | selected=1 | x=300
        DFMA R4, R6, R6, R8                                      # k.cu:9 | selected=1 | x=300
        FSETP.GT.AND P0, PT, |R5|, 1.469367938527859385e-39, PT  # k.cu:9 | selected=1 | x=300
        @P0 BRA second                                           # k.cu:9 | selected=1 | x=300
        CALL.REL.NOINC $k$__cuda_sm20_div_rn_f64_full            # k.cu:9 | selected=1 | x=10
    second:
        BSYNC B6                                                 # k.cu:9 | selected=1 | x=300
        EXIT                                                     # k.cu:10 | selected=5 | x=300
    $k$__cuda_sm20_div_rn_f64_full:
        DMUL R4, R4, R4                                          # - | wait=60/30 imc_miss=9 | x=40
        RET.REL.NODEC R20 0x0                                    # - | wait=20 | x=40
"""


def test_a_routine_is_shared_among_its_calls_by_executions_and_no_sample_counts_twice() -> None:
    first, second = match(write_subject(TWO_CALLERS, {})).regions
    assert (first.scope.line, second.scope.line) == (3, 9)
    assert first.samples == pytest.approx(7 + 0.75 * 80)
    assert second.samples == pytest.approx(7 + 0.25 * 80)
    assert first.latency_samples == pytest.approx(0.75 * 50)
    notes = {hotspot.note for hotspot in first.hotspots if hotspot.def_row >= 15}
    assert notes == {"in the routine called from here, shared among its calls"}


def test_a_miss_of_a_kernel_argument_would_only_move_on() -> None:
    found = match(write_subject(TWO_CALLERS, {}))
    assert sum(region.samples for region in found.regions) == pytest.approx(14 + 80)
    assert all(hotspot.reason != "imc_miss" for region in found.regions for hotspot in region.hotspots)


SINGLE = """
        FCHK P0, R4, R5                     # k.cu:3 | selected=1
        MUFU.RCP R2, R5                     # k.cu:3 | selected=1
        FFMA R7, R2, -R5, 1                 # k.cu:3 | wait=5
        FFMA R7, R2, R7, R2                 # k.cu:3 | wait=5
        FFMA R6, R7, R4, RZ                 # k.cu:3 | wait=5
        FFMA R8, R6, -R5, R4                # k.cu:3 | wait=5
        FFMA R7, R7, R8, R6                 # k.cu:3 | wait=5
        @!P0 BRA join                       # k.cu:3 | wait=9
        CALL.REL.NOINC $k$__cuda_sm3x_div_rn_noftz_f32_slowpath   # k.cu:3
    join:
        STG.E [R10.64], R7                  # k.cu:4 | selected=5
        EXIT                                # k.cu:5 | selected=5
    $k$__cuda_sm3x_div_rn_noftz_f32_slowpath:
        MUFU.RCP R7, R5                     # -
        RET.REL.NODEC R20 0x0               # -
"""


def test_for_single_precision_there_are_intrinsics_and_flags() -> None:
    found = match(write_subject(SINGLE, {}))
    assert "__fdividef" in found.hint
    assert "-prec-div=false" in found.hint
    assert "no compiler flag" not in found.hint
    assert "of executions" not in found.hint
    assert any("-use_fast_math" in caveat for caveat in found.caveats)


@pytest.mark.usefixtures("uncalibrated")
def test_advice_is_priced_and_is_about_code() -> None:
    advice = OPTIMIZER.advise(write_subject(SINGLE, {}))
    assert isinstance(advice, Advice)
    assert (advice.category, advice.group) == (Category.CODE, "arithmetic")
    assert advice.speedup.estimate == pytest.approx(46 / (46 - 36))


def test_silence_says_how_much_was_looked_at() -> None:
    plain = OPTIMIZER.match(write_subject("FADD R2, R2, R3  # k.cu:3 | wait=4\nMUFU.RCP R2, R2 # k.cu:3\nEXIT", {}))
    assert isinstance(plain, Silence)
    assert plain.stage is SilenceStage.NOT_MATCHED
    assert "3 instructions" in plain.message
    cold = OPTIMIZER.match(write_subject(re.sub(r"k.cu:3 .*", "k.cu:3", SINGLE), {}))
    assert isinstance(cold, Silence)
    assert "none of the 10 samples" in cold.message
    blind = OPTIMIZER.match(forget_code(write_subject(SINGLE, {})))
    assert isinstance(blind, Silence)
    assert blind.stage is SilenceStage.NO_CODE


def load_hot_kernel(name: str) -> Kernel:
    assert CORPUS is not None
    profile = read_profile(CORPUS / "ncu" / name)
    kernels, _ = join_profile(profile, kernel_filter=lambda launch: "x_279" in launch.mangled_name)
    (kernel,) = kernels
    return kernel


def has_report() -> bool:
    return CORPUS is not None and BASELINE in json.loads((CORPUS / "expected_samples.json").read_text())


@pytest.mark.corpus
@pytest.mark.skipif(not has_report(), reason="the corpus of real reports is not at hand")
def test_the_estimate_for_a_division_that_was_replaced_is_near_what_was_achieved() -> None:
    """The divisions of line 288 became multiplications: 6.191 ms became 3.482 ms, 1.778 times as fast."""
    achieved = 6.191 / 3.482
    kernel = load_hot_kernel(BASELINE)
    blame = blame_kernel(kernel)
    advice, problems = advise_kernel(Subject(kernel, blame))
    assert not problems
    place = [one.optimizer for one in advice.advice].index("fast_math")
    assert place < 3
    found = advice.advice[place]
    assert found.speedup.estimate == pytest.approx(achieved, rel=0.15)
    division = found.regions[0]
    assert (Path(division.scope.file or "").suffix, division.scope.line) == (".F90", 288)
    # What went was 0.505 of all samples; the memory's limit takes the rest of the estimate.
    assert division.share.ratio == pytest.approx(0.505, abs=0.03)
    assert "16 FP64 divisions" in division.hint
    assert "divisor `12` is a constant" in division.hint
    power = next(region for region in found.regions if region.scope.line == 298)
    assert power.share.ratio == pytest.approx(0.084, abs=0.01)


@pytest.mark.corpus
@pytest.mark.skipif(not has_report(), reason="the corpus of real reports is not at hand")
def test_no_sample_of_a_real_kernel_counts_twice() -> None:
    kernel = load_hot_kernel(BASELINE)
    subject = Subject(kernel, blame_kernel(kernel))
    found = match(subject)
    assert sum(region.samples for region in found.regions) < subject.total_samples
    by_pair: dict[tuple[int, int | None], float] = {}
    for region in found.regions:
        for hotspot in region.hotspots:
            pair = (hotspot.def_row, hotspot.use_row)
            by_pair[pair] = by_pair.get(pair, 0.0) + hotspot.samples
    edges = subject.edges
    blamed: dict[tuple[int, int | None], float] = {}
    for use_row, def_row, samples in zip(
        edges.use_row.tolist(), edges.def_row.tolist(), edges.all_samples.tolist(), strict=True
    ):
        pair = (def_row, None if use_row == def_row else use_row)
        blamed[pair] = blamed.get(pair, 0.0) + samples
    assert all(samples <= blamed[pair] * (1 + 1e-9) for pair, samples in by_pair.items())
