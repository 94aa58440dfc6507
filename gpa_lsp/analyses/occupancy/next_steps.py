"""The next step up and what is free on the way down, in sentences."""

from gpa_lsp.analyses.answers import Finding, Weight
from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.occupancy import BlockShape, Occupancy, OccupancyLimit
from gpa_lsp.arch.occupancy_steps import (
    FreeRoom,
    OccupancyStep,
    find_free_registers,
    find_free_shared,
    find_needed_carveout,
    list_steps_up,
)

_REMEDIES = {
    OccupancyLimit.REGISTERS: (
        "`__launch_bounds__` or `-maxrregcount` make the compiler use fewer; what then spills into local memory can cost more than the warps gain."
    ),
    OccupancyLimit.SHARED_MEMORY: "Smaller tiles or narrower types; smaller tiles may read global memory more often.",
    OccupancyLimit.WARPS: "Another block size changes which threads share a block's memory and barriers.",
}

_CARVEOUT_REMEDY = "`cudaFuncSetAttribute` with `cudaFuncAttributePreferredSharedMemoryCarveout`; what shared memory takes is lost to L1."


def describe_steps_up(
    architecture: Architecture, block: BlockShape, now: Occupancy, weight: Weight, remark: str = ""
) -> tuple[Finding, ...]:
    """A finding per smallest change that lets an SM hold more warps.

    Args:
        architecture: whose rules.
        block: as it is.
        now: what an SM holds of it.
        weight: of the findings, by what more warps are worth.
        remark: a sentence behind each, with its space; may be empty.
    """
    steps = list_steps_up(architecture, block, now.carveout_bytes)
    return tuple(
        Finding(
            text=f"{_say_change(architecture, block, now, step)}: {_say_warps(step.gained_warps)} more, {_say_total(step.occupancy)}.{remark}",
            weight=weight,
            remedy=_CARVEOUT_REMEDY if step.block == block else _REMEDIES[step.resources[0]],
        )
        for step in steps
    )


def describe_free_room(architecture: Architecture, block: BlockShape, now: Occupancy) -> Finding | None:
    """What more a block can use without losing a warp; None where no block fits."""
    registers = find_free_registers(architecture, block, now.carveout_bytes)
    shared = find_free_shared(architecture, block, now.carveout_bytes)
    raised = find_free_shared(architecture, block)
    if registers is None or shared is None:
        return None
    parts = [
        _say_room(registers, "register", "per thread", now),
        _say_room(shared, "byte", "of shared memory per block", now),
    ]
    if raised is not None and raised.most > shared.most and raised.after != shared.after:
        parts.append(f"with the largest carve-out {raised.spare:,} bytes more are")
    return Finding(text="Without losing a warp: " + "; ".join(parts) + ".")


def _say_room(room: FreeRoom, unit: str, words: str, now: Occupancy) -> str:
    units = unit if room.spare == 1 else f"{unit}s"
    if room.after is None:
        return f"there can be {room.most:,} {unit}s {words}, which is the most"
    lost = now.warps_per_sm - room.after.warps_per_sm
    free = (
        f"{room.spare:,} {units} more {words} {'is' if room.spare == 1 else 'are'} free"
        if room.spare
        else (f"no {unit} {words} is free")
    )
    return f"{free}, and one beyond costs {_say_warps(lost)}"


def _say_change(architecture: Architecture, block: BlockShape, now: Occupancy, step: OccupancyStep) -> str:
    if step.block == block:
        return f"A carve-out of {step.occupancy.carveout_bytes:,} bytes instead of {now.carveout_bytes:,}"
    if OccupancyLimit.WARPS in step.resources:
        change = f"Blocks of {step.block.threads:,} threads instead of {block.threads:,}"
    else:
        parts = []
        if OccupancyLimit.REGISTERS in step.resources:
            parts.append(
                f"{step.block.registers_per_thread} registers per thread instead of {block.registers_per_thread}"
            )
        if OccupancyLimit.SHARED_MEMORY in step.resources:
            parts.append(
                f"{step.block.shared_bytes:,} bytes of shared memory per block instead of {block.shared_bytes:,}"
            )
        change = " and ".join(parts)
    needed = find_needed_carveout(architecture, step.occupancy)
    if needed > now.carveout_bytes and step.occupancy.carveout_bytes > now.carveout_bytes:
        change += f", for which the driver has to set the carve-out to {needed:,} bytes"
    return change


def _say_warps(count: int) -> str:
    return f"{count} warp" + ("" if count == 1 else "s")


def _say_total(found: Occupancy) -> str:
    return f"{found.warps_per_sm} of {found.max_warps_per_sm} in all"
