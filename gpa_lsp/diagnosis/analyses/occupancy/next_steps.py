"""The next step up and what is free on the way down, in sentences."""

from gpa_lsp.diagnosis.analyses.answers import Finding, Weight
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, list_of, say, size
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, OccupancyLimit
from gpa_lsp.gpu.arch.occupancy_steps import (
    FreeRoom,
    OccupancyStep,
    find_free_registers,
    find_free_shared,
    find_needed_carveout,
    list_steps_up,
)

_REMEDIES = {
    OccupancyLimit.REGISTERS: say(
        "{bounds} or {option} makes the compiler use fewer; spills to local memory can cost more than the warps gain.",
        bounds=Code(text="__launch_bounds__"),
        option=Code(text="-maxrregcount"),
    ),
    OccupancyLimit.SHARED_MEMORY: say(
        "Use smaller tiles or narrower types; smaller tiles may read global memory more often."
    ),
    OccupancyLimit.WARPS: say("Another block size changes which threads share a block's memory and barriers."),
}

_CARVEOUT_REMEDY = say(
    "Call {function} with {attribute}; what shared memory takes is lost to L1.",
    function=Code(text="cudaFuncSetAttribute"),
    attribute=Code(text="cudaFuncAttributePreferredSharedMemoryCarveout"),
)


def describe_steps_up(
    architecture: Architecture,
    block: BlockShape,
    now: Occupancy,
    weight: Weight,
    remark: Sentence = NOTHING,
    *,
    keeps_size: bool = False,
) -> tuple[Finding, ...]:
    """A finding per smallest change that lets an SM hold more warps."""
    steps = list_steps_up(architecture, block, now.carveout_bytes)
    return tuple(
        Finding(
            text=join([_describe_step(architecture, block, now, step), remark]),
            weight=weight,
            remedy=_CARVEOUT_REMEDY if step.block == block else _REMEDIES[step.resources[0]],
        )
        for step in steps
        if not (keeps_size and OccupancyLimit.WARPS in step.resources)
    )


def _describe_step(architecture: Architecture, block: BlockShape, now: Occupancy, step: OccupancyStep) -> Sentence:
    return say(
        "{change}: {gained} more, {held} of {most} in all.",
        change=_say_change(architecture, block, now, step),
        gained=count(step.gained_warps, "warp"),
        held=count(step.occupancy.warps_per_sm),
        most=count(step.occupancy.max_warps_per_sm),
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
        parts.append(say("with the largest carve-out {spare} are free", spare=count(raised.spare, "byte")))
    return Finding(text=say("Room without losing a warp: {parts}.", parts=join(parts, "; ")))


def _say_room(room: FreeRoom, unit: str, words: str, now: Occupancy) -> Sentence:
    if room.after is None:
        return say("up to {most} {words}, the maximum", most=count(room.most, unit), words=words)
    lost = count(now.warps_per_sm - room.after.warps_per_sm, "warp")
    if not room.spare:
        return say("no {unit} {words}: one more costs {lost}", unit=unit, words=words, lost=lost)
    spare = count(room.spare, f"more {unit}")
    return say("{spare} {words}, the next one costs {lost}", spare=spare, words=words, lost=lost)


def _say_change(architecture: Architecture, block: BlockShape, now: Occupancy, step: OccupancyStep) -> Sentence:
    if step.block == block:
        larger = size(step.occupancy.carveout_bytes)
        return say("A carve-out of {larger} instead of {now}", larger=larger, now=size(now.carveout_bytes))
    if OccupancyLimit.WARPS in step.resources:
        threads = count(step.block.threads, "thread")
        change = say("Blocks of {threads} instead of {now}", threads=threads, now=count(block.threads))
    else:
        change = _say_resources(block, step)
    needed = find_needed_carveout(architecture, step.occupancy)
    if needed > now.carveout_bytes and step.occupancy.carveout_bytes > now.carveout_bytes:
        change = say("{change}, with the carve-out set to {needed}", change=change, needed=size(needed))
    return change


def _say_resources(block: BlockShape, step: OccupancyStep) -> Sentence:
    parts = []
    if OccupancyLimit.REGISTERS in step.resources:
        parts.append(
            say(
                "{fewer} per thread instead of {now}",
                fewer=count(step.block.registers_per_thread, "register"),
                now=count(block.registers_per_thread),
            )
        )
    if OccupancyLimit.SHARED_MEMORY in step.resources:
        parts.append(
            say(
                "{less} of shared memory per block instead of {now}",
                less=count(step.block.shared_bytes, "byte"),
                now=count(block.shared_bytes),
            )
        )
    return list_of(parts)
