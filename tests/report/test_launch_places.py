"""Launches of one kernel from different places of the host program, and every view that tells them apart."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.document.html_report.code_columns import KernelAddresses, SourceTexts
from gpa_lsp.document.html_report.flame_frames import build_flame_frames
from gpa_lsp.editor.kernel_page import describe_kernel, describe_kernel_briefly
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.source.hover import describe_line_page
from gpa_lsp.profile.model import PlaceSamples
from gpa_lsp.report.history.model import Measurement, RememberedPlace, Run
from gpa_lsp.report.history.past import compare_runs
from gpa_lsp.report.history.recording import Surroundings, build_recording
from gpa_lsp.report.history.rows import read_measurement, write_facts
from gpa_lsp.report.launch_places import find_common_frames, list_launch_places, shorten_frame
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.saved.store import read_report, write_report
from tests.editor.sessions import Session
from tests.editor.views import SOURCE, make_profile
from tests.report_builder import build_kernel, build_report

LISTING = """
    saxpy.cu:5   LDG.E R2, [R4.64]   ; long_scoreboard=60/50
    saxpy.cu:6   FMUL R2, R2, R3     ; wait=20/10
    saxpy.cu:7   EXIT                ; wait=6
"""
FORWARD = ("launch at /src/ops.py:20", "forward at /src/model.py:7", "main at /src/train.py:41")
BACKWARD = ("launch at /src/ops.py:20", "backward at /src/model.py:19", "main at /src/train.py:41")
URI = "file:///project/saxpy.cu"


def make_kernel(*places: tuple[tuple[str, ...], float]) -> KernelReport:
    """A kernel with a launch from each place, in nanoseconds."""
    kernel = build_kernel(LISTING, name="saxpy")
    (launch, *_) = kernel.launches
    launches = tuple(
        replace(launch, index=number, call_stack=stack, duration_ns=time) for number, (stack, time) in enumerate(places)
    )
    return replace(kernel, launches=launches)


TWO = make_kernel((FORWARD, 10e3), (BACKWARD, 40e3), (FORWARD, 20e3))


def test_launches_are_grouped_by_place() -> None:
    places = list_launch_places(TWO)
    assert [(place.name, place.launches, place.duration_ns) for place in places] == [
        ("model.py:19", 1, 40e3),
        ("model.py:7", 2, 15e3),
    ]
    assert [place.function for place in places] == ["backward", "forward"]
    assert list_launch_places(make_kernel(((), 10e3))) == ()
    assert [place.name for place in list_launch_places(make_kernel((FORWARD, 1.0), ((), 2.0)))] == [
        "elsewhere",
        "ops.py:20",
    ]


def test_the_frames_that_all_launches_share() -> None:
    assert find_common_frames(TWO) == ("main at /src/train.py:41",)
    assert find_common_frames(make_kernel((FORWARD, 1.0))) == tuple(reversed(FORWARD))
    assert find_common_frames(make_kernel((FORWARD, 1.0), ((), 1.0))) == ()


def test_a_frame_without_a_line_is_its_function() -> None:
    assert [shorten_frame(frame) for frame in ("start (libfoo.so)", "start", "? (libfoo.so)")] == [
        "start",
        "start",
        "?",
    ]


def test_the_lens_tells_two_places_apart() -> None:
    (shown,) = _show(TWO)
    assert "model.py:19 40.0 µs, model.py:7 15.0 µs × 2" in describe_kernel_briefly(shown, 500)
    (one,) = _show(make_kernel((FORWARD, 10e3), (FORWARD, 12e3)))
    assert "model.py" not in describe_kernel_briefly(one, 500)
    stacks = [((f"step at /src/train.py:{line}",), 10e3) for line in range(5)]
    (many,) = _show(make_kernel(*stacks))
    assert "from 5 places" in describe_kernel_briefly(many, 500)


def _show(kernel: KernelReport) -> Collection[VisibleKernel]:
    view = Session(make_profile(kernel), {"/project/saxpy.cu": SOURCE}).view(URI)
    assert view is not None
    return {anchor.shown.name: anchor.shown for anchor in view.anchors}.values()


def test_hover_and_page_list_the_places() -> None:
    view = Session(make_profile(TWO), {"/project/saxpy.cu": SOURCE}).view(URI)
    assert view is not None
    hover = describe_line_page(view, 5)
    assert hover is not None
    assert f"**launched from**\n\n- 40.0 µs: {' < '.join(BACKWARD)}\n- 15.0 µs × 2: {' < '.join(FORWARD)}" in hover
    (shown,) = _show(TWO)
    assert "## Launched from\n\n- 40.0 µs: launch at" in describe_kernel(shown)


@pytest.mark.parametrize(
    ("kernel", "root"), [(TWO, "train.py:41"), (make_kernel((FORWARD, 1.0)), "train.py:41 > model.py:7 > ops.py:20")]
)
def test_the_flame_graph_grows_from_the_host(kernel: KernelReport, root: str) -> None:
    frames = build_flame_frames(kernel, "saxpy", KernelAddresses(kernel=0), SourceTexts(None))
    paths: list[str] = []
    for frame in frames:
        paths.append(frame.label if frame.parent is None else f"{paths[frame.parent]} > {frame.label}")
    assert f"{root} > saxpy > saxpy.cu:5 > long_scoreboard" in paths
    assert sum(frame.samples for frame in frames) == kernel.total_samples


def remember(kernel: KernelReport) -> Measurement:
    surroundings = Surroundings(measured_ns=1, read_ns=1, files={}, body=None)
    return build_recording(kernel, surroundings).measurement


def test_the_history_knows_each_place() -> None:
    measurement = remember(TWO)
    assert measurement.places == (
        RememberedPlace(name="model.py:19", function="backward", launches=1, duration_ns=40e3),
        RememberedPlace(name="model.py:7", function="forward", launches=2, duration_ns=15e3),
    )
    read = read_measurement(measurement.key, (1, measurement.profile, measurement.session), write_facts(measurement))
    assert read.places == measurement.places
    assert remember(make_kernel((FORWARD, 10e3))).places == ()


def test_a_place_that_moved_is_known_by_its_function() -> None:
    moved = ("launch at /src/ops.py:20", "forward at /src/model.py:9", "main at /src/train.py:41")
    new = ("launch at /src/ops.py:20", "extra at /src/model.py:30", "main at /src/train.py:41")
    before, after = remember(TWO), remember(make_kernel((moved, 5e3), (new, 7e3)))
    runs = [
        Run(run_id=number, measurement=one, recorded_ns=number, is_baseline=False)
        for number, one in enumerate((before, after), 1)
    ]
    content = build_recording(TWO, Surroundings(measured_ns=1, read_ns=1, files={}, body=None)).content
    change = compare_runs(runs[0], runs[1], content, content)
    assert set(change.places) == {
        ("model.py:9", 15e3, 5e3),
        ("model.py:30", None, 7e3),
        ("model.py:19", 40e3, None),
    }


def make_sampled(*places: tuple[tuple[str, ...], dict[int, int]]) -> KernelReport:
    """A kernel with samples of its rows by place, all of its first reason."""
    kernel = make_kernel(*((stack, 10e3) for stack, _ in places))
    found = []
    for stack, counts in places:
        samples = np.zeros((len(counts), len(kernel.instructions.reasons)), np.int64)
        samples[:, 0] = list(counts.values())
        found.append(PlaceSamples(call_stack=stack, rows=np.array(list(counts), np.int64), all_samples=samples))
    every = np.zeros_like(kernel.instructions.all_samples)
    for one in found:
        every[one.rows] += one.all_samples
    columns = replace(kernel.instructions, all_samples=every)
    return replace(kernel, instructions=columns, total_samples=int(every.sum()), places=tuple(found))


def draw(kernel: KernelReport) -> dict[str, float]:
    """Samples of the flame graph by the labels from the top down."""
    paths: list[str] = []
    frames = build_flame_frames(kernel, "saxpy", KernelAddresses(kernel=0), SourceTexts(None))
    for frame in frames:
        paths.append(frame.label if frame.parent is None else f"{paths[frame.parent]} > {frame.label}")
    assert sum(frame.parent is None for frame in frames) == 1, "Vega stratifies one tree"
    return {path: frame.samples for path, frame in zip(paths, frames, strict=True) if frame.samples}


def test_the_flame_graph_tells_places_apart() -> None:
    reason = TWO.instructions.reasons[0]
    kernel = make_sampled((FORWARD, {0: 30, 1: 5}), (BACKWARD, {1: 40}))
    assert draw(kernel) == {
        f"train.py:41 > model.py:7 > ops.py:20 > saxpy > saxpy.cu:5 > {reason}": 30,
        f"train.py:41 > model.py:7 > ops.py:20 > saxpy > saxpy.cu:6 > {reason}": 5,
        f"train.py:41 > model.py:19 > ops.py:20 > saxpy > saxpy.cu:6 > {reason}": 40,
    }


def test_the_flame_graph_of_a_saved_report_tells_them_apart_as_well(tmp_path: Path) -> None:
    kernel = make_kernel((FORWARD, 10e3), (BACKWARD, 10e3))
    every = kernel.instructions.all_samples
    rows = np.arange(len(every))
    places = [
        PlaceSamples(call_stack=stack, rows=rows, all_samples=samples)
        for stack, samples in ((FORWARD, every // 3), (BACKWARD, every - every // 3))
    ]
    kernel = replace(kernel, places=tuple(places))
    write_report(build_report(kernel), tmp_path / "saved.json")
    (read,) = read_report(tmp_path / "saved.json").kernels
    assert draw(read) == draw(kernel)
    assert any(path.startswith("train.py:41 > model.py:19 > ops.py:20 > saxpy > ") for path in draw(read))


def test_places_with_nothing_in_common_stand_below_the_kernel() -> None:
    kernel = make_sampled((FORWARD, {0: 30, 1: 3}), ((), {1: 10}))
    paths = draw(kernel)
    assert sum(paths.values()) == 43
    assert any(path.startswith("saxpy > train.py:41 > model.py:7 > ops.py:20 > saxpy > ") for path in paths)
    assert any(path.startswith("saxpy > elsewhere > saxpy > ") for path in paths)


def test_of_many_places_those_with_most_samples_are_told_apart() -> None:
    stacks = [(f"launch at /src/ops.py:{line}", "main at /src/train.py:41") for line in range(40)]
    paths = draw(make_sampled(*((stack, {0: 100 - number, 1: 2}) for number, stack in enumerate(stacks))))
    assert any("ops.py:0 >" in path for path in paths) and not any("ops.py:39 >" in path for path in paths)
    assert any(path.startswith("train.py:41 > other places > saxpy > ") for path in paths)
    assert sum(paths.values()) == sum(100 - number + 2 for number in range(40))
