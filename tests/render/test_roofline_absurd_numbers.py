"""Saved reports can hold any number: nothing that shows rooflines stumbles over one."""

import math
from typing import Any

import msgspec.structs
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Chart, ChartKind, Column, Movement, Series, Table
from gpa_lsp.document.answer_view import build_answers
from gpa_lsp.document.charts.answer_chart import build_answer_chart
from gpa_lsp.document.charts.roofline_chart import RooflineView, build_roofline_chart
from gpa_lsp.document.layout import join_lines
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.page import embed_json
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.roofline_page import render_roofline_page
from gpa_lsp.document.roofline_view import build_rooflines
from gpa_lsp.document.terminal import write_plain, write_terminal
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.report.model import KernelReport
from tests.conftest import examples
from tests.render.charts.roofline_examples import make_machine, make_roofline, place
from tests.report_builder import build_report

ABSURD = (math.nan, math.inf, -1.0, 0.0, 5e-324, 1e-300, 1e300, 1.7e308)

ANSWER = Answer(
    analysis="a",
    title="A",
    summary="S.",
    bars=(Bar(label="b", ratio=0.5, ceiling_ratio=0.8),),
    tables=(
        Table(
            title="t",
            columns=tuple(Column(name=quantity.value, quantity=quantity) for quantity in Quantity),
            rows=(tuple(1.5 for _ in Quantity),),
        ),
    ),
    charts=tuple(
        Chart(
            title="c",
            kind=kind,
            x_label="x",
            y_label="y",
            y_quantity=Quantity.BYTES,
            series=(Series(label="s", xs=(1.0, 2.0), ys=(1.0, 2.0)),),
            current_x=1.0,
        )
        for kind in ChartKind
    ),
    movements=(
        Movement(
            kind=OperationKind.FP32,
            level=MemoryLevel.DRAM,
            from_intensity=1.0,
            from_ops_per_s=1e12,
            to_intensity=2.0,
            to_ops_per_s=2e12,
            label="m",
        ),
    ),
)


def make_kernel() -> KernelReport:
    machine = make_machine()
    kernel = place("saxpy", make_roofline(machine), make_roofline(machine, seconds=2e-3))
    assert kernel.analyses is not None
    return msgspec.structs.replace(kernel, analyses=msgspec.structs.replace(kernel.analyses, answers=(ANSWER,)))


class Spoiler:
    """Replaces some numbers of a tree of dataclasses."""

    def __init__(self, picks: list[tuple[int, float]]) -> None:
        self._picks = dict(picks)
        self.seen = 0

    def spoil(self, value: Any) -> Any:
        if isinstance(value, float):
            self.seen += 1
            return self._picks.get(self.seen - 1, value)
        if isinstance(value, tuple):
            return tuple(self.spoil(one) for one in value)
        if isinstance(value, msgspec.Struct):
            return msgspec.structs.replace(
                value, **{one: self.spoil(getattr(value, one)) for one in value.__struct_fields__}
            )
        return value


def count_numbers() -> int:
    spoiler = Spoiler([])
    spoiler.spoil(make_kernel().analyses)
    return spoiler.seen


NUMBERS = count_numbers()


def show_everything(kernel: KernelReport) -> None:
    report = build_report(kernel)
    for view in RooflineView:
        assert write_plain(build_rooflines(report, PlaceNames(), before=report, view=view), 80)
        embed_json(build_roofline_chart([kernel], before=[kernel], view=view))  # refuses what JSON has no word for
    assert kernel.analyses is not None
    assert kernel.analyses.roofline is not None
    assert join_lines(write_terminal(build_answers(kernel, PlaceNames()), 80))
    assert "\n".join(write_markdown(build_answers(kernel, PlaceNames())))
    for answer in kernel.analyses.answers:
        embed_json([build_answer_chart(chart) for chart in answer.charts])


def test_there_are_numbers_to_spoil() -> None:
    assert NUMBERS > 100


@examples(150)
@given(
    st.lists(
        st.tuples(st.integers(min_value=0, max_value=NUMBERS - 1), st.sampled_from(ABSURD)), min_size=1, max_size=12
    )
)
def test_some_absurd_numbers(picks: list[tuple[int, float]]) -> None:
    kernel = make_kernel()
    show_everything(msgspec.structs.replace(kernel, analyses=Spoiler(picks).spoil(kernel.analyses)))


def test_one_absurd_number_everywhere() -> None:
    for absurd in ABSURD:
        kernel = make_kernel()
        spoiled = Spoiler([(number, absurd) for number in range(NUMBERS)]).spoil(kernel.analyses)
        kernel = msgspec.structs.replace(kernel, analyses=spoiled)
        show_everything(kernel)
        assert "Roofline" in render_roofline_page(build_report(kernel), before=build_report(kernel))
