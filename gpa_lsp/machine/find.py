"""Find the roofs of a GPU: :func:`find_machine` from a device and a launch on it.

Peaks per cycle come from the launch's own counters where they were collected, else from the architecture's table and the number of SMs.
Clocks come from the launch, so that roofs and points stand on equal footing; without a launch they are the highest the device states.
"""

from collections.abc import Iterator

from gpa_lsp.arch.model import Architecture
from gpa_lsp.machine.clocks import find_device_clocks, find_launch_clocks
from gpa_lsp.machine.counters import (
    CounterPeak,
    read_attribute,
    read_dram_peak,
    read_l1_peak,
    read_l2_peak,
    read_operation_peaks,
)
from gpa_lsp.machine.model import (
    Bandwidth,
    ClockBasis,
    Clocks,
    Machine,
    MemoryLevel,
    OperationKind,
    Peak,
    RoofOrigin,
)
from gpa_lsp.machine.rates import Rate, list_operation_rates, read_rate
from gpa_lsp.profile.model import Device, Launch

TRANSFERS_PER_CLOCK = 2
"""Bits per pin and cycle of the memory clock that devices and ``dram__cycles`` report: both edges of it, on HBM2 to HBM3, GDDR6, GDDR6X and
GDDR7 alike, since the reported clock of GDDR is that of its data strobe and not of its commands."""


def find_machine(device: Device, architecture: Architecture | None, launch: Launch | None) -> Machine | None:
    """The theoretical roofs of a device.

    Args:
        device: the GPU.
        architecture: its table; None where there is none.
        launch: one that ran on it: its counters' peaks and its clocks are used. None for the device at its boost clock.

    Returns:
        None when not one roof is known: neither counters nor the number of SMs with a table.
    """
    usable = None if launch is None or launch.failure is not None else launch
    clocks, doubts = _choose_clocks(device, usable)
    peaks = tuple(_build_peaks(device, architecture, usable, clocks))
    bandwidths = tuple(_build_bandwidths(device, architecture, usable, clocks))
    if not peaks and not bandwidths:
        return None
    return Machine(
        name=device.name or "unknown GPU",
        compute_capability=device.compute_capability,
        sm_count=device.sm_count,
        clocks=clocks,
        peaks=peaks,
        bandwidths=bandwidths,
        issue_per_cycle=_find_issue_rate(device, architecture),
        doubts=(*doubts, *_list_doubts(peaks, bandwidths)),
    )


def _choose_clocks(device: Device, launch: Launch | None) -> tuple[Clocks, list[str]]:
    measured = None if launch is None else find_launch_clocks(launch)
    if measured is not None:
        return measured, []
    clocks = find_device_clocks(device)
    if clocks.basis is ClockBasis.UNKNOWN:
        return clocks, ["No clock is known: roofs are per cycle only."]
    if launch is None:
        return clocks, []
    return clocks, [
        "The launch's clocks were not collected: the roofs hold at the boost clock, and it may have run at a lower one."
    ]


def _build_peaks(
    device: Device, architecture: Architecture | None, launch: Launch | None, clocks: Clocks
) -> Iterator[Peak]:
    stated = {} if launch is None else read_operation_peaks(launch)
    rates = {} if architecture is None else list_operation_rates(architecture)
    for kind in OperationKind:
        counter, rate = stated.get(kind), rates.get(kind)
        if counter is not None:
            yield _build_peak(kind, counter.per_cycle, clocks, RoofOrigin.COUNTERS, counter.source)
        elif rate is not None and device.sm_count:
            per_cycle = rate.per_cycle * device.sm_count
            yield _build_peak(kind, per_cycle, clocks, RoofOrigin.DEVICE, rate.source, is_certain=rate.is_certain)


def _build_peak(
    kind: OperationKind, per_cycle: float, clocks: Clocks, origin: RoofOrigin, source: str, *, is_certain: bool = True
) -> Peak:
    return Peak(
        kind=kind,
        ops_per_cycle=per_cycle,
        ops_per_s=None if clocks.sm_hz is None else per_cycle * clocks.sm_hz,
        origin=origin,
        source=source,
        is_certain=is_certain,
    )


def _build_bandwidths(
    device: Device, architecture: Architecture | None, launch: Launch | None, clocks: Clocks
) -> Iterator[Bandwidth]:
    caches = None if architecture is None else architecture.caches
    sms = device.sm_count
    if architecture is not None and caches is not None and sms:
        yield from _build_level(
            MemoryLevel.SHARED, None, read_rate(architecture, caches.shared_bytes_per_cycle, sms), clocks.sm_hz
        )
    l1 = (
        None
        if architecture is None or caches is None or not sms
        else read_rate(architecture, caches.l1_bytes_per_cycle, sms)
    )
    yield from _build_level(MemoryLevel.L1, None if launch is None else read_l1_peak(launch), l1, clocks.sm_hz)
    slices = read_attribute(device, "l2s_count")
    l2 = (
        None
        if architecture is None or caches is None or not slices
        else read_rate(architecture, caches.l2_slice_bytes_per_cycle, slices)
    )
    l2_hz = clocks.l2_hz or clocks.sm_hz
    yield from _build_level(
        MemoryLevel.L2,
        None if launch is None else read_l2_peak(launch),
        l2,
        l2_hz,
        is_clock_known=clocks.l2_hz is not None,
    )
    dram = None if launch is None else read_dram_peak(launch)
    yield from _build_level(MemoryLevel.DRAM, dram, find_dram_rate(device), clocks.dram_hz)


def find_dram_rate(device: Device) -> Rate | None:
    """Bytes per cycle of the memory clock, from the width of the bus; None when that is not known."""
    width = read_attribute(device, "global_memory_bus_width")
    if width is None:
        return None
    source = f"device attribute global_memory_bus_width, {TRANSFERS_PER_CLOCK} transfers per clock"
    return Rate(per_cycle=width / 8 * TRANSFERS_PER_CLOCK, source=source, is_certain=True)


def _build_level(
    level: MemoryLevel,
    counter: CounterPeak | None,
    rate: Rate | None,
    clock_hz: float | None,
    *,
    is_clock_known: bool = True,
) -> Iterator[Bandwidth]:
    found = counter or rate
    if found is None:
        return
    yield Bandwidth(
        level=level,
        bytes_per_cycle=found.per_cycle,
        clock_hz=clock_hz,
        bytes_per_s=None if clock_hz is None else found.per_cycle * clock_hz,
        origin=RoofOrigin.DEVICE if counter is None else RoofOrigin.COUNTERS,
        source=found.source,
        is_certain=is_clock_known and (counter is not None or rate is None or rate.is_certain),
    )


def _find_issue_rate(device: Device, architecture: Architecture | None) -> float | None:
    if architecture is None or not device.sm_count:
        return None
    sm = architecture.sm
    return float(device.sm_count * sm.sub_partitions_per_sm.value * sm.issued_instructions_per_cycle.value)


def _list_doubts(peaks: tuple[Peak, ...], bandwidths: tuple[Bandwidth, ...]) -> Iterator[str]:
    assumed = [peak.kind.value for peak in peaks if not peak.is_certain]
    if assumed:
        yield f"Rates that are assumed and not documented: {', '.join(assumed)}."
    assumed = [bandwidth.level.value for bandwidth in bandwidths if not bandwidth.is_certain]
    if assumed:
        yield f"Bandwidths that are assumed and not documented: {', '.join(assumed)}."
