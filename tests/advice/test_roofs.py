"""How busy the memory is: names of several profiler versions, what binds, and when bandwidth is the limit."""

import pytest

from gpa_lsp.advice.roofs import MemoryLevel, list_units, measure_roofs, measure_sm_use
from gpa_lsp.advice.subject import Subject, build_subject
from gpa_lsp.blame.blame import blame_kernel
from gpa_lsp.device.model import GDDR_CEILING, HBM_CEILING, L1_CEILING, L2_CEILING, find_dram_ceiling
from tests.rows.written import write_kernel

DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"
L1_ACTIVE = "l1tex__throughput.avg.pct_of_peak_sustained_active"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
ANY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def make_subject(metrics: dict[str, float], throttled: int = 0) -> Subject:
    kernel = write_kernel(
        f"""
        B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | lg_throttle={throttled} selected=10
        B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard={90 - throttled}
        B-:R-:W-:-:S05  EXIT
        """,
        metrics=metrics,
    )
    return build_subject(kernel, blame_kernel(kernel))


def test_the_level_that_would_be_full_first_binds():
    """L1 is busier than DRAM, but DRAM sustains less of its peak."""
    roofs = measure_roofs(make_subject({DRAM: 60.0, L2: 20.0, L1: 66.0}))
    assert roofs.binding is not None
    assert roofs.binding.level is MemoryLevel.DRAM
    assert roofs.largest_speedup == pytest.approx(HBM_CEILING / 0.6)
    assert [use.level for use in roofs.levels] == [MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1]
    assert not roofs.is_bandwidth_bound
    assert roofs.words == "DRAM runs at 60 % of peak"


@pytest.mark.parametrize("percent", [-5.0, 1e300])
def test_what_no_counter_can_say_was_not_measured(percent: float):
    found = make_subject({DRAM: percent, "sm__throughput.avg.pct_of_peak_sustained_elapsed": percent})
    assert measure_roofs(found).levels == ()
    assert measure_sm_use(found) is None


def test_a_level_that_is_full_leaves_nothing():
    roofs = measure_roofs(make_subject({DRAM: 95.7, L2: 30.8}))
    assert roofs.largest_speedup == 1.0
    assert roofs.is_bandwidth_bound
    assert roofs.words == "DRAM already runs at 96 % of peak"


@pytest.mark.parametrize(
    ("metrics", "level", "ratio", "ceiling"),
    [
        ({"dram__throughput.avg.pct_of_peak_sustained_elapsed": 40.0}, MemoryLevel.DRAM, 0.4, HBM_CEILING),
        ({"dram__cycles_active.avg.pct_of_peak_sustained_elapsed": 30.0}, MemoryLevel.DRAM, 0.3, HBM_CEILING),
        ({"lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 50.0}, MemoryLevel.L2, 0.5, L2_CEILING),
        ({L1: 50.0, L1_ACTIVE: 90.0}, MemoryLevel.L1, 0.5, L1_CEILING),
        ({L1_ACTIVE: 90.0}, MemoryLevel.L1, 0.9, L1_CEILING),
        ({ANY: 44.0}, MemoryLevel.ANY, 0.44, HBM_CEILING),
    ],
)
def test_metrics_of_several_versions_are_read(metrics, level, ratio, ceiling):
    (use,) = measure_roofs(make_subject(metrics)).levels
    assert (use.level, use.achieved_ratio, use.ceiling_ratio) == (level, pytest.approx(ratio), ceiling)


def test_a_share_of_active_cycles_counts_for_the_part_the_sms_were_active():
    metrics = {L1_ACTIVE: 80.0, "sm__cycles_active.avg": 300.0, "gpc__cycles_elapsed.max": 1200.0}
    use = measure_roofs(make_subject(metrics)).find(MemoryLevel.L1)
    assert use is not None
    assert use.achieved_ratio == pytest.approx(0.2)


def test_the_whole_is_not_read_beside_its_parts():
    roofs = measure_roofs(make_subject({DRAM: 10.0, ANY: 90.0}))
    assert roofs.find(MemoryLevel.ANY) is None


def test_full_queues_say_so_without_any_metric():
    roofs = measure_roofs(make_subject({}, throttled=60))
    assert roofs.binding is None
    assert roofs.largest_speedup is None
    assert roofs.is_bandwidth_bound
    assert roofs.throttle_ratio == pytest.approx(0.6)
    assert roofs.words == "60 % of the samples are stalled on full memory queues"


@pytest.mark.parametrize(
    ("filled_by", "ratio"),
    [("LDS R2, [R4]", 0.6), ("I2F R2, R4", 0.0), ("MUFU.RCP R2, R4", 0.0), ("SHFL.IDX PT, R2, R4, R5, R6", 0.0)],
)
def test_a_queue_is_the_memory_s_where_memory_instructions_fill_it(filled_by, ratio):
    kernel = write_kernel(f"{filled_by}  # k.cu:3 | mio_throttle=60 selected=10 | x=10\nEXIT  # - | selected=30 | x=10")
    roofs = measure_roofs(build_subject(kernel, blame_kernel(kernel)))
    assert roofs.throttle_ratio == pytest.approx(ratio)
    assert roofs.is_bandwidth_bound == (ratio > 0)


def test_nothing_measured_says_nothing():
    roofs = measure_roofs(make_subject({}))
    assert roofs.levels == ()
    assert roofs.words == ""
    assert not roofs.is_bandwidth_bound
    assert measure_sm_use(make_subject({})) is None


def test_the_units_are_the_measured_levels_and_the_sms():
    subject = make_subject({DRAM: 60.0, L2: 20.0, SM: 31.5})
    units = list_units(subject, measure_roofs(subject))
    assert [(unit.name, unit.achieved_ratio, unit.ceiling_ratio) for unit in units] == [
        ("DRAM", pytest.approx(0.6), HBM_CEILING),
        ("L2", pytest.approx(0.2), L2_CEILING),
        ("SM", pytest.approx(0.315), 1.0),
    ]
    bare = make_subject({})
    assert list_units(bare, measure_roofs(bare)) == ()


def test_stacked_memory_sustains_less_of_its_peak_than_graphics_memory():
    assert find_dram_ceiling(4096) == HBM_CEILING
    assert find_dram_ceiling(256) == GDDR_CEILING
    assert find_dram_ceiling("unknown") == find_dram_ceiling(0) == HBM_CEILING
