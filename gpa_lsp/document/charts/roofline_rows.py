"""Rows of a roofline chart: kernels and launches, their points, machines with roofs and ridge points, and arrows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Movement
from gpa_lsp.diagnosis.analyses.model import InstructionPoint, Point, Roofline
from gpa_lsp.document.context_words import count_contexts, list_context_lines
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.foundation.numbers import (
    format_bytes,
    format_bytes_per_s,
    format_intensity,
    format_number,
    format_per_s,
    format_percent,
)
from gpa_lsp.gpu.device.model import Bandwidth, Machine, MemoryLevel, OperationKind, Peak
from gpa_lsp.report.model import KernelReport

Row = dict[str, Any]  # One row of a data set: JSON values only

_LARGEST = 1e40
_OPERATIONS = {kind.value: kind.operation for kind in OperationKind}

ISSUE = "instruction issue"  # The one ceiling of the second view that is no level of the memory

# Machines whose roofs differ by no more are drawn as one: clocks differ a little from kernel to kernel, and no reader could see it
_SAME_MACHINE_RATIO = 0.05


class PlacedRow(Struct, frozen=True, kw_only=True):
    """A row that can be selected: a kernel, or one of its launches."""

    row_id: str  # ``k0``, a launch ``k0.3``; of the profile before, ``b0`` and ``b0.3``
    kernel: KernelReport  # the kernel it is, or is a launch of
    name: str  # short, different for different kernels
    launch_index: int | None  # position in the profile; None for all launches together
    roofline: Roofline  # where it stands
    machine: Machine  # whose roofs
    is_before: bool  # measured before the change
    # of the longest launch of one of several launch contexts, what it was launched with; empty for others
    context: str = ""

    @property
    def launch(self) -> str:
        """Launch of the row: ``launch 3``, ``grid 8, block 256 (launch 3)``, or all together."""
        if self.is_whole:
            contexts = count_contexts(self.kernel)
            return f"sum of {contexts}" if contexts else "all launches together"
        return f"{self.context} (launch {self.launch_index})" if self.context else f"launch {self.launch_index}"

    @property
    def is_whole(self) -> bool:
        """Whether the row stands for all launches together."""
        return self.launch_index is None


def place_kernels(
    kernels: Sequence[KernelReport], before: Sequence[KernelReport] = (), *, max_launches: int = 20
) -> tuple[PlacedRow, ...]:
    """Rows that can be selected: kernels in the order given, each followed by its launches, then those of the earlier profile."""
    names = name_kernels([*kernels, *before])
    placed: list[PlacedRow] = []
    for letter, group in (("k", kernels), ("b", before)):
        for position, kernel in enumerate(group):
            placed.extend(_place(kernel, names[kernel.name], f"{letter}{position}", max_launches))
    return tuple(placed)


def _place(kernel: KernelReport, name: str, row_id: str, max_launches: int) -> Iterator[PlacedRow]:
    roofline = None if kernel.analyses is None else kernel.analyses.roofline
    if roofline is None:
        return
    is_before = row_id.startswith("b")
    common: dict[str, Any] = {"kernel": kernel, "name": name, "machine": roofline.machine, "is_before": is_before}
    if roofline.whole is not None:
        yield PlacedRow(row_id=row_id, launch_index=None, roofline=roofline.whole, **common)
    if len(roofline.launches) < 2 and roofline.whole is not None:
        return
    contexts = list_context_lines(kernel)
    known = {line.launch_index for _, line in contexts}
    others = [("", line) for line in roofline.launches if line.launch_index not in known]
    for position, (context, line) in enumerate([*contexts, *others][:max_launches]):
        number = f"{row_id}.{position}"
        yield PlacedRow(row_id=number, launch_index=line.launch_index, roofline=line, context=context, **common)


def group_machines(rows: Iterable[PlacedRow]) -> tuple[tuple[Machine, ...], dict[str, int]]:
    """Machines drawn apart, and the machine of each row (row id → position)."""
    machines: list[Machine] = []
    positions: dict[str, int] = {}
    for row in rows:
        same = (position for position, machine in enumerate(machines) if _is_same(machine, row.machine))
        position = next(same, len(machines))
        if position == len(machines):
            machines.append(row.machine)
        positions[row.row_id] = position
    return tuple(machines), positions


def _is_same(one: Machine, other: Machine) -> bool:
    if one is other:
        return True
    if (one.name, one.clocks.basis) != (other.name, other.clocks.basis):
        return False
    rates, others = _list_rates(one), _list_rates(other)
    return rates.keys() == others.keys() and all(
        abs(rate - others[name]) <= _SAME_MACHINE_RATIO * rate for name, rate in rates.items()
    )


def _list_rates(machine: Machine) -> dict[str, float]:
    rates = {peak.kind.value: peak.ops_per_s or 0.0 for peak in machine.peaks}
    return rates | {bandwidth.level.value: bandwidth.bytes_per_s or 0.0 for bandwidth in machine.bandwidths}


def is_drawable(*numbers: float | None) -> bool:
    """Whether a logarithmic axis can show the numbers, and their products and quotients stay finite."""
    return all(number is not None and 1 / _LARGEST < number < _LARGEST for number in numbers)


def build_point(row_id: str, point: Point | InstructionPoint) -> Row:
    """A point as a row: id, type, level, x, y and attainable rate (``a``, None where unknown), and the same as they are written.

    One of the second view has the same columns.
    """
    if isinstance(point, Point):
        kind, unit = point.kind.value, point.kind.operation
        rate, attainable = point.achieved_ops_per_s, point.attainable_ops_per_s
        intensity = format_intensity(point.intensity, f"{unit}/B")
    else:
        kind, unit = ISSUE, "inst"
        rate, attainable = point.achieved_per_s, point.attainable_per_s
        intensity = describe_transactions(point)
    drawn, reached = None, "unknown"
    if attainable is not None and is_drawable(attainable):
        drawn, reached = (
            _shorten(attainable),
            f"{format_per_s(attainable, unit)}, {format_percent(rate / attainable)} reached",
        )
    return {
        "row": row_id,
        "kind": kind,
        "level": point.level.value,
        "x": _shorten(point.intensity),
        "y": _shorten(rate),
        "a": drawn,
        "intensity": intensity,
        "achieved": format_per_s(rate, unit),
        "attainable": reached,
    }


def describe_transactions(point: InstructionPoint) -> str:
    """Intensity of a point in the instruction view."""
    return f"{format_number(point.intensity)} per {format_bytes(point.transaction_bytes)}"


def build_roofs(machine: Machine, position: int) -> Iterator[Row]:
    """Diagonals (``slope``, bytes per second) and horizontals (``limit``, operations per second) of a machine whose clocks are known."""
    for bandwidth in machine.bandwidths:
        per_s, rate = bandwidth.bytes_per_s, format_bytes_per_s(bandwidth.bytes_per_s)
        yield from _build_roof(position, bandwidth.level.value, {"slope": per_s}, rate, bandwidth)
    for peak in machine.peaks:
        rate = format_per_s(peak.ops_per_s, peak.kind.operation)
        yield from _build_roof(position, peak.kind.value, {"limit": peak.ops_per_s}, rate, peak)


def build_instruction_roofs(
    machine: Machine, position: int, transaction_bytes: dict[MemoryLevel, int]
) -> Iterator[Row]:
    """Roofs of the instruction view: transactions per second of the levels in *transaction_bytes*, and instructions per second."""
    for level, size in transaction_bytes.items():
        bandwidth = machine.find_bandwidth(level)
        if bandwidth is not None and size > 0 and is_drawable(bandwidth.bytes_per_s):
            per_s = (bandwidth.bytes_per_s or 0.0) / size
            yield from _build_roof(position, level.value, {"slope": per_s}, format_per_s(per_s, "txn"), bandwidth)
    rate = format_per_s(machine.issue_per_s, "inst")
    yield from _build_roof(position, ISSUE, {"limit": machine.issue_per_s}, rate, None)


def _build_roof(
    position: int, name: str, per_s: dict[str, float | None], rate: str, roof: Bandwidth | Peak | None
) -> Iterator[Row]:
    """A roof by its ``slope`` or ``limit``, where it can be drawn; *roof* is None for the schedulers' issue rate."""
    if is_drawable(*per_s.values()):
        doubt = "" if roof is None or roof.is_certain else " (assumed)"
        source = "warp instructions the schedulers can issue" if roof is None else roof.source
        yield {"machine": position, "name": name, **per_s, "words": f"{name}: {rate}{doubt}", "source": source}


def find_ridges(roofs: Sequence[Row]) -> Iterator[Row]:
    """Intersections of the diagonals and horizontals of one machine: left of them memory limits, right of them the units."""
    for slope in (roof for roof in roofs if "slope" in roof):
        for limit in (roof for roof in roofs if "limit" in roof and roof["machine"] == slope["machine"]):
            yield {
                "machine": slope["machine"],
                "level": slope["name"],
                "kind": limit["name"],
                "slope": slope["slope"],
                "x": _shorten(limit["limit"] / slope["slope"]),
                "y": limit["limit"],
                "words": _describe_ridge(slope, limit),
            }


def _describe_ridge(slope: Row, limit: Row) -> str:
    per = "inst/transaction" if limit["name"] == ISSUE else f"{_OPERATIONS[limit['name']]}/B"
    return (
        f"ridge point of {limit['name']} and {slope['name']}: {format_intensity(limit['limit'] / slope['slope'], per)}"
    )


def find_changes(rows: Sequence[PlacedRow]) -> Iterator[Row]:
    """Arrows from a kernel's earlier points to its present ones: same linkage name, for each type and level of both."""
    earlier = {row.kernel.mangled_name: row for row in rows if row.is_before and row.is_whole}
    for row in rows:
        old = earlier.get(row.kernel.mangled_name)
        if row.is_before or not row.is_whole or old is None:
            continue
        starts = {(point.kind, point.level): point for point in old.roofline.points}
        for point in row.roofline.points:
            start = starts.get((point.kind, point.level))
            if start is not None:
                ends = (start.intensity, start.achieved_ops_per_s), (point.intensity, point.achieved_ops_per_s)
                yield from _build_arrow(row, "measured change", point, *ends, is_measured=True)


def find_movements(rows: Iterable[PlacedRow]) -> Iterator[Row]:
    """Arrows to where the suggestions of the analyses would move the points of each kernel."""
    for row in rows:
        if row.is_before or not row.is_whole or row.kernel.analyses is None:
            continue
        for one in (movement for answer in row.kernel.analyses.answers for movement in answer.movements):
            ends = (one.from_intensity, one.from_ops_per_s), (one.to_intensity, one.to_ops_per_s)
            yield from _build_arrow(row, one.label, one, *ends, is_measured=False)


def _build_arrow(
    row: PlacedRow,
    label: str,
    at: Point | Movement,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    is_measured: bool,
) -> Iterator[Row]:
    """An arrow between two points; none where these cannot be drawn or are the same."""
    if is_drawable(*start, *end) and start != end:
        yield {
            "row": row.row_id,
            "label": label,
            "kind": at.kind.value,
            "level": at.level.value,
            **dict(zip(("x", "y", "x2", "y2"), map(_shorten, (*start, *end)), strict=True)),
            "measured": is_measured,
        }


def list_transaction_bytes(rows: Iterable[PlacedRow]) -> dict[MemoryLevel, int]:
    """Bytes of one transaction of each level that has a point in the instruction view."""
    return {point.level: point.transaction_bytes for row in rows for point in row.roofline.instruction_points}


def _shorten(number: float) -> float:
    """Round to six digits: enough to draw by, and half the length in a page."""
    return float(f"{number:.6g}")
