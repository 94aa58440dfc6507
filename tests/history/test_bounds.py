"""The history stays small."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.report.history.model import HistoryLimits
from gpa_lsp.report.history.store import History
from tests.conftest import examples
from tests.history.recordings import find_baselines, make_key, make_recording

FEW = HistoryLimits(runs_per_kernel=3)
SMALL = HistoryLimits(database_bytes=400_000)


def noise(seed: int, size: int = 20_000) -> str:
    return random.Random(seed).randbytes(size // 2).hex()


def list_times(history: History) -> list[int]:
    """Seconds after noon, latest first."""
    return [int(run.measurement.session.rsplit(" ", 1)[1]) for run in history.list_runs()]


def test_of_one_kernel_the_oldest_measurements_go_first(tmp_path: Path) -> None:
    with History(tmp_path / "history.db", limits=FEW) as history:
        for measured in (5, 1, 4, 2, 6):
            history.record(make_recording(measured))
        assert list_times(history) == [6, 5, 4]
        history.record(make_recording(9, key=make_key(name="other")))
        assert list_times(history) == [9, 6, 5, 4]


def test_an_old_measurement_is_there_when_it_is_looked_at(tmp_path: Path) -> None:
    with History(tmp_path / "history.db", limits=FEW) as history:
        for measured in (5, 6, 7, 1):
            run = history.record(make_recording(measured))
        assert history.find_run(run.run_id) == run
        assert list_times(history) == [7, 6, 1]


def test_a_pinned_run_stays_however_many_come_after(tmp_path: Path) -> None:
    with History(tmp_path / "history.db", limits=FEW) as history:
        history.pin(history.record(make_recording(0)).run_id)
        for measured in range(1, 8):
            history.record(make_recording(measured))
        assert list_times(history) == [7, 6, 0]


def test_the_file_stays_below_its_limit_and_keeps_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with History(path, limits=SMALL) as history:
        pinned = history.record(make_recording(0, key=make_key(name="pinned"), text=noise(0)))
        history.pin(pinned.run_id)
        for measured in range(1, 80):
            history.record(make_recording(measured, key=make_key(name=f"k{measured % 7}"), text=noise(measured)))
            assert path.stat().st_size <= SMALL.database_bytes
        times = list_times(history)
        assert history.read_lines(pinned).files[0].text == noise(0)
    assert path.stat().st_size <= SMALL.database_bytes
    assert times[-1] == 0
    assert times[:-1] == list(range(79, 79 - len(times) + 1, -1))
    assert len(times) > 10


def test_without_the_limit_the_same_runs_would_take_more(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with History(path) as history:
        for measured in range(80):
            history.record(make_recording(measured, text=noise(measured)))
    assert path.stat().st_size > 2 * SMALL.database_bytes


def test_where_everything_is_pinned_nothing_is_lost(tmp_path: Path) -> None:
    with History(tmp_path / "history.db", limits=HistoryLimits(database_bytes=50_000)) as history:
        for measured in range(12):
            history.pin(history.record(make_recording(measured, key=make_key(name=f"k{measured}"))).run_id)
            history.record(make_recording(100 + measured, key=make_key(name=f"k{measured}"), text=noise(measured)))
        assert list_times(history) == [111, *range(11, -1, -1)]


def test_a_full_history_gets_smaller_when_its_limit_does(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with History(path) as history:
        for measured in range(80):
            history.record(make_recording(measured, text=noise(measured)))
    with History(path, limits=SMALL) as history:
        history.record(make_recording(80))
        assert list_times(history)[0] == 80
    assert path.stat().st_size <= SMALL.database_bytes


@examples(60)  # every example writes a file
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.booleans()), max_size=25))
def test_any_order_of_runs_and_pins_keeps_to_the_bound(tmp_path_factory, steps: list[tuple[int, int, bool]]) -> None:
    with History(tmp_path_factory.mktemp("bounds") / "history.db", limits=FEW) as history:
        pinned: dict[int, int] = {}
        for measured, kernel, is_pinned in steps:
            run = history.record(make_recording(measured, key=make_key(name=f"k{kernel}")))
            if is_pinned:
                history.pin(run.run_id)
                pinned[kernel] = run.run_id
        for kernel in range(3):
            key = make_key(name=f"k{kernel}")
            assert history.count_runs(key) <= FEW.runs_per_kernel
            found = [run.run_id for run in find_baselines(history, key)]
            assert found == [pinned[kernel]] if kernel in pinned else not found
