"""Files that appear whole or not at all."""

import os
from pathlib import Path

import pytest

from gpa_lsp.foundation.files import atomic_write


def test_a_text_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_text("old")
    with atomic_write(target) as stream:
        stream.write("new\n")
        assert target.read_text() == "old"
    assert target.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [target]


def test_bytes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a", encoding=None) as stream:
        stream.write(b"\0\xff")
    assert (tmp_path / "a").read_bytes() == b"\0\xff"


def test_what_fails_leaves_nothing_and_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(target) as stream:
        stream.write("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_errors_of_an_encoding_are_the_callers_choice(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a", errors="backslashreplace") as stream:
        stream.write("\ud800")
    assert (tmp_path / "a").read_bytes() == b"\\ud800"
    with pytest.raises(UnicodeEncodeError), atomic_write(tmp_path / "b") as stream:
        stream.write("\ud800")
    assert not (tmp_path / "b").exists()


def test_a_folder_that_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "no" / "a"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="permissions of this kind are POSIX's")
def test_permissions_are_those_of_the_old_file_or_of_the_mask(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch(0o640)
    old.chmod(0o640)
    mask = os.umask(0o027)
    try:
        for target in (old, new):
            with atomic_write(target) as stream:
                stream.write("x")
    finally:
        os.umask(mask)
    assert [target.stat().st_mode & 0o777 for target in (old, new)] == [0o640, 0o640]
