"""Tables of a roofline: points, launches, and the machine's ceilings with their sources."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Bar, Column, Table
from gpa_lsp.diagnosis.analyses.roofline.findings import say_factor
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline, Point, Roofline
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, say
from gpa_lsp.gpu.device.model import ClockBasis, Clocks, Machine, RoofOrigin

_NS_PER_S = 1e9

_ORIGINS = {
    RoofOrigin.COUNTERS: "counters of the report",
    RoofOrigin.DEVICE: "device and architecture",
    RoofOrigin.PRODUCT: "published figures",
    RoofOrigin.EMPIRICAL: "measured",
}
_BASES = {
    ClockBasis.MEASURED: "the clocks the longest launch ran at",
    ClockBasis.BASE: "the base clock",
    ClockBasis.BOOST: "the boost clock",
    ClockBasis.UNKNOWN: "unknown clocks",
}


def list_bars(roofline: Roofline) -> tuple[Bar, ...]:
    """One bar per ceiling, nearest first; the busiest unit before them where it is nearer than any."""
    unit = roofline.tighter_unit
    first = []
    if unit is not None:
        words = say("headroom {factor}", factor=say_factor(unit.headroom))
        first.append(
            Bar(label=unit.name, ratio=min(1.0, unit.share_ratio), ceiling_ratio=unit.ceiling_ratio, words=words)
        )
    return (*first, *_list_roof_bars(roofline))


def _list_roof_bars(roofline: Roofline) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            label=roof.name,
            ratio=min(1.0, roof.share_ratio),
            ceiling_ratio=roof.ceiling_ratio,
            words=say("headroom {factor}", factor=say_factor(roof.headroom)),
        )
        for roof in roofline.shown_roofs
    )


def list_tables(kernel_roofline: KernelRoofline, shown: Roofline) -> tuple[Table, ...]:
    """All tables, in the order to be read."""
    machine = kernel_roofline.machine
    return (
        *_build_points(shown),
        *_build_operations(shown),
        *_build_traffic(shown),
        *_build_instruction_points(shown),
        *_build_launches(kernel_roofline),
        *_build_peaks(machine),
        *_build_bandwidths(machine),
        _build_clocks(machine),
    )


# By what one operation is called
_UNITS = {
    "FLOP": ("floating-point operations", Quantity.FLOPS_PER_S),
    "IOP": ("integer operations", Quantity.INTEGER_OPS_PER_S),
    "OP": ("special functions", Quantity.OPS_PER_S),
}


def _build_points(roofline: Roofline) -> Iterator[Table]:
    """Operations that are counted in another unit stand in a table of their own."""
    for operation, (words, unit) in _UNITS.items():
        points = [point for point in roofline.points if point.kind.operation == operation]
        if points:
            yield Table(
                title=f"Points: {words}",
                columns=(
                    Column(name="Operations"),
                    Column(name="Over"),
                    Column(name="Per byte", quantity=Quantity.OPS_PER_BYTE),
                    Column(name="Achieved", quantity=unit),
                    Column(name="Attainable", quantity=unit),
                    Column(name="Of attainable", quantity=Quantity.RATIO),
                    Column(name="Lower ceiling"),
                ),
                rows=tuple(_list_cells(point) for point in points),
                note=say("Attainable is the lower of the peak and bandwidth × operations per byte."),
            )


def _list_cells(point: Point) -> tuple[Cell, ...]:
    attainable = point.attainable_ops_per_s
    side = None if point.is_memory_side is None else ("memory" if point.is_memory_side else "arithmetic")
    return (
        point.kind.value,
        point.level.value,
        point.intensity,
        point.achieved_ops_per_s,
        attainable,
        point.achieved_ops_per_s / attainable if attainable else None,
        side,
    )


def _build_operations(roofline: Roofline) -> Iterator[Table]:
    counted = [count for count in roofline.operations if count.operations > 0]
    if counted:
        yield Table(
            title="Operations",
            columns=(
                Column(name="Type"),
                Column(name="Operations", quantity=Quantity.COUNT),
                Column(name="Counted by"),
            ),
            rows=tuple((count.kind.value, count.operations, _note(count.source, count.is_exact)) for count in counted),
            note=say(
                "A multiply-add is two; threads whose guard was false do not count. Integers: one per instruction that adds, shifts, compares or "
                "combines bits, addresses included, and two per multiply-add. Special functions are one each, and not part of the vendor's FLOP."
            ),
        )


def _build_traffic(roofline: Roofline) -> Iterator[Table]:
    if roofline.traffic:
        yield Table(
            title="Bytes",
            columns=(
                Column(name="Level"),
                Column(name="Bytes", quantity=Quantity.BYTES),
                Column(name="Rate", quantity=Quantity.BYTES_PER_S),
                Column(name="Counted by"),
            ),
            rows=tuple(
                (one.level.value, one.bytes, one.bytes / roofline.duration_s, _note(one.source, one.is_exact))
                for one in roofline.traffic
            ),
        )


def _note(source: str, is_exact: bool) -> str:
    return source if is_exact else f"{source} (not exact)"


def _build_instruction_points(roofline: Roofline) -> Iterator[Table]:
    if roofline.instruction_points:
        yield Table(
            title="Instruction roofline",
            columns=(
                Column(name="Over"),
                Column(name="Warp instructions per transaction", quantity=Quantity.NUMBER),
                Column(name="Achieved", quantity=Quantity.INSTRUCTIONS_PER_S),
                Column(name="Attainable", quantity=Quantity.INSTRUCTIONS_PER_S),
                Column(name="Transaction", quantity=Quantity.BYTES),
            ),
            rows=tuple(
                (one.level.value, one.intensity, one.achieved_per_s, one.attainable_per_s, one.transaction_bytes)
                for one in roofline.instruction_points
            ),
            note=say("A transaction is a sector, or a wavefront of shared memory."),
        )


def _build_launches(kernel_roofline: KernelRoofline) -> Iterator[Table]:
    if len(kernel_roofline.launches) < 2:
        return
    left_out = kernel_roofline.left_out
    yield Table(
        title="Launches",
        columns=(
            Column(name="Launch", quantity=Quantity.COUNT),
            Column(name="Time", quantity=Quantity.NS),
            Column(name="Nearest ceiling"),
            Column(name="Of its peak", quantity=Quantity.RATIO),
            Column(name="Operations"),
        ),
        rows=tuple(
            (
                launch.launch_index,
                launch.duration_s * _NS_PER_S,
                None if launch.binding is None else launch.binding.name,
                None if launch.binding is None else launch.binding.share_ratio,
                None if launch.dominant is None else launch.dominant.value,
            )
            for launch in kernel_roofline.launches
        ),
        note=join(
            [
                say("Each launch under the ceilings at its own clocks; all together under those of the longest."),
                say("{rest} not listed.", rest=count(left_out, "shorter launch")) if left_out else NOTHING,
            ]
        ),
    )


_INTEGER_NOTE = say(
    "The INT32 peak is of multiply-adds, two operations each, as the vendor counts it; additions and logic in one pipe reach half of it, which that "
    "pipe's own share shows."
)


def _build_peaks(machine: Machine) -> Iterator[Table]:
    for operation, (words, unit) in _UNITS.items():
        peaks = [peak for peak in machine.peaks if peak.kind.operation == operation]
        if peaks:
            yield Table(
                title=f"Peaks of {machine.name}: {words}",
                columns=(
                    Column(name="Type"),
                    Column(name="Of all SMs, per cycle", quantity=Quantity.NUMBER),
                    Column(name="Per second", quantity=unit),
                    Column(name="From"),
                    Column(name="Source"),
                ),
                rows=tuple(
                    (
                        peak.kind.value,
                        peak.ops_per_cycle,
                        peak.ops_per_s,
                        _ORIGINS[peak.origin],
                        peak.citation,
                    )
                    for peak in peaks
                ),
                note=join([_describe_basis(machine.clocks), _INTEGER_NOTE if operation == "IOP" else NOTHING]),
            )


def _build_bandwidths(machine: Machine) -> Iterator[Table]:
    if machine.bandwidths:
        yield Table(
            title=f"Bandwidths of {machine.name}",
            columns=(
                Column(name="Level"),
                Column(name="Bytes per cycle", quantity=Quantity.NUMBER),
                Column(name="Clock", quantity=Quantity.HZ),
                Column(name="Bandwidth", quantity=Quantity.BYTES_PER_S),
                Column(name="From"),
                Column(name="Source"),
            ),
            rows=tuple(
                (
                    one.level.value,
                    one.bytes_per_cycle,
                    one.clock_hz,
                    one.bytes_per_s,
                    _ORIGINS[one.origin],
                    one.citation,
                )
                for one in machine.bandwidths
            ),
            note=_describe_basis(machine.clocks),
        )


def _build_clocks(machine: Machine) -> Table:
    clocks = machine.clocks
    return Table(
        title=f"Clocks of {machine.name}",
        columns=(Column(name="Clock"), Column(name="Frequency", quantity=Quantity.HZ)),
        rows=(("SM", clocks.sm_hz), ("L2", clocks.l2_hz), ("DRAM", clocks.dram_hz)),
        note=join((_describe_basis(clocks), say("From {source}.", source=clocks.source), *machine.doubts)),
    )


def _describe_basis(clocks: Clocks) -> Sentence:
    return say("At {basis}.", basis=_BASES[clocks.basis])
