"""Advice on thin evidence has no number: its gain is likely, and the reason is said."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.diagnosis.advice.model import Advice
from gpa_lsp.diagnosis.advice.pricing import NO_GAIN
from gpa_lsp.document.advice_words import describe_gain
from gpa_lsp.editor.kernel_page import describe_kernel_briefly, describe_verdict
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.report.model import KernelReport
from tests.e2e.example_launches import Launch, judge, make_launch, read_screen, write_launches
from tests.editor.views import make_profile


def make_tiny_grid() -> Launch:
    """One block of one warp on 108 SMs, of which hardly a unit is busy: anything up to 108 times as fast."""
    launch = make_launch(1)
    launch["block"] = [32, 1, 1]
    launch["metrics"] = {"gpu__time_duration.sum": 186240.0, "launch__registers_per_thread": 16}
    return launch


def find(kernel: KernelReport, optimizer: str) -> Advice:
    assert kernel.advice is not None
    return next(one for one in kernel.advice.advice if one.optimizer == optimizer)


def test_a_range_that_says_nothing_is_no_number_in_any_view(tmp_path: Path) -> None:
    path = write_launches(tmp_path, make_tiny_grid())
    kernel = judge(path)
    advice = find(kernel, "small_grid")
    assert str(advice.speedup.doubt).startswith("anything from ")
    assert describe_gain(advice) == "likely"
    assert any("likely" in line for line in read_screen(kernel))
    profile = make_profile(kernel, texts={})
    shown = VisibleKernel(name="k", profile=profile, kernel=profile.kernels[0])
    printed = [str(describe_verdict(shown)), describe_kernel_briefly(shown, 200)]
    for words in (["advise"], ["advise", "--details"], ["advise", "--details", "--format", "markdown"], ["report"]):
        with redirect_stdout(io.StringIO()) as out:
            assert main([*words, str(path)]) == 0
        printed.append(out.getvalue())
    assert "anything from " in printed[3]  # the details
    for text in printed:
        assert "likely" in text
        assert "1–108×" not in text
        assert "1.00× to 108×" not in text


def test_a_match_of_a_few_samples_has_no_number(tmp_path: Path) -> None:
    launch = make_launch()
    for sample in launch["samples"]:
        for counts in sample["by_reason"].values():
            counts["all"] = min(counts["all"], 2)
            counts["latency"] = min(counts["latency"], counts["all"])
    kernel = judge(write_launches(tmp_path, launch))
    assert kernel.advice is not None
    few = [one for one in kernel.advice.advice if 0 < one.matched_samples < 10]
    assert few
    for one in few:
        assert one.speedup.doubt.startswith("its basis is only")
        assert describe_gain(one) == "likely"


@pytest.mark.parametrize(("time_ns", "most"), [(1600.0, 1.6), (900.0, 1.0), (9000.0, 9.0)])
def test_nothing_makes_a_launch_shorter_than_a_launch(tmp_path: Path, time_ns: float, most: float) -> None:
    launch = make_tiny_grid()
    launch["metrics"]["gpu__time_duration.sum"] = time_ns
    kernel = judge(write_launches(tmp_path, launch))
    assert kernel.advice is not None
    for one in kernel.advice.advice:
        assert one.speedup.low <= one.speedup.estimate <= one.speedup.high <= one.speedup.bound <= most
    assert [one.optimizer for one in kernel.advice.advice] == [] if most == 1.0 else kernel.advice.advice


def test_evidence_that_is_not_thin_keeps_its_numbers(tmp_path: Path) -> None:
    kernel = judge(write_launches(tmp_path, make_launch()))
    assert kernel.advice is not None
    sure = [one for one in kernel.advice.advice if one.speedup.low > NO_GAIN]
    assert sure
    for one in sure:
        assert not one.speedup.doubt
        assert describe_gain(one)[0].isdigit()
