"""The part of the plane a roofline chart shows, and which names stand in it without covering one another."""

import math
from collections.abc import Iterator, Sequence, Set

from msgspec import Struct

from gpa_lsp.document.charts.roofline_rows import PlacedRow, Row
from gpa_lsp.document.charts.themes import Spec, quantitative
from gpa_lsp.foundation.numbers import Quantity

# Points further below the highest roof are in the tables, but not on the chart: one such point would flatten all the others
_MOST_DECADES = 9

LETTER_PIXELS = 6.2  # Width of a letter of a name, about

# Peaks closer than this factor stand too close for their names to be one above the other: they stand side by side
CLOSE_PEAKS = 1.45

PEAK_NAME_PIXELS = 175  # From one name to the next of those

# Points at less than this part of the highest rate of their kernel do not stretch the axes: they are in the tables only
_NEGLIGIBLE = 1e-3

# The same beside the ridge points: a kernel that hardly touches a level of the memory has any intensity over it
_MOST_SIDE_DECADES = 5

_LINE_PIXELS = 13
_BESIDE_PIXELS = 13  # From a point to its name

RING_PIXELS = 2.5  # From a mark to the ring around it, and from ring to ring
_SAME_PLACE_PIXELS = 9  # Marks nearer than this hide one another
_RING_ORDER = ("DRAM", "L2", "L1", "shared memory")  # From the mark outwards

_ZONE_LABEL_PIXELS = 18  # Names of the zones stand at the bottom of the plane

_NAME_LETTERS = 34
# The smallest chart with names, for which they are placed: in a larger one points lie further apart and names are no longer
_PLANE_PIXELS = (520, 380)

_MOST_NAMES = 40


class ChartFrame(Struct, frozen=True, kw_only=True):
    """The ends of both axes, powers of ten, and the top with every peak drawn."""

    left: float  # least intensity
    right: float  # largest
    bottom: float  # least rate
    top: float  # largest rate, with the peaks of the types that have points
    highest: float  # largest rate with the peaks of all types; at least ``top``

    def holds(self, point: Row) -> bool:
        """Whether a point lies in the plane."""
        return bool(self.left <= point["x"] <= self.right and self.bottom <= point["y"])

    def place(self, point: Row) -> tuple[float, float]:
        """Pixels of a point from the left and the top of a plane of the usual size."""
        width, height = _PLANE_PIXELS
        across = math.log10(point["x"] / self.left) / math.log10(self.right / self.left)
        up = math.log10(point["y"] / self.bottom) / math.log10(self.top / self.bottom)
        return across * width, (1 - up) * height


def choose_frame(points: Sequence[Row], roofs: Sequence[Row], kinds: Sequence[str]) -> ChartFrame:
    """The decades that hold the points, the peaks of their types and the ridge points of these.

    Args:
        points: with ``x`` and ``y``.
        roofs: with ``slope`` or ``limit``.
    """
    every = [roof["limit"] for roof in roofs if "limit" in roof]
    limits = [roof["limit"] for roof in roofs if "limit" in roof and (roof["name"] in kinds or not kinds)] or every
    slopes = [roof["slope"] for roof in roofs if "slope" in roof]
    rates = [point["y"] for point in points]
    top = max([*limits, *rates], default=1e12) * 1.6
    floor = top / 10**_MOST_DECADES
    highest: dict[str, float] = {}
    for point in points:
        highest[point["row"]] = max(highest.get(point["row"], 0.0), point["y"])
    ridges = [limit / slope for limit in limits for slope in slopes] or [1.0]
    near, far = min(ridges) / 10**_MOST_SIDE_DECADES, max(ridges) * 10**_MOST_SIDE_DECADES
    kept = [
        point
        for point in points
        if point["y"] >= max(floor, _NEGLIGIBLE * highest[point["row"]]) and near <= point["x"] <= far
    ]
    across = [*(point["x"] for point in kept), *ridges]
    # Right of the last ridge point the zone has room for its name.
    left, right = _round_down(min(across) / 1.5), _round_up(max(3 * max(across), 10 * max(ridges)))
    bottom = _round_down(
        max(floor, min([*(point["y"] / 1.5 for point in kept), *(slope * left * 10 for slope in slopes)], default=1e9))
    )
    return ChartFrame(
        left=left,
        right=right,
        bottom=min(bottom, _round_down(top / 100)),
        top=_round_half_up(top),
        highest=_round_half_up(max([top, *(1.6 * limit for limit in every)])),
    )


def ring_points(points: Sequence[Row], frame: ChartFrame) -> list[Row]:
    """The points with ``ring`` (number of marks of its row and type that it would hide and so surrounds) and ``pad`` (pixels of its rings)."""
    places = [frame.place(point) for point in points]
    groups: dict[tuple[str, str], list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault((point["row"], point["kind"]), []).append(index)
    rings, pads = [0] * len(points), [0.0] * len(points)
    for members in groups.values():
        members.sort(key=lambda index: _RING_ORDER.index(points[index]["level"]))
        for position, index in enumerate(members):
            near = [
                other for other in members[:position] if math.dist(places[index], places[other]) < _SAME_PLACE_PIXELS
            ]
            rings[index] = max((rings[other] + 1 for other in near), default=0)
            for one in (*near, index):
                pads[one] = max(pads[one], RING_PIXELS * rings[index])
    return [{**point, "ring": ring, "pad": pad} for point, ring, pad in zip(points, rings, pads, strict=True)]


def place_names(
    points: Sequence[Row], rows: Sequence[PlacedRow], shown: Set[str], roofs: Sequence[Row], frame: ChartFrame
) -> list[Row]:
    """The points, some of them with a ``name`` to be written beside them on a ``side``: one of each kernel, where there is room.

    Kernels of more time come first; the one of most time has its name always (``first``). Only rows that are ``shown`` have names and take room.
    A launch context is named by what it was launched with; other launches and kernels of the profile before have no names.
    """
    named_rows = (row for row in rows if row.row_id in shown and (row.is_whole or row.context) and not row.is_before)
    by_id = {row.row_id: row for row in named_rows}
    centres = (frame.place(point) for point in points if point["row"] in by_id)
    taken = [(x - 5.0, y - 5.0, x + 5.0, y + 5.0) for x, y in centres]
    taken += _find_peak_labels(roofs, {point["kind"] for point in points}, frame)
    named: dict[int, Row] = {}
    order = sorted(by_id, key=lambda row_id: -by_id[row_id].roofline.duration_s)
    for row_id in order[:_MOST_NAMES]:
        name = by_id[row_id].context or by_id[row_id].name
        name = name if len(name) <= _NAME_LETTERS else name[: _NAME_LETTERS - 1] + "…"
        own = [index for index, point in enumerate(points) if point["row"] == row_id]
        own.sort(key=lambda index: -float(points[index]["x"]))  # the rightmost first
        places = [
            (index, side, box)
            for index in own
            for side, box in find_name_boxes(*frame.place(points[index]), name, points[index].get("pad", 0.0))
        ]
        free = (one for one in places if not any(_overlap(one[2], other) for other in taken))
        chosen = next(free, places[0] if places and row_id == order[0] else None)
        if chosen is not None:
            index, side, box = chosen
            taken.append(box)
            named[index] = {"name": name, "side": side, "first": row_id == order[0]}
    return [{**point, **named[index]} if index in named else point for index, point in enumerate(points)]


_Box = tuple[float, float, float, float]


def find_name_boxes(x: float, y: float, name: str, pad: float = 0.0) -> Iterator[tuple[str, _Box]]:
    """Sides of a point where its name fits into the plane above the zones' names, each with the name's box; *pad* is the width of its rings."""
    width, half = LETTER_PIXELS * len(name), _LINE_PIXELS / 2
    beside = _BESIDE_PIXELS + pad
    boxes = {
        "right": (x + beside, y - half, x + beside + width, y + half),
        "left": (x - beside - width, y - half, x - beside, y + half),
        "below": (x - width / 2, y + beside, x + width / 2, y + beside + _LINE_PIXELS),
        "above": (x - width / 2, y - beside - _LINE_PIXELS, x + width / 2, y - beside),
    }
    for side, box in boxes.items():
        if box[0] >= 0 and box[2] <= _PLANE_PIXELS[0] + 40 and box[3] <= _PLANE_PIXELS[1] - _ZONE_LABEL_PIXELS:
            yield side, box


def _find_peak_labels(roofs: Sequence[Row], kinds: Set[str], frame: ChartFrame) -> list[_Box]:
    """Boxes of the peaks' names: above their lines, at the right end."""
    found: list[_Box] = []
    lower = step = 0
    peaks = sorted(
        (roof for roof in roofs if roof.get("limit") and roof["name"] in kinds), key=lambda roof: roof["limit"]
    )
    for rank, roof in enumerate(peaks, start=1):
        step = 1 + rank % 2 if lower and roof["limit"] < CLOSE_PEAKS * lower else 0
        lower = roof["limit"]
        x, y = frame.place({"x": frame.right, "y": roof["limit"]})
        x -= step * PEAK_NAME_PIXELS
        found.append((x - LETTER_PIXELS * len(roof["words"]), y - _LINE_PIXELS - 4, x + (0 if step else 40), y + 2))
    return found


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _round_down(number: float) -> float:
    return 10.0 ** math.floor(math.log10(number))


def _round_up(number: float) -> float:
    return 10.0 ** math.ceil(math.log10(number))


def _round_half_up(number: float) -> float:
    """Round up to a power of ten, or to a third of one."""
    power = _round_up(number)
    return power / 3 if number <= power / 3 else power


# The axes of charts. Tick labels are the only numbers that a chart formats itself: tooltips get theirs from
# :mod:`gpa_lsp.foundation.numbers`.

_PREFIXED = "format(datum.value, '~s')"  # 10k, 1.5M

_PERCENT = "format(100 * datum.value, ',~r') + ' %'"
_PREFIXED_QUANTITIES = (
    Quantity.BYTES,
    Quantity.BYTES_PER_S,
    Quantity.FLOPS_PER_S,
    Quantity.OPS_PER_S,
    Quantity.INTEGER_OPS_PER_S,
    Quantity.INSTRUCTIONS_PER_S,
    Quantity.HZ,
)


def label_axis(quantity: Quantity) -> Spec:
    """Format of a quantity's tick labels; empty where Vega's default (all digits, with separators) will do."""
    if quantity is Quantity.RATIO:
        return {"labelExpr": _PERCENT}
    return {"labelExpr": _PREFIXED} if quantity in _PREFIXED_QUANTITIES else {}


class ChartAxes:
    """The encodings of x and y, the same in every layer."""

    def __init__(self, frame: ChartFrame, counts_instructions: bool) -> None:
        self.frame = frame
        self._x_title = (
            "warp instructions per transaction" if counts_instructions else "operational intensity: operations per byte"
        )
        self._y_title = "warp instructions per second" if counts_instructions else "operations per second"

        self.run = f"log({frame.right!r} / {frame.left!r})"  # of the axis of x, as an expression
        self.rise = f"log((all_peaks ? {frame.highest!r} : {frame.top!r}) / {frame.bottom!r})"

    def x(self, field: str) -> Spec:
        """Intensity."""
        frame = self.frame
        axis = {
            "values": _list_decades(frame.left, frame.right),
            "labelExpr": f"datum.value >= 1000 ? {_PREFIXED} : format(datum.value, '~r')",
            "labelFlush": False,
        }
        scale = {"type": "log", "domain": [frame.left, frame.right], "nice": False}
        return quantitative(field, scale=scale, title=self._x_title, axis=axis)

    def y(self, field: str) -> Spec:
        """Rate; with all peaks drawn the axis reaches further up."""
        frame = self.frame
        top = {"expr": f"all_peaks ? {frame.highest!r} : {frame.top!r}"}
        scale = {"type": "log", "domain": [frame.bottom, top], "nice": False}
        axis = {"values": _list_decades(frame.bottom, frame.highest), "labelExpr": _PREFIXED}
        return quantitative(field, scale=scale, title=self._y_title, axis=axis)

    def both(self, x: str, y: str) -> Spec:
        """Encodings of x and y by two fields."""
        return {"x": self.x(x), "y": self.y(y)}


def _list_decades(low: float, high: float) -> list[float]:
    values, value = [], low
    while value <= high * 1.001:
        values.append(float(f"{value:.6g}"))
        value *= 10
    return values
