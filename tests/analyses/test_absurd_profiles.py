"""Profiles whose metrics hold anything: every analysis answers, and everything that shows the answers shows them."""

import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel, list_analyses
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.document.advice_view import build_advice
from gpa_lsp.document.answer_view import build_answers
from gpa_lsp.document.html_report.page import render_html_report
from gpa_lsp.document.kernel_view import build_report_page
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.roofline_page import render_roofline_page
from gpa_lsp.document.roofline_view import build_rooflines
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.editor.kernel_page import build_roofline
from gpa_lsp.profile.model import Launch, Metric
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.model import Report
from gpa_lsp.report.saved.store import read_report, write_report
from tests.analyses.checked_answers import check_answer
from tests.conftest import examples
from tests.rows.written import write_kernel

CODE = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]        # k.cu:4 | selected=4 lg_throttle=3 | x=1000
    B-:R-:W3:-:S02  LDS R7, [R6]             # k.cu:5 | mio_throttle=5 selected=1 | x=1000
loop:
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6      # k.cu:6 | long_scoreboard=60/50 selected=4 | x=4000
    B3:R-:W-:-:S05  IMAD R7, R7, R7, R2      # k.cu:7 | short_scoreboard=20 math_pipe_throttle=3 | x=4000
    B-:R-:W-:-:S05  BAR.SYNC 0x0             # k.cu:8 | barrier=9 | x=4000
    B-:R-:W-:Y:S05  BRA loop                 # k.cu:6 | branch_resolving=2 | x=4000
    B-:R0:W-:-:S02  STG.E [R4.64], R2        # k.cu:9 | drain=2 | x=1000
    B-:R-:W-:-:S05  EXIT                     # k.cu:10
"""
ABSURD = (0, -1, 1, 100, 0.5, 3e6, 2**63, -(2**63), 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, "", "x", None)
SIZES = ((0, 0, 0), (1, 1, 1), (33, 1, 1), (1024, 1024, 64), (2**31 - 1, 65535, 65535))
NAMES = PlaceNames()


class AnyMetrics(Mapping[str, Metric]):
    """Every metric anybody asks for, one part in ``lost`` missing, one in ``strange`` absurd; the same name always has the same value."""

    def __init__(self, seed: int, lost: float, strange: float) -> None:
        self._seed, self._lost, self._strange = seed, lost, strange

    def __getitem__(self, name: str) -> Metric:
        draw = random.Random(f"{self._seed} {name}")
        if draw.random() < self._lost:
            raise KeyError(name)
        sound = draw.uniform(0, 100) if "pct" in name or "ratio" in name else draw.randrange(1, 10**7)
        return Metric(name=name, value=draw.choice(ABSURD) if draw.random() < self._strange else sound)

    def __iter__(self) -> Iterator[str]:
        return iter(("gpu__time_duration.sum",))

    def __len__(self) -> int:
        return 1


def list_numbers(thing: Any) -> Iterator[float]:
    """All floating-point numbers of records and tuples."""
    if isinstance(thing, float):
        yield thing
    elif isinstance(thing, tuple | Struct):
        members = thing if isinstance(thing, tuple) else (getattr(thing, name) for name in thing.__struct_fields__)
        for one in members:
            yield from list_numbers(one)


def analyse(launches: tuple[Launch, ...], capability: tuple[int, int]) -> Report:
    kernel = replace(write_kernel(CODE, compute_capability=capability), launches=launches)
    blame = blame_kernel(kernel)
    roofline = place_kernel(kernel)
    analyses = analyse_kernel(Subject(kernel, blame, roofline))
    advice, problems = advise_kernel(Subject(kernel, blame, roofline))
    assert analyses.problems == ()
    assert not problems
    assert [answer.analysis for answer in analyses.answers] == list(list_analyses())
    for answer in analyses.answers:
        check_answer(answer)
    assert all(math.isfinite(number) for number in list_numbers((roofline, *analyses.answers)))
    return gather_report([AnalysedKernel(kernel=kernel, blame=blame, advice=advice, analyses=analyses)])


def show(report: Report) -> str:
    """The report by everything that writes text."""
    kernel = report.kernels[0]
    roofline = kernel.analyses.roofline
    parts = [
        write_plain(build_report_page(report, NAMES), 60),
        write_plain(build_rooflines(report, NAMES), 60),
        *write_markdown(build_advice(report, NAMES, max_kernels=None, max_advice=None, has_table=True), folds=True),
        *write_markdown(build_answers(kernel, NAMES)),
        *([] if roofline is None else write_markdown(build_roofline(roofline))),
    ]
    return "\n".join(parts)


@st.composite
def launches(draw: st.DrawFn) -> tuple[Launch, ...]:
    launch = write_kernel(CODE).launches[0]
    device = replace(
        launch.device,
        name=draw(st.sampled_from([None, "", "NVIDIA A100-SXM4-40GB", "</script>"])),
        compute_capability=draw(st.sampled_from([None, (8, 6), (9, 9)])),
        sm_count=draw(st.sampled_from([None, 0, 1, 108, 2**31 - 1])),
        sm_clock_hz=draw(st.sampled_from([None, 0.0, 1.4e9, math.nan, 1e300])),
    )
    number = draw(st.integers(1, 3))
    return tuple(
        replace(
            launch,
            index=index,
            device=device,
            grid=draw(st.sampled_from(SIZES)),
            block=draw(st.sampled_from(SIZES[:-1])),
            failure=draw(st.sampled_from([None, None, None, "failed"])),
            metrics=AnyMetrics(
                draw(st.integers(0, 1 << 32)), draw(st.sampled_from([0, 0.3])), draw(st.sampled_from([0.03, 0.3, 1]))
            ),
        )
        for index in range(number)
    )


@given(launches(), st.sampled_from([(7, 0), (8, 6), (9, 0), (12, 0)]))
@examples(60)
def test_everything_is_answered_and_shown(measured: tuple[Launch, ...], capability: tuple[int, int]) -> None:
    text = show(analyse(measured, capability))
    assert " nan" not in text
    assert "inf " not in text


@given(launches())
@examples(10)
def test_pages_and_saved_reports_hold_it(
    tmp_path_factory: pytest.TempPathFactory, measured: tuple[Launch, ...]
) -> None:
    report = analyse(measured, (8, 6))
    path: Path = tmp_path_factory.mktemp("saved") / "report.json"
    write_report(report, path)
    again = read_report(path)
    assert show(again)
    assert render_roofline_page(again, before=report).startswith("<!doctype html>")
    assert render_html_report(again, before=report).startswith("<!doctype html>")
