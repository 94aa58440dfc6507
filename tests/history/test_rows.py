"""Rows are read as they were written; others are reported as damaged."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.foundation.figures import Spread
from gpa_lsp.report.changes import LaunchTimes, ReasonCount
from gpa_lsp.report.history.model import Commit, Measurement, RememberedAdvice, RememberedLine
from gpa_lsp.report.history.rows import (
    DamagedRowError,
    make_storable,
    make_storable_time,
    pack_text,
    read_capability,
    read_lines,
    read_measurement,
    unpack_text,
    write_capability,
    write_facts,
    write_lines,
)
from tests.history.recordings import make_recording

COUNTS = st.integers(0, 1 << 70)
TIMES = st.none() | st.floats(0, 1e18)
SPREADS = st.none() | st.builds(
    Spread,
    count=st.integers(1, 1000),
    mean=st.floats(0, 1e18),
    minimum=st.floats(0, 1e18),
    maximum=st.floats(0, 1e18),
    standard_deviation=TIMES,
)
MEASUREMENTS = st.builds(
    replace,
    st.just(make_recording().measurement),
    name=st.text(),
    duration_ns=TIMES,
    times=st.builds(LaunchTimes, cycles=SPREADS, ns=SPREADS),
    total_samples=COUNTS,
    latency_samples=COUNTS,
    by_reason=st.dictionaries(st.text(), st.builds(ReasonCount, all_samples=COUNTS, latency_samples=COUNTS)),
    executed_instructions=TIMES,
    code_digest=st.none() | st.text(),
    advice=st.lists(
        st.builds(RememberedAdvice, optimizer=st.text(), title=st.text(), speedup=st.floats(1, math.inf)), max_size=5
    ).map(tuple),
    commit=st.none() | st.builds(Commit, digest=st.text(), subject=st.text()),
)
LINES = st.lists(
    st.builds(
        RememberedLine,
        file=st.sampled_from(["a.cu", "b.h"]),
        line=st.integers(0, 1 << 40),
        samples=COUNTS,
        latency_samples=COUNTS,
        called_samples=st.integers(0, 1000).map(lambda eighths: eighths / 8),
        caused_samples=st.none() | st.integers(0, 1000).map(lambda eighths: eighths / 8),
        reason=st.text(),
    ),
    max_size=20,
).map(tuple)


def read(measurement: Measurement, text: str) -> Measurement:
    columns = (measurement.measured_ns, measurement.profile, measurement.session)
    return read_measurement(measurement.key, columns, text)


@given(MEASUREMENTS)
def test_a_measurement_is_read_as_it_was_written(measurement: Measurement) -> None:
    text = write_facts(measurement)
    assert read(measurement, text) == measurement
    assert json.loads(text)["name"] == measurement.name


@given(LINES, st.booleans())
def test_lines_are_read_as_they_were_written(lines: tuple[RememberedLine, ...], is_whole: bool) -> None:
    packed = write_lines(lines, {"a.cu": 0, "b.h": 1}, is_whole=is_whole)
    assert read_lines(packed, ["a.cu", "b.h"]) == (lines, is_whole)


@given(st.text())
def test_texts_are_unpacked_as_they_were_packed(text: str) -> None:
    assert unpack_text(pack_text(text)) == text


@given(st.text(alphabet=st.characters(), max_size=100))
def test_what_is_storable_can_be_encoded_and_stays_so(text: str) -> None:
    stored = make_storable(text)
    assert stored.encode().decode() == stored
    assert make_storable(stored) == stored


def test_names_are_told_apart_however_long_or_odd() -> None:
    odd = ["\ud800", "k" * 100_000, "k" * 100_001, "k" * 99_999 + "j", "k", ""]
    assert len({make_storable(name) for name in odd}) == len(odd)
    assert max(len(make_storable(name)) for name in odd) <= 16_384


def test_times_fit_a_column() -> None:
    assert [make_storable_time(time) for time in (-5, 7, 1 << 80)] == [0, 7, (1 << 63) - 1]


@pytest.mark.parametrize("capability", [None, (8, 6), (12, 0)])
def test_capabilities(capability: tuple[int, int] | None) -> None:
    assert read_capability(write_capability(capability)) == capability


def test_rows_of_before_commits_were_remembered_know_none_and_stay_as_they_are() -> None:
    measurement = make_recording().measurement
    text = write_facts(measurement)
    assert "commit" not in json.loads(text)
    assert read(measurement, text).commit is None


@pytest.mark.parametrize("commit", ["abc", ["abc"], ["a", "b", "c"], 5, {}])
def test_other_commits_are_damage(commit: object) -> None:
    facts = {**json.loads(write_facts(make_recording().measurement)), "commit": commit}
    with pytest.raises(DamagedRowError):
        read(make_recording().measurement, json.dumps(facts))


@given(st.text())
def test_other_text_is_no_measurement(text: str) -> None:
    with pytest.raises(DamagedRowError):
        read(make_recording().measurement, text)


@pytest.mark.parametrize(
    "change", [{"launch": []}, {"cycles": [1]}, {"advice": [["a"]]}, {"by_reason": {"wait": 3}}, {"name": None}]
)
def test_facts_of_other_shapes_are_damaged(change: dict) -> None:
    measurement = make_recording().measurement
    facts = {**json.loads(write_facts(measurement)), **change}
    if change == {"name": None}:
        del facts["name"]
    with pytest.raises(DamagedRowError):
        read(measurement, json.dumps(facts))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"is_whole":true,"lines":[[0]]}', '{"is_whole":true,"lines":[[7,1,1,1,1,1,"x"]]}']
)
def test_lines_of_other_shapes_are_damaged(text: str) -> None:
    with pytest.raises(DamagedRowError):
        read_lines(pack_text(text), ["a.cu"])


@pytest.mark.parametrize("packed", [b"", b"rubbish", pack_text("text" * 1000)[:-5], b"\x78\x9c"])
def test_what_was_not_packed_is_damaged(packed: bytes) -> None:
    with pytest.raises(DamagedRowError):
        unpack_text(packed)


def test_a_small_blob_that_unpacks_to_too_much_is_not_unpacked() -> None:
    with pytest.raises(DamagedRowError, match="no end"):
        unpack_text(pack_text("\0" * (65 << 20)))
