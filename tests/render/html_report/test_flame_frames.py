"""Frames of the flame graph: nothing is lost, inlined code stands below the line it was inlined into, and called code below its calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.document.html_report.code_columns import KernelAddresses, SourceTexts
from gpa_lsp.document.html_report.flame_frames import FlameFrame, build_flame_chart, build_flame_frames
from gpa_lsp.report.model import KernelReport
from tests.conftest import examples
from tests.render.html_report.large_reports import make_large_kernel
from tests.report_builder import build_kernel

LISTING = """
    k.cu:4                    LDG.E R2, [R4.64]         ; long_scoreboard=60/50 selected=10
    square@k.cu:1 < k.cu:5    FFMA R2, R2, R2, R6       ; wait=20/10
    k.cu:6                    CALL.REL.NOINC `(helper)  ; wait=6
    k.cu:7                    CALL.REL.NOINC `(helper)  ; wait=4
    [helper]
    -                         MUFU.RCP R3, R2           ; math_pipe_throttle=100/90
"""


def build(kernel: KernelReport) -> list[FlameFrame]:
    return build_flame_frames(kernel, "k", KernelAddresses(kernel=0), SourceTexts(None))


def write_paths(frames: list[FlameFrame]) -> dict[str, float]:
    """Samples by the labels from the top down."""
    paths: list[str] = []
    for frame in frames:
        paths.append(frame.label if frame.parent is None else f"{paths[frame.parent]} > {frame.label}")
    return {path: frame.samples for path, frame in zip(paths, frames, strict=True) if frame.samples}


def test_inlined_and_called_code_stands_below_the_line_it_belongs_to() -> None:
    paths = write_paths(build(build_kernel(LISTING)))
    assert paths["k > k.cu:4 > long_scoreboard"] == 60
    assert paths["k > k.cu:5 > square k.cu:1 > wait"] == 20
    assert paths["k > k.cu:6 > call of helper > math_pipe_throttle"] == 50, "two calls that nobody counted share alike"
    assert paths["k > k.cu:7 > call of helper > math_pipe_throttle"] == 50


def test_a_function_that_nobody_calls_stands_beside_the_lines() -> None:
    text = LISTING.replace("`(helper)", "R8")
    assert write_paths(build(build_kernel(text)))["k > call of helper > math_pipe_throttle"] == 100


@pytest.mark.parametrize("text", ["", "k.cu:3  EXIT  ; selected=3", "-  EXIT  ; selected=3\n-  EXIT  ; wait=3"])
def test_one_place_is_no_graph(text: str) -> None:
    assert build(build_kernel(text)) == []


@examples(15)
@given(st.integers(0, 6))
def test_no_sample_is_lost(number: int) -> None:
    kernel = make_large_kernel(number, 200)
    frames = build(kernel)
    assert sum(frame.samples for frame in frames) == pytest.approx(kernel.total_samples, rel=1e-4)
    assert all(frame.parent is None or frame.parent < place for place, frame in enumerate(frames))


def test_the_graph_holds_its_frames_and_no_address() -> None:
    frames = build(build_kernel(LISTING))
    spec = build_flame_chart(frames, "graph")
    assert [row["label"] for row in spec["data"][0]["values"]] == [frame.label for frame in frames]
    assert "http" not in str(spec)
