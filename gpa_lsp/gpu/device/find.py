"""Find the roofs of a GPU: :func:`find_machine` from a device and a launch on it, :func:`find_machine_by_name` from published figures.

Peaks per cycle come from the launch's own counters where they were collected, else from the architecture's table and the number of SMs.
Clocks come from the launch, so that roofs and points stand on equal footing; without a launch they are the highest the device states.
"""

from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device.build import KnownGpu, build_machine
from gpa_lsp.gpu.device.clocks import find_device_clocks, find_launch_clocks
from gpa_lsp.gpu.device.counters import read_attribute
from gpa_lsp.gpu.device.model import ClockBasis, Clocks, Machine, RoofOrigin
from gpa_lsp.gpu.device.products import (
    Accumulation,
    Product,
    find_product,
    find_product_of,
)
from gpa_lsp.profile.model import Device, Launch


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
        name: of the product or as the driver reports it; case, spaces and the vendor's brand words do not matter.
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
    product = find_product(name)
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
    """By product, else by the brand: every GeForce board since Turing accumulates at half rate, some other boards too."""
    if product is not None:
        return product.fp32_accumulation
    return Accumulation.HALF if device.name is not None and "geforce" in device.name.lower() else None
