"""Waves and balance where something is missing or absurd; the cases with numbers are in tests/cases/load_balance.md."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.occupancy import Waves, list_grid_sizes
from gpa_lsp.diagnosis.analyses.questions import load_balance
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.model import Kernel
from tests.analyses.checked_answers import check_answer
from tests.analyses.written_launches import NO_SHARED, TEXT
from tests.rows.written import write_kernel


def ask(kernel: Kernel) -> Answer:
    answer = load_balance.ANALYSIS.ask(Subject(kernel))
    check_answer(answer)
    return answer


def write(grid: int = 64, **metrics: float) -> Kernel:
    """Blocks of 256 threads, of which an SM holds 8, on 4 SMs: a wave is 32 blocks."""
    return write_kernel(
        TEXT, compute_capability=(8, 0), grid=(grid, 1, 1), block=(256, 1, 1), metrics={**NO_SHARED, **metrics}
    )


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
