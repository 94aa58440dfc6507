"""Charts and bars of the closed vocabulary."""

import math

import pytest

from gpa_lsp.analyses.answers import Bar, Chart, ChartKind, Quantity, Series
from gpa_lsp.render.charts.answer_chart import build_answer_chart, build_bars_chart, describe_answer_chart
from gpa_lsp.render.charts.pictures import draw_svg


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
    assert marked["layer"][1]["data"]["values"] == [{"x": 64, "words": "now"}]
    assert len(build_answer_chart(make_chart(current_x=None))["layer"]) == 1


def test_numbers_that_are_none_are_left_out() -> None:
    series = Series(label="a", xs=(1, 2, 3), ys=(1.0, math.inf, math.nan))
    spec = build_answer_chart(make_chart(series=(series,)))
    assert [value["x"] for value in spec["data"]["values"]] == [1]


def test_labels_of_bars_are_texts_whatever_they_hold() -> None:
    hostile = ('it\'s "quoted"', "' + now() + '", "a\\", "</text><script>", "\U000e0001")
    svg = draw_svg(build_bars_chart([Bar(label=label, ratio=0.5) for label in hostile]))
    for words in ("it's", "now()", "a\\", "&lt;/text&gt;"):
        assert words in svg
    assert "<script" not in svg


def test_several_series_have_a_legend() -> None:
    series = tuple(Series(label=label, xs=(1, 2), ys=(1, 2)) for label in ("read", "written"))
    svg = draw_svg(build_answer_chart(make_chart(ChartKind.BARS, series=series)))
    assert "read" in svg
    assert "written" in svg


def test_a_chart_in_words() -> None:
    assert describe_answer_chart(make_chart()) == (
        "Occupancy over block size: warps per SM over threads per block; warps: 16 to 48"
    )


def test_bars_have_a_tick_at_what_can_be_reached() -> None:
    bars = [Bar(label="DRAM \"'<&", ratio=1.02, ceiling_ratio=0.85, words="1 TB/s"), Bar(label="FP32", ratio=0.1)]
    spec = build_bars_chart(bars, title="Roofs")
    assert [value["ratio"] for value in spec["data"]["values"]] == [1.0, 0.1]
    svg = draw_svg(spec)
    for words in ("102 % · 1 TB/s", "10.0 %", "FP32", "DRAM &quot;'&lt;&amp;", "Roofs"):
        assert words in svg.replace("&#39;", "'"), words
    assert "<svg" in draw_svg(build_bars_chart([]))
