"""Addresses of the lanes of all warps, and whether they may be accessed: typed Python of the core.

Functions without type annotations may take and give 32 values, one per lane.
"""

from gpa_lsp.execution.emulator.compiled.model import FAILED, LANES, CoreMachine, Operation
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW, WINDOW_BYTES
from gpa_lsp.foundation.machine_code.types import (
    Pointer,
    bits_of,
    lane_numbers,
    lanes,
    local,
    mask_of,
    popcount,
    put,
    s32,
    s64,
    u8,
    u32,
    u64,
    union,
    view,
)

ALL_LANES = 0xFFFFFFFF
# Numbers of spaces, as in :class:`~gpa_lsp.code.ptx.model.Space`
IN_GENERIC, IN_GLOBAL, IN_SHARED, IN_LOCAL, IN_CONST, IN_PARAM = range(6)
# Layouts of a warp's addresses: each one access width after the one before, all equal, or anything else
SCATTERED, IN_A_ROW, AT_ONE_PLACE = range(3)


def operand(frame: Pointer[u8], constants: Pointer[u8], place: s32) -> Pointer[u8]:
    """Place of an operand's 32 values: in the frame or, complemented, among the constants."""
    return frame + place if place >= 0 else constants + ~place


def frame_of(machine: CoreMachine, warp: s64) -> Pointer[u8]:
    """The registers of a warp, in the call that it is in."""
    return machine.frames + warp * machine.frame_bytes + machine.base


def pack(values: Pointer[u8]) -> u32:
    """The lanes whose predicate is true."""
    return mask_of(lanes(values) != 0)


def guard_of(machine: CoreMachine, operation: Operation, warp: s64) -> u32:
    """The lanes of a warp that an operation is done by."""
    mask = machine.current[warp]
    if operation.guard < 0 or mask == 0:
        return mask
    holds = pack(frame_of(machine, warp) + operation.guard)
    return mask & (~holds if operation.is_negated != 0 else holds)


def find_masks(machine: CoreMachine, operation: Operation) -> u32:
    """Fill ``machine.masks`` with the lanes whose guard holds; their union over the warps, 0 where there are none."""
    found = u32(0)
    for warp in range(machine.warps):
        mask = guard_of(machine, operation, warp)
        machine.masks[warp] = mask
        found |= mask
    return found


def count_guarded(machine: CoreMachine, operation: Operation) -> None:
    """Count the executions of an instruction with a guard."""
    if operation.counts == 0:
        return
    count = 0
    for warp in range(machine.warps):
        count += s64(popcount(machine.masks[warp]))
    machine.guarded[operation.instruction] += count


def find_addresses(machine: CoreMachine, operation: Operation) -> None:
    """Fill ``machine.addresses`` for the lanes of the masks."""
    offset, is_private = u64(operation.literal), operation.space in (IN_SHARED, IN_LOCAL)
    for warp in range(machine.warps):
        if machine.masks[warp] == 0:
            continue
        source = operand(frame_of(machine, warp), machine.constants, operation.a)
        to = machine.addresses + warp * LANES
        if operation.address_bytes == 8:
            put(to, lanes(view(source, u64)) + offset)
        else:
            wide = u64(lanes(view(source, u32))) + offset
            put(to, wide & (u64(0xFFFFFFFF) if is_private else ~u64(0)))


def find_region(machine: CoreMachine, address: u64) -> s64:
    """The last region that begins no later than an address; -1 for none."""
    low, high = 0, machine.region_count
    while low < high:
        middle = (low + high) // 2
        if machine.region_bases[middle] <= address:
            low = middle + 1
        else:
            high = middle
    return low - 1


def are_within(address: Pointer[u64], mask: u32, base: u64, furthest: u64, low_bits: u64) -> u32:
    """Whether the lanes of a mask access multiples of their width (less one: low_bits), no further behind a base than allowed."""
    found = lanes(address)
    wrong = ((found - base) > furthest) | ((found & low_bits) != 0)
    return u32((mask_of(wrong) & mask) == 0)


def is_within(machine: CoreMachine, region: s64, address: u64, size: u64) -> u32:
    """Whether a region has so many bytes at an address."""
    behind, room = address - machine.region_bases[region], u64(machine.region_bytes[region])
    return u32(behind <= room and room - behind >= size)


def are_fixed(machine, address, mask):
    """The lanes of a mask whose addresses lie in constants or parameters."""
    held, found = local(u64, LANES), u32(0)
    put(held, address)
    for lane in bits_of(mask):
        region = find_region(machine, held[lane])
        if region >= 0 and is_within(machine, region, held[lane], 1) != 0:
            found |= u32(machine.region_spaces[region] != IN_GLOBAL) << lane
    return found


def check_lane(machine: CoreMachine, operation: Operation, address: u64, size: u64, region: s64) -> s64:
    """The region of an address, which is tried first; -1 where a lane may not access it."""
    if is_within(machine, region, address, size) == 0:
        region = find_region(machine, address)
        if region < 0 or is_within(machine, region, address, size) == 0:
            return FAILED
    is_writable = machine.region_spaces[region] == IN_GLOBAL
    return region if (address & (size - 1)) == 0 and (is_writable or operation.kind == 0) else FAILED


def check_lanes(machine: CoreMachine, operation: Operation, warp: s64, size: u64, region: s64) -> s64:
    """The region that the last lane of a warp accesses; -1 where some lane may not access global memory as it does."""
    address = machine.addresses + warp * LANES
    for lane in bits_of(machine.masks[warp]):
        region = check_lane(machine, operation, address[lane], size, region)
        if region < 0:
            return FAILED
    return region


def first_region(machine: CoreMachine, operation: Operation) -> s64:
    """The region to try first: the one that lanes went to last."""
    region = s64(operation.region)
    return region if region >= 0 and region < machine.region_count else 0


def measure(operation: Operation) -> u64:
    """Bytes that a lane accesses."""
    return u64(operation.elements) * u64(operation.element_bytes)


def check_global(machine: CoreMachine, operation: Operation) -> u32:
    """Whether all lanes may access global memory."""
    size = measure(operation)
    if machine.region_count == 0:
        return 0
    region = first_region(machine, operation)
    for warp in range(machine.warps):
        mask = machine.masks[warp]
        if mask == 0:
            continue
        room = u64(machine.region_bytes[region])
        is_open = machine.region_spaces[region] == IN_GLOBAL and room >= size
        address, base = machine.addresses + warp * LANES, machine.region_bases[region]
        if is_open and are_within(address, mask, base, room - size, size - 1) != 0:
            continue
        region = check_lanes(machine, operation, warp, size, region)
        if region < 0:
            return 0
    operation.region = s32(region)
    return 1


def slot_of(machine: CoreMachine, warp: s64, address: u64) -> s64:
    """The block in the batch whose shared memory an address of a warp leads to; -1 for no block of the cluster."""
    own, rank = s64(machine.slots[warp]), s64(address >> RANK_SHIFT)
    if rank == 0:
        return own
    is_known = machine.cluster_blocks > 1 and rank <= machine.cluster_blocks
    return own - own % machine.cluster_blocks + rank - 1 if is_known else FAILED


def is_alive(machine: CoreMachine, slot: s64) -> u32:
    """Whether a block has threads that have not exited."""
    per_block = machine.warps // machine.blocks
    for warp in range(slot * per_block, (slot + 1) * per_block):
        if machine.live[warp] != 0:
            return 1
    return 0


def is_in_shared(machine: CoreMachine, warp: s64, address: u64, size: u64) -> u32:
    """Whether so many bytes lie at an address of shared memory, that of the block or of one of its cluster that has not exited."""
    slot, offset = slot_of(machine, warp, address), address & ((1 << RANK_SHIFT) - 1)
    if slot < 0 or machine.shared_bytes < s64(size) or offset > u64(machine.shared_bytes) - size:
        return 0
    return u32((address & (size - 1)) == 0 and (slot == s64(machine.slots[warp]) or is_alive(machine, slot) != 0))


def are_in_shared(machine: CoreMachine, warp: s64, size: u64) -> u32:
    """Whether the lanes of a warp may access shared memory of their cluster."""
    for lane in bits_of(machine.masks[warp]):
        if is_in_shared(machine, warp, machine.addresses[warp * LANES + lane], size) == 0:
            return 0
    return u32(machine.cluster_blocks > 1)


def behind_own(machine, warp, address):
    """Offsets from the beginning of the block's own shared memory to addresses of shared memory of its cluster."""
    rank, own = address >> RANK_SHIFT, s64(machine.slots[warp]) % machine.cluster_blocks
    ahead = (rank - u64(own + 1)) * u64(machine.shared_stride)
    return (address & ((1 << RANK_SHIFT) - 1)) + (ahead if rank != 0 else ahead & 0)


def check_private(machine: CoreMachine, operation: Operation, space: s32, room: s64) -> u32:
    """Whether all lanes may access local memory of their own, or shared memory of their block or cluster."""
    size = measure(operation)
    if room < s64(size):
        return 0
    for warp in range(machine.warps):
        mask = machine.masks[warp]
        if mask == 0 or are_within(machine.addresses + warp * LANES, mask, 0, u64(room) - size, size - 1) != 0:
            continue
        if space != IN_SHARED or are_in_shared(machine, warp, size) == 0:
            return 0
    return 1


def find_space(machine: CoreMachine) -> s32:
    """The space that the generic addresses of all lanes lead to, made relative to it; IN_GENERIC where they lead to several."""
    every, in_shared, in_local = u32(0), u32(0), u32(0)
    parts_shared, parts_local = u32(0), u32(0)
    for warp in range(machine.warps):
        mask = machine.masks[warp]
        address = lanes(machine.addresses + warp * LANES)
        shared = mask_of((address - SHARED_WINDOW) < WINDOW_BYTES) & mask
        own = mask_of((address - LOCAL_WINDOW) < WINDOW_BYTES) & mask
        every, in_shared, in_local = every | mask, in_shared | shared, in_local | own
        parts_shared, parts_local = parts_shared | (shared ^ mask), parts_local | (own ^ mask)
    if every == 0 or (in_shared | in_local) == 0:
        return IN_GLOBAL
    if parts_shared != 0 and parts_local != 0:
        return IN_GENERIC
    window = u64(SHARED_WINDOW) if parts_shared == 0 else u64(LOCAL_WINDOW)
    for warp in range(machine.warps):
        if machine.masks[warp] != 0:
            place = machine.addresses + warp * LANES
            put(place, lanes(place) - window)
    return s32(IN_SHARED if parts_shared == 0 else IN_LOCAL)


def take_window(machine: CoreMachine, space: s32) -> None:
    """Keep only the lanes whose generic addresses lead to a space, and make these relative to it."""
    for warp in range(machine.warps):
        place = machine.addresses + warp * LANES
        address, mask = lanes(place), machine.masks[warp]
        shared = mask_of((address - SHARED_WINDOW) < WINDOW_BYTES)
        own = mask_of((address - LOCAL_WINDOW) < WINDOW_BYTES)
        if space == IN_SHARED:
            mask &= shared
            put(place, address - SHARED_WINDOW)
        elif space == IN_LOCAL:
            mask &= own
            put(place, address - LOCAL_WINDOW)
        else:
            mask &= ~(shared | own)
        machine.masks[warp] = mask


def find_wrong(machine: CoreMachine, operation: Operation, space: s32) -> None:
    """Move lanes that may not access a space as they want from ``masks`` to ``wrong``."""
    size, room = measure(operation), machine.local_stride
    for warp in range(machine.warps):
        wrong = u32(0)
        for lane in bits_of(machine.masks[warp]):
            address, is_right = machine.addresses[warp * LANES + lane], u32(0)
            if space == IN_SHARED:
                is_right = is_in_shared(machine, warp, address, size)
            elif space == IN_LOCAL:
                is_right = u32(room >= s64(size) and address <= u64(room) - size and (address & (size - 1)) == 0)
            elif machine.region_count > 0:
                is_right = u32(check_lane(machine, operation, address, size, first_region(machine, operation)) >= 0)
            wrong |= (is_right ^ 1) << lane
        machine.wrong[warp] = wrong
        machine.masks[warp] &= ~wrong


def base_of(machine: CoreMachine, space: s32, warp: s64) -> Pointer[u8]:
    """Pointer that the offsets of a warp count from."""
    if space == IN_SHARED:
        return machine.shared + s64(machine.slots[warp]) * machine.shared_stride
    return machine.local if space == IN_LOCAL else machine.arena - machine.arena_base


def offsets_of(machine, space, warp):
    """Offsets of the values of 32 lanes from :func:`base_of`: u64."""
    address = lanes(machine.addresses + warp * LANES)
    if space == IN_SHARED and machine.cluster_blocks > 1:
        address = behind_own(machine, warp, address)
    stride = machine.local_stride if space == IN_LOCAL else s64(0)
    return address + (lane_numbers() + u64(warp * LANES)) * u64(stride)


def place_of(machine: CoreMachine, space: s32, warp: s64, lane: s64) -> Pointer[u8]:
    """Place of a lane's value."""
    address = machine.addresses[warp * LANES + lane]
    if space == IN_LOCAL:
        address += u64((warp * LANES + lane) * machine.local_stride)
    if space == IN_SHARED and machine.cluster_blocks > 1:
        address = behind_own(machine, warp, address)
    return base_of(machine, space, warp) + address


def find_order(address, mask, size):
    """Layout of a warp's addresses; SCATTERED where the mask is not full."""
    if mask != ALL_LANES:
        return s32(SCATTERED)
    behind = address - address[0]
    if union(behind - lane_numbers() * size) == 0:
        return s32(IN_A_ROW)
    return s32(AT_ONE_PLACE) if union(behind) == 0 else s32(SCATTERED)
