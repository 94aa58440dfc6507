"""Broken reports: a profile or one InputError, in bounded time and memory, whatever the bytes; and the invariants of a profile."""

import bz2
import gzip
import lzma
import os
import struct
import sys
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.profile.model import Device, Launch, LoadedFunction, Metric, Module, Profile, StallSamples
from gpa_lsp.profile.ncu.schema import MESSAGES
from gpa_lsp.profile.read import check_profile, read_profile
from tests.conftest import find_corpus
from tests.damage import bounded_memory, damage
from tests.patience import in_bounded_time
from tests.profile.native_writing import render_native
from tests.profile.report_builder import (
    BASE_ADDRESS,
    STALL_PREFIX,
    ReportBuilder,
    build_small_report,
    encode,
    encode_rule,
)
from tests.rows.builders import make_launch
from tests.zstandard import zstd

SAMPLES = {reason: {offset: (offset + 2, offset) for offset in range(0, 320, 16)} for reason in ("wait", "drain")}
COMPRESSORS = (zstd.compress, gzip.compress, zlib.compress, lzma.compress, bz2.compress)


def _build_many_entries() -> bytes:
    builder = ReportBuilder(strings_last=True)
    builder.add_source(1, functions={"f": BASE_ADDRESS})
    builder.add_source(1, image=None, functions={"g": BASE_ADDRESS + 4096})
    for _ in range(3):
        metrics = builder.encode_samples(SAMPLES)
        metrics.append(builder.encode_metric("opcodes", None, [("FFMA", 1.5), ("LDG", 2)]))
        builder.add_result(builder.make_result(metrics=metrics))
    builder.add_session(devices=(0, 1))
    return builder.build()


SEEDS = (build_small_report(), _build_many_entries())


@cache
def _find_sizes(report: bytes) -> tuple[range, ...]:
    """Places of all u32 sizes in a sound report: of the file header, of block headers and of entries."""
    fields, offset = [4], 8 + struct.unpack_from("<I", report, 4)[0]
    while offset < len(report):
        fields.append(offset)
        size = struct.unpack_from("<I", report, offset)[0]
        header = MESSAGES["BlockHeader"].FromString(report[offset + 4 : offset + 4 + size])
        offset += 4 + size
        end = offset + header.payload_bytes
        while offset < end:
            fields.append(offset)
            offset += 4 + struct.unpack_from("<I", report, offset)[0]
    return tuple(range(field, field + 4) for field in fields)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated") / "report.ncu-rep"


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
    assert _read_all(target, seed).problems == ()


@given(st.sampled_from(SEEDS).flatmap(lambda seed: damage(seed, _find_sizes(seed), resizes=True)))
def test_damaged_reports(target: Path, data: bytes) -> None:
    _read_all(target, data)


def _build_entries() -> tuple[list[str], bytes, bytes]:
    builder = ReportBuilder()
    result = builder.make_result(metrics=builder.encode_samples(SAMPLES))
    result.call_stack.frames.append(encode("Frame", module=b"/app", address=5, function=b"main", file=b"a.cu", line=9))
    nvtx = MESSAGES["NvtxState"]()
    nvtx.threads.add(thread_id=11).stacks.add(domain_id=4).ranges.add(name=b"step")
    result.nvtx = nvtx.SerializeToString()
    item = MESSAGES["RuleItem"]()
    item.message.text, item.message.kind = b"see @section:A:B@", 4
    result.rules.append(encode_rule("R", items=[item], markers=[encode("RuleMarker", kind=1, line=3)]))
    source = MESSAGES["Source"](source_id=1, compute_capability_packed=8 << 16, image=b"\x7fELF")
    source.addresses.functions.append(encode("Symbol", name=b"_Z4axpyPf", address=BASE_ADDRESS, symbol_index=3))
    source.files.files.append(encode("SourceFile", path=b"/a.cu", content=b"int x;"))
    return builder.strings, result.SerializeToString(), source.SerializeToString()


_STRINGS, *ENTRIES = _build_entries()


@given(data=st.data(), is_source=st.booleans())
def test_damaged_entries_in_sound_framing_cost_only_themselves(
    target: Path, data: st.DataObject, is_source: bool
) -> None:
    entry = data.draw(damage(ENTRIES[is_source], resizes=True).filter(len))
    builder = ReportBuilder(strings=list(_STRINGS))
    if is_source:
        builder.add_block(sources=[entry])
    else:
        builder.add_source(functions={"_Z4axpyPf": BASE_ADDRESS})
        builder.add_block(results=[entry])
    builder.add_result(builder.make_result("beside"))
    builder.add_session()
    profile = _read_all(target, builder.build())
    assert profile.launches[-1].mangled_name == "beside"
    assert len(profile.launches) == (1 if is_source else 2) or profile.problems


@given(data=st.data(), compress=st.sampled_from(COMPRESSORS), is_behind=st.booleans())
def test_damaged_compressed_reports(target: Path, data: st.DataObject, compress, is_behind: bool) -> None:
    """Damage to what is compressed, or to the compressed bytes."""
    plain = damage(SEEDS[0], _find_sizes(SEEDS[0]), resizes=True).map(compress)
    _read_all(
        target.with_suffix(".ncu-repz"), data.draw(plain if is_behind else damage(compress(SEEDS[0]), resizes=True))
    )


SOUND_START = b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07"


@given(st.binary(max_size=400))
def test_random_bytes_behind_a_sound_start(target: Path, tail: bytes) -> None:
    _read_all(target, SOUND_START + tail)


@cache
def _read_real(name: str) -> bytes:
    return (find_corpus() / "ncu" / name).read_bytes()


@pytest.mark.corpus
@given(data=st.data(), name=st.sampled_from(["rtx3070_daxpy_2022.3.ncu-rep", "rtx3070_scan_2020.3.ncu-rep"]))
def test_damaged_real_reports(corpus: Path, target: Path, data: st.DataObject, name: str) -> None:
    seed = _read_real(name)
    target.write_bytes(data.draw(damage(seed, _find_sizes(seed), resizes=True)))
    try:
        with in_bounded_time():
            profile = read_profile(target)
    except InputError as error:
        assert error.remedy
    else:
        assert all(launch.index == index for index, launch in enumerate(profile.launches))


GIB = struct.pack("<I", 1 << 30)


@pytest.mark.skipif(sys.platform == "win32", reason="files with holes are written by truncation")
@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", id="no magic"),
        pytest.param(b"NVR\0", id="magic"),
        pytest.param(b"NVR\0" + GIB, id="header of a gigabyte"),
        pytest.param(SOUND_START, id="no block"),
        pytest.param(SOUND_START + GIB, id="block header of a gigabyte"),
        # A sound block header whose payload is one source entry of a gigabyte of nothing.
        pytest.param(SOUND_START + struct.pack("<I", 8) + b"\x08\x01\x28\x84\x80\x80\x80\x04" + GIB, id="entry"),
    ],
)
def test_two_gigabytes_of_nothing(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "sparse.ncu-rep"
    path.write_bytes(start)
    os.truncate(path, 2 << 30)
    with bounded_memory(16 << 20), in_bounded_time(), pytest.raises(InputError) as caught:
        read_profile(path)
    assert caught.value.place is not None
    assert caught.value.remedy


def test_memory_stays_a_small_multiple_of_the_file(report: ReportBuilder) -> None:
    instances = [(BASE_ADDRESS + 16 * index, index) for index in range(20_000)]
    names = [f"{STALL_PREFIX}r{number}{suffix}" for number in range(6) for suffix in ("", "_not_issued")]
    report.add_result(report.make_result(metrics=[report.encode_metric(name, None, instances) for name in names]))
    path = report.write()
    with bounded_memory(12 * path.stat().st_size):
        profile = read_profile(path)
    assert profile.launches[0].samples is not None


# The written invariants of a profile, one broken at a time.

METRIC = Metric(name="smsp__pcsamp_sample_count", value=10)
LAUNCH = make_launch(
    "k",
    device=Device(name=None, compute_capability=None, sm_count=None, sm_clock_hz=None),
    metrics={METRIC.name: METRIC},
    samples=StallSamples(
        addresses=np.array([16, 32], np.uint64),
        reasons=("drain", "wait"),
        all_samples=np.array([[1, 2], [3, 4]], np.int64),
        latency_samples=np.array([[1, 0], [3, 4]], np.int64),
    ),
)
MODULE = Module(module_id=1, image=None, compute_capability=None, functions=(LoadedFunction(name="k", address=16),))


def _check(launch: Launch, module: Module = MODULE) -> list[str]:
    profile = Profile(path=None, format_name="test", tool_version=None, modules={1: module}, launches=(launch,))
    return [problem.message for problem in check_profile(profile)]


def test_a_sound_profile_has_no_problems() -> None:
    assert _check(LAUNCH) == []
    assert _check(replace(LAUNCH, samples=None, module_id=None)) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("addresses", [32, 16], "not ascending and unique"),
        ("addresses", [16, 16], "not ascending and unique"),
        ("addresses", [16], "one row per address and one column per reason"),
        ("reasons", ("wait", "drain"), "not sorted and unique"),
        ("all_samples", [[0, 2], [4, 4]], "1 counts of not-issued samples exceed"),
        ("latency_samples", [[-1, 0], [3, 4]], "negative sample counts"),
        ("all_samples", [[1, 2], [3, 5]], "add up to 11, the profiler counted 10"),
        ("index", 3, "numbered 3"),
        ("module_id", 9, "holds no module 9"),
        ("function_addresses", (32, 16), "not ascending and unique"),
    ],
)
def test_a_broken_launch(name: str, value: object, message: str) -> None:
    if isinstance(value, list):
        value = np.array(value, np.uint64 if name == "addresses" else np.int64)
    is_launch = name in Launch.__struct_fields__
    launch = replace(LAUNCH, **({name: value} if is_launch else {"samples": replace(LAUNCH.samples, **{name: value})}))
    (found,) = _check(launch)
    assert message in found


def test_a_broken_module() -> None:
    functions = (LoadedFunction(name="b", address=32), LoadedFunction(name="a", address=16))
    assert _check(LAUNCH, replace(MODULE, module_id=2, functions=functions)) == [
        "the module is filed under another id than its own (2)",
        "the functions are not in ascending order of their load addresses",
    ]
