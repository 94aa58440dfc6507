"""What the roofline page holds: rows of the list of kernels, details of kernels and launches, and machines, all as text already written."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gpa_lsp.analyses.roofline_model import InstructionPoint, Point, Roofline
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import (
    UNKNOWN,
    format_bytes,
    format_bytes_per_s,
    format_count,
    format_count_of,
    format_duration_ns,
    format_hz,
    format_instructions_per_s,
    format_intensity,
    format_number,
    format_operations_per_s,
    format_percent,
    format_speedup,
)
from gpa_lsp.device.model import Machine
from gpa_lsp.render.advice_words import describe_limit_briefly
from gpa_lsp.render.answer_text import describe_missing, describe_movement
from gpa_lsp.render.charts.roofline_rows import PlacedRow, is_drawable
from gpa_lsp.render.layout import clamp_ratio
from gpa_lsp.render.page.frame import render_prose
from gpa_lsp.render.roofline_text import CLOCK_WORDS, describe_clock_rates, describe_line, list_bars

_MOST_MISSING = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelItem:
    """A kernel in the list.

    Attributes:
        row_id: of its :class:`PlacedRow`.
        name: short.
        full_name: as the profile has it.
        time: of all launches.
        change: run time before over run time now; empty without an earlier profile.
        bound: ``memory-bound`` and its like; may be empty.
        nearest: the nearest ceiling.
        share: percent of it.
        ratio: 0 to 1.
        ceiling: what can be reached, 0 to 1.
        headroom: factor left.
        launches: number of launches with rows of their own.
        is_shown: drawn at first.
        is_before: only in the earlier profile.
    """

    row_id: str
    name: str
    full_name: str
    time: str
    change: str
    bound: str
    nearest: str
    share: str
    ratio: float
    ceiling: float
    headroom: str
    launches: int
    is_shown: bool
    is_before: bool


def build_items(rows: Sequence[PlacedRow], shown: Collection[str]) -> list[KernelItem]:
    """The list of kernels: those of now, then those that are only in the earlier profile.

    Args:
        rows: all that can be drawn.
        shown: ids of those drawn at first.
    """
    earlier = {row.kernel.mangled_name: row for row in rows if row.is_before and row.is_whole}
    now = {row.kernel.mangled_name for row in rows if not row.is_before}
    counts: dict[str, int] = {}
    for row in rows:
        if not row.is_whole:
            owner = row.row_id.partition(".")[0]
            counts[owner] = counts.get(owner, 0) + 1
    return [
        _build_item(row, earlier.get(row.kernel.mangled_name), counts.get(row.row_id, 0), row.row_id in shown)
        for row in rows
        if row.is_whole and (not row.is_before or row.kernel.mangled_name not in now)
    ]


def _build_item(row: PlacedRow, before: PlacedRow | None, launches: int, is_shown: bool) -> KernelItem:
    nearest = row.roofline.tighter_unit or row.roofline.binding
    change = ""
    if before is not None and not row.is_before and is_drawable(_mean_time(before), _mean_time(row)):
        change = format_speedup(_mean_time(before) / _mean_time(row))
    return KernelItem(
        row_id=row.row_id,
        name=row.name,
        full_name=row.kernel.name,
        time=format_duration_ns(row.roofline.duration_s * 1e9),
        change=change,
        bound=describe_limit_briefly(row.kernel) if row.is_whole else "",
        nearest=UNKNOWN if nearest is None else nearest.name,
        share=UNKNOWN if nearest is None else format_percent(nearest.share_ratio),
        ratio=0.0 if nearest is None else clamp_ratio(nearest.share_ratio),
        ceiling=1.0 if nearest is None else _clamp_ceiling(nearest.ceiling_ratio),
        headroom=UNKNOWN if nearest is None else format_speedup(nearest.headroom),
        launches=launches,
        is_shown=is_shown,
        is_before=row.is_before,
    )


def _mean_time(row: PlacedRow) -> float:
    """Of one launch: the two profiles may hold different numbers of them."""
    roofline = None if row.kernel.analyses is None else row.kernel.analyses.roofline
    count = 1 if roofline is None else len(roofline.launches) + roofline.left_out
    return row.roofline.duration_s / max(1, count)


def build_details(row: PlacedRow, machine: int) -> Mapping[str, Any]:
    """What the page's script knows of a kernel or launch: texts, but for ``missing``, which is HTML with everything escaped."""
    line = row.roofline
    nearest = line.tighter_unit or line.binding
    first, second = describe_line(line, row.machine)
    return {
        "id": row.row_id,
        "owner": row.row_id.partition(".")[0],
        "name": row.name,
        "launch": "" if row.is_whole else row.launch,
        "before": row.is_before,
        "symbol": row.kernel.mangled_name,
        "machine": machine,
        "time": format_duration_ns(line.duration_s * 1e9),
        "bound": describe_limit_briefly(row.kernel) if row.is_whole else "",
        "nearest": "" if nearest is None else nearest.name,
        "share": "" if nearest is None else format_percent(nearest.share_ratio),
        "headroom": "" if nearest is None else format_speedup(nearest.headroom),
        "lines": [first, second],
        "bars": [
            [bar.label, clamp_ratio(bar.ratio), _clamp_ceiling(bar.ceiling_ratio), format_percent(bar.ratio), bar.words]
            for bar in list_bars(line, most=12)
        ],
        "points": [_write_point(point) for point in line.points],
        "warp_points": [_write_instruction_point(point) for point in line.instruction_points],
        "amounts": _list_amounts(line),
        "missing": [str(render_prose(describe_missing(one))) for one in line.missing[:_MOST_MISSING]]
        if row.is_whole
        else [],
        "movements": _list_movements(row),
    }


def _write_point(point: Point) -> list[str]:
    unit = f"{point.kind.operation}/B"
    reached = point.attainable_ops_per_s and point.achieved_ops_per_s / point.attainable_ops_per_s
    return [
        point.kind.value,
        point.level.value,
        format_intensity(point.intensity, unit),
        format_operations_per_s(point.achieved_ops_per_s, point.kind.operation),
        format_operations_per_s(point.attainable_ops_per_s, point.kind.operation),
        format_percent(reached),
        {True: "bandwidth", False: "peak", None: UNKNOWN}[point.is_memory_side],
    ]


def _write_instruction_point(point: InstructionPoint) -> list[str]:
    reached = point.attainable_per_s and point.achieved_per_s / point.attainable_per_s
    return [
        point.level.value,
        f"{format_number(point.intensity)} per {format_bytes(point.transaction_bytes)}",
        format_instructions_per_s(point.achieved_per_s),
        format_instructions_per_s(point.attainable_per_s),
        format_percent(reached),
    ]


def _list_amounts(line: Roofline) -> list[list[str]]:
    """Operations and bytes with where they come from."""
    found = [
        [
            count.kind.value,
            f"{format_count(count.operations)} operations",
            count.source + ("" if count.is_exact else " (not exact)"),
        ]
        for count in line.operations
        if count.operations
    ]
    found += [
        [
            traffic.level.value,
            format_bytes(traffic.bytes),
            traffic.source + ("" if traffic.is_exact else " (not exact)"),
        ]
        for traffic in line.traffic
    ]
    return found


def _list_movements(row: PlacedRow) -> list[str]:
    if not row.is_whole or row.kernel.analyses is None:
        return []
    return [describe_movement(one) for answer in row.kernel.analyses.answers for one in answer.movements]


def build_machine_item(machine: Machine) -> Mapping[str, Any]:
    """A machine: name, clocks, roofs with their sources, and what is in doubt."""
    clocks = machine.clocks
    rates = describe_clock_rates(clocks)
    roofs = [
        [peak.kind.value, format_operations_per_s(peak.ops_per_s, peak.kind.operation), peak.citation]
        for peak in machine.peaks
    ]
    roofs += [[one.level.value, format_bytes_per_s(one.bytes_per_s), one.citation] for one in machine.bandwidths]
    if machine.issue_per_s is not None:
        roofs.append(["instruction issue", format_instructions_per_s(machine.issue_per_s), "the architecture's table"])
    facts = [machine.name]
    if machine.compute_capability is not None:
        facts.append("compute capability {}.{}".format(*machine.compute_capability))
    if machine.sm_count is not None:
        facts.append(format_count_of(machine.sm_count, "SM"))
    return {
        "name": machine.name,
        "basis": CLOCK_WORDS[clocks.basis],
        "gpu": ", ".join(facts),
        "title": ", ".join(facts) + ("" if clocks.sm_hz is None else f", SMs at {format_hz(clocks.sm_hz)}"),
        "clocks": f"Ceilings at {CLOCK_WORDS[clocks.basis]}{': ' if rates else ''}{rates} ({clocks.source}).",
        "roofs": roofs,
        "doubts": list(machine.doubts),
    }


def _clamp_ceiling(ratio: float) -> float:
    return ratio if 0 < ratio < 1 else 1.0
