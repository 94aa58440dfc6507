"""Files of measured roofs: our own format with its schema, Starlight's flat file, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec.structs import replace

import gpa_lsp.gpu.device
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.gpu.device.model import (
    ClockDomain,
    EmpiricalBandwidth,
    EmpiricalPeak,
    EmpiricalRoofs,
    MemoryLevel,
    OperationKind,
)
from gpa_lsp.gpu.device.roofs_file import (
    KeptRoofs,
    find_kept_roofs,
    find_roofs_folder,
    name_roofs_file,
    read_roofs,
    write_roofs,
)
from tests.strategies import records

SCHEMA = json.loads((Path(gpa_lsp.gpu.device.__file__).parent / "roofs.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)

ROOFS = EmpiricalRoofs(
    device_name="NVIDIA H200",
    compute_capability=(9, 0),
    sm_count=132,
    measured_on="2026-11-21",
    tool_version="0.1.0",
    sm_hz=1.98e9,
    l2_hz=None,
    dram_hz=3.201e9,
    peaks=(
        EmpiricalPeak(kind=OperationKind.FP32, ops_per_s=6.5e13, ops_per_cycle=32828.0, spread_ratio=0.01),
        EmpiricalPeak(kind=OperationKind.TENSOR_FP16, ops_per_s=8e14),
    ),
    bandwidths=(
        EmpiricalBandwidth(
            level=MemoryLevel.L1,
            bytes_per_s=3e13,
            bytes_per_cycle=15151.5,
            clock=ClockDomain.SM,
            working_set_bytes=65536,
            spread_ratio=0.0,
        ),
        EmpiricalBandwidth(level=MemoryLevel.DRAM, bytes_per_s=4.3e12),
    ),
)

STARLIGHT_A5000 = {
    "L1_BW": 1565.65, "L2_BW": 885.25, "GMEM_BW": 675.1,
    "HALF_PEAK": 30759, "FP_SINGLE_PEAK": 25842, "FP_DOUBLE_PEAK": 413.3, "INT_PEAK": 13458.75,
}  # fmt: skip
"""The example that ships with Starlight."""


def write(folder: Path, document: Any) -> Path:
    path = folder / "roofs.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def own(**members: Any) -> dict[str, Any]:
    return {"format": "gpa-lsp/roofs/1", **members}


def test_what_is_written_is_read_and_fits_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "roofs.json"
    for roofs in (ROOFS, replace(ROOFS, sm_count=1)):
        write_roofs(roofs, path)
        assert read_roofs(path) == roofs
        VALIDATOR.validate(json.loads(path.read_text()))
    assert [entry.name for entry in path.parent.iterdir()] == ["roofs.json"]


_rates = st.floats(1e-3, 1e18)
_peaks = records(EmpiricalPeak, ops_per_s=_rates, ops_per_cycle=st.none() | _rates)
_bandwidths = records(
    EmpiricalBandwidth, bytes_per_s=_rates, bytes_per_cycle=_rates, working_set_bytes=st.integers(1, 2**50)
).map(lambda one: one if one.clock else replace(one, bytes_per_cycle=None))
_clocks = st.none() | st.floats(1, 1e11)


@given(
    roofs=records(
        EmpiricalRoofs,
        device_name=st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200),
        compute_capability=(9, 0),
        sm_count=132,
        measured_on="2026-11-21",
        tool_version="0.1.0",
        sm_hz=_clocks,
        l2_hz=_clocks,
        dram_hz=_clocks,
        peaks=st.lists(_peaks, unique_by=lambda peak: peak.kind).map(tuple),
        bandwidths=st.lists(_bandwidths, unique_by=lambda one: one.level).map(tuple),
        format_name=ROOFS.format_name,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_roofs_come_back_as_they_were(tmp_path: Path, roofs: EmpiricalRoofs) -> None:
    path = tmp_path / "roofs.json"
    write_roofs(roofs, path)
    assert read_roofs(path) == roofs
    VALIDATOR.validate(json.loads(path.read_text()))


def test_the_schema_is_one_and_knows_every_type_and_level() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["peaks"]["propertyNames"]["enum"] == [kind.value for kind in OperationKind]
    assert SCHEMA["properties"]["bandwidths"]["propertyNames"]["enum"] == [level.value for level in MemoryLevel]


def test_starlights_file_is_read(tmp_path: Path) -> None:
    roofs = read_roofs(write(tmp_path, STARLIGHT_A5000))
    assert roofs.format_name == "starlight"
    assert (roofs.device_name, roofs.sm_hz) == (None, None)
    assert {peak.kind: peak.ops_per_s for peak in roofs.peaks} == pytest.approx(
        {
            OperationKind.FP16: 30.759e12,
            OperationKind.FP32: 25.842e12,
            OperationKind.FP64: 413.3e9,
            OperationKind.INT32: 13.45875e12,
        }
    )
    assert {found.level: found.bytes_per_s for found in roofs.bandwidths} == pytest.approx(
        {MemoryLevel.L1: 1565.65e9, MemoryLevel.L2: 885.25e9, MemoryLevel.DRAM: 675.1e9}
    )
    assert all(peak.ops_per_cycle is None for peak in roofs.peaks)


REFUSED: list[tuple[str, Any, str]] = [
    ("no object", [1], "is an array, not an object"),
    ("no format", {"device": {}}, "does not say 'gpa-lsp/roofs/1'"),
    ("format is a number", {"format": 1}, "/format: is an integer, not a string"),
    ("another format", {"format": "x"}, "/format: does not say"),
    ("unknown member", own(peak={}), "/peak: is not a member this format has"),
    ("unknown type", own(peaks={"FP128": {"ops_per_s": 1}}), "/peaks/FP128: is not an operation type"),
    ("unknown level", own(bandwidths={"L3": {"bytes_per_s": 1}}), "/bandwidths/L3: is not a memory level"),
    ("no rate", own(peaks={"FP32": {}}), "/peaks/FP32: lacks the member 'ops_per_s'"),
    ("zero", own(peaks={"FP32": {"ops_per_s": 0}}), "/peaks/FP32/ops_per_s: is not above 0"),
    ("negative", own(peaks={"FP32": {"ops_per_s": -1.5}}), "/peaks/FP32/ops_per_s: is not above 0"),
    ("huge", own(peaks={"FP32": {"ops_per_s": 1e300}}), "/peaks/FP32/ops_per_s: is not above 0 and at most"),
    ("huge integer", own(peaks={"FP32": {"ops_per_s": 10**400}}), "at most 1e"),
    ("text", own(peaks={"FP32": {"ops_per_s": "1"}}), "/peaks/FP32/ops_per_s: is a string, not a number"),
    ("true", own(peaks={"FP32": {"ops_per_s": True}}), "is true or false, not a number"),
    ("a list", own(peaks=[]), "/peaks: is an array, not an object"),
    ("spread of 2", own(peaks={"FP32": {"ops_per_s": 1, "spread_ratio": 2}}), "is not between 0 and 1"),
    ("bad clock", own(clocks_hz={"sm": 1e12}), "/clocks_hz/sm: is not above 0 and at most"),
    ("no clock", own(bandwidths={"L2": {"bytes_per_s": 1, "bytes_per_cycle": 1}}), "without the other"),
    (
        "odd clock",
        own(bandwidths={"L2": {"bytes_per_s": 1, "bytes_per_cycle": 1, "clock": "x"}}),
        "not one of sm, l2, dram",
    ),
    ("half an SM", own(device={"sm_count": 1.5}), "/device/sm_count: is a number, not an integer"),
    ("capability", own(device={"compute_capability": "9"}), "not a compute capability"),
    ("capability list", own(device={"compute_capability": [9, 0]}), "is an array, not a string"),
    ("long name", own(device={"name": "x" * 201}), "/device/name: is longer"),
    ("line break", own(device={"name": "a\nb"}), "not printable"),
    ("starlight text", {"L1_BW": "fast"}, "/L1_BW: is a string, not a number"),
    ("starlight zero", {"INT_PEAK": 0}, "/INT_PEAK: is not above 0"),
    ("not JSON", "{", "line 1, column 2: is not JSON"),
    ("NaN", '{"FP_SINGLE_PEAK": NaN}', "NaN is not a JSON number"),
    ("infinity", '{"FP_SINGLE_PEAK": Infinity}', "Infinity is not a JSON number"),
    ("overflow", '{"FP_SINGLE_PEAK": 1e999}', "is not above 0 and at most"),
    ("digits", '{"FP_SINGLE_PEAK": ' + "9" * 10_000 + "}", "is not JSON this format allows"),
    ("twice", '{"INT_PEAK": 1, "INT_PEAK": 2}', "twice"),
    ("deep", '{"device":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ("large", " " * (1 << 20) + "{}", "is larger than 1 MiB"),
]


@pytest.mark.parametrize(("document", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused_says_where_and_what_to_do(tmp_path: Path, document: Any, message: str) -> None:
    path = write(tmp_path, document)
    with pytest.raises(InputError) as caught:
        read_roofs(path)
    assert message in str(caught.value)
    assert caught.value.path == path
    assert caught.value.remedy


@pytest.mark.parametrize(
    "document", [row[1] for row in REFUSED if isinstance(row[1], dict) and row[1].get("format") == "gpa-lsp/roofs/1"]
)
def test_the_schema_refuses_the_same(document: dict[str, Any]) -> None:
    if document.get("device", {}).get("name") == "a\nb":
        pytest.skip("the schema does not tell printable characters")
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [own(), own(device=None, peaks=None), own(comment="x", device={"comment": 1, "name": None}), own(clocks_hz={})],
)
def test_what_may_be_left_out(tmp_path: Path, document: dict[str, Any]) -> None:
    roofs = read_roofs(write(tmp_path, document))
    assert (roofs.device_name, roofs.peaks, roofs.sm_hz) == (None, (), None)
    assert VALIDATOR.is_valid(document)


def test_a_newer_version_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedInputError, match="gpa-lsp/roofs/2"):
        read_roofs(write(tmp_path, {"format": "gpa-lsp/roofs/2"}))


def test_what_is_no_file_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_roofs(tmp_path)
    with pytest.raises(InputError):
        read_roofs(tmp_path / "missing.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match="UTF-8"):
        read_roofs(tmp_path / "binary.json")


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
keys = st.sampled_from(("format", "device", "clocks_hz", "peaks", "bandwidths", "measured_on", "L1_BW", "INT_PEAK"))


@given(document=st.dictionaries(keys, json_values, max_size=5), is_ours=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_the_file_holds_it_is_read_or_refused_with_a_remedy(tmp_path, document, is_ours):
    path = write(tmp_path, {**document, **({"format": "gpa-lsp/roofs/1"} if is_ours else {})})
    try:
        roofs = read_roofs(path)
    except InputError as error:
        assert error.remedy and error.path == path
        return
    assert all(0 < peak.ops_per_s < float("inf") for peak in roofs.peaks)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_roofs(ROOFS, tmp_path / "file" / "roofs.json")


def test_numbers_that_are_none_are_not_written(tmp_path: Path) -> None:
    bad = replace(ROOFS, sm_hz=float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_roofs(bad, tmp_path / "roofs.json")
    assert list(tmp_path.iterdir()) == []


def test_roofs_are_kept_by_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_kept_roofs("NVIDIA H200", tmp_path) is None
    path = tmp_path / name_roofs_file("NVIDIA H200")
    write_roofs(ROOFS, path)
    assert find_kept_roofs("NVIDIA H200", tmp_path) == path
    assert find_kept_roofs("nvidia-h200", tmp_path) == path
    assert find_kept_roofs("NVIDIA H100", tmp_path) is None
    kept = KeptRoofs(folder=tmp_path)
    assert (kept.find("NVIDIA H200"), kept.find("NVIDIA H100"), kept.find(None)) == (ROOFS, None, None)
    assert kept.problems == ()
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path))
    assert find_roofs_folder() == tmp_path / "roofs"
    assert find_kept_roofs("NVIDIA H200") is None


@pytest.mark.parametrize("name", ["../../etc/passwd", "/", "..", "", "a" * 1000, "Ж", "con\0"])
def test_file_names_stay_in_their_folder(name: str) -> None:
    file_name = name_roofs_file(name)
    assert Path(file_name).name == file_name
    assert file_name.endswith(".json") and not file_name.startswith(".") and len(file_name) < 120


def test_a_kept_file_that_is_broken_is_a_problem_once(tmp_path: Path) -> None:
    path = tmp_path / name_roofs_file("A GPU")
    path.write_text('{"format": "gpa-lsp/roofs/1", "peaks": 3}')
    choice = KeptRoofs(folder=tmp_path)
    assert [choice.find("A GPU"), choice.find("A GPU")] == [None, None]
    (problem,) = choice.problems
    assert problem.path == path
    assert "measured ceilings of A GPU cannot be used" in problem.message
