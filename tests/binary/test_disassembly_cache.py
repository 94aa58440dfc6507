"""The folder of disassembled text: damage, races and limits are never errors."""

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.binary.disassembly_cache import FOLDER_VARIABLE, DisassemblyCache, make_key, open_cache

KEY = "ab" * 32
TEXTS = ["MOV R1, c[0x0][0x28]", "EXIT"]


@pytest.fixture
def cache(tmp_path: Path) -> DisassemblyCache:
    return DisassemblyCache(tmp_path / "sass")


def entry_of(cache: DisassemblyCache, key: str = KEY) -> Path:
    return cache.folder / f"{key}.sass"


def test_what_is_stored_is_loaded(cache: DisassemblyCache) -> None:
    assert cache.load(KEY, 2) is None
    cache.store(KEY, TEXTS)
    assert cache.load(KEY, 2) == TEXTS
    assert [path.name for path in cache.folder.iterdir()] == [f"{KEY}.sass"]


def test_an_entry_of_another_length_is_a_miss(cache: DisassemblyCache) -> None:
    cache.store(KEY, TEXTS)
    assert cache.load(KEY, 3) is None


@given(st.binary(max_size=60), st.integers(0, 60))
def test_a_damaged_entry_is_a_miss(tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int) -> None:
    cache = DisassemblyCache(tmp_path_factory.mktemp("damaged"))
    cache.store(KEY, TEXTS)
    path = entry_of(cache)
    sound = path.read_bytes()
    for damaged in (junk, sound[:at], sound[:at] + junk + sound[at + len(junk) :]):
        path.write_bytes(damaged)
        assert cache.load(KEY, 2) in (None, TEXTS)
    path.write_bytes(sound[:-1])
    assert cache.load(KEY, 2) is None


def test_an_entry_that_unpacks_to_more_than_it_can_be_is_a_miss(cache: DisassemblyCache) -> None:
    cache.store(KEY, TEXTS)
    entry_of(cache).write_bytes(zlib.compress(bytes(50_000_000)))
    assert cache.load(KEY, 2) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DisassemblyCache(tmp_path / "file" / "sass")
    cache.store(KEY, TEXTS)
    cache.trim()
    assert cache.load(KEY, 2) is None


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written")
def test_a_folder_that_cannot_be_written_is_no_error(cache: DisassemblyCache) -> None:
    cache.folder.mkdir()
    cache.folder.chmod(0o500)
    cache.store(KEY, TEXTS)
    assert cache.load(KEY, 2) is None


def test_a_folder_in_the_place_of_an_entry_is_no_error(cache: DisassemblyCache) -> None:
    entry_of(cache).mkdir(parents=True)
    cache.store(KEY, TEXTS)
    cache.trim()
    assert cache.load(KEY, 2) is None
    assert [path.name for path in cache.folder.iterdir()] == [f"{KEY}.sass"]


def test_the_entries_used_least_recently_are_removed(tmp_path: Path) -> None:
    texts = [os.urandom(300).hex() for _ in range(60)]
    cache = DisassemblyCache(tmp_path, limit_bytes=100_000)
    for index in range(6):
        cache.store(f"{index:064x}", texts)
        os.utime(entry_of(cache, f"{index:064x}"), (1_000 + index, 1_000 + index))
    assert cache.load(f"{0:064x}", 60) == texts
    cache.trim()
    left = [index for index in range(6) if entry_of(cache, f"{index:064x}").exists()]
    assert left[0] == 0 and left[-1] == 5 and len(left) < 6
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 100_000


def test_a_folder_within_its_limit_is_left_alone(cache: DisassemblyCache) -> None:
    cache.store(KEY, TEXTS)
    cache.trim()
    assert cache.load(KEY, 2) == TEXTS


def test_what_a_crashed_writer_left_is_removed(cache: DisassemblyCache) -> None:
    cache.folder.mkdir()
    old, new, foreign = (cache.folder / name for name in ("a.tmp", "b.tmp", "notes.txt"))
    for path in (old, new, foreign):
        path.write_text("x")
    os.utime(old, (1, 1))
    os.utime(foreign, (1, 1))
    cache.trim()
    assert not old.exists() and new.exists() and foreign.exists()


def test_two_processes_may_write_at_once(cache: DisassemblyCache) -> None:
    """Both write the same entries over and over while this one reads: it sees all of an entry or nothing."""
    program = (
        "import sys; from pathlib import Path; from gpa_lsp.binary.disassembly_cache import DisassemblyCache\n"
        "cache = DisassemblyCache(Path(sys.argv[1]), limit_bytes=4000)\n"
        "for turn in range(150):\n"
        "    cache.store(f'{turn % 5:064x}', [f'MOV R{turn % 5}, RZ'] * 500); cache.trim()\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(cache.folder)]) for _ in range(2)]
    seen = 0
    deadline = time.monotonic() + 60
    while any(writer.poll() is None for writer in writers) and time.monotonic() < deadline:
        for index in range(5):
            texts = cache.load(f"{index:064x}", 500)
            assert texts in (None, [f"MOV R{index}, RZ"] * 500)
            seen += texts is not None
    assert [writer.wait(10) for writer in writers] == [0, 0]
    assert seen > 0
    assert not list(cache.folder.glob("*.tmp"))


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "mine"))
    assert open_cache().folder.is_relative_to(tmp_path / "mine")
    monkeypatch.delenv(FOLDER_VARIABLE)
    assert "gpa-lsp" in str(open_cache().folder)


def test_the_key_depends_on_all_that_the_text_does(tmp_path: Path) -> None:
    tool, other = tmp_path / "nvdisasm", tmp_path / "other"
    tool.write_text("one")
    other.write_text("another")
    keys = {
        make_key(b"1" * 16, 80, tool),
        make_key(b"2" * 16, 80, tool),
        make_key(b"1" * 16, 90, tool),
        make_key(b"1" * 16, 80, other),
        make_key(b"1" * 16, 80, tmp_path / "absent"),
    }
    assert len(keys) == 5
    os.utime(tool, (5, 5))
    assert make_key(b"1" * 16, 80, tool) not in keys
    assert make_key(b"1" * 16, 80, other) in keys
