"""Measured roofs: :class:`EmpiricalRoofs`, what a benchmark reached on one GPU and the clocks it ran at."""

from enum import StrEnum

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.device.model import MemoryLevel, OperationKind


class ClockDomain(StrEnum):
    """The clock that a figure per cycle counts."""

    SM = "sm"
    L2 = "l2"
    DRAM = "dram"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalPeak:
    """What was reached with operations of one type.

    Attributes:
        kind: the type.
        ops_per_s: the best of the repetitions; a multiply-add is two.
        ops_per_cycle: the same per SM cycle, of the whole GPU; None when no clock was measured.
        spread_ratio: (best − worst) / best of the repetitions; None when there was one.
    """

    kind: OperationKind
    ops_per_s: float
    ops_per_cycle: float | None = None
    spread_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalBandwidth:
    """What was reached with reads of one level.

    Attributes:
        level: which.
        bytes_per_s: the best of the repetitions.
        bytes_per_cycle: the same per cycle of ``clock``, of the whole GPU; None when that clock was not measured.
        clock: whose cycles these are; None when it was not measured.
        working_set_bytes: that was read over and over; None when not stored.
        spread_ratio: (best − worst) / best of the repetitions; None when there was one.
    """

    level: MemoryLevel
    bytes_per_s: float
    bytes_per_cycle: float | None = None
    clock: ClockDomain | None = None
    working_set_bytes: int | None = None
    spread_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalRoofs:
    """All that was measured on one GPU.

    Attributes:
        device_name: as the driver reports it; None when not stored.
        compute_capability: (major, minor); None when not stored.
        sm_count: None when not stored.
        measured_on: date in ISO 8601, ``2026-11-21``; None when not stored.
        tool_version: of what measured; None when not stored.
        sm_hz: clock of the SMs while measuring; None when not measured.
        l2_hz: of L2; None when not measured.
        dram_hz: of the memory, as ``dram__cycles`` counts; None when not measured.
        peaks: at most one per type.
        bandwidths: at most one per level.
        format_name: ``gpa-lsp/roofs/1``, or ``starlight`` for its flat file.
    """

    device_name: str | None
    compute_capability: tuple[int, int] | None
    sm_count: int | None
    measured_on: str | None
    tool_version: str | None
    sm_hz: float | None
    l2_hz: float | None
    dram_hz: float | None
    peaks: tuple[EmpiricalPeak, ...]
    bandwidths: tuple[EmpiricalBandwidth, ...]
    format_name: str = "gpa-lsp/roofs/1"
