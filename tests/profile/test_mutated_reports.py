"""Broken reports: a profile or one InputError, in bounded time and memory, whatever the bytes.

500 mutations of each kind in CI, 10,000 in the nightly profile.
"""

import bz2
import gzip
import lzma
import os
import struct
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.ncu.schema import MESSAGES
from gpa_lsp.profile.read import read_profile
from tests.conftest import find_corpus
from tests.patience import in_bounded_time
from tests.profile.mutations import find_length_fields, mutate
from tests.profile.native_writing import render_native
from tests.profile.report_builder import BASE_ADDRESS, ReportBuilder, build_small_report, encode, encode_rule
from tests.zstandard import zstd

_CORPUS_SEEDS = ("rtx3070_daxpy_2022.3.ncu-rep", "rtx3070_scan_2020.3.ncu-rep")


def _build_many_entries() -> bytes:
    builder = ReportBuilder(strings_last=True)
    builder.add_source(1, functions={"f": BASE_ADDRESS})
    builder.add_source(1, image=None, functions={"g": BASE_ADDRESS + 4096})
    samples = {reason: {offset: (offset + 2, offset) for offset in range(0, 320, 16)} for reason in ("wait", "drain")}
    for _ in range(3):
        metrics = builder.encode_samples(samples)
        metrics.append(builder.encode_metric("opcodes", None, [("FFMA", 1.5), ("LDG", 2)]))
        builder.add_result(builder.make_result(metrics=metrics))
    builder.add_session(devices=(0, 1))
    return builder.build()


SEEDS = (build_small_report(), _build_many_entries())
COMPRESSORS = (zstd.compress, gzip.compress, zlib.compress, lzma.compress, bz2.compress)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("mutated") / "report.ncu-rep"


def _read_all(path: Path, data: bytes) -> Profile | None:
    """Read, and touch everything that is decoded late; None when the file was refused."""
    path.write_bytes(data)
    try:
        with in_bounded_time():
            profile = read_profile(path)
    except InputError as error:
        assert error.path == path
        assert error.message
        assert error.remedy
        return None
    render_native(profile)
    return profile


@pytest.mark.parametrize("seed", SEEDS, ids=["small", "many entries"])
def test_the_seeds_are_sound(target: Path, seed: bytes) -> None:
    profile = _read_all(target, seed)
    assert profile is not None
    assert profile.problems == ()


@given(data=st.data())
def test_mutated_reports(target: Path, data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(SEEDS))
    _read_all(target, data.draw(mutate(seed, find_length_fields(seed))))


def _build_with_entry(entry: bytes, *, is_source: bool) -> bytes:
    """A report with sound framing around one given entry and sound ones beside it."""
    builder = ReportBuilder(strings=list(_ENTRY_STRINGS))
    if is_source:
        builder.add_block(sources=[entry])
    else:
        builder.add_source(functions={"_Z4axpyPf": BASE_ADDRESS})
        builder.add_block(results=[entry])
    builder.add_result(builder.make_result("beside"))
    builder.add_session()
    return builder.build()


def _build_entries() -> tuple[list[str], bytes, bytes]:
    builder = ReportBuilder()
    samples = {reason: {offset: (offset + 2, offset) for offset in (0, 16, 32)} for reason in ("wait", "drain")}
    result = builder.make_result(metrics=builder.encode_samples(samples))
    result.call_stack.frames.append(encode("Frame", module=b"/app", address=5, function=b"main", file=b"a.cu", line=9))
    nvtx = MESSAGES["NvtxState"]()
    nvtx.threads.add(thread_id=11).stacks.add(domain_id=4).ranges.add(name=b"step")
    result.nvtx = nvtx.SerializeToString()
    item = MESSAGES["RuleItem"]()
    item.message.text, item.message.kind = b"see @section:A:B@", 4
    item.tables.add().columns.add(name=b"c", numbers=[1.0])
    result.rules.append(encode_rule("R", items=[item], markers=[encode("RuleMarker", kind=1, line=3)]))
    source = MESSAGES["Source"](source_id=1, compute_capability_packed=8 << 16, image=b"\x7fELF")
    source.addresses.functions.append(encode("Symbol", name=b"_Z4axpyPf", address=BASE_ADDRESS, symbol_index=3))
    source.files.files.append(encode("SourceFile", path=b"/a.cu", content=b"int x;"))
    return builder.strings, result.SerializeToString(), source.SerializeToString()


_ENTRY_STRINGS, _RESULT_ENTRY, _SOURCE_ENTRY = _build_entries()


@given(data=st.data())
def test_mutated_entries_in_sound_framing_cost_only_themselves(target: Path, data: st.DataObject) -> None:
    is_source = data.draw(st.booleans())
    entry = data.draw(mutate(_SOURCE_ENTRY if is_source else _RESULT_ENTRY).filter(len))
    profile = _read_all(target, _build_with_entry(entry, is_source=is_source))
    assert profile is not None
    assert profile.launches[-1].mangled_name == "beside"
    assert len(profile.launches) == (1 if is_source else 2) or profile.problems


@given(data=st.data())
def test_mutated_compressed_reports(target: Path, data: st.DataObject) -> None:
    compress = data.draw(st.sampled_from(COMPRESSORS))
    path = target.with_suffix(".ncu-repz")
    _read_all(path, data.draw(mutate(compress(SEEDS[0]))))


@given(data=st.data())
def test_mutations_behind_sound_compression(target: Path, data: st.DataObject) -> None:
    compress = data.draw(st.sampled_from(COMPRESSORS))
    mutated = data.draw(mutate(SEEDS[0], find_length_fields(SEEDS[0])))
    _read_all(target.with_suffix(".ncu-repz"), compress(mutated))


@given(st.binary(max_size=400))
def test_random_bytes_behind_a_sound_start(target: Path, tail: bytes) -> None:
    _read_all(target, b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07" + tail)


@pytest.mark.corpus
@given(data=st.data())
def test_mutated_real_reports(target: Path, data: st.DataObject) -> None:
    folder = find_corpus()
    if folder is None:
        pytest.skip("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    name = data.draw(st.sampled_from(_CORPUS_SEEDS))
    seed = _CORPUS_BYTES.setdefault(name, (folder / "ncu" / name).read_bytes())
    fields = _CORPUS_FIELDS.setdefault(name, find_length_fields(seed))
    path = target
    path.write_bytes(data.draw(mutate(seed, fields)))
    try:
        with in_bounded_time():
            profile = read_profile(path)
    except InputError as error:
        assert error.remedy
    else:
        assert all(launch.index == index for index, launch in enumerate(profile.launches))


_CORPUS_BYTES: dict[str, bytes] = {}
_CORPUS_FIELDS: dict[str, tuple[int, ...]] = {}

_GIB = 1 << 30
_SOUND_START = b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07"


@pytest.mark.skipif(sys.platform == "win32", reason="files with holes are written by truncation")
@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"NVR\0",
        b"NVR\0" + struct.pack("<I", _GIB),
        _SOUND_START,
        _SOUND_START + struct.pack("<I", _GIB),
        # A sound block header whose payload is one source entry of a gigabyte of nothing.
        _SOUND_START + struct.pack("<I", 8) + b"\x08\x01\x28\x84\x80\x80\x80\x04" + struct.pack("<I", _GIB),
    ],
    ids=["no magic", "magic", "header of a gigabyte", "no block", "block header of a gigabyte", "entry of a gigabyte"],
)
def test_two_gigabytes_of_nothing(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "sparse.ncu-rep"
    path.write_bytes(start)
    os.truncate(path, 2 * _GIB)
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught, in_bounded_time():
            read_profile(path)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.place is not None
    assert caught.value.remedy
    assert peak_bytes < 16 << 20


def test_memory_stays_a_small_multiple_of_the_file(tmp_path: Path) -> None:
    builder = ReportBuilder()
    instances = [(BASE_ADDRESS + 16 * index, index) for index in range(20_000)]
    metrics = [
        builder.encode_metric(f"smsp__pcsamp_warps_issue_stalled_r{number}{suffix}", None, instances)
        for number in range(6)
        for suffix in ("", "_not_issued")
    ]
    builder.add_result(builder.make_result(metrics=metrics, source_id=None))
    path = tmp_path / "large.ncu-rep"
    path.write_bytes(builder.build())
    tracemalloc.start()
    try:
        profile = read_profile(path)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert profile.launches[0].samples is not None
    assert peak_bytes < 12 * path.stat().st_size
