"""Charts and bars of the closed vocabulary."""

import math

import pytest

from gpa_lsp.diagnosis.analyses.answers import Chart, ChartKind, Series
from gpa_lsp.document.charts.answer_chart import build_answer_chart
from gpa_lsp.document.charts.pictures import draw_svg
from gpa_lsp.foundation.numbers import Quantity


def make_chart(kind: ChartKind = ChartKind.STEPS, **changes: object) -> Chart:
    options: dict = {
        "title": "Occupancy over block size",
        "kind": kind,
        "x_label": "threads per block",
        "y_label": "warps per SM",
        "y_quantity": Quantity.WARPS,
        "series": (Series(label="warps", xs=(32, 64, 128), ys=(16, 32, 48)),),
        "current_x": 64,
    }
    return Chart(**{**options, **changes})


@pytest.mark.parametrize("kind", list(ChartKind))
def test_every_kind_is_drawn(kind: ChartKind) -> None:
    svg = draw_svg(build_answer_chart(make_chart(kind)))
    for words in ("Occupancy over block size", "threads per block", "warps per SM"):
        assert words in svg


def test_the_kernel_is_marked_where_it_is() -> None:
    marked = build_answer_chart(make_chart())
    assert marked["layer"][1]["data"]["values"] == [{"x": 64, "words": "as measured"}]
    assert len(build_answer_chart(make_chart(current_x=None))["layer"]) == 1


def test_numbers_that_are_none_are_left_out() -> None:
    series = Series(label="a", xs=(1, 2, 3), ys=(1.0, math.inf, math.nan))
    spec = build_answer_chart(make_chart(series=(series,)))
    assert [value["x"] for value in spec["data"]["values"]] == [1]


def test_several_series_have_a_legend() -> None:
    series = tuple(Series(label=label, xs=(1, 2), ys=(1, 2)) for label in ("read", "written"))
    svg = draw_svg(build_answer_chart(make_chart(ChartKind.BARS, series=series)))
    assert "read" in svg
    assert "written" in svg
