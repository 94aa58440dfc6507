"""A roofline in two lines and bars, for hovers and terminals.

The first line says what the kernel comes closest to; the second where it stands under its own ceiling and what is left.
"""

from collections.abc import Sequence

from gpa_lsp.diagnosis.advice.model import SM_UNIT, KernelAdvice, UnitUse
from gpa_lsp.diagnosis.analyses.answers import Bar, Missing
from gpa_lsp.diagnosis.analyses.model import KernelRoofline, Point, Roof, Roofline
from gpa_lsp.document.answer_view import describe_missing
from gpa_lsp.foundation.numbers import format_bytes_per_s, format_hz, format_intensity, format_per_s, format_speedup
from gpa_lsp.foundation.prose import Code, Sentence, factor, join, percent, say
from gpa_lsp.gpu.device.model import ClockBasis, Clocks, Machine, MemoryLevel
from gpa_lsp.report.model import KernelReport

_MOST_BARS = 5

# To follow ``ceilings at``
CLOCK_WORDS = {
    ClockBasis.MEASURED: "the clocks it ran at",
    ClockBasis.BASE: "base clocks",
    ClockBasis.BOOST: "boost clocks",
    ClockBasis.UNKNOWN: "unknown clocks",
}


def describe_roofline(roofline: KernelRoofline) -> tuple[Sentence, Sentence]:
    """Two lines of plain text; the second may be empty.

    Args:
        roofline: of a kernel; all its launches together are described, or its longest where these could not be placed.
    """
    line = choose_roofline(roofline)
    if line is None:
        return _say_nothing((), roofline.machine)
    return describe_line(line, roofline.machine)


def describe_nearest_roof(report: KernelReport) -> str:
    """Nearest ceiling of a kernel and its use; empty where it is unknown."""
    roofline = None if report.analyses is None else report.analyses.roofline
    line = None if roofline is None else choose_roofline(roofline)
    if line is not None and line.binding is None:
        return ""
    if line is None and (report.advice is None or not report.advice.units):
        return ""
    if roofline is not None:
        return describe_roofline(roofline)[0]
    return "" if report.advice is None else describe_roofs(report.advice)


def describe_line(line: Roofline, machine: Machine) -> tuple[Sentence, Sentence]:
    """The two lines of one launch, or of all together."""
    if line.binding is None:
        return _say_nothing(line.missing, machine)
    return _describe_nearest(line), _describe_place(machine, line)


def choose_roofline(roofline: KernelRoofline) -> Roofline | None:
    """All launches together, else the longest; None when none could be placed."""
    return roofline.whole or next(iter(roofline.launches), None)


def describe_clock_rates(clocks: Clocks) -> str:
    """The known clocks; empty without any."""
    rates = (("SMs", clocks.sm_hz), ("L2", clocks.l2_hz), ("DRAM", clocks.dram_hz))
    return ", ".join(f"{name} {format_hz(rate)}" for name, rate in rates if rate is not None)


def list_bars(line: Roofline, most: int | None = _MOST_BARS, *, with_headroom: bool = False) -> tuple[Bar, ...]:
    """Bars of the busiest unit (where it is nearer than any ceiling) and of the ceilings, with their rates."""
    unit = line.tighter_unit
    bars = [_make_bar(roof, with_headroom=with_headroom) for roof in line.shown_roofs]
    if unit is not None:
        words = say("headroom {factor}", factor=factor(unit.headroom))
        bars.insert(0, Bar(label=unit.name, ratio=unit.share_ratio, ceiling_ratio=unit.ceiling_ratio, words=words))
    return tuple(bars[:most])


def _make_bar(roof: Roof, *, with_headroom: bool) -> Bar:
    rates = [format_roof_rate(roof, rate) for rate in (roof.achieved_per_s, roof.limit_per_s)]
    words = say("{achieved} of {limit}", achieved=rates[0], limit=rates[1])
    if with_headroom:
        words = say("{words}, headroom {factor}", words=words, factor=factor(roof.headroom))
    return Bar(label=roof.name, ratio=roof.share_ratio, ceiling_ratio=roof.ceiling_ratio, words=words)


def format_roof_rate(roof: Roof, rate: float) -> str:
    """A rate in the unit of a roof."""
    if roof.level is not None:
        return format_bytes_per_s(rate)
    return format_per_s(rate, "inst") if roof.kind is None else format_per_s(rate, roof.kind.operation)


def _describe_nearest(line: Roofline) -> Sentence:
    roof, unit = line.roofs[0], line.tighter_unit
    nearest = roof if unit is None else unit
    text = say("{name} at {share}", name=nearest.name, share=percent(nearest.share_ratio))
    if nearest.ceiling_ratio < 1:
        text = say("{text} (practical maximum {share})", text=text, share=percent(nearest.ceiling_ratio))
    others = [] if unit is None else [roof]
    others += [
        roof
        for roof in line.roofs[1:]
        if (roof.kind is not None and roof.kind is line.dominant) or roof.level is MemoryLevel.DRAM
    ]
    listed = join((say("{name} {share}", name=roof.name, share=percent(roof.share_ratio)) for roof in others), ", ")
    return join((text, listed), "; ")


def _describe_place(machine: Machine, line: Roofline) -> Sentence:
    parts = []
    point = find_main_point(line)
    if point is not None:
        unit = f"{point.kind.operation}/B"
        parts.append(
            f"{point.kind} {format_per_s(point.achieved_ops_per_s, point.kind.operation)} "
            f"at {format_intensity(point.intensity, unit)} of {point.level}"
        )
        ridge = _find_ridge(machine, point)
        if ridge is not None:
            side = "left" if point.intensity < ridge else "right"
            parts.append(f"{side} of the ridge point at {format_intensity(ridge, unit)}")
    headroom = line.headroom
    if headroom is not None and headroom > 1:
        parts.append(f"headroom {format_speedup(headroom)}")
    else:
        parts.append("no headroom with the same work")
    parts.append(f"ceilings at {CLOCK_WORDS[machine.clocks.basis]}")
    return join(parts, "; ")


def find_main_point(line: Roofline) -> Point | None:
    """Point of the dominant type, over the level nearest to its ceiling, else over DRAM, else over the outermost level known."""
    points = [point for point in line.points if point.kind is line.dominant]
    if not points:
        return None
    nearest = next((roof.level for roof in line.roofs if roof.level is not None), None)
    for level in (nearest, MemoryLevel.DRAM):
        found = next((point for point in points if point.level is level), None)
        if found is not None:
            return found
    return points[-1]


def _find_ridge(machine: Machine, point: Point) -> float | None:
    peak = machine.find_peak(point.kind)
    bandwidth = machine.find_bandwidth(point.level)
    if peak is None or bandwidth is None or not peak.ops_per_s or not bandwidth.bytes_per_s:
        return None
    return peak.ops_per_s / bandwidth.bytes_per_s


def _say_nothing(missing: Sequence[Missing], machine: Machine) -> tuple[Sentence, Sentence]:
    first = say("how close the kernel is to its ceilings is unknown")
    if not missing:
        return first, join(machine.doubts[:1])
    return first, describe_missing(missing[0])


def describe_roofs(advice: KernelAdvice) -> Sentence:
    """The nearest unit and the others; without any, the profiler section that collects them."""
    if not advice.units:
        option = Code(text="--section SpeedOfLight")
        return say("how close the kernel is to its ceilings is unknown: collect {option}", option=option)
    nearest, *others = sorted(advice.units, key=_measure_nearness, reverse=True)
    text = say("{unit} at {share} of its peak", unit=_name(nearest), share=percent(nearest.achieved_ratio))
    if nearest.ceiling_ratio < 1:
        text = say("{text} (practical maximum {share})", text=text, share=percent(nearest.ceiling_ratio))
    listed = join(
        (say("{unit} {share}", unit=_name(unit), share=percent(unit.achieved_ratio)) for unit in others), ", "
    )
    return join((text, listed), "; ")


def _measure_nearness(unit: UnitUse) -> float:
    return unit.achieved_ratio / unit.ceiling_ratio if unit.ceiling_ratio else 0.0


def _name(unit: UnitUse) -> str:
    return "the SMs' busiest unit" if unit.name == SM_UNIT else unit.name
