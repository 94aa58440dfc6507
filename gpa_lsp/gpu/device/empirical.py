"""Measured roofs in place of theoretical ones: :func:`apply_roofs`.

A measured rate per cycle is scaled to the clocks a machine stands at, so that roofs and points keep equal footing; where a side lacks its
clock, the measured rate stands as it is, with a doubt.
"""

from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.gpu.device.model import (
    Bandwidth,
    ClockBasis,
    ClockDomain,
    EmpiricalBandwidth,
    EmpiricalPeak,
    EmpiricalRoofs,
    Machine,
    MemoryLevel,
    Peak,
    RoofOrigin,
)
from gpa_lsp.gpu.device.products import is_same_name

_TOO_HIGH = 1.02  # A measured roof above so many times the theoretical one is worth a word

_SAME_CLOCK = 0.02  # Clocks that differ by no more are the same

# The clock each level runs on
_DOMAINS = {
    MemoryLevel.SHARED: ClockDomain.SM,
    MemoryLevel.L1: ClockDomain.SM,
    MemoryLevel.L2: ClockDomain.L2,
    MemoryLevel.DRAM: ClockDomain.DRAM,
}


def apply_roofs(machine: Machine, roofs: EmpiricalRoofs, *, any_device: bool = False) -> Machine:
    """A machine with measured roofs in place of its theoretical ones; types and levels that were not measured keep theirs.

    Args:
        machine: with theoretical roofs, at the clocks to scale to.
        roofs: what was measured.
        any_device: use roofs of another GPU, with a doubt.

    Raises:
        InputError: the roofs were measured on another GPU.
    """
    difference = _find_difference(machine, roofs)
    if difference is not None and not any_device:
        raise InputError(difference, remedy="measure this GPU with `gpa-lsp roofline calibrate`, or allow any device")
    doubts = list(machine.doubts)
    if difference is not None:
        doubts.append(f"The measured ceilings are those of another GPU: {difference}.")
    elif roofs.device_name is None:
        doubts.append("The file of measured ceilings does not name their GPU.")
    peaks = {peak.kind: peak for peak in machine.peaks}
    for measured in roofs.peaks:
        peaks[measured.kind] = _replace_peak(machine, peaks.get(measured.kind), measured, roofs)
    levels = {found.level: found for found in machine.bandwidths}
    for reached in roofs.bandwidths:
        levels[reached.level] = _replace_bandwidth(machine, reached, roofs)
    built = replace(machine, peaks=tuple(peaks.values()), bandwidths=tuple(levels.values()))
    return replace(built, doubts=(*doubts, *_list_doubts(machine, built)))


def _find_difference(machine: Machine, roofs: EmpiricalRoofs) -> str | None:
    """The reason why the roofs are not this machine's, without full stop; None when nothing speaks against it."""
    name, capability = roofs.device_name, roofs.compute_capability
    if name is not None and not is_same_name(name, machine.name):
        return f"ceilings of {name!r} are not those of {machine.name!r}"
    if capability is not None and machine.compute_capability not in (None, capability):
        return f"ceilings of compute capability {capability[0]}.{capability[1]} are not those of {machine.name!r}"
    if roofs.sm_count is not None and machine.sm_count not in (None, roofs.sm_count):
        return f"ceilings of {roofs.sm_count} SMs are not those of {machine.name!r}, which has {machine.sm_count}"
    return None


def _replace_peak(machine: Machine, theoretical: Peak | None, measured: EmpiricalPeak, roofs: EmpiricalRoofs) -> Peak:
    per_cycle, target_hz = measured.ops_per_cycle, machine.clocks.sm_hz
    if per_cycle is None and roofs.sm_hz is not None:
        per_cycle = measured.ops_per_s / roofs.sm_hz
    if theoretical is not None and theoretical.ops_per_s and theoretical.ops_per_cycle:
        target_hz = theoretical.ops_per_s / theoretical.ops_per_cycle  # tensor cores may have a lower boost clock
    is_scaled = per_cycle is not None and target_hz is not None
    return Peak(
        kind=measured.kind,
        ops_per_cycle=per_cycle,
        ops_per_s=per_cycle * target_hz if per_cycle and target_hz else measured.ops_per_s,
        origin=RoofOrigin.EMPIRICAL,
        source=_describe_source(roofs, measured.spread_ratio, is_scaled),
        is_certain=is_scaled,
    )


def _replace_bandwidth(machine: Machine, measured: EmpiricalBandwidth, roofs: EmpiricalRoofs) -> Bandwidth:
    domain = _DOMAINS[measured.level]
    own, target = (getattr(one, f"{domain}_hz") for one in (roofs, machine.clocks))
    per_cycle = measured.bytes_per_cycle if measured.clock is domain else None
    if per_cycle is None and own is not None:
        per_cycle = measured.bytes_per_s / own
    is_scaled = per_cycle is not None and target is not None
    is_certain = is_scaled or (domain is not ClockDomain.DRAM and _are_equal(roofs.sm_hz, machine.clocks.sm_hz))
    return Bandwidth(
        level=measured.level,
        bytes_per_cycle=per_cycle,
        clock_hz=target,
        bytes_per_s=per_cycle * target if per_cycle and target else measured.bytes_per_s,
        origin=RoofOrigin.EMPIRICAL,
        source=_describe_source(roofs, measured.spread_ratio, is_scaled),
        is_certain=is_certain,
    )


def _are_equal(measured_hz: float | None, target_hz: float | None) -> bool:
    """Two clocks of the SMs are the same to 2 %; L2's, which follows it, then is too."""
    return bool(measured_hz and target_hz and abs(measured_hz / target_hz - 1) <= _SAME_CLOCK)


def _describe_source(roofs: EmpiricalRoofs, spread_ratio: float | None, is_scaled: bool) -> str:
    what = "measured" if roofs.measured_on is None else f"measured on {roofs.measured_on}"
    if spread_ratio is not None:
        what += f", repetitions within {format_percent(spread_ratio)}"
    return f"{what}, {'scaled to these clocks' if is_scaled else 'at the clocks of the measurement'}"


def _list_doubts(before: Machine, after: Machine) -> list[str]:
    doubts = []
    unscaled = [peak.kind.value for peak in after.peaks if _is_unscaled(peak)]
    unscaled += [found.level.value for found in after.bandwidths if _is_unscaled(found)]
    if unscaled and after.clocks.basis is not ClockBasis.UNKNOWN:
        doubts.append(f"Measured ceilings that hold at the clocks of their measurement only: {', '.join(unscaled)}.")
    for peak in after.peaks:
        theoretical = before.find_peak(peak.kind)
        if theoretical is not None and _is_too_high(peak.ops_per_s, theoretical.ops_per_s):
            doubts.append(f"The measured ceiling of {peak.kind.value} is above the theoretical one.")
    for found in after.bandwidths:
        known = before.find_bandwidth(found.level)
        if known is not None and _is_too_high(found.bytes_per_s, known.bytes_per_s):
            doubts.append(f"The measured ceiling of {found.level.value} is above the theoretical one.")
    return doubts


def _is_unscaled(roof: Peak | Bandwidth) -> bool:
    return roof.origin is RoofOrigin.EMPIRICAL and not roof.is_certain


def _is_too_high(measured: float | None, theoretical: float | None) -> bool:
    return measured is not None and theoretical is not None and measured > _TOO_HIGH * theoretical
