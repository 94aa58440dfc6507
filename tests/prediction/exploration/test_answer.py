import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.execution.prediction.exploration.answer import answer_exploration, describe_trial, find_trial
from gpa_lsp.execution.prediction.exploration.explore import Exploration
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration, rank


def make(x: int, seconds: float | None, *, loads: float = 100.0, why_not: str = "") -> RankedConfiguration:
    return RankedConfiguration(
        configuration=Configuration(block=(x, 1, 1)),
        seconds=seconds,
        limiter="DRAM" if seconds else "",
        dram_load_bytes=None if seconds is None else loads,
        dram_store_bytes=None if seconds is None else 0.0,
        why_not=why_not,
    )


SPACE = rank(
    [make(32, 4e-6), make(64, 2e-6, loads=69.0), make(128, 3e-6), make(2000, None, why_not="too many threads")]
)
FOUND = Exploration(kernel="k", device="V100", mode="default", ranked=SPACE, current=Configuration(block=(32, 1, 1)))


def test_the_best_is_offered_with_what_it_saves():
    trial = find_trial(FOUND)
    assert trial is not None
    assert trial.speedup == pytest.approx(2.0)
    assert trial.dram_change_ratio == pytest.approx(-0.31)
    assert describe_trial(trial) == "try block 64: predicted 2.00× as fast, 31 % less DRAM traffic"


def test_what_gains_too_little_is_not_offered():
    close = replace(FOUND, ranked=rank([make(32, 2.05e-6), make(64, 2e-6)]))
    assert find_trial(close) is None
    finding, checked = answer_exploration(close).findings
    assert "check the results" in checked.text
    assert finding.weight is Weight.GOOD
    assert "rank 2: no configuration is predicted to be more than 3 % faster" in finding.text


@pytest.mark.parametrize("current", [None, Configuration(block=(7, 1, 1)), Configuration(block=(2000, 1, 1))])
def test_without_a_prediction_of_the_present_nothing_is_offered(current):
    assert find_trial(replace(FOUND, current=current)) is None


def test_the_table_has_every_prediction_and_marks_the_present():
    answer = answer_exploration(FOUND)
    table, failed = answer.tables
    assert [row[:2] for row in table.rows] == [(1, "64"), (2, "128"), (3, "32")]
    assert failed.rows == (("2000", "too many threads"),)
    assert table.current_row == 2
    assert [row[3] for row in table.rows] == pytest.approx([1.0, 1.5, 2.0])
    (by_width,) = answer.charts
    assert (by_width.series[0].xs, by_width.current_x) == ((32.0, 64.0, 128.0), 32.0)
    assert by_width.x_label == "threads of a block in x"


def test_configurations_of_one_prediction_share_a_row():
    ranked = rank([make(64, 1e-6), make(96, 1e-6), make(128, 1e-6), make(160, 1e-6), make(32, 2e-6)])
    found = replace(FOUND, ranked=ranked, current=Configuration(block=(160, 1, 1)))
    table = answer_exploration(found).tables[0]
    assert [row[:2] for row in table.rows] == [(1, "160, 64, 96 and 1 more"), (5, "32")]
    assert table.current_row == 0


def test_a_short_table_has_the_fastest_and_the_present():
    table = answer_exploration(FOUND, most_rows=1).tables[0]
    assert [row[:2] for row in table.rows] == [(1, "64"), (3, "32")]
    assert table.current_row == 1
    assert "Not shown: 1 more configuration." in table.note


def test_a_space_of_failures_says_so():
    answer = answer_exploration(replace(FOUND, ranked=(make(9, None, why_not="no"),)))
    assert not answer.is_known
    assert answer.tables[0].rows == (("9", "no"),)


def test_failures_with_one_reason_share_a_row():
    failed = [make(64 + x, None, why_not="too many threads") for x in range(3)]
    space = rank([*SPACE, make(9, None, why_not="no"), *failed])
    table = answer_exploration(replace(FOUND, ranked=space)).tables[1]
    assert table.rows == (("64, 65, 66 and 1 more", "too many threads"), ("9", "no"))
    short = answer_exploration(replace(FOUND, ranked=space), most_rows=1).tables[1]
    assert (short.rows, short.note) == (table.rows[:1], "Not shown: 1 more reason.")


def test_a_flat_space_is_not_said_to_have_a_winner():
    flat = replace(FOUND, ranked=rank([make(32, 2.01e-6), make(64, 2e-6)]))
    assert answer_exploration(flat).summary == (
        "Of 2 configurations, none is predicted to be clearly fastest on V100; limited by DRAM."
    )


def test_a_fold_the_kernel_has_not_is_said_to_need_rewriting():
    folded = RankedConfiguration(configuration=Configuration(block=(64, 1, 1), fold=(1, 2, 1)), seconds=1e-6)
    trial = find_trial(replace(FOUND, ranked=rank([*SPACE, folded])))
    assert trial is not None
    assert trial.needs_rewriting
    assert describe_trial(trial).startswith("try block 64 fold 2y: predicted ")
    assert describe_trial(trial).endswith("once each thread of the kernel handles that many elements")
    assert not find_trial(FOUND).needs_rewriting


def test_the_only_one_that_is_predicted_is_not_called_the_fastest():
    ranked = rank([SPACE[0], *(make(number, None, why_not="no grid") for number in (2, 3))])
    summary = answer_exploration(replace(FOUND, ranked=ranked)).summary
    assert summary.startswith(f"Of 3 configurations, only {SPACE[0].configuration} is predicted on ")
