"""Version 2 of our own JSON format: what a collector need not know, what it may say instead, and that version 1 stays what it was."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import InputError, ProblemSeverity
from gpa_lsp.profile.model import Aggregate, Profile, Sampling
from gpa_lsp.profile.read import read_profile
from tests.profile.native_writing import render_native
from tests.profile.test_native import VALIDATOR

LEAST_KNOWN: dict[str, Any] = {
    "format": "gpa-lsp/profile/2",
    "comment": "what continuous sampling with CUPTI can say: functions and counts, and how many samples it lost",
    "modules": [{"id": 1, "functions": [{"name": "saxpy"}]}, {"id": 2}],
    "sampling": {"period_cycles": 2048, "dropped_samples": 7, "foreign_samples": 20, "total_samples": 140},
    "samples_truncated": True,
    "launches": [
        {
            "kernel": "saxpy",
            "module": 1,
            "aggregate": {},
            "sampling": {"dropped_samples": 3},
            "samples": [
                {"function": "saxpy", "pc_offset": 32, "by_reason": {"long_scoreboard": {"all": 90}}},
                {"function": "saxpy", "pc_offset": 48, "by_reason": {"selected": {"all": 10}}},
                {"module": 2, "function": "vprintf", "pc_offset": 0, "by_reason": {"wait": {"all": 10}}},
            ],
        }
    ],
}
"""The smallest file in which everything that can be unknown is."""

Read = Callable[[Any], Profile]


@pytest.fixture
def read_json(tmp_path: Path) -> Read:
    """Write a document and read it; what is read must be allowed by the schema."""

    def read(document: Any) -> Profile:
        path = tmp_path / "test.gpa-profile.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        profile = read_profile(path)
        VALIDATOR.validate(document)
        return profile

    return read


def change(**members: Any) -> dict[str, Any]:
    """The least known file with other members of its launch; None takes one away."""
    document: dict[str, Any] = json.loads(json.dumps(LEAST_KNOWN))
    launch = {**document["launches"][0], **members}
    document["launches"] = [{name: value for name, value in launch.items() if value is not None}]
    return document


def test_what_is_absent_is_unknown(read_json: Read) -> None:
    profile = read_json(LEAST_KNOWN)
    (launch,) = profile.launches
    assert profile.format_name == "gpa-lsp/profile/2"
    assert (launch.grid, launch.block, launch.aggregate, launch.launch_count) == (
        None,
        None,
        Aggregate(launches=None),
        None,
    )
    assert launch.samples is not None
    assert launch.samples.latency_samples is None
    assert launch.samples.all_samples.sum() == 110
    assert launch.sampling == Sampling(dropped_samples=3)
    assert profile.sampling == Sampling(period_cycles=2048, dropped_samples=7, foreign_samples=20, total_samples=140)
    assert profile.samples_truncated


def test_a_function_of_another_module_has_its_place_outside(read_json: Read) -> None:
    profile = read_json(LEAST_KNOWN)
    (launch,) = profile.launches
    assert [function.name for function in profile.modules[2].functions] == ["vprintf"]
    foreign = profile.modules[2].functions[0].address
    assert launch.samples is not None
    assert launch.samples.addresses[-1] == foreign
    assert launch.function_addresses == (profile.modules[1].functions[0].address,)


def test_what_belongs_to_no_launch_is_said(read_json: Read) -> None:
    found = {problem.message: problem.severity for problem in read_json(LEAST_KNOWN).problems}
    assert found == {
        "a sampling buffer overflowed; later code was sampled less, or not at all": ProblemSeverity.WARNING,
        "7 samples of the run were dropped, of which kernels is unknown; all shares are less certain": ProblemSeverity.WARNING,
        "20 samples of the run are of code outside all launches of the profile; no kernel counts them": ProblemSeverity.NOTE,
    }


@pytest.mark.parametrize(
    ("total", "sampling", "complaint"),
    [
        (140, {"dropped_samples": 3}, None),
        (139, {"dropped_samples": 3}, "add up to 140, the collector counted 139"),
        (200, {"dropped_samples": 3}, "add up to 140, the collector counted 200"),
        (137, None, None),
    ],
)
def test_everything_that_was_sampled_is_somewhere(
    read_json: Read, total: int, sampling: dict[str, int] | None, complaint: str | None
) -> None:
    document = change(sampling=sampling)
    document["sampling"]["total_samples"] = total
    wrong = [problem.message for problem in read_json(document).problems if problem.severity is ProblemSeverity.ERROR]
    assert len(wrong) == (complaint is not None)
    assert complaint is None or wrong[0].endswith(complaint)


def test_a_launchs_own_total_is_checked_as_well(read_json: Read) -> None:
    """What is not known of the parts may be of any size, but not negative."""
    for counts, is_wrong in (({"total_samples": 150}, False), ({"total_samples": 100}, True)):
        problems = read_json(change(sampling=counts)).problems
        assert (
            any("the collector counted 1" in problem.message and problem.place == "launch 0" for problem in problems)
            is is_wrong
        )


def test_the_sampling_period_is_read_from_either_place(read_json: Read) -> None:
    periods = (
        ({"sampling": {"period_cycles": 1024}}, 1024),
        ({"metrics": {"smsp__pcsamp_interval_cycles": 4096}}, 4096),
        ({"metrics": {"smsp__pcsamp_interval": 6}}, 2048),
        ({"metrics": {"smsp__pcsamp_interval": 1e9}}, None),
        ({}, None),
    )
    for members, cycles in periods:
        assert read_json(change(**members)).launches[0].sampling_period_cycles == cycles


def test_an_aggregate_has_the_mean_of_its_launches(read_json: Read) -> None:
    launch = read_json(
        change(aggregate={"launches": 1200}, duration_ns=12800, grid=[4, 1, 1], block=[32, 1, 1])
    ).launches[0]
    assert (launch.launch_count, launch.read_number("gpu__time_duration.sum")) == (1200, 12800)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"aggregate": {"launches": 0}},
            "/launches/0/aggregate/launches: is not between 1 and",
        ),
        ({"aggregate": {"launches": -3}}, "/launches/0/aggregate/launches: is not between 1 and"),
        ({"aggregate": {"count": 3}}, "/launches/0/aggregate/count: is not a member this format has"),
        ({"aggregate": 3}, "/launches/0/aggregate: is an integer, not an object"),
        ({"duration_ns": 5}, "/launches/0/aggregate: lacks 'launches', though a duration is given"),
        ({"grid": "unknown"}, "/launches/0/grid: is a string, not an array"),
        (
            {"sampling": {"period_cycles": 0}},
            "/launches/0/sampling/period_cycles: is not between 1 and",
        ),
        ({"sampling": {"dropped_samples": 1.5}}, "/launches/0/sampling/dropped_samples: is a number, not an integer"),
        ({"sampling": {"dropped_samples": 2**60}}, "/launches/0/sampling/dropped_samples: is not between 0 and"),
        ({"sampling": []}, "/launches/0/sampling: is an array, not an object"),
        (
            {
                "samples": [
                    {"function": "saxpy", "pc_offset": 0, "by_reason": {"wait": {"all": 2, "latency": 1}}},
                    {"function": "saxpy", "pc_offset": 16, "by_reason": {"wait": {"all": 2}}},
                ]
            },
            "/launches/0/samples/1/by_reason/wait: lacks the member 'latency', which other counts of this launch have",
        ),
        (
            {"samples": [{"module": 9, "function": "f", "pc_offset": 0, "by_reason": {}}]},
            "/samples/0/module: is 9, which is not a module",
        ),
        ({"samples": [{"module": 2, "address": "0x10", "by_reason": {}}]}, "/launches/0/samples/0: needs either"),
        (
            {"samples": [{"module": None, "function": "f", "pc_offset": 0, "by_reason": {}}]},
            "/samples/0/module: is null, not an integer",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_pointer(read_json: Read, members: dict[str, Any], message: str) -> None:
    document = change(**members)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_json(document)
    assert caught.value.path is not None
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"grid": None}, "/launches/0: lacks the member 'grid'"),
        ({"block": None}, "/launches/0: lacks the member 'block'"),
        ({"aggregate": {"launches": 2}}, "/launches/0/aggregate: is not a member this format has"),
        ({"sampling": {}}, "/launches/0/sampling: is not a member this format has"),
        (
            {"samples": [{"function": "saxpy", "pc_offset": 0, "by_reason": {"wait": {"all": 2}}}]},
            "/samples/0/by_reason/wait: lacks the member 'latency'",
        ),
        (
            {"samples": [{"module": 1, "function": "saxpy", "pc_offset": 0, "by_reason": {}}]},
            "/samples/0/module: is not a member this format has",
        ),
    ],
)
def test_version_1_has_none_of_it(read_json: Read, members: dict[str, Any], message: str) -> None:
    usual = {"aggregate": None, "sampling": None, "samples": [], "grid": [1, 1, 1], "block": [32, 1, 1]}
    document = change(**{**usual, **members})
    for name in ("sampling", "samples_truncated"):
        document.pop(name)
    document["format"] = "gpa-lsp/profile/1"
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(InputError, match=re.escape(message)):
        read_json(document)


@pytest.mark.parametrize("member", ["sampling", "samples_truncated"])
def test_nor_does_a_run_of_version_1(read_json: Read, member: str) -> None:
    document = {"format": "gpa-lsp/profile/1", "launches": [], member: LEAST_KNOWN[member]}
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(InputError, match=f"/{member}: is not a member this format has"):
        read_json(document)


COUNTS = st.dictionaries(
    st.sampled_from(["wait", "selected", "long_scoreboard"]),
    st.integers(0, 1000).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most))),
)


@given(rows=st.lists(COUNTS, max_size=4))
def test_a_profile_of_version_1_is_the_same_in_version_2(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "rewritten.gpa-profile.json"
    samples = [
        {
            "function": "k",
            "pc_offset": 16 * row,
            "by_reason": {name: dict(zip(("all", "latency"), pair, strict=True)) for name, pair in counts.items()},
        }
        for row, counts in enumerate(rows)
    ]
    document = {
        "format": "gpa-lsp/profile/1",
        "launches": [{"kernel": "k", "grid": [1, 2, 3], "block": [32, 1, 1], "duration_ns": 5.0, "samples": samples}],
    }
    path.write_text(json.dumps(document))
    before = read_profile(path)
    path.write_text(render_native(before))
    after = read_profile(path)
    assert (before.format_name, after.format_name) == ("gpa-lsp/profile/1", "gpa-lsp/profile/2")
    one, other = before.launches[0], after.launches[0]
    assert (one.grid, one.block, one.aggregate, one.sampling) == (other.grid, other.block, None, Sampling())
    assert one.samples is not None and other.samples is not None
    assert describe_counts(one.samples) == describe_counts(other.samples)


def describe_counts(samples: Any) -> list[Any]:
    """Address, reason, all, latency of everything that was counted."""
    return [
        (address, reason, int(samples.all_samples[row, column]), int(samples.latency_samples[row, column]))
        for row, address in enumerate(samples.addresses.tolist())
        for column, reason in enumerate(samples.reasons)
        if samples.all_samples[row, column]
    ]
