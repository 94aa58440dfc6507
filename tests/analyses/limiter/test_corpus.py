"""Every kernel of real reports has a limiter, or is told which metric is missing; and some verdicts that people who tune kernels would give."""

import pytest

from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from tests.real_reports import REPORTS, join

pytestmark = pytest.mark.corpus
VERDICTS = (
    ("a100_conv2d_naive", "baseline", "unit", "l1"),
    ("a100_conv2d_variant2", "variant2", "unit", "shared"),
    ("gtx1660s_stage1_reps_dot_product", "naive", "unit", "l2_slice"),
    ("rtx4090_sgemm_naive", "sgemm", "build", "debug"),
    ("rtx4090_sgemm_2d_sharedmem_blocking", "2d", "unit", "shared"),
    ("t4_matrix_addition", "2D", "unit", "dram"),
    ("rtx4080l_accumulate", "accumulate", "unit", "l2"),
)


@pytest.mark.parametrize("name", REPORTS)
def test_every_kernel_has_a_limiter_or_is_told_what_is_missing(name: str) -> None:
    for kernel in join(name):
        limiter = find_limiter(Subject(kernel))
        assert (limiter.kind is LimiterKind.UNKNOWN) == bool(limiter.missing)
        assert str(limiter.sentence).endswith(".")
        ratios = [limit.nearness for limit in limiter.limits]
        assert ratios == sorted(ratios, reverse=True)
        assert len({limit.unit for limit in limiter.limits}) == len(ratios)


@pytest.mark.parametrize(("report", "kernel", "kind", "unit"), VERDICTS)
def test_verdicts(report: str, kernel: str, kind: str, unit: str) -> None:
    limiter = find_limiter(Subject(next(one for one in join(f"pairs/{report}.ncu-rep") if kernel in one.mangled_name)))
    assert (limiter.kind.value, limiter.unit) == (kind, unit)
