"""Waves and balance where something is missing or absurd; the cases with numbers are in tests/cases/load_balance.md."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.diagnosis.analyses.balance import Waves, list_grid_sizes
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.questions import load_balance
from gpa_lsp.kernel.model import Kernel
from tests.analyses.checked_answers import check_answer
from tests.analyses.written_launches import NO_SHARED, TEXT, launches
from tests.rows.written import write_kernel


def ask(kernel: Kernel) -> Answer:
    answer = load_balance.ANALYSIS.answer(KernelFacts(kernel, None, None))
    check_answer(answer)
    return answer


def write(grid: int = 64, **metrics: float) -> Kernel:
    """Blocks of 256 threads, of which an SM holds 8, on 4 SMs: a wave is 32 blocks."""
    return write_kernel(
        TEXT, compute_capability=(8, 0), grid=(grid, 1, 1), block=(256, 1, 1), metrics={**NO_SHARED, **metrics}
    )


def test_uneven_sms_weigh_by_what_evening_them_out_would_save():
    """The mean SM works 5,000 of the 10,000 cycles of the busiest, and the launch takes 12,500: 5,000 / 12,500."""
    cycles = {
        "sm__cycles_active.min": 0.0,
        "sm__cycles_active.avg": 5000.0,
        "sm__cycles_active.max": 10000.0,
        "sm__cycles_elapsed.max": 12500.0,
        "sm__inst_executed.avg": 100.0,
        "sm__inst_executed.max": 250.0,
    }
    (said,) = (finding for finding in ask(write(**cycles)).findings if "average SM is active" in finding.text)
    assert said.text == (
        "The average SM is active for 50 % of the cycles of the busiest, and one has no work at all; the busiest executes 2.50× the mean number of "
        "instructions. An even load would save 40 % of the time."
    )
    assert (said.weight, said.share_ratio) == (Weight.HIGH, 0.4)


def test_schedulers_without_warps_are_told():
    cycles = {
        "sm__cycles_active.avg": 1000.0,
        "sm__cycles_active.max": 1000.0,
        "smsp__cycles_active.avg": 500.0,
        "smsp__cycles_active.max": 1000.0,
    }
    (said,) = (finding for finding in ask(write(**cycles)).findings if "scheduler" in finding.text)
    assert said.text == "A scheduler has a warp in 50 % of the active cycles of its SM."
    assert said.share_ratio == 0.5


def test_a_busy_slice_weighs_more_than_an_idle_one():
    uneven = {"lts__t_sectors.avg": 100.0, "lts__t_sectors.max": 150.0}
    (said,) = (finding for finding in ask(write(**uneven)).findings if "slices" in finding.text)
    assert said.weight is Weight.PLAIN
    busy = {**uneven, "lts__t_sectors.max.pct_of_peak_sustained_elapsed": 80.0}
    (said,) = (finding for finding in ask(write(**busy)).findings if "slices" in finding.text)
    assert said.weight is Weight.HIGH
    assert "at 80 % of its peak" in said.text
    idle = {**uneven, "lts__t_sectors.max.pct_of_peak_sustained_elapsed": 2.0}
    assert not [finding for finding in ask(write(**idle)).findings if "slices" in finding.text]


def test_a_mean_alone_bounds_how_long_sms_were_idle():
    """33 blocks of 32 at once: half the time by waves. But SMs were active for 96 % of it and full for 90 % of that: 1 − 0.96 · 0.9 is left."""
    measured = {
        "sm__cycles_active.avg": 9600.0,
        "sm__cycles_elapsed.max": 10000.0,
        "sm__maximum_warps_per_active_cycle_pct": 100.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 90.0,
    }
    answer = ask(write(grid=33, **measured))
    (said,) = (finding for finding in answer.findings if "wave" in finding.text)
    assert "After 1 whole wave comes a tail of 1 of 32 blocks." in said.text
    assert "costs 8.3 % of the time if an SM's throughput does not depend on its number of blocks" in said.text
    assert "48 % if a block's duration does not" in said.text
    assert "between 4.0 % and 14 %" in said.text
    assert any("sm__cycles_active.max" in missing.metrics for missing in answer.missing)


def test_clusters_make_waves_smaller():
    kernel = write(grid=64, launch__cluster_size=4.0, launch__cluster_max_active=4.0)
    assert ask(kernel).summary.startswith("64 blocks are 4 waves of 16 (4 per SM on 4 SMs)")


def test_without_rules_the_reports_own_waves_are_taken():
    kernel = replace(write(grid=64, launch__waves_per_multiprocessor=0.5), architecture=None)
    assert ask(kernel).summary.startswith("64 blocks are 0.500 waves of 128")


def test_without_a_launch_nothing_is_known():
    answer = ask(replace(write(), launches=()))
    assert not answer.is_known
    assert answer.summary == "The load is unknown: nothing was launched."


def test_a_grid_without_blocks_has_no_waves():
    kernel = write()
    answer = ask(replace(kernel, launches=(replace(kernel.launches[0], grid=(0, 0, 0)),)))
    assert answer.missing[0].why == "the grid has no blocks"


def test_grids_of_other_launches_are_listed():
    kernel = write(grid=64)
    other = replace(kernel.launches[0], index=1, grid=(40, 1, 1))
    answer = ask(replace(kernel, launches=(kernel.launches[0], other)))
    (grids,) = (table for table in answer.tables if table.title == "Grids of all launches")
    assert [(row[0], row[1], row[-1]) for row in grids.rows] == [(64, 2.0, 1), (40, 1.25, 1)]
    assert grids.current_row == 0


def test_of_many_launches_only_the_first_are_compared():
    kernel = write(grid=64)
    many = tuple(replace(kernel.launches[0], index=index, grid=(64 + index, 1, 1)) for index in range(250))
    (grids,) = (table for table in ask(replace(kernel, launches=many)).tables if table.title == "Grids of all launches")
    assert grids.note.endswith("50 later launches are left out.")
    assert len(grids.rows) == 50


waves = st.builds(
    Waves, blocks=st.integers(1, 10**12), sm_count=st.integers(1, 200), capacity_blocks=st.integers(1, 10_000)
)


@given(waves)
def test_waves_add_up(one: Waves):
    assert one.whole * one.capacity_blocks + one.last_blocks == one.blocks
    assert one.rounds - one.whole == (1 if one.last_blocks else 0)
    assert 0 < one.efficiency_ratio <= 1
    assert 0 < one.balance_ratio <= 1
    assert (one.efficiency_ratio == 1) == (one.last_blocks == 0)
    assert 0 <= one.lost_by_waves_ratio < 1
    assert 0 <= one.lost_by_sms_ratio < 1


@given(waves)
def test_the_present_grid_is_among_those_compared(one: Waves):
    assert one.blocks in list_grid_sizes(one)
    assert one.sm_count in list_grid_sizes(one)
    whole = one.rounds * one.capacity_blocks
    assert whole in list_grid_sizes(one)


@given(launches)
def test_absurd_launches_get_an_answer(kernel: Kernel):
    ask(kernel)
    ask(replace(kernel, architecture=None))
