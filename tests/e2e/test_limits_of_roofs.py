"""Use of each unit is found once: without the profiler's percentages every view quotes the kernel's part of the roofs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.analyses.model import Confidence, LimiterKind
from gpa_lsp.editor.kernel_page import describe_kernel, describe_verdict
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.pipeline import analyse
from tests.conftest import ROOT
from tests.editor.views import make_profile

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"
PERCENT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"

Judge = Callable[..., KernelReport]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """The example's first kernel without percentages; what of its metrics is given is put in, and None takes one away."""

    def judge_metrics(**metrics: float | None) -> KernelReport:
        profile = json.loads(EXAMPLE.read_text())
        del profile["launches"][1], profile["modules"][1]
        found = profile["launches"][0]["metrics"]
        del found[PERCENT]
        for name, value in metrics.items():
            found.pop(name.replace("_DOT_", "."), None)
            found.update({name.replace("_DOT_", "."): value} if value is not None else {})
        target = tmp_path / "cubins" / "sm_80"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "fixtures" / "cubins" / "sm_80" / "short_def_use_original.cubin", target)
        path = tmp_path / "no_percent.gpa-profile.json"
        path.write_text(json.dumps(profile))
        (kernel,) = analyse([path]).kernels
        return kernel

    return judge_metrics


def show(kernel: KernelReport) -> VisibleKernel:
    profile = make_profile(kernel, texts={})
    return VisibleKernel(name="k", profile=profile, kernel=profile.kernels[0])


def test_the_limiter_reads_the_roofline_where_no_percentage_was_collected(judge: Judge) -> None:
    kernel = judge()
    assert kernel.limiter is not None
    assert kernel.analyses is not None and kernel.analyses.roofline is not None
    assert kernel.analyses.roofline.whole is not None
    binding = kernel.analyses.roofline.whole.binding
    assert binding is not None
    dram = kernel.limiter.find("dram")
    assert dram is not None and dram.is_derived
    assert dram.busy_ratio == pytest.approx(binding.share_ratio)
    assert (kernel.limiter.kind, kernel.limiter.confidence) == (LimiterKind.LATENCY, Confidence.LIKELY)
    assert "no unit is known to be more than 47 % busy (DRAM, by the roofline)" in kernel.limiter.sentence
    assert not kernel.limiter.missing


def test_no_view_says_unknown_beside_it(judge: Judge) -> None:
    kernel = judge()
    hover = str(describe_verdict(show(kernel)))
    assert "47 % busy" in hover
    assert "Unknown" not in hover
    of_units = [answer for answer in kernel.analyses.answers if answer.analysis == "speed_of_light"]  # type: ignore[union-attr]
    assert [answer.summary.startswith("Latency: no unit is known") for answer in of_units] == [True]
    assert "utilization of the units was not collected" not in describe_kernel(show(kernel))
    bounds = [one.speedup.bound for one in kernel.advice.advice] if kernel.advice else []
    assert bounds
    assert max(bounds) <= 1 / 0.46, "a unit that keeps its work bounds what is gained, whoever found how busy it is"


def test_a_full_roof_is_the_limiter_and_not_for_sure(judge: Judge) -> None:
    limiter = judge(dram__bytes_read_DOT_sum=265e6).limiter
    assert limiter is not None
    assert (limiter.kind, limiter.unit, limiter.confidence) == (LimiterKind.UNIT, "dram", Confidence.LIKELY)
    assert limiter.sentence.startswith("Limited by DRAM: 9")
    assert " by the roofline" in limiter.sentence


def test_pipes_alone_do_not_tell_that_the_memory_is_idle(judge: Judge) -> None:
    kernel = judge(
        **dict.fromkeys(
            ("dram__bytes_read_DOT_sum", "dram__bytes_write_DOT_sum", "lts__t_sectors_srcunit_tex_DOT_sum")
        ),
        l1tex__t_sectors_DOT_sum=None,
        l1tex__data_pipe_lsu_wavefronts_mem_shared_DOT_sum=None,
    )
    assert kernel.limiter is not None
    assert kernel.limiter.kind is LimiterKind.UNKNOWN
    assert kernel.limiter.missing


def test_a_percentage_comes_first(judge: Judge) -> None:
    limiter = judge(**{PERCENT.replace(".", "_DOT_"): 61.0}).limiter
    assert limiter is not None
    dram = limiter.find("dram")
    assert dram is not None
    assert (dram.busy_ratio, dram.is_derived) == (0.61, False)
