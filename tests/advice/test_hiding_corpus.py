"""The optimizers that hide latency, on real reports: what they match stays within what was sampled, and known kernels get what they should."""

import numpy as np
import pytest

from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.advice.optimizers.async_copy import OPTIMIZER as ASYNC_COPY
from gpa_lsp.diagnosis.advice.optimizers.code_reordering import OPTIMIZER as CODE_REORDERING
from gpa_lsp.diagnosis.advice.optimizers.loop_unrolling import OPTIMIZER as LOOP_UNROLLING
from tests.real_reports import REPORTS, read_subjects

OPTIMIZERS = (LOOP_UNROLLING, CODE_REORDERING, ASYNC_COPY)

pytestmark = pytest.mark.corpus


def ask(optimizer: Optimizer, report: str, kernel: str) -> Advice | Silence:
    (subject,) = [subject for subject in read_subjects(report) if kernel in subject.kernel.mangled_name]
    return optimizer.advise(subject)


@pytest.mark.parametrize("report", REPORTS)
def test_matches_stay_within_the_samples(report: str) -> None:
    for subject in read_subjects(report):
        latency = float(subject.rows.latency_samples.sum())
        active = float((subject.rows.all_samples - subject.rows.latency_samples).sum())
        for optimizer in OPTIMIZERS:
            found = optimizer.match(subject)
            if isinstance(found, Silence):
                assert found.message
                continue
            assert found.active_samples <= active + 1e-6
            assert sum(region.samples for region in found.regions) <= subject.total_samples + 1e-6
            assert sum(region.latency_samples for region in found.regions) <= latency + 1e-6
            for region in found.regions:
                assert 0 <= region.latency_samples <= region.samples + 1e-6
                assert region.active_samples <= active + 1e-6
                assert region.hint
                assert np.isclose(sum(spot.samples for spot in region.hotspots), region.samples)


def test_a_rolled_reduction_is_unrolled() -> None:
    found = ask(LOOP_UNROLLING, "h100_rmsnorm_2025.1.ncu-rep", "rms_norm")
    assert isinstance(found, Advice)
    assert "by 4" in found.regions[0].hint
    assert len(found.regions) == 1, "the loop with a division calls its routine"


@pytest.mark.parametrize(
    ("report", "kernel", "message"),
    [
        ("rtx3090_mergesort_2023.1.ncu-rep", "testSortedSegments", "a loaded value decides whether the loop goes on"),
        ("a100_cutlass_s8_2024.1.ncu-rep", "ReferenceGemm", "is already unrolled by 16"),
        ("rtx3090_mergesort_2023.1.ncu-rep", "squareSort", "would not fit the L0 instruction cache (1,024)"),
        ("v100_miniweather_baseline_2022.2.ncu-rep", "set_halo_values_x_396", "runs 1 iteration per entry"),
    ],
)
def test_loops_that_copies_would_not_help_are_left_alone(report: str, kernel: str, message: str) -> None:
    found = ask(LOOP_UNROLLING, report, kernel)
    assert isinstance(found, Silence)
    assert found.stage is SilenceStage.GATED
    assert message in found.message


def test_a_sorting_network_in_straight_code_is_the_compilers_business() -> None:
    found = ask(CODE_REORDERING, "rtx3090_mergesort_2023.1.ncu-rep", "squareSort")
    assert isinstance(found, Silence) or found.speedup.estimate < 1.05


def test_a_pipeline_of_asynchronous_copies_is_offered_another_stage() -> None:
    for subject in read_subjects("a100_cutlass_sm80_2024.1.ncu-rep"):
        found = ASYNC_COPY.advise(subject)
        if isinstance(found, Advice):
            assert "one more buffer allows 2" in found.regions[0].hint
            return
    pytest.fail("no kernel of the report waits for its copies")
