"""Find the roofs of a GPU: :func:`find_machine` from a device and a launch on it, :func:`find_machine_by_name` from published figures, and
:func:`find_attached_machine` of a GPU of this computer.

Peaks per cycle come from the launch's own counters where they were collected, else from the architecture's table and the number of SMs.
Clocks come from the launch, so that roofs and points stand on equal footing; without a launch they are the highest the device states.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError, ToolError, UnknownArchitectureError
from gpa_lsp.foundation.numbers import format_count, format_number
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device import cuda_driver
from gpa_lsp.gpu.device.model import (
    TRANSFERS_PER_CLOCK,
    Bandwidth,
    ClockBasis,
    Clocks,
    Machine,
    MemoryLevel,
    OperationKind,
    Peak,
    RoofOrigin,
)
from gpa_lsp.gpu.device.products import Accumulation, Product, find_product, find_product_of
from gpa_lsp.gpu.device.rates import (
    Rate,
    count_l2_slices,
    list_operation_rates,
    read_attribute,
    read_dram_peak,
    read_l1_peak,
    read_l2_peak,
    read_operation_peaks,
    read_positive,
    read_rate,
)
from gpa_lsp.profile.model import Device, Launch, MetricScalar


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
    product = find_product_of(device)
    clocks, doubts = _choose_clocks(device, product, usable)
    is_boost = clocks.basis is ClockBasis.BOOST
    bus_bits = read_attribute(device, "global_memory_bus_width")
    slices = read_attribute(device, "l2s_count")
    gpu = KnownGpu(
        name=device.name or "unknown GPU",
        compute_capability=device.compute_capability,
        sm_count=device.sm_count if device.sm_count is not None or product is None else product.sm_count,
        architecture=architecture,
        launch=usable,
        clocks=clocks,
        tensor_hz=_find_tensor_clock(product) if is_boost and product is not None else None,
        accumulation=_find_accumulation(device, product),
        l2_slices=slices if slices is not None or product is None else product.l2_slices,
        memory_bus_bits=bus_bits if bus_bits is not None or product is None else product.memory_bus_bits,
        origin=RoofOrigin.DEVICE,
        perf_ratio=read_attribute(device, "single_to_double_precision_perf_ratio"),
    )
    return build_machine(gpu, doubts)


def find_machine_by_name(name: str, basis: ClockBasis = ClockBasis.BOOST) -> Machine:
    """The theoretical roofs of a product, from published figures.

    Args:
        name: of the product or as the driver reports it; case, spaces and the vendor's brand words do not matter. Or a file that describes one.
        basis: :attr:`~ClockBasis.BOOST` or :attr:`~ClockBasis.BASE`.

    Raises:
        InputError: no product has this name (the message lists near ones), or its base clock is not known.
        ValueError: another basis.

    >>> machine = find_machine_by_name("RTX 3090")
    >>> round(machine.peaks[1].ops_per_s / 1e12, 1), machine.peaks[1].kind.value
    (35.6, 'FP32')
    """
    if basis not in (ClockBasis.BOOST, ClockBasis.BASE):
        raise ValueError(f"a product has no clock {basis.value!r}")
    return build_product_machine(find_product(name), basis)


def build_product_machine(product: Product, basis: ClockBasis = ClockBasis.BOOST) -> Machine:
    """The theoretical roofs of a product.

    Raises:
        InputError: its base clock is asked for, and not known.
    """
    sm_hz = product.sm_boost_hz if basis is ClockBasis.BOOST else product.sm_base_hz
    if sm_hz is None:
        raise InputError(f"the base clock of the {product.name} is unknown", remedy="use its boost clock")
    gpu = KnownGpu(
        name=product.name,
        compute_capability=product.compute_capability,
        sm_count=product.sm_count,
        architecture=find_architecture(product.compute_capability),
        launch=None,
        clocks=Clocks(basis=basis, sm_hz=sm_hz, l2_hz=None, dram_hz=product.memory_clock_hz, source=product.sources[0]),
        tensor_hz=_find_tensor_clock(product) if basis is ClockBasis.BOOST else None,
        accumulation=product.fp32_accumulation,
        l2_slices=product.l2_slices,
        memory_bus_bits=product.memory_bus_bits,
        origin=RoofOrigin.PRODUCT,
        perf_ratio=None,
    )
    machine = build_machine(gpu)
    assert machine is not None  # a product states its SMs, and its architecture has a table: a test builds each
    return machine


def _choose_clocks(device: Device, product: Product | None, launch: Launch | None) -> tuple[Clocks, tuple[str, ...]]:
    measured = None if launch is None else find_launch_clocks(launch)
    clocks = find_device_clocks(device)
    if measured is not None and measured.dram_hz is None and clocks.dram_hz is not None:
        doubt = "The memory clock was not collected; the DRAM ceiling is for the clock that the device reports."
        return replace(measured, dram_hz=clocks.dram_hz), (doubt,)
    if measured is not None:
        return measured, ()
    if clocks.basis is ClockBasis.UNKNOWN and product is not None:
        clocks = Clocks(
            basis=ClockBasis.BOOST,
            sm_hz=product.sm_boost_hz,
            l2_hz=None,
            dram_hz=product.memory_clock_hz,
            source=product.sources[0],
        )
    if clocks.basis is ClockBasis.UNKNOWN:
        return clocks, ("The SM clock is unknown; SM ceilings are known per cycle only.",)
    if launch is None:
        return clocks, ()
    doubt = "The launch's clocks were not collected; the ceilings are for the boost clock, and it may have run at a lower one."
    return clocks, (doubt,)


def _find_tensor_clock(product: Product) -> float | None:
    return product.tensor_boost_hz if product.tensor_boost_hz != product.sm_boost_hz else None


def _find_accumulation(device: Device, product: Product | None) -> Accumulation | None:
    """The rate of accumulation by product, else by brand: every GeForce board since Turing accumulates at half rate, some other boards too."""
    if product is not None:
        return product.fp32_accumulation
    return Accumulation.HALF if device.name is not None and "geforce" in device.name.lower() else None


# Tensor types whose published peak holds at the boost clock, and not at the lower one of the others
_FASTER_TENSOR_CLOCK = frozenset({OperationKind.TENSOR_FP64})


# Where FP32's rate over FP64's may lie beside the one a device states: on 8.6 that leaves out the second half of the FP32 lanes
_RATIO_LOW, _RATIO_HIGH = 0.99, 2.01


class KnownGpu(Struct, frozen=True, kw_only=True):
    """The known facts of a GPU."""

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
            yield _build_peak(gpu, kind, counter, RoofOrigin.COUNTERS)
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
        known = counter or rate
        if known is not None:
            yield Bandwidth(
                level=level,
                bytes_per_cycle=known.per_cycle,
                clock_hz=clock_hz,
                bytes_per_s=None if clock_hz is None else known.per_cycle * clock_hz,
                origin=gpu.origin if counter is None else RoofOrigin.COUNTERS,
                source=known.source,
                is_certain=known.is_certain and (level is not MemoryLevel.L2 or clocks.l2_hz is not None),
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


# At which clocks a launch ran, or a GPU runs: :func:`find_launch_clocks`, :func:`find_device_clocks`.
#
# A profiler locks the clocks by default (Nsight Compute to the base clock until 2025, to the boost clock since 2026.1), so a launch's own clock
# is the only one its roofs may hold at.

# Metrics that give the SMs' clock; that of the GPC they are in last, which can differ by a percent
_SM_CLOCKS = (
    "smsp__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second",
    "l1tex__cycles_elapsed.avg.per_second",
    "gpc__cycles_elapsed.avg.per_second",
)


_MOST_HZ = 1e12  # No clock is as high; broken files hold such


def find_launch_clocks(launch: Launch) -> Clocks | None:
    """The clocks a launch ran at, by its own counters; None when they do not give the SMs' clock."""
    found = read_positive(launch, *_SM_CLOCKS) or _divide_cycles(launch, "sm__cycles_elapsed.max")
    if found is None:
        return None
    dram = read_positive(launch, "dram__cycles_elapsed.avg.per_second")
    return Clocks(
        basis=ClockBasis.MEASURED,
        sm_hz=found[1],
        l2_hz=_find_l2_clock(launch),
        dram_hz=None if dram is None else dram[1],
        source=found[0],
    )


def find_device_clocks(device: Device) -> Clocks:
    """The clocks the device states: the highest it can run at. Nothing says L2's."""
    sm_khz, dram_khz = read_attribute(device, "clock_rate"), read_attribute(device, "memory_clock_rate")
    stated_hz = device.sm_clock_hz if device.sm_clock_hz and 0 < device.sm_clock_hz < _MOST_HZ else None
    sm_hz = stated_hz if sm_khz is None else sm_khz * 1e3
    return Clocks(
        basis=ClockBasis.UNKNOWN if sm_hz is None else ClockBasis.BOOST,
        sm_hz=sm_hz,
        l2_hz=None,
        dram_hz=None if dram_khz is None else dram_khz * 1e3,
        source="device attributes clock_rate and memory_clock_rate",
    )


def _find_l2_clock(launch: Launch) -> float | None:
    """Older reports do not store it, but the same sectors per second and per cycle."""
    found = read_positive(launch, "lts__cycles_elapsed.avg.per_second")
    found = found or _divide_cycles(launch, "lts__cycles_elapsed.avg")
    if found is not None:
        return found[1]
    slices = count_l2_slices(launch)
    for name in ("lts__t_sectors", "lts__t_sectors_srcunit_tex"):
        per_second = read_positive(launch, f"{name}.sum.per_second")
        per_cycle = read_positive(launch, f"{name}.avg.per_cycle_elapsed")
        if slices is not None and per_second is not None and per_cycle is not None:
            return per_second[1] / (per_cycle[1] * slices)
    return None


def _divide_cycles(launch: Launch, name: str) -> tuple[str, float] | None:
    cycles, duration_ns = read_positive(launch, name), read_positive(launch, "gpu__time_duration.sum")
    if cycles is None or duration_ns is None:
        return None
    return f"{name} / gpu__time_duration.sum", cycles[1] / (duration_ns[1] * 1e-9)


# The GPU of this computer, through the CUDA driver: :func:`read_attached_device`, :func:`find_attached_machine`.
#
# ``cuda-python`` is optional (``gpa-lsp[cuda]``) and is loaded only when asked for. Nothing is run on the GPU and no context is made.

_NEEDED_FOR = "looking up the GPU of this computer"
_INSTALL = "install gpa-lsp[cuda] and NVIDIA's driver, or name the GPU instead"
_NAME_BYTES = 256

# As reports name them, without ``device__attribute_``; the driver's names are the same in capitals
_ATTRIBUTES = (
    "clock_rate",
    "memory_clock_rate",
    "global_memory_bus_width",
    "l2_cache_size",
    "multiprocessor_count",
    "compute_capability_major",
    "compute_capability_minor",
    "single_to_double_precision_perf_ratio",
)


def find_attached_machine(index: int = 0, driver: Any = None) -> Machine:
    """The theoretical roofs of a GPU of this computer at the highest clocks it states.

    Args:
        index: which, as the driver counts them.
        driver: the bindings ``cuda.bindings.driver``; None imports them. Tests give a scripted one.

    Raises:
        MissingToolError: no bindings, no driver or no such GPU; says which.
        ToolError: the driver refuses, or reports nothing that roofs could be made from.
    """
    device = read_attached_device(index, driver)
    architecture = None
    if device.compute_capability is not None:
        try:
            architecture = find_architecture(device.compute_capability)
        except UnknownArchitectureError:
            architecture = None  # DRAM's roof is known all the same
    machine = find_machine(device, architecture, None)
    if machine is None:
        raise ToolError("the CUDA driver", f"reports neither clocks nor widths of {device.name or 'this GPU'}")
    return machine


def read_attached_device(index: int = 0, driver: Any = None) -> Device:
    """The driver's report on a GPU of this computer; arguments and errors as of :func:`find_attached_machine`."""
    bindings, handle = cuda_driver.open_device(needed_for=_NEEDED_FOR, install=_INSTALL, index=index, driver=driver)
    name = cuda_driver.call_driver(bindings, "cuDeviceGetName", _NAME_BYTES, handle)
    found = {attribute: cuda_driver.read_attribute(bindings, handle, attribute) for attribute in _ATTRIBUTES}
    attributes: dict[str, MetricScalar] = {
        f"device__attribute_{key}": value for key, value in found.items() if value is not None
    }
    major, minor = found["compute_capability_major"], found["compute_capability_minor"]
    clock_khz = found["clock_rate"]
    return Device(
        name=cuda_driver.decode_name(name) or None,
        compute_capability=None if major is None or minor is None else (major, minor),
        sm_count=found["multiprocessor_count"],
        sm_clock_hz=None if not clock_khz else clock_khz * 1e3,
        attributes=attributes,
    )
