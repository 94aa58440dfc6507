"""Compressed reports: recognised by content, read like plain ones, bounded."""

import bz2
import gzip
import importlib.util
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable

import pytest

from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.ncu import compression
from tests.profile.report_builder import ReportBuilder, build_small_report
from tests.zstandard import zstd

Read = Callable[..., Profile]


def _zip(data: bytes, names: tuple[str, ...] = ("report.ncu-rep",)) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return target.getvalue()


def _zstd_frames(data: bytes) -> bytes:
    half = len(data) // 2
    return zstd.compress(data[:half]) + zstd.compress(data[half:])


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstd.compress,
    "zstd in two frames": _zstd_frames,
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zip": _zip,
}


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_compressed_report_reads_like_the_plain_one(read_bytes: Read, name: str) -> None:
    data = build_small_report()
    plain = read_bytes(data)
    profile = read_bytes(COMPRESSORS[name](data), "test.ncu-repz")
    assert [launch.mangled_name for launch in profile.launches] == ["_Z4axpyPf"]
    assert profile.modules == plain.modules
    assert dict(profile.launches[0].metrics) == dict(plain.launches[0].metrics)
    assert profile.problems == ()


@pytest.mark.parametrize("name", [name for name in COMPRESSORS if name != "zlib"])
def test_content_decides_not_the_suffix(read_bytes: Read, name: str) -> None:
    assert len(read_bytes(COMPRESSORS[name](build_small_report()), "renamed.bin").launches) == 1


@pytest.mark.parametrize("name", COMPRESSORS)
def test_cut_off_compressed_data_is_an_error(read_bytes: Read, name: str) -> None:
    data = COMPRESSORS[name](build_small_report())
    for length in (len(data) // 4, len(data) // 2, len(data) - 20):
        with pytest.raises(InputError) as caught:
            read_bytes(data[:length], "test.ncu-repz")
        assert caught.value.remedy is not None


@pytest.mark.parametrize("name", COMPRESSORS)
def test_compressed_something_else_is_refused(read_bytes: Read, name: str) -> None:
    with pytest.raises(UnsupportedInputError, match=r"does not hold an Nsight Compute report.*ncu --import"):
        read_bytes(COMPRESSORS[name](b"no report " * 100), "test.ncu-repz")


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_bomb_stops_at_the_limit(read_bytes: Read, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_FREE_BYTES", 1 << 20)
    monkeypatch.setattr(compression, "_MAX_RATIO", 8)
    with pytest.raises(InputError, match="of compressed data expand to more than"):
        read_bytes(COMPRESSORS[name](b"NVR\0" + bytes(8 << 20)), "test.ncu-repz")


def test_a_large_report_is_spooled_to_disk(read_bytes: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_IN_MEMORY_BYTES", 64)
    assert len(read_bytes(zstd.compress(build_small_report()), "test.ncu-repz").launches) == 1


def test_a_zip_of_several_files_is_refused(read_bytes: Read) -> None:
    with pytest.raises(UnsupportedInputError, match="holds 2 files"):
        read_bytes(_zip(build_small_report(), ("a.ncu-rep", "b.ncu-rep")), "test.ncu-repz")


@pytest.mark.skipif(importlib.util.find_spec("lz4") is not None, reason="lz4 is installed")
def test_lz4_without_its_library_says_what_to_install(read_bytes: Read) -> None:
    with pytest.raises(UnsupportedInputError, match="pip install lz4"):
        read_bytes(b"\x04\x22\x4d\x18" + bytes(20), "test.ncu-repz")


def test_an_unknown_compression_says_what_it_found(read_bytes: Read) -> None:
    with pytest.raises(UnsupportedInputError, match=r"in an unknown way .it starts with 00 01 02 03.*ncu --import"):
        read_bytes(b"\x00\x01\x02\x03" * 20, "test.ncu-repz")


def test_compression_inside_the_container_says_how_to_convert(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_session()
    plain = builder.build()
    with pytest.raises(UnsupportedInputError, match=r"compressed inside its container.*ncu --import"):
        read_bytes(plain[:10] + zstd.compress(plain[10:]), "test.ncu-repz")


def test_text_that_starts_like_zlib_is_no_report(read_bytes: Read) -> None:
    with pytest.raises(UnsupportedInputError, match="not a profile in a known format"):
        read_bytes(b"x^2 + y^2 = z^2", "notes.txt")
