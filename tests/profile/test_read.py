"""Picking the reader, and inputs that are no profile at all."""

import os
import sys
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.profile.read import find_readers, list_suffixes, read_profile
from tests.profile.report_builder import build_small_report


def test_the_catalogue() -> None:
    assert [reader.name for reader in find_readers()] == ["gpa-lsp/profile/2", "ncu-report", "cupti-pc-sampling"]
    assert set(list_suffixes()) == {
        ".ncu-rep",
        ".ncu-repz",
        ".nsight-cuprof-report",
        ".gpa-profile.json",
        "pcsampling.dat",
    }


def test_the_catalogue_is_cheap_to_import() -> None:
    import subprocess

    code = (
        "import sys, gpa_lsp.profile.read as r; r.find_readers();"
        "print([name for name in ('google.protobuf', 'backports.zstd', 'lzma', 'jsonschema') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_content_decides_which_reader(tmp_path: Path) -> None:
    path = tmp_path / "renamed.dat"
    path.write_bytes(build_small_report())
    assert read_profile(path).format_name == "ncu-report"


def test_an_unknown_kind_lists_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello")
    with pytest.raises(UnsupportedInputError) as caught:
        read_profile(path)
    for suffix in list_suffixes():
        assert suffix in str(caught.value)


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.ncu-rep"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="the file is empty"):
        read_profile(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file") as caught:
        read_profile(tmp_path / "none.ncu-rep")
    assert caught.value.path == tmp_path / "none.ncu-rep"


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder|may not be read"):
        read_profile(tmp_path)


def test_a_name_with_a_null_byte() -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        read_profile(Path("a\0b.ncu-rep"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_without_a_writer_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "pipe.ncu-rep"
    os.mkfifo(path)
    with pytest.raises(InputError, match="is not a regular file"):
        read_profile(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_a_device_is_not_read() -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        read_profile(Path("/dev/zero"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything may be read here")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.ncu-rep"
    path.write_bytes(build_small_report())
    path.chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        read_profile(path)


def test_a_link_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "loop.ncu-rep"
    path.symlink_to(path)
    with pytest.raises(InputError, match="cannot be opened"):
        read_profile(path)
