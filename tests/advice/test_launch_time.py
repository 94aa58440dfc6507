"""The time of a launch and what changes leave of it, with numbers worked out by hand: T = (U⁴ + L⁴)^¼."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.launch_time import SHARPNESS, LaunchTime, measure_launch_time
from gpa_lsp.diagnosis.advice.residency import AS_NOW, Filling, compare_filling
from gpa_lsp.gpu.arch.occupancy import BlockShape
from gpa_lsp.gpu.device.model import HBM_CEILING, L1_CEILING
from tests.advice.subjects import make_subject
from tests.analyses.limiter.test_find import FEW_ADDRESSES
from tests.rows.written import write_kernel

SHARE = ".avg.pct_of_peak_sustained_elapsed"
NAMES = {
    "dram": f"gpu__dram_throughput{SHARE}",
    "l2": f"lts__throughput{SHARE}",
    "l1": f"l1tex__throughput{SHARE}",
    "sm": f"sm__throughput{SHARE}",
}
SAMPLES = "long_scoreboard=600 lg_throttle=200 selected=200"


def measure(samples: str = SAMPLES, *, duration_ns: float = 1e6, **metrics: float) -> LaunchTime:
    text = f"""
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | {samples}
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4
    B-:R-:W-:-:S05  EXIT
    """
    named = {NAMES.get(name, name): value for name, value in metrics.items()}
    return measure_launch_time(make_subject(write_kernel(text, metrics=named, duration_ns=duration_ns)))


def join(*times: float) -> float:
    return sum(one**SHARPNESS for one in times) ** (1 / SHARPNESS)


def test_where_nothing_was_measured_a_launch_takes_as_long_as_its_warps() -> None:
    time = measure()
    assert (time.needs, time.latency, time.queueing) == ({}, 1.0, {})
    assert time.leave(warp_time=0.4) == pytest.approx(0.4), "Equation 2"


def test_what_a_full_unit_keeps_nothing_shortens() -> None:
    time = measure(dram=100 * HBM_CEILING)
    assert time.needs["dram"] == pytest.approx(0.98), "its warps wait for something"
    assert time.leave(warp_time=0.1) == pytest.approx(0.98 / join(0.98, time.latency), abs=1e-3)


def test_latency_is_what_the_busiest_unit_leaves() -> None:
    time = measure("long_scoreboard=800 selected=200", dram=60)
    need = 0.60 / HBM_CEILING
    assert time.latency == pytest.approx((1 - need**4) ** 0.25)
    assert time.leave(warp_time=0.5) == pytest.approx(join(need, time.latency / 2))
    assert time.leave(warp_time=0.5, work={"dram": 0.5}) == pytest.approx(0.5)


def test_a_queue_before_a_busy_unit_is_no_latency_and_before_an_idle_one_it_is() -> None:
    """200 of 1,000 samples stand before L1, whose work explains them, or does not."""
    busy, idle = measure(l1=60), measure(l1=20)
    assert busy.outside == pytest.approx(0.8)
    assert busy.latency == pytest.approx(0.8), "less than the 0.96 that L1 leaves"
    assert idle.outside == 1.0
    matched = {"lg_throttle": 0.1}
    assert busy.leave_latency(matched, {}) == 1.0
    assert idle.leave_latency(matched, {}) == pytest.approx(0.9)
    assert idle.leave_latency(matched, {"l1": 0.25}) == pytest.approx(0.9 - 0.1 * 0.75), "the others wait for less, too"


def test_instructions_that_go_take_their_cycles_of_issue_along() -> None:
    time = measure("long_scoreboard=800 selected=200")
    assert time.leave_latency({}, {"issue": 0.5}) == pytest.approx(0.9)
    assert time.leave_latency({"selected": 0.2}, {"issue": 0.5}) == pytest.approx(0.8), "not twice"


def test_the_ends_of_a_launch_stay() -> None:
    time = measure(**{"sm__cycles_active.max": 600.0, "sm__cycles_elapsed.max": 1000.0})
    assert time.ends_ratio == pytest.approx(0.4)
    assert time.leave(warp_time=0.5) == pytest.approx(0.4 + 0.6 * 0.5)
    assert measure(duration_ns=4000).ends_ratio == pytest.approx(0.25), "an empty launch takes a microsecond"


def test_more_sms_share_the_work_of_sms_and_not_that_of_the_chip() -> None:
    time = measure(l1=40, dram=40)
    dram, l1 = 0.40 / HBM_CEILING, 0.40 / L1_CEILING
    assert time.needs["l1"] == pytest.approx(l1)
    half = join(dram, l1 / 2, time.latency / 2)
    assert time.leave(spread=2) == pytest.approx(half / join(dram, l1, time.latency))


def test_stages_count_together_and_units_of_one_stage_do_not() -> None:
    time = measure(l1=60, dram=60)
    dram, l1 = 0.60 / HBM_CEILING, 0.60 / L1_CEILING
    assert time.latency == pytest.approx(min(0.8, (1 - dram**4 - l1**4) ** 0.25)), (
        "200 of 1,000 samples stand in L1's queue"
    )
    assert time.leave(work={"l1": 0.5}) == pytest.approx(
        join(dram, l1 / 2, time.latency) / join(dram, l1, time.latency)
    )
    both = measure(l1=95, dram=90)
    assert both.others < 0.5, "where there is no time for both, the busiest one is what counts"
    assert join(both.needs["l1"], both.others * both.needs["dram"]) == pytest.approx(0.98, abs=1e-2)


def test_of_a_part_of_the_gpu_as_a_whole_the_unit_that_keeps_most_counts() -> None:
    time = measure(sm=80)
    assert time.leave_least({}) == ("sm", pytest.approx(0.8))
    assert time.leave_least({"issue": 0.5}) == ("sm", pytest.approx(0.4))


@given(st.floats(1, 110), st.floats(1, 110), st.floats(0, 1), st.floats(0, 1), st.floats(1, 16))
def test_more_that_goes_never_leaves_more(dram: float, l1: float, warp_time: float, work: float, spread: float) -> None:
    time = measure(dram=dram, l1=l1)
    assert time.leave() == pytest.approx(1.0), "a change of nothing"
    left = time.leave(warp_time=warp_time, work={"l1": work}, spread=spread)
    assert 0 <= left <= 1 + 1e-9
    assert time.leave(warp_time=warp_time / 2, work={"l1": work}, spread=spread) <= left
    assert time.leave(warp_time=warp_time, work={"l1": work / 2}, spread=spread) <= left
    assert time.leave(warp_time=warp_time, work={"l1": work}, spread=2 * spread) <= left
    assert left >= min(time.needs["dram"], 1.0) * 0.8 - 1e-9, "what DRAM keeps of a launch that was as long as it"


def test_warps_that_queue_for_one_slice_of_l2_wait_for_all_of_the_time() -> None:
    """Atomics take only a part of the cycles of the slice, as far as these are counted; the launch waits for that slice alone."""
    text = FEW_ADDRESSES.format(mask="0xf")
    shares = f"breakdown:gpu__compute_memory_throughput{SHARE}"
    dram = f"dram__cycles_active{SHARE}"
    metrics = {"sm__cycles_elapsed.max": 1500.0, shares: dram, dram: 5.0}
    time = measure_launch_time(make_subject(write_kernel(text, metrics=metrics, duration_ns=1e6)))
    assert time.needs["l2_slice"] > 0.95
    assert time.leave(work={"l2_slice": 0.1}, warp_time=0.0) == pytest.approx(0.1, abs=0.02)


def test_fewer_warps_wait_longer_and_uneven_blocks_keep_a_unit_longer() -> None:
    time = measure("long_scoreboard=800 selected=200", l1=60)
    need = time.needs["l1"]
    assert time.leave(filling=Filling(warps=0.5)) == pytest.approx(join(need, 2 * time.latency))
    assert time.leave(filling=Filling(evenness=0.8)) == pytest.approx(join(need / 0.8, time.latency))


def test_a_grid_fills_the_gpu_by_its_waves_and_its_blocks_by_their_resources() -> None:
    """108 SMs hold 8 blocks of 256 threads each: 864 blocks are a wave."""
    text = "    B-:R-:W-:-:S05  EXIT  # k.cu:1 | selected=1"
    metrics = {"launch__registers_per_thread": 32.0, "launch__sm_count": 108.0}
    shared = {"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 0.0}
    kernel = write_kernel(
        text, metrics={**metrics, **shared}, compute_capability=(8, 0), grid=(864, 1, 1), block=(256, 1, 1)
    )
    subject = make_subject(kernel)
    assert compare_filling(subject, 864) == AS_NOW
    few = compare_filling(subject, 135)
    assert few.warps == pytest.approx(135 / 864)
    assert few.evenness == pytest.approx(135 / 108 / 2)
    wide = BlockShape(threads=256, registers_per_thread=128, shared_bytes=0)
    assert compare_filling(subject, 864, wide).warps == pytest.approx(2 / 8)


def test_the_first_warps_wait_before_data_stream_and_wider_loads_do_not_shorten_that() -> None:
    """Warps wait 1,000 of 10,000 cycles for code and constants at first, and an access of an idle memory 530."""
    samples = "long_scoreboard=700 imc_miss=60 no_instructions=40 selected=200"
    counts = {"sm__cycles_elapsed.max": 10_000.0, "launch__waves_per_multiprocessor": 4.0}
    full, none = measure(samples, dram=60, **counts), measure(samples, dram=60)
    need = 0.60 / HBM_CEILING
    assert none.fill_ratio == 0.0, "the waves are not known"
    assert full.fill_ratio == pytest.approx(0.1 + 0.053)
    assert full.needs["dram"] == pytest.approx(full.fill_ratio + need)
    assert full.leave(warp_time=0.1) > none.leave(warp_time=0.1), "it was nearer to the memory's rate all the time"
    assert full.leave(work={"dram": 0.0}, warp_time=0.0) == pytest.approx(full.fill_ratio, abs=0.01), (
        "and what is left of it waits as long"
    )
