"""The file may be anything: a folder, rubbish, another program's, a newer version's. Nothing is ever deleted."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.report.history.database import APPLICATION_ID, SCHEMA_VERSION
from gpa_lsp.report.history.model import Run
from gpa_lsp.report.history.store import History
from tests.conftest import ROOT
from tests.history.recordings import NOON_NS, SECOND_NS, make_key, make_recording, open_history
from tests.patience import LIMIT_S

PRAGMAS = ("user_version", "application_id", "auto_vacuum", "journal_mode")


def fill(folder: Path, count: int = 30) -> Path:
    with open_history(folder) as history:
        for measured in range(count):
            history.record(make_recording(measured, text=f"line\n{'x' * 5000}{measured}"))
    return folder / "history.db"


def list_damaged(folder: Path) -> list[Path]:
    """Databases that were put aside, without their logs (-wal and -shm)."""
    return sorted(path for path in folder.glob("history.db.damaged-*") if not path.name.endswith(("-wal", "-shm")))


def test_a_new_history_is_ours_of_this_version_and_can_shrink(tmp_path: Path) -> None:
    with closing(sqlite3.connect(fill(tmp_path, 1))) as connection:
        facts = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS]
    assert facts == [SCHEMA_VERSION, APPLICATION_ID, 2, "wal"]


@pytest.mark.parametrize(
    "content", [b"not a database", b"SQLite format 3\0" + b"\xff" * 5000, os.urandom(100_000), b"\0" * 40_000]
)
def test_rubbish_is_put_aside_and_a_new_history_begun(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(content)
    with History(path) as history:
        run = history.record(make_recording())
        assert history.list_runs() == (run,)
        (problem,) = history.problems
        assert "damaged" in str(problem)
    (aside,) = list_damaged(tmp_path)
    assert aside.read_bytes() == content
    assert aside.name in problem.message
    with History(path) as history:
        assert history.problems == ()
        assert history.list_runs() == (run,)


def test_an_empty_file_is_a_new_history(tmp_path: Path) -> None:
    (tmp_path / "history.db").touch()
    with open_history(tmp_path) as history:
        history.record(make_recording())
        assert history.problems == ()


@pytest.mark.parametrize("kept_ratio", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_put_aside_when_it_is_noticed(tmp_path: Path, kept_ratio: float) -> None:
    path = fill(tmp_path)
    os.truncate(path, int(path.stat().st_size * kept_ratio))
    size_bytes = path.stat().st_size
    with History(path) as history:
        history.list_runs()
        run = history.record(make_recording(99))
        assert history.find_run(run.run_id) == run
        assert history.problems
    (aside,) = list_damaged(tmp_path)
    assert aside.stat().st_size == size_bytes


def test_the_end_of_a_file_costs_what_stood_there(tmp_path: Path) -> None:
    path = fill(tmp_path)
    os.truncate(path, path.stat().st_size - 100)
    with History(path) as history:
        left = history.list_runs()
        assert 20 <= len(left) < 30
        assert all(run.measurement == make_recording(_read_second(run)).measurement for run in left)
        assert history.record(make_recording(99)) in history.list_runs()


def _read_second(run: Run) -> int:
    return (run.measurement.measured_ns - NOON_NS) // SECOND_NS


def test_pages_that_are_overwritten_cost_the_file_not_the_program(tmp_path: Path) -> None:
    path = fill(tmp_path)
    with path.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xa5" * 30_000)
    with History(path) as history:
        history.list_runs()
        run = history.record(make_recording(99))
        assert history.find_run(run.run_id) == run
        assert len(history.problems) == 1
    assert len(list_damaged(tmp_path)) == 1


def test_a_damaged_row_is_left_out_and_can_be_deleted(tmp_path: Path) -> None:
    path = fill(tmp_path, 3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET facts = '{}' WHERE id = 1")
        connection.execute("UPDATE run SET lines = x'00' WHERE id = 2")
        connection.execute("UPDATE source SET packed = x'00' WHERE id = 3")
    with History(path) as history:
        third, second = history.list_runs()
        assert (second.run_id, third.run_id) == (2, 3)
        assert history.find_run(1) is None
        assert history.read_lines(second).lines == ()
        assert history.read_lines(third).files[0].text is None
        with pytest.raises(InputError, match="--delete @1"):
            history.pin(1)
        history.delete([1])
        assert history.count_runs(make_key()) == 2


def test_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = fill(tmp_path, 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = delete")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    content = path.read_bytes()
    with pytest.raises(UnsupportedInputError, match=r"newer gpa-lsp.*update"):
        History(path)
    assert list_damaged(tmp_path) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
    assert path.read_bytes()[100:] == content[100:]


def test_tables_changed_by_a_newer_server_meanwhile_are_not_written(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        history.record(make_recording())
        with closing(sqlite3.connect(tmp_path / "history.db")) as other:
            other.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        with pytest.raises(UnsupportedInputError):
            history.record(make_recording(1))
        with pytest.raises(UnsupportedInputError):
            history.list_runs()


@pytest.mark.parametrize("version", [0, 1, -3])
def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE run (mine TEXT)")
        connection.execute("INSERT INTO run VALUES ('precious')")
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(InputError, match=r"another program|no such (table|column)"):
        with History(path) as history:
            history.record(make_recording())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT mine FROM run").fetchall() == [("precious",)]
    assert list_damaged(tmp_path) == []


def test_a_folder_for_the_file_and_a_file_for_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "history.db").mkdir()
    (tmp_path / "data").write_text("")
    for folder in (tmp_path, tmp_path / "data"):
        with pytest.raises(InputError, match=r"not remembered.*GPA_LSP_DATA_DIR"):
            open_history(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "history.db")
    with pytest.raises(InputError, match="not remembered"):
        open_history(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_links_are_followed_and_loops_refused(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "history.db").symlink_to(tmp_path / "disk" / "real.db")
    with open_history(tmp_path) as history:
        run = history.record(make_recording())
    with History(tmp_path / "disk" / "real.db") as history:
        assert history.list_runs() == (run,)
    (tmp_path / "disk" / "real.db").write_bytes(b"rubbish" * 1000)
    with open_history(tmp_path) as history:
        assert len(history.problems) == 1
    assert (tmp_path / "history.db").is_symlink()
    assert len(list((tmp_path / "disk").glob("real.db.damaged-*"))) == 1
    loop = tmp_path / "loop"
    loop.mkdir()
    (loop / "history.db").symlink_to(loop / "history.db")
    with pytest.raises(InputError, match="not remembered"):
        open_history(loop)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="not remembered"):
            open_history(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_a_huge_file_of_nothing_is_put_aside_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with path.open("wb") as stream:
        stream.write(b"garbage")
        stream.truncate(1 << 40)
    with History(path) as history:
        history.record(make_recording())
        assert len(history.problems) == 1
    assert list_damaged(tmp_path)[0].stat().st_size == 1 << 40


def test_two_that_find_it_damaged_put_it_aside_once(tmp_path: Path) -> None:
    path = fill(tmp_path)
    with History(path) as one, History(path) as other:
        with path.open("r+b") as stream:
            stream.seek(0)
            stream.write(b"\xa5" * 50_000)
        first = one.record(make_recording(1))
        second = other.record(make_recording(2))
        assert len(list_damaged(tmp_path)) == 1
        assert [run.measurement for run in one.list_runs()] == [second.measurement, first.measurement]


FULL_DISK = """
import resource, signal, sys
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.report.history.past import KernelMemory
from gpa_lsp.report.history.store import History
from pathlib import Path
from tests.history.recordings import make_recording
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
with History(path) as history:
    kept = history.record(make_recording(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    try:
        for measured in range(1, 400):
            history.record(make_recording(measured, lines={line: line * measured % 977 for line in range(1, 300)}))
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits files as a full disk would")
def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert "not remembered" in ran.stdout
    assert "disk" in ran.stdout
    with History(path) as history:
        assert history.problems == ()
        assert history.list_runs()[-1].measurement == make_recording(0).measurement
        history.record(make_recording(1000))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_database_others_may_open_over_the_network_has_no_shared_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fill(tmp_path, 2)
    monkeypatch.setattr("gpa_lsp.report.history.database.is_shared_between_machines", lambda path: True)
    with History(path) as history:
        history.record(make_recording(50))
        assert sorted(file.name for file in tmp_path.iterdir()) == ["history.db"]
        assert len(history.list_runs()) == 3


def test_a_copy_made_while_it_is_open_is_whole(tmp_path: Path) -> None:
    with open_history(tmp_path) as history:
        history.record(make_recording())
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path, copy, ignore=shutil.ignore_patterns("copy"))
        history.record(make_recording(1))
    with open_history(copy) as history:
        assert len(history.list_runs()) == 1


COLUMNS = {
    "kernel": ("mangled_name", "home", "device", "capability", "family", "baseline_id"),
    "run": ("identity", "session", "measured_ns", "recorded_ns", "profile", "facts", "lines"),
    "source": ("digest", "packed"),
    "run_file": ("position", "compiled_path", "local_path", "source_id", "read_ns"),
}


@pytest.mark.parametrize("value", ["x'c0ffee'", "'text'", "1.5", "-7", "NULL"])
@pytest.mark.parametrize(("table", "column"), [(table, column) for table, names in COLUMNS.items() for column in names])
def test_a_value_of_another_kind_costs_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, column: str, value: str
) -> None:
    """SQLite keeps any kind of value in any column."""
    path = fill(tmp_path, 3)
    with open_history(tmp_path) as history:
        history.pin(1)
    with closing(sqlite3.connect(path)) as connection, connection:
        with suppress(sqlite3.IntegrityError):
            connection.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT max(rowid) FROM {table})")
    with History(path) as history:
        runs = history.list_runs()
        assert len(runs) >= 2 or table == "kernel"
        for run in runs:
            history.read_lines(run)
            history.find_previous(run)
            history.find_baseline_of(run)
            history.find_other_device(run)
            history.count_runs(run.measurement.key)
        history.find_source("/project/saxpy.cu", NOON_NS + 5 * SECOND_NS)
        for again in (2, 3):
            with suppress(InputError):
                history.record(make_recording(again))
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path))
    assert main(["history", str(tmp_path), "--format", "json"]) == main(["history"]) == 0
    assert main(["history", "--compare", "1", "3"]) in (0, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"duration_ns": "long"},
        {"duration_ns": [1]},
        {"executed_instructions": {}},
        {"total_samples": 1e999},
        {"ns": [1, 1e999, 1, 1, None]},
        {"launch": [[1, 1, 1], [1, 1, 1], "many", 0, 0]},
        {"launch": 7},
    ],
)
def test_facts_of_another_kind_cost_their_row(tmp_path: Path, change: dict[str, Any]) -> None:
    path = fill(tmp_path, 2)
    with closing(sqlite3.connect(path)) as connection, connection:
        (facts,) = connection.execute("SELECT facts FROM run WHERE id = 2").fetchone()
        text = json.dumps({**json.loads(facts), **change})
        connection.execute("UPDATE run SET facts = ? WHERE id = 2", (text,))
    with History(path) as history:
        assert [run.run_id for run in history.list_runs()] == [1]


def test_facts_that_nest_without_end_cost_their_row(tmp_path: Path) -> None:
    path = fill(tmp_path, 2)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET facts = ? WHERE id = 2", ("[" * 200_000,))
    with History(path) as history:
        assert [run.run_id for run in history.list_runs()] == [1]
