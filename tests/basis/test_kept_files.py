"""The user's cache: damage, races, limits and other people's files are never errors."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpa_lsp
from gpa_lsp.foundation.kept_files import KeptFiles, identify_program

KEY = "ab" * 32
CONTENT = b"what was found out" * 20
posix = pytest.mark.skipif(os.name == "nt", reason="owners and modes are of POSIX")


@pytest.fixture
def files(tmp_path: Path) -> KeptFiles:
    return KeptFiles(tmp_path / "kind", limit_bytes=100_000)


def entry_of(files: KeptFiles, key: str = KEY) -> Path:
    return files.folder / f"{key}.kept"


def test_what_is_stored_is_loaded(files: KeptFiles) -> None:
    assert files.load(KEY) is None
    files.store(KEY, CONTENT)
    assert files.load(KEY) == CONTENT
    assert [path.name for path in files.folder.iterdir()] == [f"{KEY}.kept"]
    assert files.measure() == (1, len(CONTENT) + 32)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_a_damaged_entry_is_a_miss_and_goes(tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int) -> None:
    files = KeptFiles(tmp_path_factory.mktemp("damaged"), limit_bytes=1 << 20)
    files.store(KEY, CONTENT)
    sound = entry_of(files).read_bytes()
    for damaged in (junk, sound[:at], sound[:at] + junk + sound[at + len(junk) :], sound[:-1], sound + b"x"):
        if damaged != sound:
            files.store(KEY, CONTENT)
            entry_of(files).write_bytes(damaged)
            assert files.load(KEY) is None
            assert not entry_of(files).exists()


@posix
def test_what_others_could_have_written_is_not_read(files: KeptFiles, tmp_path: Path) -> None:
    files.store(KEY, CONTENT)
    assert files.folder.stat().st_mode & 0o077 == 0
    assert entry_of(files).stat().st_mode & 0o077 == 0
    entry_of(files).chmod(0o666)
    assert files.load(KEY) is None
    entry_of(files).chmod(0o600)
    elsewhere = tmp_path / "elsewhere"
    entry_of(files).rename(elsewhere)
    entry_of(files).symlink_to(elsewhere)
    assert files.load(KEY) is None
    assert elsewhere.exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_owner_is_not_read(files: KeptFiles) -> None:
    files.store(KEY, CONTENT)
    os.chown(entry_of(files), 12345, 12345)
    assert files.load(KEY) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    files = KeptFiles(tmp_path / "file" / "kind", limit_bytes=1)
    files.store(KEY, CONTENT)
    files.trim()
    files.clear()
    assert files.load(KEY) is None
    assert files.measure() == (0, 0)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written")
def test_a_folder_that_cannot_be_written_is_no_error(files: KeptFiles) -> None:
    files.folder.mkdir()
    files.folder.chmod(0o500)
    files.store(KEY, CONTENT)
    assert files.load(KEY) is None


def test_a_folder_in_the_place_of_an_entry_is_no_error(files: KeptFiles) -> None:
    entry_of(files).mkdir(parents=True)
    files.store(KEY, CONTENT)
    files.trim()
    files.clear()
    assert files.load(KEY) is None
    assert [path.name for path in files.folder.iterdir()] == [f"{KEY}.kept"]


def test_the_entries_used_least_recently_are_removed(files: KeptFiles) -> None:
    content = os.urandom(18_000)
    for index in range(6):
        files.store(f"{index:064x}", content)
        os.utime(entry_of(files, f"{index:064x}"), (1_000 + index, 1_000 + index))
    assert files.load(f"{0:064x}") == content
    files.trim()
    left = [index for index in range(6) if entry_of(files, f"{index:064x}").exists()]
    assert left[0] == 0 and left[-1] == 5 and len(left) < 6
    assert files.measure()[1] <= 100_000


def test_a_folder_within_its_limit_is_left_alone(files: KeptFiles) -> None:
    files.store(KEY, CONTENT)
    files.trim()
    assert files.load(KEY) == CONTENT


def test_what_a_killed_writer_left_is_removed_and_what_others_keep_there_stays(files: KeptFiles) -> None:
    files.folder.mkdir()
    old, new, foreign = (files.folder / name for name in ("a.part", "b.part", "run.ncu-rep"))
    for path in (old, new, foreign):
        path.write_text("x")
    os.utime(old, (1, 1))
    os.utime(foreign, (1, 1))
    files.store(KEY, CONTENT)
    files.trim()
    assert not old.exists() and new.exists() and foreign.exists()
    files.clear()
    assert sorted(path.name for path in files.folder.iterdir()) == ["b.part", "run.ncu-rep"]


WRITER = """
import sys
from pathlib import Path
import gpa_lsp
from gpa_lsp.foundation.kept_files import KeptFiles, identify_program
files = KeptFiles(Path(sys.argv[1]), limit_bytes=300_000)
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    files.store(f"{number % 5:064x}", bytes([number % 5]) * 70_000)
    files.trim()
"""


def start_writer(files: KeptFiles, rounds: int) -> subprocess.Popen[bytes]:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(files.folder), str(rounds)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"ready\n"
    return writer


def test_two_processes_may_write_at_once(files: KeptFiles) -> None:
    """Two processes write the same entries over and over while this one reads: it sees all of an entry or nothing."""
    writers = [start_writer(files, 200) for _ in range(2)]
    seen = 0
    while any(writer.poll() is None for writer in writers):
        for index in range(5):
            content = files.load(f"{index:064x}")
            assert content in (None, bytes([index]) * 70_000)
            seen += content is not None
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen > 0
    assert not list(files.folder.glob("*.part"))


@posix
def test_a_writer_may_be_killed_at_any_moment(files: KeptFiles) -> None:
    for _ in range(12):
        writer = start_writer(files, 1_000_000)
        while not files.folder.exists() or not any(files.folder.iterdir()):
            assert writer.poll() is None
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        for index in range(5):
            assert files.load(f"{index:064x}") in (None, bytes([index]) * 70_000)
    files.store(KEY, CONTENT)
    assert files.load(KEY) == CONTENT


def test_every_folder_of_the_program_tells_it_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    root, looked_at, scan = Path(gpa_lsp.__file__).parent, set(), os.scandir

    def listen(folder: str) -> object:
        looked_at.add(Path(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", listen)
    assert identify_program.__wrapped__() is not None
    assert looked_at >= {path.parent for path in root.rglob("*.py")}
