"""Checks of shared memory: typed Python of the core."""

from gpa_lsp.execution.emulator.compiled.addresses import ALL_LANES, behind_own, measure, slot_of
from gpa_lsp.execution.emulator.compiled.model import FAILED, LANES, CoreMachine, Operation
from gpa_lsp.foundation.machine_code.types import Pointer, all_lanes, bits_of, put, s64, u8, u32, u64

# A stamp: when (counted in accesses), who (rank of the block in its cluster, and thread in the block), with which instruction and, in the lowest bit,
# whether it was strong
THREAD_SHIFT, TIME_SHIFT, THREAD_MASK, INSTRUCTION_MASK = 18, 32, (1 << 14) - 1, (1 << 17) - 1
BLOCK_SHIFT = 10  # of the rank in who


def unit_of(machine: CoreMachine, warp: s64, lane: s64) -> s64:
    """The unit of shared memory that a lane accesses."""
    slot, address = s64(machine.slots[warp]) * machine.shared_stride, machine.addresses[warp * LANES + lane]
    if machine.cluster_blocks > 1:
        address = behind_own(machine, warp, address)
    return (slot + s64(address)) >> machine.unit_shift


def thread_of(machine: CoreMachine, warp: s64, lane: s64) -> s64:
    """Thread index of a lane in its block, and above it the rank of the block in its cluster."""
    rank = s64(machine.slots[warp]) % machine.cluster_blocks
    return (rank << BLOCK_SHIFT) + s64(machine.ranks[warp]) * LANES + lane


def since_of(machine: CoreMachine, who: s64, warp: s64, lane: s64) -> s64:
    """Time of the last barrier that the thread of a stamp and a lane have both passed."""
    if machine.cluster_blocks > 1 and (who ^ thread_of(machine, warp, lane)) >> BLOCK_SHIFT != 0:
        return machine.cluster_since[machine.slots[warp]]
    return machine.block_since[machine.slots[warp]]


def count_units(machine: CoreMachine, operation: Operation) -> s64:
    """Number of units that an access covers."""
    units = s64(measure(operation)) >> machine.unit_shift
    return units if units > 0 else 1


def races_with(machine: CoreMachine, operation: Operation, found: s64, warp: s64, lane: s64) -> u32:
    """Whether a lane is about to race with the thread that left a stamp."""
    thread, who = thread_of(machine, warp, lane), found >> THREAD_SHIFT & THREAD_MASK
    if found < since_of(machine, who, warp, lane) or found == 0 or who == thread:
        return 0
    if operation.is_strong != 0 and (found & 1) != 0:
        return 0
    return u32(machine.warps_met == 0 or who >> 5 != thread >> 5 or found >= machine.warp_since[warp])


def is_race(machine: CoreMachine, operation: Operation, shadow: Pointer[s64], step: s64) -> u32:
    """Whether another thread accessed what lanes are about to, and no barrier was between."""
    newest = 0
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            found = shadow[unit_of(machine, warp, lane) + step]
            newest = found if found > newest else newest
    if newest < machine.oldest or newest <= 0:
        return 0
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            if races_with(machine, operation, shadow[unit_of(machine, warp, lane) + step], warp, lane) != 0:
                return 1
    return 0


def reads_unwritten(machine: CoreMachine, step: s64) -> u32:
    """Whether a lane reads an uninitialized unit."""
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            if machine.is_written[unit_of(machine, warp, lane) + step] == 0:
                return 1
    return 0


# What an access is compared with, unit by unit
UNWRITTEN, WRITES, LOSERS, READS, OTHERS = range(5)
SHADOWS = 5


def shadow_of(machine: CoreMachine, number: s64) -> Pointer[s64]:
    """The stamps that are compared."""
    if number == WRITES:
        return machine.writes
    if number == LOSERS:
        return machine.losers
    return machine.reads if number == READS else machine.others


def is_compared(machine: CoreMachine, operation: Operation, number: s64) -> u32:
    """Whether there is anything to compare an access with."""
    is_write = operation.kind != 0
    if number == UNWRITTEN:
        return u32(not is_write and machine.unwritten != 0 and operation.is_known == 0)
    if number == WRITES:
        return u32(machine.has_writes != 0)
    if number == LOSERS:
        return u32(machine.has_losers != 0 and (is_write or machine.has_writes != 0))
    return u32(is_write and machine.has_reads != 0)


def is_suspect(machine: CoreMachine, operation: Operation) -> u32:
    """Whether the checks have anything to report; nothing is changed."""
    for step in range(count_units(machine, operation)):
        for number in range(SHADOWS):
            if is_compared(machine, operation, number) == 0:
                continue
            if number == UNWRITTEN:
                if reads_unwritten(machine, step) != 0:
                    return 1
            elif is_race(machine, operation, shadow_of(machine, number), step) != 0:
                return 1
    return 0


def find_suspects(machine: CoreMachine, number: s64) -> s64:
    """Find lanes of the access at work that read an uninitialized unit, or race, and note the stamps that they race with, or all ones, in
    ``before``.

    Args:
        number: of a pair: a unit of the access, and a shadow that it is compared with.

    Returns:
        Number of lanes; FAILED after the last pair.
    """
    operation, step, shadow = machine.operations[machine.operation], number // SHADOWS, number % SHADOWS
    if step >= count_units(machine, operation):
        return FAILED
    count, is_asked = 0, is_compared(machine, operation, shadow)
    for warp in range(machine.warps):
        put(machine.before + warp * LANES, all_lanes(u64(0)))
        if is_asked == 0:
            continue
        for lane in bits_of(machine.masks[warp]):
            unit, found = unit_of(machine, warp, lane) + step, ~s64(0)
            is_found = u32(0)
            if shadow == UNWRITTEN:
                is_found = u32(machine.is_written[unit] == 0)
            else:
                found = shadow_of(machine, shadow)[unit]
                is_found = races_with(machine, operation, found, warp, lane)
            if is_found != 0:
                machine.before[warp * LANES + lane] = u64(found)
                count += 1
    return count


def next_stamp(machine: CoreMachine, operation: Operation) -> s64:
    """Stamp of an access, without the thread."""
    machine.time += 1
    low = s64(operation.instruction & INSTRUCTION_MASK) << 1 | s64(operation.is_strong != 0)
    return machine.time << TIME_SHIFT | low


def stamp_of(machine: CoreMachine, stamp: s64, warp: s64, lane: s64) -> s64:
    """Stamp of an access by a lane."""
    return stamp + (thread_of(machine, warp, lane) << THREAD_SHIFT)


def find_fresh(machine: CoreMachine, warp: s64, step: s64) -> u32:
    """Lanes that read a unit before all others."""
    since = machine.oldest
    if machine.in_step == 0:
        since = machine.block_since[machine.slots[warp]]
    fresh = u32(0)
    for lane in bits_of(machine.masks[warp]):
        before = machine.reads[unit_of(machine, warp, lane) + step]
        if machine.cluster_blocks > 1:
            since = since_of(machine, before >> THREAD_SHIFT & THREAD_MASK, warp, lane)
        fresh |= u32(before < since or before == 0) << lane
    return fresh


def note_others(machine: CoreMachine, stamp: s64, step: s64) -> None:
    """Note readers that are of another warp than the first one."""
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            own, unit = stamp_of(machine, stamp, warp, lane), unit_of(machine, warp, lane) + step
            if ((machine.reads[unit] ^ own) >> THREAD_SHIFT + 5 & THREAD_MASK >> 5) != 0:
                machine.others[unit] = own


def note_reads(machine: CoreMachine, stamp: s64, step: s64) -> None:
    """Note the first thread that reads each unit, and another one."""
    is_all = u32(ALL_LANES)
    machine.has_reads = 1
    for warp in range(machine.warps):
        if machine.masks[warp] == 0:
            machine.before[warp] = 0
            continue
        fresh = find_fresh(machine, warp, step)
        machine.before[warp] = u64(fresh)
        is_all &= fresh
    for warp in range(machine.warps):
        for lane in bits_of(u32(machine.before[warp])):
            machine.reads[unit_of(machine, warp, lane) + step] = stamp_of(machine, stamp, warp, lane)
    for warp in range(machine.warps - 1, -1, -1):
        for lane in range(LANES - 1, -1, -1):
            if (machine.before[warp] >> lane & 1) != 0:
                machine.others[unit_of(machine, warp, lane) + step] = stamp_of(machine, stamp, warp, lane)
    if is_all != ALL_LANES:
        note_others(machine, stamp, step)


def note_writes(machine: CoreMachine, stamp: s64, step: s64) -> None:
    """Note the last thread that writes each unit, and one that lost what it wrote."""
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            machine.writes[unit_of(machine, warp, lane) + step] = stamp_of(machine, stamp, warp, lane)
    for warp in range(machine.warps - 1, -1, -1):
        if machine.masks[warp] == 0:
            continue
        for lane in range(LANES - 1, -1, -1):
            if (machine.masks[warp] >> lane & 1) == 0:
                continue
            own, unit = stamp_of(machine, stamp, warp, lane), unit_of(machine, warp, lane) + step
            if machine.writes[unit] != own:
                machine.losers[unit] = own
                machine.has_losers = 1
            if machine.unwritten != 0:
                machine.is_written[unit] = 1


def note_shared(machine: CoreMachine, operation: Operation) -> None:
    """Note what an access reads or writes."""
    for step in range(count_units(machine, operation)):
        stamp = next_stamp(machine, operation)
        if operation.kind == 0:
            note_reads(machine, stamp, step)
        else:
            note_writes(machine, stamp, step)
    if operation.kind != 0:
        machine.has_writes = 1
    if machine.cluster_blocks > 1:
        note_remote(machine, next_stamp(machine, operation))


def note_remote(machine: CoreMachine, stamp: s64) -> None:
    """Note for each block the first access by other blocks, where no barrier of the cluster was before, and the last one."""
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            slot = slot_of(machine, warp, machine.addresses[warp * LANES + lane])
            if slot != s64(machine.slots[warp]):
                machine.last_remote[slot] = stamp_of(machine, stamp, warp, lane)
                if machine.cluster_since[slot] == 0 and machine.first_remote[slot] == 0:
                    machine.first_remote[slot] = stamp_of(machine, stamp, warp, lane)


def pass_barrier(machine: CoreMachine) -> None:
    """Note that all threads met: earlier accesses can race no more."""
    machine.time += 1
    now = machine.time << TIME_SHIFT
    for block in range(machine.blocks):
        machine.block_since[block] = now
    settle(machine, u32(machine.cluster_blocks == 1))


def pass_blocks(machine: CoreMachine, blocks: Pointer[u8], is_of_cluster: s64) -> s64:
    """Note that all threads of some blocks met, those of each block or of each cluster."""
    machine.time += 1
    is_all = u32(machine.cluster_blocks == 1 or is_of_cluster != 0)
    for block in range(machine.blocks):
        if blocks[block] != 0:
            machine.block_since[block] = machine.time << TIME_SHIFT
            if is_of_cluster != 0:
                machine.cluster_since[block] = machine.time << TIME_SHIFT
        else:
            is_all = 0
    settle(machine, is_all)
    return 0


def settle(machine: CoreMachine, is_all: u32) -> None:
    """Update the oldest barrier of the blocks, and the number of unwritten units; where all met, no earlier access is compared with later ones."""
    if is_all != 0:
        machine.has_writes, machine.has_reads, machine.has_losers = 0, 0, 0
    oldest, newest = machine.block_since[0], machine.block_since[0]
    for block in range(machine.blocks):
        since = machine.block_since[block]
        if machine.cluster_blocks > 1 and machine.cluster_since[block] < oldest:
            oldest = machine.cluster_since[block]
        oldest = since if since < oldest else oldest
        newest = since if since > newest else newest
    machine.oldest, machine.in_step = oldest, s64(oldest == newest)
    if machine.unwritten != 0:
        written = 0
        for unit in range(machine.units):
            written += s64(machine.is_written[unit])
        machine.unwritten = machine.units - written


def pass_warps(machine: CoreMachine, masks: Pointer[u32]) -> s64:
    """Note that the lanes of some warps met."""
    machine.time += 1
    for warp in range(machine.warps):
        if masks[warp] != 0:
            machine.warp_since[warp] = machine.time << TIME_SHIFT
    machine.warps_met = 1
    return 0
