"""What is written is read back, whatever the profile; and the schema and the reader agree on what is allowed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.native.parse import read_native
from gpa_lsp.profile.read import read_profile
from tests.conftest import examples, find_corpus
from tests.profile.mutations import mutate
from tests.profile.native_writing import render_native, write_native
from tests.profile.profile_strategies import build_profile, describe
from tests.profile.report_builder import build_small_report
from tests.profile.test_native import SMALLEST, VALIDATOR
from tests.profile.test_native_unknowns import LEAST_KNOWN

_FOLDER = find_corpus()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("native") / "test.gpa-profile.json"


# Drawing a profile takes far longer than writing and reading it.
@examples(60)
@given(profile=build_profile())
def test_what_is_written_is_read_back(target: Path, profile: Profile) -> None:
    write_native(profile, target)
    document = json.loads(target.read_text(encoding="utf-8"))
    VALIDATOR.validate(document)
    assert describe(read_native(target)) == describe(profile)


def test_a_report_survives_the_conversion(tmp_path: Path) -> None:
    source = tmp_path / "small.ncu-rep"
    source.write_bytes(build_small_report())
    report = read_profile(source)
    write_native(report, tmp_path / "small.gpa-profile.json")
    native = read_profile(tmp_path / "small.gpa-profile.json")
    assert describe(native).replace("gpa-lsp/profile/2", "ncu-report") == describe(report)


@pytest.mark.corpus
@pytest.mark.parametrize("prefix", ["rtx3070", "rtx5090", "v100_miniweather_baseline"])
def test_real_reports_survive_the_conversion(prefix: str, tmp_path: Path) -> None:
    if _FOLDER is None:
        pytest.skip("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    for path in (_FOLDER / "ncu").glob(f"{prefix}*"):
        report = read_profile(path)
        write_native(report, tmp_path / "real.gpa-profile.json")
        native = read_profile(tmp_path / "real.gpa-profile.json")
        assert describe(native).replace("gpa-lsp/profile/2", "ncu-report") == describe(report)


def test_one_line_per_sample_row(tmp_path: Path) -> None:
    path = tmp_path / "a.gpa-profile.json"
    path.write_text(SMALLEST)
    text = render_native(read_profile(path))
    row = '{"function": "saxpy", "pc_offset": 32, "by_reason": {"long_scoreboard": {"all": 90, "latency": 85}}}'
    assert row in [line.strip().rstrip(",") for line in text.splitlines()]


def test_writing_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gpa-profile.json"
    path.write_text(SMALLEST)
    profile = read_profile(path)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_native(profile, path)
    assert [found.name for found in tmp_path.iterdir()] == ["a.gpa-profile.json"]
    assert path.read_text() == SMALLEST


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.sampled_from(["0x10", "8.0", "nan", "warning"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _list_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, child in children for found in _list_places(child, (*place, key)))]


NEW_MEMBERS = ("aggregate", "sampling", "samples_truncated", "launches", "dropped_samples", "latency")
"""Of version 2, among others of that name."""


@pytest.fixture(scope="module")
def documents(target: Path) -> list[str]:
    """The smallest file, one with everything a report has, and one of a collector that knows little."""
    source = target.with_name("small.ncu-rep")
    source.write_bytes(build_small_report())
    return [SMALLEST, render_native(read_profile(source)), json.dumps(LEAST_KNOWN)]


@st.composite
def mutate_document(draw: st.DrawFn, text: str) -> Any:
    """A document with one to three members replaced, removed or added."""
    document = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _list_places(document) if place]
        if not places:
            break
        *parents, last = draw(st.sampled_from(places))
        container = document
        for key in parents:
            container = container[key]
        kind = draw(st.sampled_from(["replace", "remove", "add"]))
        if kind == "replace":
            container[last] = draw(JSON)
        elif kind == "remove":
            del container[last]
        elif isinstance(container, dict):
            container[draw(st.sampled_from([*NEW_MEMBERS, "comment", "module", "samples", "address", "x"]))] = draw(
                JSON
            )
        else:
            container.append(draw(JSON))
    return document


@given(data=st.data())
def test_the_reader_is_at_least_as_strict_as_the_schema(
    target: Path, documents: list[str], data: st.DataObject
) -> None:
    document = data.draw(mutate_document(data.draw(st.sampled_from(documents))))
    target.write_text(json.dumps(document), encoding="utf-8")
    try:
        read_profile(target)
    except InputError as error:
        assert error.path == target
        assert error.remedy
    else:
        VALIDATOR.validate(document)


@given(data=st.data())
def test_mutated_text(target: Path, data: st.DataObject) -> None:
    target.write_bytes(data.draw(mutate(SMALLEST.encode())))
    try:
        read_profile(target)
    except InputError as error:
        assert error.path == target
        assert error.remedy
    else:
        VALIDATOR.validate(json.loads(target.read_text(encoding="utf-8-sig")))
