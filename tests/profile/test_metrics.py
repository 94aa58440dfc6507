"""Metrics: all five encodings, instances, and decoding on access."""

import math
import pickle

import pytest

from gpa_lsp.profile.model import Metric
from gpa_lsp.profile.ncu.metrics import LazyMetrics
from tests.profile.report_builder import ReportBuilder


@pytest.mark.parametrize(
    ("value", "kind"),
    [("text", "text"), (0.5, "float32"), (0.1, "float64"), (7, "uint32"), (2**64 - 1, "uint64"), (0, "uint64")],
)
def test_every_encoding_of_a_value(report: ReportBuilder, value: float | str, kind: str) -> None:
    metrics = report.read_launch(report.encode_metric("m", value, [(16, value)], kind=kind)).metrics
    assert metrics["m"] == Metric(name="m", value=value, instance_ids=(16,), instance_values=(value,))


def test_the_upb_backend_decodes() -> None:
    from google.protobuf.internal import api_implementation

    assert api_implementation.Type() == "upb"


def test_absent_aggregates_text_ids_and_time_series(report: ReportBuilder) -> None:
    series = report.encode_metric("pmsampling:x", 1.0, [(10**18, 0.5)], correlation_kind=1)
    metrics = report.read_launch(report.encode_metric("opcodes", None, [("FFMA", 12), ("LDG", 3)]), series).metrics
    expected = Metric(name="opcodes", value=None, instance_ids=("FFMA", "LDG"), instance_values=(12, 3))
    assert metrics["opcodes"] == expected
    assert metrics["pmsampling:x"].over_time


def test_the_last_of_two_metrics_of_one_name_counts(report: ReportBuilder) -> None:
    metrics = [report.encode_metric("gpu__time_duration.sum", value) for value in (142720.0, 145056.0)]
    assert report.read_launch(*metrics).read_number("gpu__time_duration.sum") == 145056.0


def test_metrics_that_cannot_be_decoded_or_named_are_problems(report: ReportBuilder) -> None:
    kept = report.encode_metric("kept", 2)
    lost = report.encode_metric("lost", 1).replace(b"\x08\x01", b"\x08\x63", 1)
    report.strings.remove("lost")
    report.add_result(report.make_result(metrics=[lost, b"\x08\x00\x12\xff", kept], source_id=None))
    profile = report.read()
    assert list(profile.launches[0].metrics) == ["kept"]
    assert profile.launches[0].read_number("kept") == 2
    assert {problem.message for problem in profile.problems} == {
        "1 metrics name no entry of the string table and are left out",
        "1 metrics cannot be decoded and are left out",
    }
    assert profile.problems[0].kernel == "_Z4axpyPf"


def test_not_a_number_stays_what_it_is(report: ReportBuilder) -> None:
    launch = report.read_launch(report.encode_metric("m", float("nan")))
    assert math.isnan(launch.metrics["m"].value)
    assert launch.read_number("m") is None


@pytest.mark.parametrize(
    ("value", "number", "count"),
    [
        *((value, None, None) for value in (1e25, -1e300, float("inf"), 1e-25, 5e-324, "12")),  # nothing measures these
        *((0, 0, 0), (41.6, 41.6, 42), (1 << 53, 1 << 53, 1 << 53)),
        *((value, value, None) for value in (1 << 54, -1.0)),
    ],
)
def test_numbers_are_measurable_and_counts_whole(report: ReportBuilder, value, number, count: int | None) -> None:
    launch = report.read_launch(report.encode_metric("m", value))
    assert (launch.read_number("m"), launch.read_count("m")) == (number, count)


def test_the_mapping_is_lazy_and_can_be_sent_to_another_process() -> None:
    metrics = LazyMetrics({"m": ReportBuilder().encode_metric("m", 5)})
    assert "m" in metrics
    assert "other" not in metrics
    assert len(metrics) == 1
    assert metrics["m"] is not metrics["m"]
    assert pickle.loads(pickle.dumps(metrics)) == metrics
    with pytest.raises(KeyError):
        metrics["other"]
