"""VIEW: a calibration: measured rates next to theoretical ones."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.document.blocks import Gauge, Item, Items, Paragraph, Part, Table, tabulate
from gpa_lsp.document.layout import Style, flexible, left
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_bytes,
    format_bytes_per_s,
    format_count_of,
    format_hz,
    format_number,
    format_per_s,
    format_percent,
)
from gpa_lsp.gpu.device.model import Machine, MemoryLevel

if TYPE_CHECKING:
    from gpa_lsp.execution.calibration.benchmark_sources import SweepPoint
    from gpa_lsp.execution.calibration.calibrate import Calibration

_BAR_CELLS = 30


def build_calibration(found: "Calibration", machine: Machine | None) -> Part:
    """Every ceiling that was measured, the sweeps, and what could not be measured.

    Args:
        found: what was measured.
        machine: the same GPU's theoretical ceilings at the clocks that were measured; None where they are not known.
    """
    facts, roofs = found.facts, found.roofs
    capability = ".".join(str(part) for part in facts.compute_capability)
    clock = "SM clock unknown" if roofs.sm_hz is None else f"SMs at {format_hz(roofs.sm_hz)} while measured"
    skipped = [Item(text=((f"{skip.what}: ", Style.TITLE), (skip.why, Style.PLAIN))) for skip in found.skipped]
    return Part(
        title=f"{facts.name}: compute capability {capability}, {format_count_of(facts.sm_count, 'SM')}",
        style=Style.TITLE,
        blocks=[
            Paragraph(text=f"{clock}; driver for CUDA {facts.driver_version}"),
            _tabulate_rates(found, machine),
            *_build_sweep("L1, by working set of one SM", found.l1_sweep),
            *_build_sweep("L2 and DRAM, by working set of the GPU", found.common_sweep),
            *([Part(title="Not measured", blocks=[Items(items=skipped)])] if skipped else []),
        ],
    )


def _tabulate_rates(found: "Calibration", machine: Machine | None) -> Table:
    titles = ("ceiling", "measured", "per cycle", "theoretical", "reached", "spread")
    rows = [*_list_peaks(found, machine), *_list_bandwidths(found, machine)]
    columns = (*map(left, titles), flexible("how"))
    return Table(columns=columns, rows=[[(cell, Style.PLAIN) for cell in row] for row in rows])


def _list_peaks(found: "Calibration", machine: Machine | None) -> Iterator[Sequence[str]]:
    for peak in found.roofs.peaks:
        roof = None if machine is None else machine.find_peak(peak.kind)
        theoretical = None if roof is None else roof.ops_per_s
        yield (
            peak.kind.value,
            format_per_s(peak.ops_per_s, peak.kind.operation),
            format_number(peak.ops_per_cycle),
            UNKNOWN if theoretical is None else format_per_s(theoretical, peak.kind.operation),
            format_percent(peak.ops_per_s / theoretical if theoretical else None),
            format_percent(peak.spread_ratio),
            "mma of one warp, dense" if peak.kind.is_tensor else "one instruction, 8 chains per thread",
        )


def _list_bandwidths(found: "Calibration", machine: Machine | None) -> Iterator[Sequence[str]]:
    for bandwidth in found.roofs.bandwidths:
        roof = None if machine is None else machine.find_bandwidth(bandwidth.level)
        theoretical, size = None if roof is None else roof.bytes_per_s, bandwidth.working_set_bytes
        owner = " per SM" if bandwidth.level is MemoryLevel.L1 else ""
        yield (
            bandwidth.level.value,
            format_bytes_per_s(bandwidth.bytes_per_s),
            format_number(bandwidth.bytes_per_cycle),
            UNKNOWN if theoretical is None else format_bytes_per_s(theoretical),
            format_percent(bandwidth.bytes_per_s / theoretical if theoretical else None),
            format_percent(bandwidth.spread_ratio),
            "reads" if size is None else f"reads of {format_bytes(size)}{owner}",
        )


def _build_sweep(title: str, points: "Sequence[SweepPoint]") -> list[Part]:
    most = max((point.rate.per_s for point in points), default=1.0)
    table = tabulate(
        points,
        [
            (left("working set"), lambda point: format_bytes(point.working_set_bytes)),
            (left("read"), lambda point: format_bytes_per_s(point.rate.per_s)),
            (left(), lambda point: (Gauge(point.rate.per_s / most, _BAR_CELLS), Style.BAR)),
        ],
    )
    return [Part(title=title, blocks=[table])] if points else []
