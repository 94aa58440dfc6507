"""At which clocks a launch ran, or a GPU runs: :func:`find_launch_clocks`, :func:`find_device_clocks`.

A profiler locks the clocks by default (Nsight Compute to the base clock until 2025, to the boost clock since 2026.1), so a launch's own clock
is the only one its roofs may hold at.
"""

from gpa_lsp.gpu.device.counters import count_l2_slices, read_attribute, read_positive
from gpa_lsp.gpu.device.model import ClockBasis, Clocks
from gpa_lsp.profile.model import Device, Launch

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
