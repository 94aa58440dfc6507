"""Where a suggestion takes the kernel's point on the roofline chart, and which roof stops it there (Starlight, Table 1, last column).

Starlight multiplies the measured rate by the speedup (Equation 4) and looks at no roof. Here the arrow ends at the roof, and the uncapped value is
told beside it.
"""

from gpa_lsp.analyses.answers import Movement
from gpa_lsp.analyses.roofline_model import KernelRoofline, Point
from gpa_lsp.analyses.starlight.equations import estimate_new_rate
from gpa_lsp.analyses.starlight.suggestions import Direction
from gpa_lsp.analyses.starlight.words import say_intensity, say_rate
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.device.model import Machine, MemoryLevel, OperationKind

_OUTERMOST_FIRST = (MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1, MemoryLevel.SHARED)
_NARROWER = {
    OperationKind.FP64: OperationKind.FP32,
    OperationKind.FP32: OperationKind.FP16,
    OperationKind.TENSOR_FP64: OperationKind.TENSOR_TF32,
    OperationKind.TENSOR_TF32: OperationKind.TENSOR_FP16,
    OperationKind.TENSOR_FP16: OperationKind.TENSOR_FP8,
    OperationKind.TENSOR_BF16: OperationKind.TENSOR_FP8,
    OperationKind.TENSOR_FP8: OperationKind.TENSOR_FP4,
}
"""Type → one of half its size (TF32 is stored in four bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a kernel stands on the chart: its dominant type over the level whose roof is lowest for it.

    Attributes:
        point: of that type and level.
        others: points of the same type over the other levels.
        peak_ops_per_s: of the type; None when unknown.
        bytes_per_s: bandwidth of the level; None when unknown.
        machine: for other types.
    """

    point: Point
    others: tuple[Point, ...]
    peak_ops_per_s: float | None
    bytes_per_s: float | None
    machine: Machine

    @property
    def kind(self) -> OperationKind:
        """The dominant type."""
        return self.point.kind

    @property
    def roof_ops_per_s(self) -> float | None:
        """What is attainable with the bytes as they are, the lowest over all levels; None when no roof is known."""
        known = [one.attainable_ops_per_s for one in (self.point, *self.others) if one.attainable_ops_per_s is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a suggestion would make of the kernel's rate.

    Attributes:
        movement: the arrow.
        uncapped_ops_per_s: Equation 4, above any roof; for a movement to the right the rate as it is.
        words: the movement in words and numbers, one clause.
    """

    movement: Movement
    uncapped_ops_per_s: float
    words: str


def find_position(roofline: KernelRoofline | None) -> Position | None:
    """Where a kernel stands; None where no operation was counted or no level was measured."""
    whole = None if roofline is None else roofline.whole
    if roofline is None or whole is None or whole.dominant is None:
        return None
    points = [point for point in whole.points if point.kind is whole.dominant and point.intensity > 0]
    if not points:
        return None

    def rank(point: Point) -> tuple[float, int]:
        attainable = point.attainable_ops_per_s
        return (float("inf") if attainable is None else attainable, _OUTERMOST_FIRST.index(point.level))

    lowest = min(points, key=rank)
    peak, bandwidth = roofline.machine.find_peak(whole.dominant), roofline.machine.find_bandwidth(lowest.level)
    return Position(
        point=lowest,
        others=tuple(point for point in points if point is not lowest),
        peak_ops_per_s=None if peak is None else peak.ops_per_s,
        bytes_per_s=None if bandwidth is None else bandwidth.bytes_per_s,
        machine=roofline.machine,
    )


def move(position: Position, direction: Direction, speedup: float, label: str) -> Outcome:
    """The movement of a remedy that makes the kernel faster: up, or up and to the right.

    With the bytes as they are the lowest roof over all levels ends the arrow. Where bytes are saved, Starlight does not say how many: the arrow
    goes as far to the right as the new rate demands under the level's bandwidth, and only the peak ends it.
    """
    point, kind = position.point, position.kind
    uncapped = estimate_new_rate(speedup, point.achieved_ops_per_s)
    saves_bytes = direction is Direction.UP_RIGHT
    roof = position.peak_ops_per_s if saves_bytes else position.roof_ops_per_s
    # A point may lie a little above its roof, since its counters were taken in several passes.
    rate = uncapped if roof is None else max(point.achieved_ops_per_s, min(uncapped, roof))
    needed = 0.0 if not saves_bytes or not position.bytes_per_s else rate / position.bytes_per_s
    intensity = max(point.intensity, needed)
    words = f"up from {say_rate(point.achieved_ops_per_s, kind)} to {say_rate(rate, kind)} "
    if intensity > point.intensity:
        words += (
            f"and right from {say_intensity(point.intensity, kind)} to {say_intensity(intensity, kind)} at least, "
            f"so that {point.level} can follow; the peak is "
        )
    else:
        words += f"at {say_intensity(point.intensity, kind)} of {point.level}; the roof there is "
        roof = position.roof_ops_per_s
    words += "not known" if roof is None else say_rate(roof, kind)
    if uncapped > rate:
        words += f", Equation 4 alone gives {say_rate(uncapped, kind)}"
    return Outcome(movement=_draw(point, intensity, rate, label), uncapped_ops_per_s=uncapped, words=words)


def move_right(position: Position, label: str, *, is_narrower: bool) -> Outcome | None:
    """The movement when every value takes half the bytes: twice the intensity at every level, at the rate as it is.

    Args:
        position: where the kernel stands.
        label: of the arrow.
        is_narrower: the operations become those of the type of half the size, under its peak; otherwise they stay what they are.

    Returns:
        None where there is no narrower type.
    """
    point, kind = position.point, position.kind
    then = _NARROWER.get(kind) if is_narrower else kind
    if then is None:
        return None
    peak = position.machine.find_peak(then)
    peak_ops_per_s = None if peak is None else peak.ops_per_s
    intensity = 2 * point.intensity
    slope = None if position.bytes_per_s is None else position.bytes_per_s * intensity
    words = f"right: half the bytes double the intensity to {say_intensity(intensity, kind)}"
    if slope is None or peak_ops_per_s is None:
        words += "; the roof there is not known"
    else:
        now = "" if point.attainable_ops_per_s is None else f" instead of {say_rate(point.attainable_ops_per_s, kind)}"
        name = f" for {then}" if then is not kind else ""
        words += f", where the roof{name} is {say_rate(min(slope, peak_ops_per_s), then)}{now}"
    movement = _draw(point, intensity, point.achieved_ops_per_s, label)
    return Outcome(movement=movement, uncapped_ops_per_s=point.achieved_ops_per_s, words=words)


def _draw(point: Point, intensity: float, rate: float, label: str) -> Movement:
    return Movement(
        kind=point.kind,
        level=point.level,
        from_intensity=point.intensity,
        from_ops_per_s=point.achieved_ops_per_s,
        to_intensity=intensity,
        to_ops_per_s=rate,
        label=label,
    )
