"""Where a suggestion takes the kernel's point on the roofline chart, and which ceiling stops it there (Starlight, Table 1, last column).

Starlight multiplies the measured rate by the speedup (Equation 4) and looks at no ceiling. Here the arrow ends at the ceiling, and the uncapped
value is told beside it.
"""

from collections.abc import Iterable

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Movement
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline, Point
from gpa_lsp.diagnosis.analyses.starlight.suggestions import (
    Bottleneck,
    Direction,
    LineCounts,
    LineSamples,
    Row,
    find_row,
)
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Amount, Sentence, say
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind

# Starlight's Equations 2 to 4, as published: what part of the run a line takes, what resolving its stalls gains, and what rate that makes.
#
# N_op of a line are its samples in which the warp issued an instruction (``selected``), and N_stall all its other samples: the paper counts
# operations and stalls by sampling alone, and every sample is one or the other, so that both together are all samples T. Equation 3 then reads
# T / (T − M), which is GPA's Equation 2 of the same M. Two things it leaves out, and GPA does not: that stalls can be hidden behind other warps
# (no bound by the samples in which something was issued), and that a stalled instruction suffers from another one (no def-use).
#
# Source: A. Zeni et al., "Starlight: A kernel optimizer for GPU processing", section 4.4.


def measure_line_share(operations: float, stalls: float, total: float) -> float:
    """Equation 2: the part of the run that a line takes, 0..1 (the paper writes percent).

    Raises:
        ValueError: a negative count, or more in the line than there is.

    >>> measure_line_share(20, 180, 1000)
    0.2
    """
    _check(operations, stalls, operations + stalls, total)
    return (operations + stalls) / total


def estimate_line_speedup(total: float, removed: float) -> float:
    """Equation 3: run time before by run time after, when the stalls of one kind are gone from a line, S = T / (T − N).

    Raises:
        ValueError: a negative count, or not less than the total: nothing would be left to run.

    >>> estimate_line_speedup(1000, 200)
    1.25
    """
    _check(removed, 0, removed, total)
    if removed >= total:
        raise ValueError(f"of {total} samples {removed} cannot go: nothing would be left")
    return total / (total - removed)


def estimate_new_rate(speedup: float, rate_per_s: float) -> float:
    """Equation 4: the rate of operations after a change that leaves their number as it is, in operations per second.

    >>> estimate_new_rate(1.25, 800e9)
    1000000000000.0
    """
    return speedup * rate_per_s


def _check(first: float, second: float, part: float, total: float) -> None:
    if first < 0 or second < 0 or part > total or total <= 0:
        raise ValueError(f"{part} of {total} samples is no part of them")


_OUTERMOST_FIRST = (MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1, MemoryLevel.SHARED)
# Type → one of half its size (TF32 is stored in four bytes)
_NARROWER = {
    OperationKind.FP64: OperationKind.FP32,
    OperationKind.FP32: OperationKind.FP16,
    OperationKind.TENSOR_FP64: OperationKind.TENSOR_TF32,
    OperationKind.TENSOR_TF32: OperationKind.TENSOR_FP16,
    OperationKind.TENSOR_FP16: OperationKind.TENSOR_FP8,
    OperationKind.TENSOR_BF16: OperationKind.TENSOR_FP8,
    OperationKind.TENSOR_FP8: OperationKind.TENSOR_FP4,
}


class Position(Struct, frozen=True, kw_only=True):
    """Where a kernel stands on the chart: its dominant type over the level whose ceiling is lowest for it."""

    point: Point  # of that type and level
    others: tuple[Point, ...]  # points of the same type over the other levels
    peak_ops_per_s: float | None  # of the type; None when unknown
    bytes_per_s: float | None  # bandwidth of the level; None when unknown
    machine: Machine  # for other types

    @property
    def kind(self) -> OperationKind:
        """The dominant type."""
        return self.point.kind

    @property
    def roof_ops_per_s(self) -> float | None:
        """What is attainable with the bytes as they are, the lowest over all levels; None when no ceiling is known."""
        known = [one.attainable_ops_per_s for one in (self.point, *self.others) if one.attainable_ops_per_s is not None]
        return min(known, default=None)


class Outcome(Struct, frozen=True, kw_only=True):
    """What a suggestion would make of the kernel's rate."""

    movement: Movement  # the arrow
    uncapped_ops_per_s: float  # Equation 4, above any ceiling; for a movement to the right the rate as it is
    words: Sentence  # the movement in words and numbers, one clause


def make_rate(rate_per_s: float, kind: OperationKind) -> Amount:
    """Operations of a kind per second.

    >>> str(make_rate(1.2345e12, OperationKind.FP32)), str(make_rate(8e8, OperationKind.INT32))
    ('1.23 TFLOP/s', '800 MIOP/s')
    """
    return Amount(value=rate_per_s, quantity=Quantity(f"{kind.operation}/s"))


def make_intensity(intensity: float) -> Amount:
    """Operations per byte."""
    return Amount(value=intensity, quantity=Quantity.OPS_PER_BYTE)


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

    With the bytes unchanged the lowest ceiling over all levels ends the arrow. Where bytes are saved, Starlight does not say how many: the arrow
    goes as far to the right as the new rate demands under the level's bandwidth, and only the peak ends it.
    """
    point, kind = position.point, position.kind
    uncapped = estimate_new_rate(speedup, point.achieved_ops_per_s)
    saves_bytes = direction is Direction.UP_RIGHT
    roof = position.peak_ops_per_s if saves_bytes else position.roof_ops_per_s
    # A point may lie a little above its ceiling, since its counters were taken in several passes.
    rate = uncapped if roof is None else max(point.achieved_ops_per_s, min(uncapped, roof))
    needed = 0.0 if not saves_bytes or not position.bytes_per_s else rate / position.bytes_per_s
    intensity = max(point.intensity, needed)
    words = say(
        "up from {old} to {new} {path}{uncapped}",
        old=make_rate(point.achieved_ops_per_s, kind),
        new=make_rate(rate, kind),
        path=_describe_path(position, intensity, roof),
        uncapped=say(", Equation 4 alone gives {rate}", rate=make_rate(uncapped, kind)) if uncapped > rate else NOTHING,
    )
    return Outcome(movement=_draw(point, intensity, rate, label), uncapped_ops_per_s=uncapped, words=words)


def _describe_path(position: Position, intensity: float, roof: float | None) -> Sentence:
    """How far to the right, and what ends the arrow: the peak where it goes to the right, the lowest ceiling where it does not."""
    point = position.point
    if intensity > point.intensity:
        return say(
            "and right from {old} to at least {new}, so that {level} can follow; the peak is {peak}",
            old=make_intensity(point.intensity),
            new=make_intensity(intensity),
            level=point.level,
            peak=_name_rate(roof, position.kind),
        )
    return say(
        "at {intensity} of {level}; the ceiling there is {ceiling}",
        intensity=make_intensity(point.intensity),
        level=point.level,
        ceiling=_name_rate(position.roof_ops_per_s, position.kind),
    )


def _name_rate(rate_per_s: float | None, kind: OperationKind) -> Amount | str:
    return "unknown" if rate_per_s is None else make_rate(rate_per_s, kind)


def move_right(position: Position, label: str, *, is_narrower: bool) -> Outcome | None:
    """The movement when every value takes half the bytes: twice the intensity at every level, at the rate as it is.

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
    ceiling = say("; the ceiling there is unknown")
    if slope is not None and peak_ops_per_s is not None:
        now = point.attainable_ops_per_s
        ceiling = say(
            ", where the ceiling{type} is {then}{now}",
            type=f" for {then}" if then is not kind else "",
            then=make_rate(min(slope, peak_ops_per_s), then),
            now=NOTHING if now is None else say(" instead of {now}", now=make_rate(now, kind)),
        )
    words = say(
        "right: half the bytes double the intensity to {intensity}{ceiling}",
        intensity=make_intensity(intensity),
        ceiling=ceiling,
    )
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


LEAST_SPEEDUP = 1.01  # A line that gains less is not shown; the advisor's own threshold


class LineEstimate(Struct, frozen=True, kw_only=True):
    """One bottleneck of one line."""

    line: LineSamples  # its samples
    row: Row  # of Table 1
    removed: int  # N of Equation 3, samples
    share_ratio: float  # Equation 2, of the whole line
    speedup: float  # Equation 3
    outcome: Outcome | None  # Equation 4 and the movement on the chart; None where the kernel has no place on it


def estimate_lines(lines: LineCounts, position: Position | None) -> tuple[LineEstimate, ...]:
    """Every bottleneck of every line that gains at least :data:`LEAST_SPEEDUP`, largest speedup first.

    Stalls that are all samples of the kernel have no speedup (nothing would be left to run), and are left out.
    """
    total = lines.total
    least = total * (1 - 1 / LEAST_SPEEDUP)
    found = [
        _estimate(line, bottleneck, total, position)
        for bottleneck in Bottleneck
        for line in lines.find_heavy(bottleneck, least)
        if line.stalls[bottleneck] < total
    ]
    return tuple(sorted(found, key=lambda one: (-one.speedup, -one.share_ratio, one.line.place)))


def find_hottest(estimates: Iterable[LineEstimate], bottleneck: Bottleneck) -> LineEstimate | None:
    """The line on which a bottleneck gains most; None where it gains on none."""
    return next((one for one in estimates if one.row.bottleneck is bottleneck), None)


def _estimate(line: LineSamples, bottleneck: Bottleneck, total: int, position: Position | None) -> LineEstimate:
    row, removed = find_row(bottleneck), line.stalls[bottleneck]
    speedup = estimate_line_speedup(total, removed)
    label = f"{row.title.lower()}, {line.place}"
    return LineEstimate(
        line=line,
        row=row,
        removed=removed,
        share_ratio=measure_line_share(line.operations, line.all_stalls, total),
        speedup=speedup,
        outcome=None if position is None else move(position, row.direction, speedup, label),
    )
