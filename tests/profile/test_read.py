"""Picking the reader, compression and framing: what is sound is walked, what is not is one error that names the place."""

import bz2
import gzip
import importlib.util
import io
import lzma
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import InputError, ProblemSeverity, UnsupportedInputError
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.ncu import container as compression
from gpa_lsp.profile.read import find_readers, list_suffixes, read_profile
from tests.profile.report_builder import ReportBuilder, build_small_report, frame_entry
from tests.profile.test_damage import SOUND_START
from tests.zstandard import zstd

SUFFIXES = {".ncu-rep", ".ncu-repz", ".nsight-cuprof-report", ".gpa-profile.json", "pcsampling.dat"}


def test_the_catalogue_is_cheap_to_import() -> None:
    assert [reader.name for reader in find_readers()] == ["gpa-lsp/profile/2", "ncu-report", "cupti-pc-sampling"]
    assert set(list_suffixes()) == SUFFIXES
    code = (
        "import sys, gpa_lsp.profile.read as r; r.find_readers();"
        "print([name for name in ('google.protobuf', 'backports.zstd', 'lzma', 'jsonschema') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_unknown_kind_lists_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(UnsupportedInputError) as caught:
        read_profile(tmp_path / "a.txt")
    assert all(suffix in str(caught.value) for suffix in SUFFIXES)


def _forbid(path: Path) -> None:
    path.write_bytes(build_small_report())
    path.chmod(0)


@pytest.mark.skipif(os.name != "posix", reason="no pipes and devices elsewhere")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(Path.touch, "the file is empty", id="empty"),
        pytest.param(lambda path: None, "there is no such file", id="missing"),
        pytest.param(Path.mkdir, "is a folder|may not be read", id="folder"),
        pytest.param(os.mkfifo, "is not a regular file", id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "is not a regular file", id="device"),
        pytest.param(lambda path: path.symlink_to(path), "cannot be opened", id="loop"),
        pytest.param(_forbid, "may not be read", id="forbidden"),
    ],
)
def test_what_is_no_readable_file(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    if make is _forbid and os.geteuid() == 0:
        pytest.skip("everything may be read here")
    make(path := tmp_path / "a.ncu-rep")
    with pytest.raises(InputError, match=message) as caught:
        read_profile(path)
    assert caught.value.path == path


def test_a_name_with_a_null_byte() -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        read_profile(Path("a\0b.ncu-rep"))


def read_bytes(folder: Path, data: bytes, name: str = "test.ncu-rep") -> Profile:
    (folder / name).write_bytes(data)
    return read_profile(folder / name)


# Compressed reports: recognised by content, read like plain ones, bounded.


def _zip(data: bytes, *names: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("report.ncu-rep",):
            archive.writestr(name, data)
    return target.getvalue()


def _zstd_frames(data: bytes) -> bytes:
    half = len(data) // 2
    return zstd.compress(data[:half]) + zstd.compress(data[half:])


COMPRESSORS = {
    "zstd": zstd.compress,
    "zstd in two frames": _zstd_frames,
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zip": _zip,
}
every_compressor = pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)


@every_compressor
def test_a_compressed_report_reads_like_the_plain_one(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    """Content decides, not the suffix; only zlib, whose two bytes begin many a text, is believed by its suffix alone."""
    data = build_small_report()
    plain = read_bytes(tmp_path, data)
    for name in ("test.ncu-repz", "renamed.bin") if compress is not zlib.compress else ("test.ncu-repz",):
        profile = read_bytes(tmp_path, compress(data), name)
        assert profile.format_name == "ncu-report"
        assert [launch.mangled_name for launch in profile.launches] == ["_Z4axpyPf"]
        assert profile.modules == plain.modules
        assert dict(profile.launches[0].metrics) == dict(plain.launches[0].metrics)
        assert profile.problems == ()


@every_compressor
def test_compressed_data_that_is_cut_off_or_something_else(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    data = compress(build_small_report())
    for length in (len(data) // 4, len(data) // 2, len(data) - 20):
        with pytest.raises(InputError) as caught:
            read_bytes(tmp_path, data[:length], "test.ncu-repz")
        assert caught.value.remedy is not None
    with pytest.raises(UnsupportedInputError, match=r"does not hold an Nsight Compute report.*ncu --import"):
        read_bytes(tmp_path, compress(b"no report " * 100), "test.ncu-repz")


@every_compressor
def test_a_bomb_stops_at_the_limit(tmp_path: Path, compress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_FREE_BYTES", 1 << 20)
    monkeypatch.setattr(compression, "_MAX_RATIO", 8)
    with pytest.raises(InputError, match="of compressed data expand to more than"):
        read_bytes(tmp_path, compress(b"NVR\0" + bytes(8 << 20)), "test.ncu-repz")


def test_a_large_report_is_spooled_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_IN_MEMORY_BYTES", 64)
    assert len(read_bytes(tmp_path, zstd.compress(build_small_report()), "test.ncu-repz").launches) == 1


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        pytest.param(_zip(build_small_report(), "a", "b"), "a.ncu-repz", "holds 2 files", id="zip of several files"),
        pytest.param(
            b"\x04\x22\x4d\x18" + bytes(20),
            "a.ncu-repz",
            "pip install lz4",
            id="lz4",
            marks=pytest.mark.skipif(importlib.util.find_spec("lz4") is not None, reason="lz4 is installed"),
        ),
        (b"\x00\x01\x02\x03" * 20, "a.ncu-repz", r"in an unknown way .it starts with 00 01 02 03.*ncu --import"),
        (b"__global__ void k() {}", "k.cu", "is a source, not a profile"),
        (b"", "k.cu", "is a source, not a profile"),
        (b"x^2 + y^2 = z^2", "notes.txt", "not a profile in a known format"),  # which starts like zlib
        (SOUND_START + zstd.compress(bytes(99)), "a.ncu-repz", r"compressed inside its container.*ncu --import"),
    ],
)
def test_what_cannot_be_unpacked(tmp_path: Path, data: bytes, name: str, message: str) -> None:
    with pytest.raises(UnsupportedInputError, match=message):
        read_bytes(tmp_path, data, name)


# Framing.


def test_a_whole_report_is_read(tmp_path: Path) -> None:
    profile = read_bytes(tmp_path, build_small_report(), "old.nsight-cuprof-report")
    assert profile.format_name == "ncu-report"
    assert profile.tool_version == "2025.1.0.0 (build 1) (public-release)"
    assert [launch.display_name for launch in profile.launches] == ["axpy(float *)"]
    assert list(profile.modules) == [1]
    assert profile.problems == ()


def test_strings_of_a_later_block_name_earlier_metrics(report: ReportBuilder) -> None:
    report.strings_last = True
    report.add_result(report.make_result(metrics=[report.encode_metric("a__metric", 5)], source_id=None))
    report.add_session()
    assert report.read().launches[0].metrics["a__metric"].value == 5


def test_every_truncation_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    data = build_small_report()
    whole_blocks = 0
    for length in range(len(data)):
        try:
            read_bytes(tmp_path, data[:length])
        except InputError as error:
            assert error.path is not None
            assert length == 0 or error.place is not None
            assert error.remedy is not None
        else:
            whole_blocks += 1
    # Only a cut exactly between two blocks cannot be told from a shorter report: behind the header, the source, the result.
    assert whole_blocks == 3


def test_another_container_version_says_how_to_convert(report: ReportBuilder) -> None:
    report.add_session()
    with pytest.raises(UnsupportedInputError, match=r"container version 8 is not read, only 7.*ncu --import"):
        report.read(container_version=8)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"MZ\x90\x00" * 10, "offset 0x0: does not start with the bytes of an Nsight Compute report"),
        pytest.param(SOUND_START + bytes(1000), "a block header has size 0", id="size zero"),
        pytest.param(
            SOUND_START + struct.pack("<I", 900) + bytes(1000),
            "offset 0xe: a block header cannot be decoded",
            id="header of zeros",
        ),
        *(
            (
                SOUND_START + struct.pack("<I", size) + b"abc",
                f"offset 0xa: a block header of {size} bytes does not fit into the 3 bytes left",
            )
            for size in (0xFFFFFFFF, 0x7FFFFFFF, 1000)
        ),
    ],
)
def test_wrong_blocks(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_bytes(tmp_path, data)


def _lengthen_entry(report: ReportBuilder) -> None:
    header, payload = report.blocks[0]
    report.blocks[0] = header, struct.pack("<I", len(payload)) + payload[4:]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda report: setattr(report.blocks[0][0], "payload_bytes", 1 << 60),
            "a payload of 1152921504606846976 bytes is longer than the rest of the file",
        ),
        (
            lambda report: setattr(report.blocks[0][0], "result_count", 1 << 40),
            "declares 1 sources and 1099511627776 results, but holds 1 entries",
        ),
        (_lengthen_entry, "an entry of"),
        (lambda report: report.add_block(results=[b"\x08"] * 1000), "more than 172 entries in a payload of this size"),
    ],
    ids=["payload", "more entries than held", "entry longer than its payload", "empty entries"],
)
def test_wrong_entries(report: ReportBuilder, edit: Callable[[ReportBuilder], object], message: str) -> None:
    report.add_source()
    edit(report)
    with pytest.raises(InputError, match=message):
        report.read()


def test_one_broken_result_costs_only_itself(report: ReportBuilder) -> None:
    broken = [b"\x0a\xff\xff broken", bytes(5000)]
    report.add_block(results=[report.make_result("first"), *broken, report.make_result("third")])
    profile = report.read()
    assert [(launch.index, launch.mangled_name) for launch in profile.launches] == [(0, "first"), (1, "third")]
    said = [problem for problem in profile.problems if problem.severity is ProblemSeverity.ERROR]
    expected = [f"launch {number} cannot be decoded and is left out" for number in (1, 2)]
    assert [problem.message for problem in said] == expected
    assert said[0].place.startswith("offset 0x")


def test_a_broken_source_leaves_the_launch(report: ReportBuilder) -> None:
    report.add_block(sources=[b"\x0a\xff\xff"])
    report.add_result(report.make_result())
    profile = report.read()
    assert profile.launches[0].module_id is None
    assert [problem.message for problem in profile.problems] == [
        "module 0 cannot be decoded and is left out",
        "the launch's module (1) is not in the report",
    ]


def test_unknown_entries_are_passed_over_with_a_word(report: ReportBuilder) -> None:
    report.add_result(report.make_result(source_id=None))
    header, payload = report.blocks[0]
    payload += frame_entry(b"\x08\x01")
    header.payload_bytes = len(payload)
    report.blocks[0] = header, payload
    profile = report.read()
    assert len(profile.launches) == 1
    assert "1 entries of an unknown kind are skipped" in profile.problems[0].message


def test_unknown_fields_are_skipped_and_other_text_costs_nothing(report: ReportBuilder) -> None:
    result = report.make_result(source_id=None)
    result.demangled_name = b"caf\xe9(int)"
    unknown = b"\xfa\x3f\x03abc" + b"\x90\x40\x05"  # field 1023, text; field 1026, varint
    report.add_block(results=[result.SerializeToString() + unknown])
    profile = report.read()
    assert (profile.launches[0].grid, profile.launches[0].display_name) == ((128, 2, 1), "caf\ufffd(int)")
    assert profile.problems == ()


def test_a_hundred_problems_are_enough(report: ReportBuilder) -> None:
    report.add_block(results=[b"\x0a\xff\xff" + bytes(60)] * 150)
    problems = report.read().problems
    assert len(problems) == 101
    assert problems[-1].message == "50 more problems are not listed"
