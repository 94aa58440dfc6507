"""Stall samples: families, columns, odd encodings, saturation."""

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.ncu import schema
from gpa_lsp.profile.ncu.samples import InstructionCounts, _read_pair, read_all_counts, read_counts
from tests.profile.report_builder import BASE_ADDRESS, STALL_PREFIX, ReportBuilder, encode_value

WAIT = f"{STALL_PREFIX}wait"
BOTH = ("", "_not_issued")


def _read(report: ReportBuilder, *metrics: bytes) -> tuple[Launch, list[str]]:
    report.add_result(report.make_result(metrics=metrics, source_id=None))
    profile = report.read()
    return profile.launches[0], [problem.message for problem in profile.problems]


def test_both_families_become_columns(report: ReportBuilder) -> None:
    counts = {"wait": {32: (300, 200)}, "warp_of_the_future": {16: (90, 85), 32: (1, 0)}, "selected": {0: (7, 0)}}
    launch, problems = _read(report, *report.encode_samples(counts))
    samples = launch.samples
    assert samples.reasons == ("selected", "wait", "warp_of_the_future")
    assert (samples.addresses - np.uint64(BASE_ADDRESS)).tolist() == [0, 16, 32]
    assert samples.all_samples.tolist() == [[7, 0, 0], [0, 0, 90], [0, 300, 1]]
    assert samples.latency_samples.tolist() == [[0, 0, 0], [0, 0, 85], [0, 200, 0]]
    assert samples.total_samples == 398
    assert samples.addresses.dtype == np.uint64
    assert samples.all_samples.dtype == samples.latency_samples.dtype == np.int64
    assert problems == []


@pytest.mark.parametrize(
    ("name", "value", "instances"),
    [
        (f"warpsampling:{WAIT}", 5, [(10**18, 5)]),
        ("group:smsp__pcsamp_warp_stall_reasons", WAIT, ()),
        (f"{WAIT}.sum", 5, [(16, 5)]),
        (WAIT, 5, [(0, 5)]),
    ],
    ids=["time series", "group", "average", "a scalar repeated as instance zero"],
)
def test_what_holds_no_samples(report: ReportBuilder, name: str, value: int | str, instances) -> None:
    launch, problems = _read(report, report.encode_metric(name, value, instances))
    assert (launch.samples, problems) == (None, [])


def test_lists_of_different_instructions_are_united(report: ReportBuilder) -> None:
    lists = {"wait": [(48, 1), (16, 2)], "drain": [(32, 4)]}
    metrics = [
        report.encode_metric(f"{STALL_PREFIX}{reason}{suffix}", None, instances)
        for reason, instances in lists.items()
        for suffix in BOTH
    ]
    samples = _read(report, *metrics)[0].samples
    assert samples.addresses.tolist() == [16, 32, 48]
    assert samples.all_samples.tolist() == [[0, 2], [4, 0], [0, 1]]


@pytest.mark.parametrize("kind", ["float64", "float32", "uint32"])
def test_counts_in_another_encoding_are_read(report: ReportBuilder, kind: str) -> None:
    metrics = [report.encode_metric(WAIT + suffix, None, [(16, 3), (32, 5)], kind=kind) for suffix in BOTH]
    launch, problems = _read(report, *metrics)
    assert launch.samples.all_samples.tolist() == [[3], [5]]
    assert problems == []


@pytest.mark.parametrize("instance", [("FFMA", 3), (16, "three"), (16, 0.5), (16, float("nan")), (16, 1 << 60)])
def test_what_is_no_count_by_address_is_left_out_with_a_word(report: ReportBuilder, instance) -> None:
    good = report.encode_samples({"drain": {0: (1, 1)}})
    launch, problems = _read(report, *good, report.encode_metric(WAIT, None, [instance]))
    assert launch.samples.reasons == ("drain",)
    assert problems == [f"metric {WAIT} does not hold counts per instruction and is left out"]


def test_half_collected_families_are_said(report: ReportBuilder) -> None:
    drain = report.encode_metric(f"{STALL_PREFIX}drain_not_issued", None, [(16, 2)])
    launch, problems = _read(report, report.encode_metric(WAIT, None, [(16, 3)]), drain)
    assert launch.samples.all_samples.tolist() == [[2, 3]]
    assert launch.samples.latency_samples is None
    assert problems == [
        "the report has no not-issued counts of wait, so its not-issued samples are unknown",
        "the report has only not-issued counts of drain",
    ]


def test_a_sum_that_differs_from_the_profilers_own_is_a_problem(report: ReportBuilder) -> None:
    total = report.encode_metric("smsp__pcsamp_sample_count", 6)
    _, problems = _read(report, *report.encode_samples({"wait": {16: (5, 5)}}), total)
    assert problems == ["the stall samples add up to 5, the profiler counted 6"]


@pytest.mark.parametrize(
    ("name", "value", "count", "is_truncated"),
    [
        ("", None, 3_669_964, True),
        ("", None, 3_659_999, False),
        ("buffer_size_bytes", 33_554_432, 3_669_964, True),
        ("buffer_size_bytes", 536_870_912, 52_027_062, False),
        ("buffer_overflow", 1, 10, True),
        ("buffer_overflow", 0, 3_669_964, False),
        ("dropped_bytes", 0, 10, False),
        ("dropped_bytes", 64, 10, True),
    ],
)
def test_saturation_of_the_buffer(report: ReportBuilder, name: str, value, count: int, is_truncated: bool) -> None:
    metrics = report.encode_samples({"wait": {16: (count, count)}})
    launch, _ = _read(report, *metrics, report.encode_metric(f"smsp__pcsamp_{name}", value))
    assert launch.samples_truncated is is_truncated


_ADDRESS = st.integers(1, 2**64 - 1)
_COUNT = st.integers(0, 2**53 - 1)


_HEAD = st.sampled_from(
    [b"\x08\x05", b"\x08\x85\x02\x12\x03\x28\x80\x01", b"\x12\x02\x28\x07\x08\x05", b"\x08\x05\x12\x02\x20\x07"]
)
_TAIL = st.sampled_from([b"", b"\x20\x00", b"\x28\x00"])


def _encode_instances(pairs: list[tuple[int, int]]) -> list[bytes]:
    return [
        schema.Instance(correlation_id=encode_value(address), value=encode_value(count)).SerializeToString()
        for address, count in pairs
    ]


def _encode_metric(instances: list[bytes], head: bytes = b"\x08\x05", tail: bytes = b"") -> bytes:
    return head + bytes(schema.ColumnMetric(instances=instances).SerializeToString()) + tail


def _list_pairs(columns: InstructionCounts | None) -> list[tuple[int, int]]:
    return list(zip(columns[0].tolist(), columns[1].tolist(), strict=True))


@given(st.lists(st.tuples(_ADDRESS, _COUNT)), _HEAD, _TAIL)
def test_columns_are_what_protobuf_reads_one_by_one(pairs: list[tuple[int, int]], head: bytes, tail: bytes) -> None:
    instances = _encode_instances(pairs)
    assert _list_pairs(read_counts(_encode_metric(instances, head, tail))) == pairs
    assert [_read_pair(data) for data in instances] == pairs


@given(st.lists(st.tuples(st.lists(st.tuples(_ADDRESS, _COUNT)), _HEAD, _TAIL)))
def test_metrics_read_together_are_those_read_alone(metrics: list[tuple[list[tuple[int, int]], bytes, bytes]]) -> None:
    encoded = [_encode_metric(_encode_instances(pairs), head, tail) for pairs, head, tail in metrics]
    assert [_list_pairs(columns) for columns in read_all_counts(encoded)] == [pairs for pairs, *_ in metrics]


def test_instances_that_end_where_another_metric_begins_are_read_apart() -> None:
    halves = _encode_metric(_encode_instances([(16, 5), (32, 6)]), head=b"")
    first, second = (b"\x08\x05" + half for half in (halves[:15], halves[15:]))
    with pytest.raises(DecodeError):
        read_all_counts([first, second])


@given(st.lists(st.tuples(_ADDRESS, _COUNT), min_size=1), st.data())
def test_a_shape_the_fast_path_does_not_know_is_read_the_slow_way(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    instances = []
    for address, count in pairs:
        parts = [
            schema.Instance(correlation_id=encode_value(address)).SerializeToString(),
            schema.Instance(value=encode_value(count)).SerializeToString(),
        ]
        unknown = data.draw(st.sampled_from([b"", b"\x18\x05", b"\x22\x01a"]))
        instances.append(b"".join(data.draw(st.permutations([*parts, unknown]))))
    assert _list_pairs(read_counts(_encode_metric(instances))) == pairs
