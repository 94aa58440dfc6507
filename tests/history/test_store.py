"""Runs are recorded, found, pinned, deleted and listed."""

import os
import random
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.report.history.model import Commit, KernelKey, Run, RunFilter, measure_bytes
from gpa_lsp.report.history.store import History
from tests.history.recordings import (
    HOME,
    NOON_NS,
    SECOND_NS,
    SOURCE,
    find_baselines,
    make_key,
    make_recording,
    open_history,
)


def test_a_measurement_comes_back_as_it_was(tmp_path: Path) -> None:
    recording = make_recording(times_ns=(1e6, 2e6, 3e6), cycles=(1000.0,))
    before_ns = time.time_ns()
    with open_history(tmp_path) as history:
        run = history.record(recording)
    with open_history(tmp_path) as history:
        assert history.find_run(run.run_id) == run
        assert history.read_lines(run) == recording.content
    assert run.measurement == recording.measurement
    assert before_ns <= run.recorded_ns <= time.time_ns()
    assert not run.is_baseline


def test_the_same_measurement_read_again_is_one_run(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        first = history.record(make_recording())
        again = history.record(make_recording())
        moved = history.record(make_recording(profile="/elsewhere/run.ncu-rep"))
        assert first == again
        assert history.count_runs(make_key()) == 1
    assert (moved.run_id, moved.measurement.profile) == (first.run_id, "/elsewhere/run.ncu-rep")


def test_a_second_reading_brings_figures_up_to_date_but_keeps_time_and_source(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        first = history.record(make_recording(code="", lines={2: 100}))
        edited = make_recording(text="something else", code="known", lines={2: 60, 3: 40})
        later = replace(edited, measurement=replace(edited.measurement, measured_ns=NOON_NS + 99, session="other"))
        run = history.record(later)
        assert run.run_id == first.run_id
        assert (run.measurement.measured_ns, run.measurement.session) == (NOON_NS, "session of 0")
        assert run.measurement.code_digest == "known"
        content = history.read_lines(run)
        assert content.files[0].text == SOURCE
        assert [line.line for line in content.lines] == [2, 3]
        # A reader without a disassembler knows less and takes nothing away.
        assert history.record(make_recording(code="")).measurement.code_digest == "known"


def test_a_commit_is_the_one_of_the_first_reading_that_knew_it(tmp_path: Path) -> None:
    def record(commit: Commit | None, **changes: Any) -> Commit | None:
        recording = make_recording(**changes)
        measurement = replace(recording.measurement, commit=commit)
        return history.record(replace(recording, measurement=measurement)).measurement.commit

    first, second = Commit(digest="a" * 40, subject="First"), Commit(digest="b" * 40)
    with open_history(tmp_path) as history:
        assert record(None) is None
        assert record(first) == first  # a row of before, read again while git's log still tells
        assert record(second) == first
        assert record(None, lines={2: 7}) == first  # the log was emptied, and other details are brought up to date
        assert history.count_runs(make_key()) == 1


def test_a_source_that_was_not_at_hand_is_added_by_a_later_reading(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        history.record(make_recording(text=None, lines={2: 1}))
        run = history.record(make_recording())
        assert history.read_lines(run).files[0].text == SOURCE


def test_the_previous_run_is_the_latest_one_before(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        late, early, middle = (history.record(make_recording(second)) for second in (30, 10, 20))
        assert history.find_previous(late) == middle
        assert history.find_previous(middle) == early
        assert history.find_previous(early) is None


@pytest.mark.parametrize(
    "other",
    [make_key(name="_Z5otherPf"), make_key(home="/project/copy/saxpy.cu"), make_key(device="NVIDIA A100")],
    ids=["kernel", "file", "device"],
)
def test_runs_of_something_else_are_no_past(tmp_path: Path, other) -> None:
    with open_history(tmp_path) as history:
        history.record(make_recording(0, key=other))
        run = history.record(make_recording(1))
        assert history.find_previous(run) is None
        is_same_kernel = other.mangled_name == make_key().mangled_name and other.home == HOME
        assert history.find_other_device(run) == ("NVIDIA A100" if is_same_kernel else None)


def test_variants_of_one_profile_are_told_apart_by_code_then_launch(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        small = history.record(make_recording(0, session="a", code="x", grid=(64, 1, 1)))
        large = history.record(make_recording(1, session="a", code="y", grid=(128, 1, 1)))
        same_code = history.record(make_recording(10, session="b", code="x", grid=(256, 1, 1)))
        same_launch = history.record(make_recording(11, session="b", code="z", grid=(128, 1, 1)))
        neither = history.record(make_recording(12, session="b", code="z", grid=(512, 1, 1)))
        assert history.find_previous(same_code) == small
        assert history.find_previous(same_launch) == large
        assert history.find_previous(neither) is None


def name_kernel(readable: str, home: str = HOME) -> KernelKey:
    return make_key(name=readable, home=home)


def test_a_kernel_with_another_template_argument_is_the_same_where_nothing_else_could_be_meant(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        narrow = history.record(make_recording(0, key=name_kernel("void scale<32>(float*)")))
        wide = history.record(make_recording(1, key=name_kernel("void scale<64>(float*)")))
        assert history.find_previous(wide) == narrow
        # A name of its own is believed first, however long ago.
        again = history.record(make_recording(2, key=name_kernel("void scale<32>(float*)")))
        assert history.find_previous(again) == narrow
        history.pin(narrow.run_id)
        assert history.find_baseline_of(wide) == replace(narrow, is_baseline=True)
        assert not find_baselines(history, wide.measurement.key)


def test_several_instances_in_one_profile_are_not_taken_for_one_another(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        first = history.record(make_recording(0, key=name_kernel("void scale<32>(float*)"), session="a"))
        history.pin(first.run_id)
        runs = [
            history.record(make_recording(10, key=name_kernel(f"void scale<{width}>(float*)"), session="b"))
            for width in (64, 128)
        ]
        assert [history.find_previous(run) for run in runs] == [None, None]
        assert [history.find_baseline_of(run) for run in runs] == [None, None]
        later = history.record(make_recording(20, key=name_kernel("void scale<256>(float*)"), session="c"))
        assert history.find_previous(later) is None
        elsewhere = name_kernel("void scale<512>(float*)", home="/project/other.cu")
        assert history.find_previous(history.record(make_recording(30, key=elsewhere))) is None


def test_kernels_named_by_the_line_of_their_directive_are_followed_through_edits(tmp_path: Path) -> None:
    home = "/project/weather.F90"
    before = "program\n!$acc loop\n  do i\n!$acc loop\n  do j"
    after = "! a note\n\nprogram\n!$acc loop collapse(2)\n  do i\n!$acc loop\n  do j"
    rewritten = "a\nb\nc\nd\ne\n!$acc other\nf\ng\nh"

    def record(history: History, measured: int, line: int, text: str | None) -> Run:
        key = name_kernel(f"step_{line}_gpu", home)
        return history.record(make_recording(measured, key=key, session=f"at {measured}", text=text))

    with open_history(tmp_path) as history:
        first, second = (record(history, 0, line, before) for line in (2, 4))
        history.pin(first.run_id)
        # What is on line 4 now is what was on line 2, although a kernel of that very name was there.
        moved, other = (record(history, 10, line, after) for line in (4, 6))
        assert [history.find_previous(run) for run in (moved, other)] == [replace(first, is_baseline=True), second]
        assert history.find_baseline_of(moved) == replace(first, is_baseline=True)
        assert history.find_baseline_of(other) is None
        blind = record(history, 20, 6, None)
        assert history.find_previous(blind) == other
        # A line nobody recognizes: the name is all there is. A line known to have gone elsewhere: not even that.
        assert history.find_previous(record(history, 30, 6, rewritten)) == blind
        record(history, 40, 2, before)
        record(history, 40, 4, before)
        assert history.find_previous(record(history, 50, 2, after)) is None


def test_a_pinned_run_is_the_baseline_until_another_is(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        first, second = (history.record(make_recording(measured)) for measured in (0, 1))
        assert not find_baselines(history, make_key())
        assert history.pin(first.run_id) == replace(first, is_baseline=True)
        assert find_baselines(history, make_key()) == [replace(first, is_baseline=True)]
        history.pin(second.run_id)
        assert find_baselines(history, make_key()) == [replace(second, is_baseline=True)]
        assert [run.is_baseline for run in history.list_runs()] == [True, False]
        assert history.unpin(make_key())
        assert not history.unpin(make_key())
        assert not find_baselines(history, make_key())
        assert history.count_runs(make_key()) == 2


def test_a_deleted_baseline_is_none(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        first, second = (history.record(make_recording(measured)) for measured in (0, 1))
        history.pin(first.run_id)
        history.delete([first.run_id])
        assert not find_baselines(history, make_key())
        assert history.list_runs() == (replace(second, number=1),)


@pytest.mark.parametrize("run_id", [0, -1, 77, 1 << 70])
def test_a_run_that_is_not_there_is_said_and_nothing_else_is_deleted(tmp_path: Path, run_id: int) -> None:
    with open_history(tmp_path) as history:
        run = history.record(make_recording())
        assert history.find_run(run_id) is None
        with pytest.raises(InputError, match=f"no run {run_id}"):
            history.pin(run_id)
        with pytest.raises(InputError, match=f"no run {run_id}"):
            history.delete([run.run_id, run_id])
        assert history.list_runs() == (run,)


def test_numbers_are_not_given_twice(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        first = history.record(make_recording(0))
        history.delete([first.run_id])
        assert history.record(make_recording(0)).run_id > first.run_id


def test_clearing_leaves_nothing_of_a_source_in_the_file(tmp_path: Path) -> None:
    secret = "\n".join(f"secret {number * number}" for number in range(2000))
    with open_history(tmp_path) as history:
        for measured in range(10):
            history.record(make_recording(measured, text=f"{secret}{measured}", profile="/project/secret.ncu-rep"))
        history.pin(history.list_runs()[0].run_id)
        full_bytes = measure_bytes(history.path)
        assert history.clear() == 10
        assert history.list_runs() == ()
        assert measure_bytes(history.path) < full_bytes / 2
    assert b"secret.ncu-rep" not in (tmp_path / "history.db").read_bytes()


def test_runs_are_listed_newest_first_and_by_file_folder_profile_and_name(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        one = history.record(make_recording(0, key=make_key(home="/project/a/one.cu"), profile="/profiles/1.ncu-rep"))
        two = history.record(make_recording(1, key=make_key(home="/project/ab/two.cu", name="_Z3twoPf")))
        assert history.list_runs() == (two, one)
        for paths, expected in (
            (("/project/a",), (one,)),
            (("/project/a/",), (one,)),
            (("/project/a/one.cu",), (one,)),
            (("/project",), (two, one)),
            (("/profiles",), (one,)),
            (("/profiles/1.ncu-rep", "/project/ab"), (two, one)),
            (("/",), (two, one)),
            (("/proj",), ()),
        ):
            assert history.list_runs(RunFilter(paths=paths)) == expected
        assert history.list_runs(RunFilter(name="two")) == (two,)
        assert history.list_runs(RunFilter(name="saxpy(float")) == (one,)
        assert history.list_runs(RunFilter(paths=("/project/a",), name="two")) == ()


def test_a_source_is_known_from_its_measurement_until_it_was_read(tmp_path: Path) -> None:
    def ask(history: History, second: int) -> tuple[str, ...] | None:
        return history.find_source(HOME, NOON_NS + second * SECOND_NS)

    with open_history(tmp_path) as history:
        history.record(make_recording(10, text="old\ntext", read=20))
        history.record(make_recording(30, text="new\ntext\n", read=40))
        assert [ask(history, second) for second in (9, 21, 41)] == [None, None, None]
        assert ask(history, 10) == ask(history, 20) == ("old", "text")
        assert ask(history, 35) == ("new", "text", "")
        assert history.find_source("/project/other.cu", NOON_NS + 10 * SECOND_NS) is None


def test_equal_sources_are_kept_once_and_go_with_their_last_run(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(200_000).hex()
    with open_history(tmp_path) as history:
        runs = [history.record(make_recording(measured, text=noise)) for measured in range(8)]
    used = (tmp_path / "history.db").stat().st_size
    with open_history(tmp_path) as history:
        history.delete(run.run_id for run in runs[1:])
        assert history.read_lines(runs[0]).files[0].text == noise
        history.delete([runs[0].run_id])
        assert measure_bytes(history.path) < used / 2
    assert used < 2 * len(noise)


def test_names_a_database_cannot_hold_are_no_obstacle(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        run = history.record(make_recording(key=make_key(name="\x1b[31mk\0\n", home="/p\u202e/ü.cu")))
        assert history.find_run(run.run_id) == run
        assert run.measurement.key.mangled_name == "\x1b[31mk\0\n"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX'")
def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.db"
    old_mask = os.umask(0)
    try:
        with History(path) as history:
            history.record(make_recording())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(old_mask)
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    with History(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
