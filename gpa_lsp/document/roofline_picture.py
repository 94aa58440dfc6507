"""A kernel under its ceilings as a small picture for a hover: an SVG that reads on light and on dark ground, drawn in well under a millisecond.

Colours are those of the large chart, which have a contrast of at least 3:1 to both grounds.
"""

import math
from collections.abc import Sequence
from html import escape

from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline, Point, Roofline
from gpa_lsp.document.charts.chart_frame import RING_PIXELS, ChartFrame, choose_frame, ring_points
from gpa_lsp.document.charts.roofline_rows import Row, build_point, build_roofs, find_ridges, is_drawable
from gpa_lsp.document.charts.themes import COMPUTE_ZONE, LEVEL_COLOURS, MEMORY_ZONE, ZONE_OPACITY
from gpa_lsp.document.roofline_text import choose_roofline, describe_roofline
from gpa_lsp.document.stall_picture import TEXT_COLOUR, draw_text, frame_picture
from gpa_lsp.foundation.numbers import format_decade
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.gpu.device.model import MemoryLevel

_WIDTH, _HEIGHT = 380, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 6, 6, 18
_SCALE = 0.65  # Of the plane to that of the large chart
_MOST_KINDS = 3
_CLOSE = 1.7  # Bandwidths closer than this factor have their names one behind the other

_SAME = 1.02

_LETTER = 5.6


def draw_roofline_picture(roofline: KernelRoofline, contexts: Sequence[Roofline] = ()) -> str | None:
    """The picture as SVG; None where there is nothing to draw.

    Args:
        roofline: of a kernel; all its launches together are drawn, or its longest.
        contexts: of its launch contexts, which are drawn in place of the whole.
    """
    lines = contexts or (choose_roofline(roofline),)
    points = [point for line in lines if line is not None for point in _choose_points(line.points, line.dominant)]
    if not points:
        return None
    rows = [build_point("", point) for point in points]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))[:_MOST_KINDS]
    rows = [row for row in rows if row["kind"] in kinds]
    levels = {row["level"] for row in rows}
    drawn = [roof for roof in build_roofs(roofline.machine, 0) if roof["name"] in levels or roof["name"] in kinds]
    plane = _Plane(choose_frame(rows, drawn, kinds))
    rows = ring_points([row for row in rows if plane.frame.holds(row)], plane.frame, scale=_SCALE)
    parts = [
        *_draw_zones(plane, drawn),
        *plane.draw_axes(),
        *_draw_roofs(plane, drawn),
        *(plane.draw_point(row, kinds) for row in rows),
    ]
    return frame_picture(parts, _WIDTH, _HEIGHT)


def describe_roofline_picture(roofline: KernelRoofline) -> str:
    """What the picture shows, for those who do not see it: the words of the hover."""
    return f"roofline: {'; '.join(text for text in describe_roofline(roofline) if text)}"


def _choose_points(points: Sequence[Point], dominant: object) -> list[Point]:
    """Of the dominant type and the two next in rate."""
    drawable = [point for point in points if is_drawable(point.intensity, point.achieved_ops_per_s)]
    ranked = sorted(drawable, key=lambda point: (point.kind is not dominant, -point.achieved_ops_per_s))
    kinds = list(dict.fromkeys(point.kind for point in ranked))[:_MOST_KINDS]
    return [point for point in drawable if point.kind in kinds]


class _Plane:
    """The plane between the axes."""

    def __init__(self, frame: ChartFrame) -> None:
        self.frame = frame
        self.width = _WIDTH - _LEFT - _RIGHT
        self.height = _HEIGHT - _TOP - _BOTTOM
        self.across = self.width / math.log10(frame.right / frame.left)
        self.up = self.height / math.log10(frame.top / frame.bottom)

    def x(self, intensity: float) -> float:
        return _LEFT + self.across * math.log10(intensity / self.frame.left)

    def y(self, rate: float) -> float:
        return _TOP + self.height - self.up * math.log10(rate / self.frame.bottom)

    def draw_axes(self) -> list[str]:
        """A frame with a tick and a number at each decade, or every other where they are many."""
        bottom = _TOP + self.height
        parts = [f'<path d="M{_LEFT} {_TOP}V{bottom}H{_LEFT + self.width}" fill="none" stroke="{TEXT_COLOUR}"/>']
        for decade in _list_decades(self.frame.left, self.frame.right, self.width / 40):
            x = self.x(decade)
            parts.append(f'<path d="M{x:.1f} {bottom}v4" stroke="{TEXT_COLOUR}"/>')
            parts.append(draw_text(x, _HEIGHT - 4, format_decade(decade), "end" if x > _WIDTH - 20 else "middle"))
        for decade in _list_decades(self.frame.bottom, self.frame.top, self.height / 24):
            y = self.y(decade)
            parts.append(f'<path d="M{_LEFT} {y:.1f}h-4" stroke="{TEXT_COLOUR}"/>')
            parts.append(draw_text(_LEFT - 6, y + 3.5, format_decade(decade), "end"))
        return parts

    def draw_line(self, start: tuple[float, float], end: tuple[float, float], colour: str, dash: str = "") -> str:
        return (
            f'<path d="M{self.x(start[0]):.1f} {self.y(start[1]):.1f}L{self.x(end[0]):.1f} {self.y(end[1]):.1f}" '
            f'stroke="{colour}" stroke-width="1.6"{dash}/>'
        )

    def draw_point(self, row: Row, kinds: Sequence[str]) -> str:
        """A circle for the first type, a square for the second, a diamond for the third; a ring where it surrounds another one."""
        x, y = self.x(row["x"]), self.y(row["y"])
        colour = LEVEL_COLOURS[MemoryLevel(row["level"])]
        style = f'fill="{colour}" stroke="{TEXT_COLOUR}" stroke-width=".8"'
        if row["ring"]:
            style = f'fill="none" stroke="{colour}" stroke-width="1.5"'
        number, more = kinds.index(row["kind"]), RING_PIXELS * row["ring"]
        if number == 0:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4.5 + more:g}" {style}/>'
        if number == 1:
            half = 3.8 + more
            return f'<rect x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half:g}" height="{2 * half:g}" {style}/>'
        half = 5 + more
        return f'<path d="M{x:.1f} {y - half:.1f}l{half:g} {half:g}l-{half:g} {half:g}l-{half:g} -{half:g}z" {style}/>'


def _draw_zones(plane: _Plane, roofs: Sequence[Row]) -> list[str]:
    """The zones of the large chart: memory-bound left of all ridge points of the slowest level, compute-bound right of them."""
    ridges = list(find_ridges(roofs))
    slowest = min((ridge["slope"] for ridge in ridges), default=0.0)
    across = [plane.x(ridge["x"]) for ridge in ridges if ridge["slope"] == slowest]
    if not across:
        return []
    zones = ((MEMORY_ZONE, _LEFT, min(across)), (COMPUTE_ZONE, max(across), _LEFT + plane.width))
    return [
        f'<rect x="{start:.1f}" y="{_TOP}" width="{end - start:.1f}" height="{plane.height}" fill="{colour}" fill-opacity="{ZONE_OPACITY}"/>'
        for colour, start, end in zones
    ]


def _draw_roofs(plane: _Plane, roofs: Sequence[Row]) -> list[str]:
    limits = sorted((roof for roof in roofs if "limit" in roof), key=lambda roof: float(roof["limit"]))
    slopes = sorted((roof for roof in roofs if "slope" in roof), key=lambda roof: float(roof["slope"]))
    return [*_draw_diagonals(plane, slopes, limits), *_draw_peaks(plane, slopes, limits)]


def _draw_diagonals(plane: _Plane, slopes: Sequence[Row], limits: Sequence[Row]) -> list[str]:
    frame, parts, step, last = plane.frame, [], 0, 0.0
    ceiling = limits[-1]["limit"] if limits else frame.top
    angle = -math.degrees(math.atan2(plane.up, plane.across))
    for roof, words in _join_names(slopes):
        slope = roof["slope"]
        left, right = max(frame.left, frame.bottom / slope), min(frame.right, ceiling / slope)
        if right <= left:
            continue
        colour = LEVEL_COLOURS[MemoryLevel(roof["name"])]
        parts.append(plane.draw_line((left, left * slope), (right, right * slope), colour))
        step = step + 1 if last and slope < _CLOSE * last else 0
        last = slope
        place = left * (right / left) ** (0.03 + 0.4 * min(step, 2))
        x, y = plane.x(place), plane.y(place * slope)
        parts.append(
            f'<text transform="translate({x:.1f} {y - 3:.1f})rotate({angle:.1f})" fill="{colour}">{escape(make_visible(words))}</text>'
        )
    return parts


def _join_names(slopes: Sequence[Row]) -> list[tuple[Row, str]]:
    """Levels of one bandwidth (L1 and shared memory mostly have one) are one line with both names."""
    joined: list[tuple[Row, str]] = []
    for roof in slopes:
        if joined and roof["slope"] < _SAME * joined[-1][0]["slope"]:
            joined[-1] = (roof, f"{joined[-1][0]['name']}, {roof['words']}")
        else:
            joined.append((roof, roof["words"]))
    return joined


def _draw_peaks(plane: _Plane, slopes: Sequence[Row], limits: Sequence[Row]) -> list[str]:
    """Each with its name above it at the right; of peaks that stand close the names stand one beside the other."""
    frame, parts = plane.frame, []
    shift, lowest = 0.0, math.inf
    for roof in limits:
        limit = roof["limit"]
        left = max(frame.left, limit / slopes[-1]["slope"]) if slopes else frame.left
        if left >= frame.right:
            continue
        parts.append(plane.draw_line((left, limit), (frame.right, limit), TEXT_COLOUR))
        words, y = _shorten(roof["words"]), plane.y(limit)
        if lowest - y > 11:
            shift = 0.0
        parts.append(draw_text(_WIDTH - _RIGHT - shift, y - 3, words, "end"))
        shift, lowest = shift + _LETTER * len(words) + 8, y
    return parts


def _list_decades(low: float, high: float, most: float) -> list[float]:
    exponents = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    every = max(1, math.ceil(len(exponents) / max(1.0, most)))
    return [10.0**exponent for exponent in exponents[::every]]


def _shorten(words: str) -> str:
    return words if len(words) <= 32 else words[:31] + "…"
