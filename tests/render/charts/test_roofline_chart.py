"""The specification of the roofline chart: what it holds, and what vl-convert draws of it."""

import json
import math
import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.document.charts.chart_frame import RING_PIXELS, choose_frame, find_name_boxes, place_names
from gpa_lsp.document.charts.pictures import draw_png, draw_svg
from gpa_lsp.document.charts.roofline_chart import MOST_SHOWN, RooflineView, build_points, build_roofline_chart
from gpa_lsp.document.charts.roofline_rows import build_roofs, find_ridges, group_machines, place_kernels
from gpa_lsp.document.charts.themes import COMPUTE_ZONE, MEMORY_ZONE
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.report.model import KernelReport
from tests.conftest import examples
from tests.render.charts.roofline_examples import make_machine, make_roofline, place, place_many
from tests.report_builder import build_kernel


def read_params(spec: dict) -> dict:
    return {param["name"]: param["value"] for param in spec["params"]}


def test_points_of_one_kernel() -> None:
    """1.2 TFLOP/s of FP32 at 0.8 TB/s of DRAM are 1.5 FLOP/B, where 1 TB/s allow 1.5 TFLOP/s."""
    spec = build_roofline_chart([place()])
    points = {point["level"]: point for point in spec["datasets"]["points"]}
    assert points["DRAM"] == {
        "row": "k0",
        "kind": "FP32",
        "level": "DRAM",
        "x": 1.5,
        "y": 1.2e12,
        "a": 1.5e12,
        "intensity": "1.50 FLOP/B",
        "achieved": "1.20 TFLOP/s",
        "attainable": "1.50 TFLOP/s, 80 % reached",
        "ring": 0,
        "pad": 0.0,
        "name": "saxpy",
        "side": "right",
        "first": True,
    }
    assert points["L1"]["x"] == pytest.approx(0.6)
    assert read_params(spec)["shown_rows"] == ["k0"]
    assert read_params(spec)["drawn_kinds"] == ["FP32"]
    json.dumps(spec, allow_nan=False)


def test_ridge_points_are_peak_over_bandwidth() -> None:
    ridges = {
        (ridge["kind"], ridge["level"]): ridge["x"] for ridge in find_ridges(list(build_roofs(make_machine(), 0)))
    }
    assert ridges["FP32", "DRAM"] == pytest.approx(32)
    assert ridges["INT32", "L2"] == pytest.approx(16 / 3, rel=1e-5)
    assert ridges["FP64", "shared memory"] == pytest.approx(0.05)


def test_zones_end_at_the_ridge_points_of_the_slowest_level() -> None:
    """32 TFLOP/s over 1 TB/s of DRAM meet at 32 FLOP/B: left of it memory-bound, right of it compute-bound, and nothing lies between."""
    spec = build_roofline_chart([place("saxpy")])
    svg = draw_svg(spec)
    assert "memory-bound (DRAM)" in svg and "compute-bound (DRAM)" in svg
    left, right = (find_zone(svg, colour) for colour in (MEMORY_ZONE, COMPUTE_ZONE))
    assert left[1] == pytest.approx(right[0], abs=0.01)
    (ridge,) = [one for one in spec["datasets"]["ridges"] if (one["kind"], one["level"]) == ("FP32", "DRAM")]
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    part = math.log(ridge["x"] / low) / math.log(high / low)
    assert (left[1] - left[0]) / (right[1] - left[0]) == pytest.approx(part, abs=0.001)


def test_between_the_ridge_points_of_two_types_is_no_zone() -> None:
    rates = {OperationKind.FP32: 1.2e12, OperationKind.INT32: 1e12}
    spec = build_roofline_chart([place("f", make_roofline(make_machine(), rates=rates))])
    left, right = (find_zone(draw_svg(spec), colour) for colour in (MEMORY_ZONE, COMPUTE_ZONE))
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    part = math.log(2) / math.log(high / low)  # INT32 has half the peak of FP32
    assert (right[0] - left[1]) / (right[1] - left[0]) == pytest.approx(part, abs=0.001)


def find_zone(svg: str, colour: str) -> tuple[float, float]:
    """Left and right of a shaded rectangle, in pixels."""
    found = re.search(rf'd="M([\d.]+),[\d.]+h([\d.]+)[^"]*"[^>]*fill="{colour}"', svg)
    assert found is not None, colour
    return float(found[1]), float(found[1]) + float(found[2])


def test_points_of_one_intensity_are_rings_around_one_another() -> None:
    """The bytes of L1, L2 and DRAM are equal: DRAM has the mark, L2 the inner and L1 the outer ring."""
    traffic = dict.fromkeys((MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM), 0.8e12)
    spec = build_roofline_chart([place("copy", make_roofline(make_machine(), traffic=traffic))])
    assert {point["level"]: point["ring"] for point in spec["datasets"]["points"]} == {"DRAM": 0, "L2": 1, "L1": 2}
    assert "rings around a point: the same operations per byte of other levels" in spec["title"]["subtitle"]
    svg = draw_svg(spec)
    radii = {
        level: float(found[1])
        for level in ("DRAM", "L2", "L1")
        if (found := re.search(rf'bytes of: {level}[^>]*d="M([\d.]+),0C', svg))
    }
    assert radii["DRAM"] + RING_PIXELS == pytest.approx(radii["L2"], abs=0.01)
    assert radii["L2"] + RING_PIXELS == pytest.approx(radii["L1"], abs=0.01)


def test_points_apart_have_no_rings() -> None:
    spec = build_roofline_chart([place("saxpy")])
    assert {point["ring"] for point in spec["datasets"]["points"]} == {0}
    assert not any("rings" in line for line in spec["title"]["subtitle"])


def test_a_drawn_chart_names_its_roofs_and_kernels() -> None:
    svg = draw_svg(build_roofline_chart([place("saxpy")]))
    for words in ("FP32: 32.0 TFLOP/s", "DRAM: 1.00 TB/s", "L1: 10.0 TB/s", "saxpy", "Example GPU"):
        assert words in svg, words
    assert "FP64: 500 GFLOP/s" not in svg  # not in play
    assert svg.count("http") == svg.count("http://www.w3.org/")


def test_the_diagonals_end_in_the_highest_peak() -> None:
    """The line of each level ends at the height of the peak's line, in pixels."""
    svg = draw_svg(build_roofline_chart([place("saxpy")]))
    peak = re.search(r'aria-roledescription="rule mark container".*?role-mark layer_5.*?<line', svg, re.S)
    assert peak is not None
    lines = re.findall(r'<line[^>]*transform="translate\(([\d.]+),([\d.]+)\)" x2="(-?[\d.]+)" y2="(-?[\d.]+)"', svg)
    found = [tuple(map(float, line)) for line in lines]
    flat = [y for x, y, dx, dy in found if dy == 0 and dx > 100]
    rising = [(x, y, x + dx, y + dy) for x, y, dx, dy in found if dy < -50 and dx > 50]
    assert len(rising) == 3
    assert all(any(abs(end[3] - y) < 0.6 for y in flat) for end in rising)


def test_the_second_view_has_one_horizontal() -> None:
    spec = build_roofline_chart([place()], view=RooflineView.INSTRUCTIONS)
    limits = [roof for roof in spec["datasets"]["roofs"] if "limit" in roof]
    assert [(roof["name"], roof["limit"]) for roof in limits] == [("instruction issue", 3.2e11)]
    slopes = {roof["name"]: roof["slope"] for roof in spec["datasets"]["roofs"] if "slope" in roof}
    assert slopes["DRAM"] == pytest.approx(1e12 / 32)
    assert "instruction issue: 320 Ginst/s" in draw_svg(spec)


def test_arrows_join_kernels_of_one_linkage_name() -> None:
    machine = make_machine()
    old = place("f", make_roofline(machine, rates={OperationKind.FP32: 0.4e12}), mangled_name="_Z1f")
    new = place("f", make_roofline(machine, rates={OperationKind.FP32: 1.6e12}), mangled_name="_Z1f")
    spec = build_roofline_chart([new, place("g")], before=[old])
    arrows = spec["datasets"]["arrows"]
    assert {(arrow["row"], arrow["level"]) for arrow in arrows} == {("k0", "L1"), ("k0", "L2"), ("k0", "DRAM")}
    dram = next(arrow for arrow in arrows if arrow["level"] == "DRAM")
    assert (dram["x"], dram["y"], dram["x2"], dram["y2"]) == (0.5, 4e11, 2.0, 1.6e12)
    assert set(read_params(spec)["shown_rows"]) == {"k0", "k1", "b0"}


def test_kernels_of_most_time_are_shown_and_the_others_counted() -> None:
    spec = build_roofline_chart(place_many(40))
    assert len(read_params(spec)["shown_rows"]) == MOST_SHOWN
    assert spec["title"]["subtitle"][1] == f"the longest {MOST_SHOWN} of 40 kernels"


def test_negligible_points_are_left_out_and_counted() -> None:
    rates = {OperationKind.FP32: 1e12, OperationKind.FP64: 1e6}
    spec = build_roofline_chart([place("f", make_roofline(make_machine(), rates=rates))])
    assert {point["kind"] for point in spec["datasets"]["points"]} == {"FP32"}
    assert spec["usermeta"]["left_out"] == {"k0": 3}
    assert "3 points of negligible rate left out" in spec["title"]["subtitle"]


def test_machines_of_like_clocks_are_one() -> None:
    near, far = make_machine(speed=1.02), make_machine(speed=0.5)
    kernels = [place("a"), place("b", machine=near), place("c", machine=far), place("d", machine=make_machine("Other"))]
    machines, positions = group_machines(place_kernels(kernels))
    assert len(machines) == 3
    assert [positions[f"k{number}"] for number in range(4)] == [0, 0, 1, 2]


@pytest.mark.parametrize("view", list(RooflineView))
def test_nothing_to_draw_draws_empty_axes(view: RooflineView) -> None:
    empty = place("f", make_roofline(make_machine(), rates={}, traffic={}))
    for kernels in ([], [build_kernel(name="lost")], [empty]):
        assert "<svg" in draw_svg(build_roofline_chart(kernels, view=view))


def test_roofs_without_clocks_are_not_drawn() -> None:
    machine = make_machine()
    bare = replace(
        machine,
        peaks=tuple(replace(peak, ops_per_s=None) for peak in machine.peaks),
        bandwidths=tuple(replace(one, bytes_per_s=None) for one in machine.bandwidths),
    )
    spec = build_roofline_chart([place("f", make_roofline(machine), machine=bare)])
    assert spec["datasets"]["roofs"] == []
    assert "<svg" in draw_svg(spec)


def test_hostile_names_are_text() -> None:
    svg = draw_svg(build_roofline_chart([place("<script>alert(1)</script>&\u202e")]))
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


def test_png_on_both_grounds() -> None:
    spec = build_roofline_chart([place()])
    light, dark = draw_png(spec), draw_png(spec, dark=True)
    assert light.startswith(b"\x89PNG")
    assert light != dark


numbers = st.floats(min_value=1e-30, max_value=1e30)


@examples(60)
@given(st.lists(st.tuples(numbers, numbers), max_size=30))
def test_frames_are_finite_and_hold_what_matters(pairs: list[tuple[float, float]]) -> None:
    points = [{"row": "k0", "kind": "FP32", "level": "DRAM", "x": x, "y": y} for x, y in pairs]
    roofs = list(build_roofs(make_machine(), 0))
    frame = choose_frame(points, roofs, ["FP32"])
    assert 0 < frame.left < frame.right < math.inf
    assert 0 < frame.bottom < frame.top <= frame.highest < math.inf
    assert math.log10(frame.highest / frame.bottom) <= 11
    assert math.log10(frame.right / frame.left) <= 16
    best = max(points, key=lambda point: point["y"], default=None)
    if best is not None and best["y"] > frame.top / 1e8 and 0.01 <= best["x"] <= 1000:
        assert frame.holds(best)


@examples(40)
@given(st.integers(min_value=1, max_value=60))
def test_names_do_not_cover_one_another(count: int) -> None:
    kernels: list[KernelReport] = place_many(count)
    rows = place_kernels(kernels)
    points = build_points(rows, RooflineView.TIME)
    roofs = list(build_roofs(make_machine(), 0))
    frame = choose_frame(points, roofs, ["FP32", "INT32"])
    named = [
        point for point in place_names(points, rows, {row.row_id for row in rows}, roofs, frame) if "name" in point
    ]
    boxes = [dict(find_name_boxes(*frame.place(point), point["name"]))[point["side"]] for point in named]
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    assert len({point["row"] for point in named}) == len(named), "each kernel has its name once"
    longest = max(rows, key=lambda row: row.roofline.duration_s)
    assert [point["row"] for point in named if point["first"]] == [longest.row_id]


def test_launches_have_rows_of_their_own() -> None:
    machine = make_machine()
    twice = place("f", make_roofline(machine), make_roofline(machine, seconds=2e-3))
    rows = place_kernels([twice, place("g")], max_launches=1)
    assert [(row.row_id, row.launch_index) for row in rows] == [("k0", None), ("k0.0", 0), ("k1", None)]
    assert MemoryLevel.DRAM in {point.level for row in rows for point in row.roofline.points}
