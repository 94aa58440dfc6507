"""VIEW: what a calibration found: measured rates beside the theoretical ones."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.document.blocks import Gauge, Item, Items, Paragraph, Part, Table
from gpa_lsp.document.layout import Align, Column, Span, Style
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
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind

if TYPE_CHECKING:
    from gpa_lsp.execution.calibration.calibrate import Calibration
    from gpa_lsp.execution.calibration.model import SweepPoint

_BAR_CELLS = 30

_COLUMNS = (
    Column(title="ceiling", align=Align.LEFT),
    Column(title="measured"),
    Column(title="per cycle"),
    Column(title="theoretical"),
    Column(title="reached"),
    Column(title="spread"),
    Column(title="how", align=Align.LEFT, can_shrink=True),
)


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
            Table(columns=_COLUMNS, rows=[*_list_peaks(found, machine), *_list_bandwidths(found, machine)]),
            *_build_sweep("L1, by working set of one SM", found.l1_sweep),
            *_build_sweep("L2 and DRAM, by working set of the GPU", found.common_sweep),
            *([Part(title="Not measured", blocks=[Items(items=skipped)])] if skipped else []),
        ],
    )


def _list_peaks(found: "Calibration", machine: Machine | None) -> Iterator[Sequence[Span]]:
    for peak in found.roofs.peaks:
        roof = None if machine is None else machine.find_peak(peak.kind)
        yield _make_row(
            name=peak.kind.value,
            measured=format_per_s(peak.ops_per_s, peak.kind.operation),
            per_cycle=peak.ops_per_cycle,
            theoretical=None
            if roof is None or roof.ops_per_s is None
            else format_per_s(roof.ops_per_s, peak.kind.operation),
            reached_ratio=None if roof is None or not roof.ops_per_s else peak.ops_per_s / roof.ops_per_s,
            spread_ratio=peak.spread_ratio,
            how=_describe_kind(peak.kind),
        )


def _list_bandwidths(found: "Calibration", machine: Machine | None) -> Iterator[Sequence[Span]]:
    for bandwidth in found.roofs.bandwidths:
        roof = None if machine is None else machine.find_bandwidth(bandwidth.level)
        size = bandwidth.working_set_bytes
        yield _make_row(
            name=bandwidth.level.value,
            measured=format_bytes_per_s(bandwidth.bytes_per_s),
            per_cycle=bandwidth.bytes_per_cycle,
            theoretical=None if roof is None or roof.bytes_per_s is None else format_bytes_per_s(roof.bytes_per_s),
            reached_ratio=None if roof is None or not roof.bytes_per_s else bandwidth.bytes_per_s / roof.bytes_per_s,
            spread_ratio=bandwidth.spread_ratio,
            how="reads" if size is None else f"reads of {format_bytes(size)}{_name_owner(bandwidth.level)}",
        )


def _name_owner(level: MemoryLevel) -> str:
    return " per SM" if level is MemoryLevel.L1 else ""


def _describe_kind(kind: OperationKind) -> str:
    if kind.is_tensor:
        return "mma of one warp, dense"
    return "one instruction, 8 chains per thread"


def _make_row(
    *,
    name: str,
    measured: str,
    per_cycle: float | None,
    theoretical: str | None,
    reached_ratio: float | None,
    spread_ratio: float | None,
    how: str,
) -> Sequence[Span]:
    texts = (
        name,
        measured,
        format_number(per_cycle),
        theoretical or UNKNOWN,
        format_percent(reached_ratio),
        format_percent(spread_ratio),
        how,
    )
    return [(text, Style.PLAIN) for text in texts]


def _build_sweep(title: str, points: "Sequence[SweepPoint]") -> list[Part]:
    columns = (Column(title="working set"), Column(title="read"), Column(title=""))
    most = max((point.rate.per_s for point in points), default=1.0)
    rows: list[Sequence[Span]] = [
        (
            (format_bytes(point.working_set_bytes), Style.PLAIN),
            (format_bytes_per_s(point.rate.per_s), Style.PLAIN),
            (Gauge(point.rate.per_s / most, _BAR_CELLS), Style.BAR),
        )
        for point in points
    ]
    return [Part(title=title, blocks=[Table(columns=columns, rows=rows)])] if rows else []
