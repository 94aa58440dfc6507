"""Measured roofs: :class:`EmpiricalRoofs`, what a benchmark reached on one GPU and the clocks it ran at."""

from enum import StrEnum

from msgspec import Struct

from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind


class ClockDomain(StrEnum):
    """The clock that a figure per cycle counts."""

    SM = "sm"
    L2 = "l2"
    DRAM = "dram"


class EmpiricalPeak(Struct, frozen=True, kw_only=True):
    """What was reached with operations of one type."""

    kind: OperationKind  # the type
    ops_per_s: float  # the best of the repetitions; a multiply-add is two
    ops_per_cycle: float | None = None  # the same per SM cycle, of the whole GPU; None when no clock was measured
    spread_ratio: float | None = None  # (best − worst) / best of the repetitions; None when there was one


class EmpiricalBandwidth(Struct, frozen=True, kw_only=True):
    """What was reached with reads of one level."""

    level: MemoryLevel  # which
    bytes_per_s: float  # the best of the repetitions
    # the same per cycle of ``clock``, of the whole GPU; None when that clock was not measured
    bytes_per_cycle: float | None = None
    clock: ClockDomain | None = None  # whose cycles these are; None when it was not measured
    working_set_bytes: int | None = None  # that was read over and over; None when not stored
    spread_ratio: float | None = None  # (best − worst) / best of the repetitions; None when there was one


class EmpiricalRoofs(Struct, frozen=True, kw_only=True):
    """All that was measured on one GPU."""

    device_name: str | None  # as the driver reports it; None when not stored
    compute_capability: tuple[int, int] | None  # (major, minor); None when not stored
    sm_count: int | None  # None when not stored
    measured_on: str | None  # date in ISO 8601, ``2026-11-21``; None when not stored
    tool_version: str | None  # of what measured; None when not stored
    sm_hz: float | None  # clock of the SMs while measuring; None when not measured
    l2_hz: float | None  # of L2; None when not measured
    dram_hz: float | None  # of the memory, as ``dram__cycles`` counts; None when not measured
    peaks: tuple[EmpiricalPeak, ...]  # at most one per type
    bandwidths: tuple[EmpiricalBandwidth, ...]  # at most one per level
    format_name: str = "gpa-lsp/roofs/1"  # ``gpa-lsp/roofs/1``, or ``starlight`` for its flat file
