"""Metrics: all five encodings, instances, and decoding on access."""

import math
import pickle
from collections.abc import Callable

import pytest

from gpa_lsp.profile.model import Metric, Profile
from gpa_lsp.profile.ncu.metrics import LazyMetrics
from tests.profile.report_builder import ReportBuilder

Read = Callable[..., Profile]


def _read_metrics(read_bytes: Read, builder: ReportBuilder, metrics: list[bytes]) -> Profile:
    builder.add_result(builder.make_result(metrics=metrics, source_id=None))
    return read_bytes(builder.build())


@pytest.mark.parametrize(
    ("value", "kind"),
    [("text", "text"), (0.5, "float32"), (0.1, "float64"), (7, "uint32"), (2**64 - 1, "uint64"), (0, "uint64")],
)
def test_every_encoding_of_a_value(read_bytes: Read, value: float | str, kind: str) -> None:
    builder = ReportBuilder()
    metric = builder.encode_metric("m", value, [(16, value)], kind=kind)
    metrics = _read_metrics(read_bytes, builder, [metric]).launches[0].metrics
    assert metrics["m"] == Metric(name="m", value=value, instance_ids=(16,), instance_values=(value,))


def test_the_upb_backend_decodes() -> None:
    from google.protobuf.internal import api_implementation

    assert api_implementation.Type() == "upb"


def test_absent_aggregate_and_text_ids(read_bytes: Read) -> None:
    builder = ReportBuilder()
    metric = builder.encode_metric("sass__inst_executed_per_opcode", None, [("FFMA", 12), ("LDG", 3)])
    metrics = _read_metrics(read_bytes, builder, [metric]).launches[0].metrics
    assert metrics["sass__inst_executed_per_opcode"] == Metric(
        name="sass__inst_executed_per_opcode", value=None, instance_ids=("FFMA", "LDG"), instance_values=(12, 3)
    )


def test_time_series_are_marked(read_bytes: Read) -> None:
    builder = ReportBuilder()
    metric = builder.encode_metric("pmsampling:x", 1.0, [(10**18, 0.5)], correlation_kind=1)
    assert _read_metrics(read_bytes, builder, [metric]).launches[0].metrics["pmsampling:x"].over_time


def test_the_last_of_two_metrics_of_one_name_counts(read_bytes: Read) -> None:
    builder = ReportBuilder()
    metrics = [builder.encode_metric("gpu__time_duration.sum", value) for value in (142720.0, 145056.0)]
    assert _read_metrics(read_bytes, builder, metrics).launches[0].read_number("gpu__time_duration.sum") == 145056.0


def test_a_name_outside_the_string_table_is_a_problem(read_bytes: Read) -> None:
    builder = ReportBuilder()
    lost = builder.encode_metric("lost", 1)
    kept = ReportBuilder(strings=["kept"]).encode_metric("kept", 2)
    builder.strings.clear()
    builder.name_id("kept")
    lost = lost.replace(b"\x08\x00", b"\x08\x63", 1)
    profile = _read_metrics(read_bytes, builder, [lost, kept])
    assert list(profile.launches[0].metrics) == ["kept"]
    assert [problem.message for problem in profile.problems] == [
        "1 metrics name no entry of the string table and are left out"
    ]


def test_an_undecodable_metric_is_a_problem(read_bytes: Read) -> None:
    builder = ReportBuilder()
    profile = _read_metrics(read_bytes, builder, [b"\x08\x00\x12\xff", builder.encode_metric("kept", 2)])
    assert profile.launches[0].read_number("kept") == 2
    assert [problem.message for problem in profile.problems] == ["1 metrics cannot be decoded and are left out"]
    assert profile.problems[0].kernel == "_Z4axpyPf"


def test_not_a_number_stays_what_it_is(read_bytes: Read) -> None:
    builder = ReportBuilder()
    profile = _read_metrics(read_bytes, builder, [builder.encode_metric("m", float("nan"))])
    value = profile.launches[0].metrics["m"].value
    assert isinstance(value, float)
    assert math.isnan(value)
    assert profile.launches[0].read_number("m") is None


@pytest.mark.parametrize("value", [1e25, -1e300, float("inf"), 1e-25, 5e-324, "12"])
def test_what_nothing_can_measure_is_no_number(read_bytes: Read, value: float | str) -> None:
    builder = ReportBuilder()
    launch = _read_metrics(read_bytes, builder, [builder.encode_metric("m", value)]).launches[0]
    assert launch.read_number("m") is None
    assert launch.read_count("m") is None


@pytest.mark.parametrize(("value", "count"), [(0, 0), (41.6, 42), (1 << 53, 1 << 53), (1 << 54, None), (-1.0, None)])
def test_a_count_is_whole_and_not_negative(read_bytes: Read, value: float, count: int | None) -> None:
    builder = ReportBuilder()
    launch = _read_metrics(read_bytes, builder, [builder.encode_metric("m", value)]).launches[0]
    assert launch.read_number("m") == value
    assert launch.read_count("m") == count


def test_the_mapping_is_lazy_and_can_be_sent_to_another_process() -> None:
    builder = ReportBuilder()
    metrics = LazyMetrics({"m": builder.encode_metric("m", 5)})
    assert "m" in metrics
    assert "other" not in metrics
    assert len(metrics) == 1
    assert metrics["m"] is not metrics["m"]
    assert pickle.loads(pickle.dumps(metrics)) == metrics
    with pytest.raises(KeyError):
        metrics["other"]
