"""Accurate divisions of a real kernel that were replaced: a measured before and after; what counts and what is said is in fast_math.md."""

import json
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.optimizers.fast_math import OPTIMIZER
from gpa_lsp.diagnosis.advice.sequence_regions import count_operations
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.dataflow.arithmetic import find_arithmetic_sequences
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.read import read_profile
from tests.advice.subjects import make_subject
from tests.conftest import find_corpus
from tests.rows.listings import DIVISION
from tests.rows.written import write_kernel

CORPUS = find_corpus()
BASELINE = "v100_miniweather_baseline_2022.2.ncu-rep"


def test_a_division_is_done_as_often_as_its_chain_runs_not_as_its_routine_is_called() -> None:
    subject = make_subject(write_kernel(DIVISION))
    assert count_operations(subject, find_arithmetic_sequences(subject.rows).sequences) == 100


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
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch)
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
