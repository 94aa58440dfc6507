"""Two servers at once, and servers that are killed: nothing is lost, nothing is half there."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from gpa_lsp.report.history.store import History
from tests.conftest import ROOT
from tests.history.recordings import make_key, make_recording
from tests.patience import LIMIT_S

WRITER = """
import sys
from pathlib import Path
from gpa_lsp.report.history.store import History
from tests.history.recordings import make_key, make_recording
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for measured in range(count):
    # Opened again and again, as servers do, so that the last one out meets the first one in.
    with History(path) as history:
        mine = make_recording(measured, key=make_key(name=name), text=f"{name} {measured}" * 500)
        shared = make_recording(measured, key=make_key(name="shared"), text=f"shared {measured}" * 500)
        assert history.record(mine).measurement == mine.measurement
        assert history.record(shared).measurement == shared.measurement
        if measured % 50 == 0:
            history.pin(history.list_runs()[0].run_id)
    print(measured, flush=True)
"""

RUNS = 200


def start_writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_whole(path: Path) -> None:
    """The file is sound, and every run has its lines, its file and its source."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with History(path):
        pass  # one killed before it had made the tables leaves none
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        unused = "SELECT count(*) FROM source WHERE id NOT IN (SELECT source_id FROM run_file)"
        assert connection.execute(unused).fetchone() == (0,)
        (row_count,) = connection.execute("SELECT count(*) FROM run").fetchone()
    with History(path) as history:
        runs = history.list_runs()
        assert len(runs) == row_count
        for run in runs:
            name = run.measurement.key.mangled_name
            measured = int(run.measurement.session.rsplit(" ", 1)[1])
            recording = make_recording(measured, key=make_key(name=name), text=f"{name} {measured}" * 500)
            assert run.measurement == recording.measurement
            assert history.read_lines(run) == recording.content


def test_two_processes_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    writers = [start_writer(path, name, RUNS) for name in ("one", "two")]
    for writer in writers:
        _, errors = writer.communicate(timeout=LIMIT_S)
        assert (writer.returncode, errors) == (0, "")
    with History(path) as history:
        assert history.problems == ()
        assert [history.count_runs(make_key(name=name)) for name in ("one", "two", "shared")] == [RUNS] * 3
    check_whole(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["history.db"]


def test_a_process_killed_at_any_moment_leaves_whole_runs_only(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    rng = random.Random(20)
    written = 0
    for attempt in range(20):
        writer = start_writer(path, f"attempt {attempt}", 10_000)
        assert writer.stdout is not None
        first_unread = 0
        if attempt % 4:  # else it may be killed before or while it makes the tables
            first_unread = rng.randrange(1, 10)
            assert [writer.stdout.readline() for _ in range(first_unread)] == [
                f"{run}\n" for run in range(first_unread)
            ]
            time.sleep(rng.uniform(0, 0.01))
        else:
            time.sleep(rng.uniform(0, 0.3))
        writer.kill()
        said, _ = writer.communicate(timeout=LIMIT_S)
        assert writer.returncode == -signal.SIGKILL
        told = said.split()
        if not path.exists():
            continue
        check_whole(path)
        with History(path) as history:
            assert history.problems == ()
            kept = history.count_runs(make_key(name=f"attempt {attempt}"))
        # What it had said is there; of what it was about, one run at most had not been said.
        assert kept >= first_unread + len(told)
        written += kept
    assert written > 20
    assert list(tmp_path.glob("*damaged*")) == []
