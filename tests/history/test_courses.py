"""Runs one after the other: the same as asking for the run before again and again, judged by the spread between launches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.history.model import Commit, Recording, Run, RunFilter
from gpa_lsp.report.history.past import build_course, build_courses, build_overview, find_courses
from gpa_lsp.report.history.recording import build_recording
from gpa_lsp.report.history.store import History
from tests.history.recordings import make_key, make_recording, open_history
from tests.history.test_remember import make_kernel, surround


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(tmp_path) as opened:
        yield opened


def at(recording: Recording, digest: str) -> Recording:
    measurement = replace(recording.measurement, commit=Commit(digest=digest * 40))
    return replace(recording, measurement=measurement)


def ask_again_and_again(history: History, run: Run) -> list[Run]:
    found = []
    while (previous := history.find_previous(run)) is not None:
        found.append(previous)
        run = previous
    return found


def test_times_regressions_and_commits(history: History) -> None:
    runs = [
        history.record(at(make_recording(0, times_ns=(2e6,)), "a")),
        history.record(at(make_recording(10, times_ns=(2.02e6,)), "a")),
        history.record(at(make_recording(20, times_ns=(3e6,)), "b")),
        history.record(make_recording(30, times_ns=(1e6,))),
    ]
    history.pin(runs[0].run_id)
    course = build_course(history, runs[-1])
    assert course.unit == "ns"
    assert [run.time for run in course.runs] == [2e6, 2.02e6, 3e6, 1e6]
    assert [run.verdict for run in course.runs] == [None, Verdict.NO_CHANGE, Verdict.SLOWER, Verdict.FASTER]
    assert [run.number for run in course.regressions] == [runs[2].run_id]
    assert [course.begins_commit(position) for position in range(4)] == [True, False, True, False]
    assert [commit.short for commit in course.commits] == ["a" * 8, "b" * 8]
    assert [run.is_baseline for run in course.runs] == [True, False, False, False]
    assert course.is_made_good(2)
    assert not course.is_made_good(3)
    assert course.runs[2].change_ratio == pytest.approx(3 / 2.02 - 1)


def test_ranges_are_what_changes_are_judged_by(history: History) -> None:
    history.record(make_recording(0, times_ns=(2e6, 2e6, 2e6)))
    run = history.record(make_recording(10, times_ns=(2.00e6, 2.01e6, 2.02e6)))
    first, second = build_course(history, run).runs
    assert (first.low, first.high, first.launch_count) == (2e6, 2e6, 3)
    assert second.is_gain is False
    assert second.low == pytest.approx(2.01e6 - 2 * 1e4 / 3**0.5)
    assert second.high == pytest.approx(2.01e6 + 2 * 1e4 / 3**0.5)
    lone = build_course(history, history.record(make_recording(0, key=make_key("lone"), times_ns=(1e6,)))).runs[0]
    assert (lone.low, lone.high) == (pytest.approx(1e6 - 15.5e3), pytest.approx(1e6 + 15.5e3))


def test_work_that_may_be_other_is_no_regression(history: History) -> None:
    history.record(make_recording(0, times_ns=(2e6,)))
    run = history.record(make_recording(10, times_ns=(9e6,), grid=(1024, 1, 1), executed=2000.0))
    course = build_course(history, run)
    assert course.regressions == ()
    assert course.runs[1].note == "work may differ: grid 128 → 1,024, 2.00× the instructions"
    assert course.runs[1].change_ratio == pytest.approx(3.5)


def test_each_size_is_compared_with_the_last_run_of_its_own(history: History) -> None:
    runs = [
        history.record(
            make_recording(10 * second, times_ns=(1e3 * blocks,), grid=(blocks, 1, 1), executed=10.0 * blocks)
        )
        for second, blocks in enumerate((128, 4096, 128))
    ]
    assert [one.number for one in build_course(history, runs[2]).runs] == [1, 3]
    assert [one.number for one in build_course(history, runs[1]).runs] == [2]
    found = build_courses(history, RunFilter(), None)
    assert sorted([one.number for one in course.runs] for _, course in found) == [[1, 3], [2]]
    assert all(course.regressions == () for _, course in found)
    ((rows, _),) = build_overview(history, RunFilter(), None)
    assert [row.previous and row.previous[0].number for row in rows] == [1, 1, None]
    assert rows[1].previous is not None
    assert rows[1].previous[1].verdict is Verdict.OTHER_WORK


def test_cycles_where_only_they_are_known(history: History) -> None:
    history.record(make_recording(0, times_ns=(), cycles=(5000.0,)))
    run = history.record(make_recording(10, times_ns=(), cycles=(9000.0,)))
    course = build_course(history, run)
    assert (course.unit, [one.time for one in course.runs]) == ("cycles", [5000.0, 9000.0])
    assert course.runs[1].is_regression


def test_a_run_without_a_time_stays_in_its_place(history: History) -> None:
    history.record(make_recording(0, times_ns=(2e6,)))
    history.record(make_recording(10, times_ns=()))
    run = history.record(make_recording(20, times_ns=(2e6,)))
    course = build_course(history, run)
    assert [one.time for one in course.runs] == [2e6, None, 2e6]
    assert course.runs[1].low is None
    assert len(course.timed) == 2


@pytest.mark.parametrize("most", [1, 2, 3, 5, 50])
def test_predecessors_are_those_of_one_question_after_the_other(history: History, most: int) -> None:
    for second in range(0, 60, 10):
        history.record(make_recording(second))
    for second in range(60, 120, 10):  # an autotuner's variants, told apart by their code
        for variant in ("x", "y"):
            recording = make_recording(second, identity=f"{second}{variant}", code=variant, session=f"tuned {second}")
            history.record(recording)
    for second in range(120, 160, 10):  # other template arguments, the only ones in their profiles
        history.record(make_recording(second, key=make_key(f"void scale<{second}>(float*)")))
    for second in range(160, 200, 10):  # directives whose lines move
        text = "new line\n" * (second - 160) + "first\nsecond\nthird\nfourth"
        history.record(make_recording(second, key=make_key(f"nvkernel_main__F1L{second - 158}_2"), text=text))
    for run in history.list_runs():
        expected = ask_again_and_again(history, run)[:most]
        assert [one.run_id for one in history.list_predecessors(run, most)] == [one.run_id for one in expected]


def test_variants_of_one_profile_have_a_course_each(history: History) -> None:
    for second in (0, 10, 20):
        for variant, time in (("x", 1e6), ("y", 5e6)):
            history.record(
                make_recording(
                    second, identity=f"{second}{variant}", code=variant, session=f"tuned {second}", times_ns=(time,)
                )
            )
    history.record(make_recording(30, key=make_key("other")))
    found = build_courses(history, RunFilter(), None)
    assert [one.measurement.name for one, _ in found] == ["other", "saxpy(float*)", "saxpy(float*)"]
    assert sorted([run.time for run in course.runs] for _, course in found[1:]) == [[1e6] * 3, [5e6] * 3]


def test_runs_of_a_kernel_whose_name_changed_are_counted_on(history: History) -> None:
    """A chart has a place for each: by the number of its own name each of them is the first."""
    for size in (64, 128, 256):
        history.record(make_recording(size, key=make_key(f"void scale<{size}>(float*)")))
    ((_, course),) = build_courses(history, RunFilter(), None)
    assert [run.number for run in course.runs] == [1, 2, 3]


def test_a_page_shows_as_many_runs_as_were_asked_for(history: History) -> None:
    for second in range(0, 100, 10):
        history.record(make_recording(second))
    ((_, course),) = build_courses(history, RunFilter(), 3)
    assert [run.number for run in course.runs] == [8, 9, 10]
    assert course.run_count == 10


def test_a_report_finds_its_past_without_being_recorded(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    kernels = [make_kernel(second, time, "FADD R2, R2, R3") for second, time in ((0, 4e6), (10, 3e6), (20, 2e6))]
    assert find_courses(kernels, path) == {}
    assert not path.exists()
    with History(path) as history:
        for kernel in kernels[:2]:
            history.record(build_recording(kernel, surround(kernel)))
    found = find_courses(kernels, path)
    assert list(found) == [1]  # the first has no past, the third was not recorded
    assert [run.time for run in found[1].runs] == [4e6, 3e6]
