"""Kernels that were not sampled: what counters alone say is advised and marked, and one that was too short is told so."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import WITHOUT_SAMPLES, advise_kernel
from gpa_lsp.diagnosis.advice.model import KernelAdvice, SilenceStage
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.document.advice_words import describe_matched, describe_region
from gpa_lsp.gpu.device.model import HBM_CEILING
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import Sampling
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved.store import read_report, write_report
from tests.advice.uncalibrated import leave_uncalibrated
from tests.conftest import ROOT
from tests.rows.written import write_kernel

SHARE = ".avg.pct_of_peak_sustained_elapsed"
MEMORY = ("dram__cycles_active", "lts__t_sectors", "l1tex__data_pipe_lsu_wavefronts")
STATES = {
    f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio": cycles
    for state, cycles in (
        ("selected", 1.0),
        ("long_scoreboard", 6.0),
        ("wait", 2.0),
        ("lg_throttle", 10.0),
        ("not_selected", 1.0),
    )
}
"""A warp issues in one of 20 cycles, and waits for other warps in 11 of them."""

COLUMN = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]     # k.cu:4 | selected={samples} | x=1000 {counters}
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6   # k.cu:5 | long_scoreboard={samples} | x=1000
    B-:R-:W-:-:S05  EXIT                  # k.cu:6 | selected=0 | x=1000
"""
"""Each thread of a warp loads from a row of its own."""

COUNTERS = "global_sectors=32000 global_sectors_ideal=4000 global_tag_requests=32000"


def write(
    samples: int = 0, grid: int = 64, threads: int = 128, text: str = COLUMN, counters: str = COUNTERS, **metrics: float
) -> Kernel:
    """A kernel on four SMs; a metric of :data:`MEMORY` is a share of its peak, in percent."""
    named: dict[str, float | str] = {
        f"breakdown:gpu__compute_memory_throughput{SHARE}": ",".join(f"{name}{SHARE}" for name in MEMORY),
        "sm__cycles_active.avg": 990.0,
        "sm__cycles_elapsed.max": 1000.0,
        "dram__bytes_read.sum": 1_024_000.0,
        "dram__bytes_write.sum": 0.0,
        "launch__shared_mem_per_block_static": 0.0,
        "launch__shared_mem_per_block_dynamic": 0.0,
    }
    for name, value in metrics.items():
        named[f"{name}{SHARE}" if name in MEMORY else name] = value
    return write_kernel(
        text.format(samples=samples, counters=counters), grid=(grid, 1, 1), block=(threads, 1, 1), metrics=named
    )


def advise(kernel: Kernel) -> KernelAdvice:
    advice, problems = advise_kernel(Subject(kernel, blame_kernel(kernel)))
    assert not problems
    return advice


def test_what_relieves_the_limiter_is_advised_by_counters_and_marked() -> None:
    (first, *_) = advise(write(dram__cycles_active=88.0)).advice
    assert (first.optimizer, first.by_counters, first.reasons[0]) == ("global_coalescing", True, WITHOUT_SAMPLES)
    # An eighth of the bytes stays, so DRAM needs 0.11 of the time.
    assert first.speedup.bound == pytest.approx(8 / 0.88)
    assert (first.matched_samples, first.share.whole_samples) == (0, 0)
    (region,) = first.regions
    assert region.hotspots == ()
    assert region.hint.startswith("The load at line 4 of k.cu touches 32 sectors per request where 4 would suffice")
    assert "stalls" not in " ".join(first.reasons)


def test_in_place_of_shares_and_samples_every_view_says_by_counters() -> None:
    (first, *_) = advise(write(dram__cycles_active=88.0)).advice
    assert (describe_matched(first), describe_region(first, first.regions[0])) == ("by counters", "by counters")


def test_narrow_loads_are_found_by_warp_states() -> None:
    """Long_scoreboard is three quarters of a warp's time in one launch and one quarter in the other."""
    states = dict.fromkeys(STATES, 0.0) | {
        "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": 1.0,
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 3.0,
    }
    coalesced = "global_sectors=4000 global_sectors_ideal=4000 global_tag_requests=1000"
    with leave_uncalibrated():
        found = advise(
            write(
                grid=4096, launch__waves_per_multiprocessor=64.0, dram__cycles_active=20.0, counters=coalesced, **states
            )
        ).advice
    (wide,) = [one for one in found if one.optimizer == "vector_accesses"]
    assert wide.by_counters
    need, stays = 0.20 / HBM_CEILING, 1 - 0.75 * 3 / 4 - 0.25 * 1 / 4
    assert wide.speedup.estimate == pytest.approx((need**4 + (1 - need**4) * stays**4) ** -0.25, rel=1e-2)
    assert "75 % of the warps' time are stalled on loads of 4 B per thread" in wide.reasons


def test_local_memory_is_priced_by_the_traffic_that_goes() -> None:
    """8,000 of 10,000 sectors are spills: L2 keeps a fifth of its work. Of DRAM's 1,024,000 bytes as much could go: three quarters stay."""
    spilling = """
    B-:R-:W2:-:S02  LDG.E R0, [R2.64]     # k.cu:3 | selected={samples} | x=1000 {counters}
    B2:R-:W-:-:S02  STL [R1], R0          # k.cu:3 | long_scoreboard={samples} | x=1000 local_sectors=4000
    B-:R-:W0:-:S02  LDL R4, [R1]          # k.cu:4 | selected={samples} | x=1000 local_sectors=4000
    B0:R-:W-:-:S04  FFMA R2, R4, R3, R6   # k.cu:5 | selected={samples} | x=1000
    B-:R-:W-:-:S05  EXIT                  # k.cu:6 | selected=0 | x=1000
"""
    counters = "global_sectors=2000 global_sectors_ideal=2000 global_tag_requests=500"
    metrics = {"lts__t_sectors": 88.0, "dram__cycles_active": 30.0, "lts__t_sectors_srcunit_tex.sum": 10_000.0}
    (first, *_) = advise(write(text=spilling, counters=counters, **metrics)).advice
    assert (first.optimizer, first.by_counters, first.relieves_limiter) == ("register_reuse", True, True)
    assert first.speedup.bound == pytest.approx(1 / (0.3 * 0.75))


def test_with_samples_nothing_is_marked() -> None:
    advice = advise(write(samples=100, dram__cycles_active=88.0)).advice
    assert advice
    assert not any(one.by_counters or WITHOUT_SAMPLES in one.reasons for one in advice)


def test_what_relieves_no_limiter_needs_samples_to_be_priced() -> None:
    found = advise(write(dram__cycles_active=20.0))
    (silence,) = [one for one in found.silences if one.optimizer == "global_coalescing"]
    assert silence.stage is SilenceStage.NO_SAMPLES
    assert "what limits the kernel" in silence.message


def test_shapes_of_the_launch_are_advised_by_warp_states() -> None:
    found = advise(write(grid=1, threads=1024, dram__cycles_active=10.0, **STATES)).advice
    first = next(one for one in found if one.optimizer == "block_increase")
    assert first.by_counters
    assert "which issue in 5.0 % of their time" in " ".join(first.reasons)
    assert "55 % of the warps' time are stalled on other warps" in " ".join(first.reasons)


def test_without_warp_states_more_warps_are_not_priced() -> None:
    silences = {one.optimizer: one for one in advise(write(grid=1, threads=1024)).silences}
    assert silences["block_increase"].stage is SilenceStage.NOT_KNOWN
    assert "warp states" in silences["block_increase"].message


def test_the_saved_report_tells_it(tmp_path: Path) -> None:
    kernel = write(dram__cycles_active=88.0)
    path = tmp_path / "report.json"
    write_report(gather_report([AnalysedKernel(kernel=kernel, advice=advise(kernel))]), path)
    saved = json.loads(path.read_text())["kernels"][0]["advice"][0]
    assert (saved["optimizer"], saved["by_counters"]) == ("global_coalescing", True)
    (read,) = read_report(path).kernels
    assert read.advice is not None and read.advice.advice[0].by_counters


def test_a_profile_without_samples_is_advised_and_one_without_launches_is_not(tmp_path: Path) -> None:
    profile = json.loads((ROOT / "fixtures" / "example.gpa-profile.json").read_text())
    for launch in profile["launches"]:
        launch.pop("samples")
    path = tmp_path / "unsampled.gpa-profile.json"
    path.write_text(json.dumps(profile))
    for kernel in analyse([path]).kernels:
        assert kernel.blame is None
        assert kernel.advice is not None and kernel.advice.silences
        assert all(one.by_counters for one in kernel.advice.advice)


def test_a_kernel_that_was_too_short_for_a_sample_is_told_so() -> None:
    kernel = write(**{"gpu__time_duration.sum": 1500.0})
    launch = kernel.launches[0]
    short = replace(kernel, launches=(replace(launch, samples=None, sampling=Sampling(period_cycles=2048)),))
    (doubt,) = gather_report([AnalysedKernel(kernel=short)]).problems
    assert (
        doubt.message
        == "the kernel was sampled every 2,048 cycles, but no sample fell into its 1.50 µs: it is too short"
    )
    assert doubt.remedy is not None and "--sampling-interval" in doubt.remedy and "launches" in doubt.remedy
    unsampled = replace(kernel, launches=(replace(launch, samples=None),))
    (doubt,) = gather_report([AnalysedKernel(kernel=unsampled)]).problems
    assert doubt.remedy is not None and "--set full" in doubt.remedy
