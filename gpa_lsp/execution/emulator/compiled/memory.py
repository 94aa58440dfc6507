"""Accesses, bulk copies and divisor checks of all lanes at an instruction: typed Python of the core.

Where something is wrong with an access, the core stops before anything has changed; numpy says what is wrong, and lets the core do it by the
lanes that may, space by space (:func:`choose_lanes`, :func:`access_lanes`).

A copy is done at once. In traces it is requests of 512 bytes of global memory, as a warp would make them; what lies in shared memory leaves no rows.
"""

from gpa_lsp.execution.emulator.compiled.addresses import (
    ALL_LANES,
    IN_GENERIC,
    IN_GLOBAL,
    IN_LOCAL,
    IN_SHARED,
    check_global,
    check_private,
    count_guarded,
    find_addresses,
    find_masks,
    find_region,
    find_space,
    find_wrong,
    frame_of,
    is_in_shared,
    is_within,
    operand,
    place_of,
    take_window,
)
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, FAILED, LANES, LOAD, STORE, CoreMachine, Operation, Stop
from gpa_lsp.execution.emulator.compiled.rows import METERED_AT_ONCE, note_access
from gpa_lsp.execution.emulator.compiled.shared_watch import is_suspect, note_shared
from gpa_lsp.execution.emulator.compiled.transfers import (
    CHUNK_SHIFT,
    MARK_READ,
    MARK_WRITTEN,
    change,
    change_in_order,
    give_zeros,
    load,
    mark,
    mark_chunk,
    mark_words,
    store,
    store_shared,
)
from gpa_lsp.execution.emulator.semantics.words import give, take
from gpa_lsp.foundation.machine_code.types import (
    Pointer,
    bits_of,
    copy,
    fill,
    lane_numbers,
    lanes,
    put,
    s32,
    s64,
    u8,
    u32,
    u64,
    view,
)


def find_allowed(machine: CoreMachine, operation: Operation) -> s32:
    """The space that all lanes access; -1 where some may not."""
    space = operation.space
    if space == IN_GENERIC:
        space = find_space(machine)
        if space == IN_GENERIC:
            return FAILED
    if space not in (IN_SHARED, IN_LOCAL):
        return space if check_global(machine, operation) != 0 else FAILED
    room = machine.shared_bytes
    if space == IN_LOCAL:
        room = machine.local_stride
    return space if check_private(machine, operation, space, room) != 0 else FAILED


def transfer(machine: CoreMachine, operation: Operation, space: s32) -> None:
    """Move the values of all lanes."""
    if operation.code == LOAD:
        load(machine, operation, space)
    elif operation.code == ATOMIC:
        change_in_order(machine, operation, space)
    else:
        store(machine, operation, space)


def choose_lanes(machine: CoreMachine, space: s64) -> s64:
    """Choose the lanes of the access at work that go to a space: ``masks`` those that may access it, ``wrong`` those that may not.

    Returns:
        Whether any lane goes there.
    """
    operation = machine.operations[machine.operation]
    find_masks(machine, operation)
    find_addresses(machine, operation)
    found = u32(0)
    for warp in range(machine.warps):
        machine.masks[warp] &= ~machine.done[warp]
    if operation.space == IN_GENERIC:
        take_window(machine, s32(space))
    for warp in range(machine.warps):
        found |= machine.masks[warp]
    find_wrong(machine, operation, s32(space))
    return s64(found != 0)


def join_wrong(machine: CoreMachine) -> None:
    """Let the masks have all lanes that were chosen."""
    for warp in range(machine.warps):
        machine.masks[warp] |= machine.wrong[warp]


def access_lanes(machine: CoreMachine, space: s64) -> s64:
    """Do the access at work for the chosen lanes; wrong ones read zeros. FAILED where there is no room for rows of the trace."""
    operation, at = machine.operations[machine.operation], s32(space)
    join_wrong(machine)
    count_guarded(machine, operation)
    if note_access(machine, operation, at) != Stop.IDLE:
        return FAILED
    for warp in range(machine.warps):
        machine.masks[warp] &= ~machine.wrong[warp]
        machine.done[warp] |= machine.masks[warp] | machine.wrong[warp]
    if at == IN_SHARED and machine.checks != 0:
        note_shared(machine, operation)
    if machine.word_marks is not None and at not in (IN_SHARED, IN_LOCAL):
        mark(machine, operation)
    give_zeros(machine, operation)
    transfer(machine, operation, at)
    return 0


def is_unmetered(machine: CoreMachine) -> u32:
    """Whether rows of the trace must be metered before more are added."""
    unmetered = machine.held_bytes - machine.metered_bytes
    is_asked = machine.traces_accesses != 0 and machine.held_bytes < machine.limit_bytes
    return u32(is_asked and unmetered > METERED_AT_ONCE)


def note_request(machine: CoreMachine, operation: Operation) -> s32:
    """Add the rows of an access as the hardware makes it, by the first lanes (the combination says which); nothing is moved.

    Each lane asks for what lies so far behind its address: its bytes (low half), and strides times so many bits (high half).
    """
    if machine.traces_accesses == 0 or find_masks(machine, operation) == 0:
        return Stop.IDLE
    if is_unmetered(machine) != 0:
        return Stop.METER
    find_addresses(machine, operation)
    space = operation.space
    if space == IN_GENERIC:
        space = find_space(machine)
    for warp in range(machine.warps):
        machine.masks[warp] &= u32(operation.combination)
        frame, place = frame_of(machine, warp), machine.addresses + warp * LANES
        stride = lanes(view(operand(frame, machine.constants, operation.b), u64))
        behind = lanes(view(operand(frame, machine.constants, operation.c), u64))
        put(place, lanes(place) + (behind & 0xFFFFFFFF) + (stride * (behind >> 32) >> 3))
    return note_access(machine, operation, s32(IN_GLOBAL) if space == IN_GENERIC else space)


def access(machine: CoreMachine, operation: Operation) -> s32:
    """Do an access by all lanes; IDLE where it is done, else why not."""
    if find_masks(machine, operation) == 0:
        return Stop.IDLE
    if is_unmetered(machine) != 0:
        return Stop.METER
    find_addresses(machine, operation)
    space = find_allowed(machine, operation)
    if space == FAILED:
        return Stop.STEP
    is_checked = space == IN_SHARED and machine.checks != 0
    if is_checked and is_suspect(machine, operation) != 0:
        return Stop.STEP
    if is_checked and operation.code == STORE and store_shared(machine, operation) != 0:
        return Stop.STEP
    count_guarded(machine, operation)
    found = note_access(machine, operation, space)
    if found != Stop.IDLE:
        return found
    if is_checked:
        note_shared(machine, operation)
    if machine.word_marks is not None and space not in (IN_SHARED, IN_LOCAL):
        mark(machine, operation)
    if not (is_checked and operation.code == STORE):  # else they are there already
        transfer(machine, operation, space)
    return Stop.IDLE


def check_not_zero(machine: CoreMachine, operation: Operation) -> s32:
    """Check a number that must not be 0, such as a divisor; ``wrong`` are the lanes where it is, which are to be reported."""
    found, size = u32(0), operation.element_bytes
    find_masks(machine, operation)
    count_guarded(machine, operation)
    for warp in range(machine.warps):
        machine.wrong[warp] = 0
        by = operand(frame_of(machine, warp), machine.constants, operation.a)
        for lane in bits_of(machine.masks[warp]):
            machine.wrong[warp] |= u32(take(by + lane * s64(size), size) == 0) << lane
        found |= machine.wrong[warp]
    return s32(Stop.IDLE if found == 0 else Stop.STEP)


_PIECE_BYTES = 16  # what is copied is a multiple of it, and so are the addresses


def number_of_lane(machine: CoreMachine, warp: s64, lane: s64, place: s32) -> u64:
    """The number of 64 bits that a lane has at a place."""
    return take(operand(frame_of(machine, warp), machine.constants, place) + 8 * lane, 8)


def find_bad_piece(machine: CoreMachine, space: s32, warp: s64, address: u64, size: u64, is_written: u32) -> u64:
    """The first piece of a range that a lane of a warp may not access, by its address; the end of the range where it may access all."""
    for behind in range(0, s64(size), _PIECE_BYTES):
        at, is_right = address + u64(behind), u32(0)
        if space == IN_SHARED:
            is_right = is_in_shared(machine, warp, at, _PIECE_BYTES)
        else:
            region = find_region(machine, at)
            if region >= 0 and is_within(machine, region, at, _PIECE_BYTES) != 0 and (at & (_PIECE_BYTES - 1)) == 0:
                is_right = u32(is_written == 0 or machine.region_spaces[region] == IN_GLOBAL)
        if is_right == 0:
            return at
    return address + size


def find_wrong_copies(machine: CoreMachine, is_target: s64) -> s64:
    """Choose the lanes of the bulk copy at work that may not read their source, or after that write their target: ``wrong``, and where.

    Returns:
        their number. Of both, ``done`` leaves the lanes that may do either.
    """
    operation, count = machine.operations[machine.operation], 0
    find_masks(machine, operation)
    place, space = operation.a, operation.space
    if is_target != 0:
        place, space = operation.b, operation.other_space
    else:
        copy(machine.done, machine.masks, 4 * machine.warps)
    for warp in range(machine.warps):
        machine.wrong[warp] = 0
        for lane in bits_of(machine.masks[warp]):
            first, size = number_of_lane(machine, warp, lane, place), number_of_lane(machine, warp, lane, operation.c)
            bad = find_bad_piece(machine, space, warp, first, size, u32(is_target))
            if bad != first + size:
                machine.wrong[warp] |= u32(1) << lane
                machine.addresses[warp * LANES + lane] = bad
                count += 1
        machine.done[warp] &= ~machine.wrong[warp]
    return count


def place_at(machine: CoreMachine, space: s32, warp: s64, lane: s64, address: u64) -> Pointer[u8]:
    """Place of an address of a lane."""
    machine.addresses[warp * LANES + lane] = address
    return place_of(machine, space, warp, lane)


def note_bulk(machine: CoreMachine, operation: Operation, warp: s64, address: u64, size: u64, marks: u8) -> s32:
    """Mark what was accessed of global memory, and add its rows to the trace; IDLE, or why not."""
    if machine.word_marks is not None:
        mark_words(machine, address, size, marks)
        mark_chunk(machine, address + size - 1, marks)
    for chunk in range((s64(size) + (1 << CHUNK_SHIFT) - 1) >> CHUNK_SHIFT):
        behind = chunk << CHUNK_SHIFT
        if machine.word_marks is not None:
            mark_chunk(machine, address + u64(behind), marks)
        if machine.traces_accesses == 0:
            continue
        pieces = (s64(size) - behind) // _PIECE_BYTES
        fill(machine.masks, 0, 4 * machine.warps)
        machine.masks[warp] = u32(ALL_LANES) if pieces >= LANES else (u32(1) << pieces) - 1
        put(machine.addresses + warp * LANES, lane_numbers() * _PIECE_BYTES + (address + u64(behind)))
        found = note_access(machine, operation, s32(IN_GLOBAL))
        if found != Stop.IDLE:
            return found
    return Stop.IDLE


def copy_lanes(machine: CoreMachine) -> s64:
    """Do the bulk copy at work for the lanes that :func:`find_wrong_copies` left; FAILED where there is no room for rows of the trace."""
    operation = machine.operations[machine.operation]
    find_masks(machine, operation)
    count_guarded(machine, operation)
    for warp in range(machine.warps):
        for lane in bits_of(machine.done[warp]):
            source = number_of_lane(machine, warp, lane, operation.a)
            target = number_of_lane(machine, warp, lane, operation.b)
            size, element = number_of_lane(machine, warp, lane, operation.c), operation.element_bytes
            if size == 0:
                continue
            to = place_at(machine, operation.other_space, warp, lane, target)
            at = place_at(machine, operation.space, warp, lane, source)
            if operation.combination < 0:
                copy(to, at, s64(size))
            else:
                for number in range(s64(size) // s64(element)):
                    behind = number * s64(element)
                    give(
                        to + behind,
                        change(machine, operation, take(to + behind, element), take(at + behind, element), 0),
                        element,
                    )
            found = s32(Stop.IDLE)
            if operation.space == IN_GLOBAL:
                found = note_bulk(machine, operation, warp, source, size, u8(MARK_READ))
            elif operation.other_space == IN_GLOBAL:
                found = note_bulk(machine, operation, warp, target, size, u8(MARK_WRITTEN))
            if found != Stop.IDLE:
                return FAILED
    return 0


def copy_bulk(machine: CoreMachine, operation: Operation) -> s32:
    """Do a bulk copy of all lanes; IDLE where it is done, else why not."""
    if find_masks(machine, operation) == 0:
        return Stop.IDLE
    if is_unmetered(machine) != 0:
        return Stop.METER
    if find_wrong_copies(machine, 0) != 0 or find_wrong_copies(machine, 1) != 0:
        return Stop.STEP
    return s32(Stop.IDLE if copy_lanes(machine) == 0 else Stop.MEMORY)
