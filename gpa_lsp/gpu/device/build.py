"""Build a :class:`~gpa_lsp.gpu.device.model.Machine` from what is known of a GPU: :class:`KnownGpu`."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.numbers import format_count, format_number
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device.counters import (
    CounterPeak,
    read_dram_peak,
    read_l1_peak,
    read_l2_peak,
    read_operation_peaks,
)
from gpa_lsp.gpu.device.model import (
    TRANSFERS_PER_CLOCK,
    Bandwidth,
    Clocks,
    Machine,
    MemoryLevel,
    OperationKind,
    Peak,
    RoofOrigin,
)
from gpa_lsp.gpu.device.products import Accumulation
from gpa_lsp.gpu.device.rates import Rate, list_operation_rates, read_rate
from gpa_lsp.profile.model import Launch

# Tensor types whose published peak holds at the boost clock, and not at the lower one of the others
_FASTER_TENSOR_CLOCK = frozenset({OperationKind.TENSOR_FP64})


# Where FP32's rate over FP64's may lie beside the one a device states: on 8.6 that leaves out the second half of the FP32 lanes
_RATIO_LOW, _RATIO_HIGH = 0.99, 2.01


class KnownGpu(Struct, frozen=True, kw_only=True):
    """What is known of a GPU."""

    name: str  # for people
    compute_capability: tuple[int, int] | None  # None when unknown
    sm_count: int | None  # None when unknown
    architecture: Architecture | None  # None where there is no table
    launch: Launch | None  # whose counters state peaks; None without one, or when it failed
    clocks: Clocks  # at which the roofs shall hold
    tensor_hz: float | None  # the clock of tensor peaks where it is not the SMs'; None otherwise
    accumulation: Accumulation | None  # the board's rate of FP32 accumulation; None when unknown
    l2_slices: float | None  # as device attribute ``l2s_count`` counts; None when unknown
    memory_bus_bits: float | None  # width of the memory bus; None when unknown
    origin: RoofOrigin  # of what does not come from counters
    perf_ratio: float | None  # FP32 over FP64 rate that the device states; None when it does not


def build_machine(gpu: KnownGpu, doubts: tuple[str, ...] = ()) -> Machine | None:
    """The theoretical roofs of a GPU; None when not one is known."""
    peaks = tuple(_iterate_peaks(gpu))
    bandwidths = tuple(_iterate_bandwidths(gpu))
    if not peaks and not bandwidths:
        return None
    return Machine(
        name=gpu.name,
        compute_capability=gpu.compute_capability,
        sm_count=gpu.sm_count,
        clocks=gpu.clocks,
        peaks=peaks,
        bandwidths=bandwidths,
        issue_per_cycle=_find_issue_rate(gpu),
        doubts=(*doubts, *_list_doubts(gpu, peaks, bandwidths)),
    )


def _iterate_peaks(gpu: KnownGpu) -> Iterator[Peak]:
    stated = {} if gpu.launch is None else read_operation_peaks(gpu.launch)
    rates = {} if gpu.architecture is None else list_operation_rates(gpu.architecture, gpu.accumulation)
    for kind in OperationKind:
        counter, rate = stated.get(kind), rates.get(kind)
        if counter is not None:
            stated_rate = Rate(per_cycle=counter.per_cycle, source=counter.source, is_certain=True)
            yield _build_peak(gpu, kind, stated_rate, RoofOrigin.COUNTERS)
        elif rate is not None and gpu.sm_count:
            yield _build_peak(gpu, kind, replace(rate, per_cycle=rate.per_cycle * gpu.sm_count), gpu.origin)


def _build_peak(gpu: KnownGpu, kind: OperationKind, rate: Rate, origin: RoofOrigin) -> Peak:
    clock_hz, source = gpu.clocks.sm_hz, rate.source
    if gpu.tensor_hz is not None and kind.is_tensor and kind not in _FASTER_TENSOR_CLOCK:
        clock_hz, source = (
            gpu.tensor_hz,
            f"{source}; at {format_number(gpu.tensor_hz / 1e6)} MHz, where its published rate holds",
        )
    return Peak(
        kind=kind,
        ops_per_cycle=rate.per_cycle,
        ops_per_s=None if clock_hz is None else rate.per_cycle * clock_hz,
        origin=origin,
        source=source,
        is_certain=rate.is_certain,
    )


def _iterate_bandwidths(gpu: KnownGpu) -> Iterator[Bandwidth]:
    clocks, launch, architecture = gpu.clocks, gpu.launch, gpu.architecture
    shared = l1 = l2 = None
    if architecture is not None and gpu.sm_count:
        shared = read_rate(architecture, architecture.caches.shared_bytes_per_cycle, gpu.sm_count)
        l1 = read_rate(architecture, architecture.caches.l1_bytes_per_cycle, gpu.sm_count)
    if architecture is not None and gpu.l2_slices:
        l2 = read_rate(architecture, architecture.caches.l2_slice_bytes_per_cycle, gpu.l2_slices)
    found = (
        (MemoryLevel.SHARED, None, shared, clocks.sm_hz),
        (MemoryLevel.L1, None if launch is None else read_l1_peak(launch), l1, clocks.sm_hz),
        (MemoryLevel.L2, None if launch is None else read_l2_peak(launch), l2, clocks.l2_hz or clocks.sm_hz),
        (MemoryLevel.DRAM, None if launch is None else read_dram_peak(launch), _find_dram_rate(gpu), clocks.dram_hz),
    )
    for level, counter, rate, clock_hz in found:
        if counter is not None or rate is not None:
            yield _build_bandwidth(gpu, level, counter, rate, clock_hz)


def _build_bandwidth(
    gpu: KnownGpu, level: MemoryLevel, counter: CounterPeak | None, rate: Rate | None, clock_hz: float | None
) -> Bandwidth:
    known = counter or rate
    assert known is not None  # the caller asks only for levels with one of the two
    is_certain = counter is not None or (rate is not None and rate.is_certain)
    if level is MemoryLevel.L2 and gpu.clocks.l2_hz is None:
        is_certain = False
    return Bandwidth(
        level=level,
        bytes_per_cycle=known.per_cycle,
        clock_hz=clock_hz,
        bytes_per_s=None if clock_hz is None else known.per_cycle * clock_hz,
        origin=gpu.origin if counter is None else RoofOrigin.COUNTERS,
        source=known.source,
        is_certain=is_certain,
    )


def _find_dram_rate(gpu: KnownGpu) -> Rate | None:
    if not gpu.memory_bus_bits:
        return None
    source = f"memory bus of {format_count(gpu.memory_bus_bits)} bits, {TRANSFERS_PER_CLOCK} transfers per memory clock"
    return Rate(per_cycle=gpu.memory_bus_bits / 8 * TRANSFERS_PER_CLOCK, source=source, is_certain=True)


def _find_issue_rate(gpu: KnownGpu) -> float | None:
    if gpu.architecture is None or not gpu.sm_count:
        return None
    sm = gpu.architecture.sm
    return float(gpu.sm_count * sm.sub_partitions_per_sm.value * sm.issued_instructions_per_cycle.value)


def _list_doubts(gpu: KnownGpu, peaks: tuple[Peak, ...], bandwidths: tuple[Bandwidth, ...]) -> Iterator[str]:
    assumed = [peak.kind.value for peak in peaks if not peak.is_certain]
    if assumed:
        yield f"Assumed rather than documented rates: {', '.join(assumed)}."
    levels = [bandwidth for bandwidth in bandwidths if not bandwidth.is_certain]
    assumed = [found.level.value for found in levels if found.level is not MemoryLevel.L2 or gpu.clocks.l2_hz]
    if assumed:
        yield f"Assumed rather than documented bandwidths: {', '.join(assumed)}."
    if gpu.clocks.l2_hz is None and gpu.clocks.sm_hz and any(found.level is MemoryLevel.L2 for found in levels):
        yield "The L2 clock is unknown; its bandwidth is given at the SM clock, from which it can differ by a sixth."
    if gpu.accumulation is Accumulation.HALF and any(peak.kind is OperationKind.TENSOR_FP16 for peak in peaks):
        yield "Tensor instructions that accumulate in FP32 reach half of the FP16 tensor peak on this board."
    yield from _check_perf_ratio(gpu, peaks)


def _check_perf_ratio(gpu: KnownGpu, peaks: tuple[Peak, ...]) -> Iterator[str]:
    by_kind = {peak.kind: peak.ops_per_cycle for peak in peaks}
    single, double = by_kind.get(OperationKind.FP32), by_kind.get(OperationKind.FP64)
    if not single or not double or not gpu.perf_ratio:
        return
    if not _RATIO_LOW <= single / double / gpu.perf_ratio <= _RATIO_HIGH:
        yield (
            f"The device reports an FP64 rate of 1/{format_number(gpu.perf_ratio)} of FP32's, but the peaks give "
            f"1/{format_number(single / double)}."
        )
