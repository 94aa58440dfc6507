"""How busy the memory is: names of several profiler versions, and what each level leaves."""

import pytest

from gpa_lsp.diagnosis.advice.model import MemoryLevel
from gpa_lsp.diagnosis.advice.roofs import measure_levels, measure_sm_use
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.gpu.device.model import GDDR_CEILING, HBM_CEILING, L1_CEILING, L2_CEILING, find_dram_ceiling
from tests.rows.written import write_kernel

DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"
L1_ACTIVE = "l1tex__throughput.avg.pct_of_peak_sustained_active"
ANY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def make_subject(metrics: dict[str, float]) -> Subject:
    kernel = write_kernel(
        """
        B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | selected=10
        B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard=90
        B-:R-:W-:-:S05  EXIT
        """,
        metrics=metrics,
    )
    return Subject(kernel, blame_kernel(kernel))


def test_the_level_that_would_be_full_first_leaves_least():
    """L1 is a little less busy than L2, and sustains more of its peak."""
    levels = measure_levels(make_subject({DRAM: 60.0, L2: 66.0, L1: 65.0}))
    assert [use.level for use in levels] == [MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1]
    assert [use.largest_speedup for use in levels] == pytest.approx(
        [HBM_CEILING / 0.6, L2_CEILING / 0.66, L1_CEILING / 0.65]
    )


@pytest.mark.parametrize("percent", [-5.0, 1e300])
def test_what_no_counter_can_say_was_not_measured(percent: float):
    found = make_subject({DRAM: percent, "sm__throughput.avg.pct_of_peak_sustained_elapsed": percent})
    assert measure_levels(found) == ()
    assert measure_sm_use(found) is None


def test_a_level_that_is_full_leaves_nothing():
    assert measure_levels(make_subject({DRAM: 95.7}))[0].largest_speedup == 1.0


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
    (use,) = measure_levels(make_subject(metrics))
    assert (use.level, use.achieved_ratio, use.ceiling_ratio) == (level, pytest.approx(ratio), ceiling)


def test_a_share_of_active_cycles_counts_for_the_part_the_sms_were_active():
    metrics = {L1_ACTIVE: 80.0, "sm__cycles_active.avg": 300.0, "gpc__cycles_elapsed.max": 1200.0}
    (use,) = measure_levels(make_subject(metrics))
    assert use.level is MemoryLevel.L1
    assert use.achieved_ratio == pytest.approx(0.2)


def test_the_whole_is_not_read_beside_its_parts():
    assert [use.level for use in measure_levels(make_subject({DRAM: 10.0, ANY: 90.0}))] == [MemoryLevel.DRAM]


def test_nothing_measured_says_nothing():
    assert measure_levels(make_subject({})) == ()
    assert measure_sm_use(make_subject({})) is None


def test_stacked_memory_sustains_less_of_its_peak_than_graphics_memory():
    assert find_dram_ceiling(4096) == HBM_CEILING
    assert find_dram_ceiling(256) == GDDR_CEILING
    assert find_dram_ceiling("unknown") == find_dram_ceiling(0) == HBM_CEILING
