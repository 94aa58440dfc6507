"""The roofline's bounds on real reports: nothing is loosened, and Starlight's table holds all samples of every kernel."""

import json

import pytest

from gpa_lsp.diagnosis.advice.advise import advise_kernel, list_optimizers
from gpa_lsp.diagnosis.advice.limiter_rules import is_memory_full
from gpa_lsp.diagnosis.advice.model import KernelAdvice, SilenceStage
from gpa_lsp.diagnosis.advice.reliefs import OccupancyUse
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.questions.starlight import answer_starlight
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.read import read_profile
from tests.conftest import find_corpus

CORPUS = find_corpus()
REPORTS = sorted(json.loads((CORPUS / "expected_samples.json").read_text())) if CORPUS else []
_MOST_KERNELS = 3

pytestmark = pytest.mark.corpus


def list_estimates(advice: KernelAdvice) -> dict[str, float]:
    return {one.optimizer: one.speedup.estimate for one in advice.advice}


@pytest.mark.parametrize("report", REPORTS)
def test_a_roofline_only_tightens(report: str) -> None:
    assert CORPUS is not None
    kernels, _ = join_profile(read_profile(CORPUS / "ncu" / report))
    for kernel in kernels[:_MOST_KERNELS]:
        blame, roofline = blame_kernel(kernel), place_kernel(kernel)
        plain, _ = advise_kernel(Subject(kernel, blame))
        placed, problems = advise_kernel(Subject(kernel, blame, roofline))
        assert not problems
        before, after = list_estimates(plain), list_estimates(placed)
        assert after.keys() <= before.keys()
        assert all(estimate <= before[name] + 1e-9 for name, estimate in after.items())
        silences = {one.optimizer: one for one in placed.silences}
        for name in before.keys() - after.keys():
            assert silences[name].stage in (SilenceStage.GATED, SilenceStage.TOO_SMALL)
        limiter = find_limiter(Subject(kernel, blame, roofline))
        if is_memory_full(limiter):
            most = max(1.0, 1 / (limiter.busy_ratio or 1.0))
            raised = [name for name in after if list_optimizers()[name].reliefs.occupancy is OccupancyUse.ALWAYS]
            assert all(after[name] <= most + 1e-9 for name in raised), "more warps fill the unit, and no more"
        parts = [
            table
            for table in answer_starlight(Subject(kernel, blame, roofline)).tables
            if table.title == "Where the samples count"
        ]
        counted = sum(count for table in parts for _, count, _ in table.rows if isinstance(count, int))
        assert counted == kernel.total_samples
