"""Schedule and execution of lanes: typed Python of the core.

:class:`~gpa_lsp.execution.emulator.compiled.scheduler.CompiledScheduler` describes the order.
"""

from gpa_lsp.execution.emulator.compiled.addresses import ALL_LANES, frame_of, operand, pack
from gpa_lsp.execution.emulator.compiled.memory import access, check_not_zero, copy_bulk, note_request
from gpa_lsp.execution.emulator.compiled.model import (
    BULK,
    FAILED,
    LANES,
    MOST_FUNCTIONS,
    NOT_ZERO,
    NOTE,
    TEXTURE,
    CoreMachine,
    End,
    Operation,
    Phase,
    SegmentRow,
    Stop,
)
from gpa_lsp.execution.emulator.compiled.rows import find_room, note_branch, note_entry
from gpa_lsp.execution.emulator.compiled.shared_watch import pass_barrier, pass_warps
from gpa_lsp.execution.emulator.compiled.textures import read_texture
from gpa_lsp.execution.emulator.compiled.transfers import keep
from gpa_lsp.foundation.machine_code.types import (
    Pointer,
    all_lanes,
    bits_of,
    call,
    copy,
    fill,
    local,
    popcount,
    put,
    s32,
    s64,
    u8,
    u32,
    u64,
    view,
)

_MOST_REFUSALS = 1 << 14  # Pieces that leave more warps to single operations than this are no longer asked
_A_TURN = 8  # Cost of a segment in addition to its instructions, in warp instructions


# Operations on the lanes of one warp


def execute(
    machine: CoreMachine, operation: Operation, frame: Pointer[u8], mask: u32, exists: u32, standing: u32
) -> None:
    """Do one operation by the lanes of a mask; standing are all that stand at it.

    What no thread stands for is computed as well: shuffles may read it.
    """
    constants, function = machine.constants, machine.functions[operation.code]
    a, b, c = (
        operand(frame, constants, operation.a),
        operand(frame, constants, operation.b),
        operand(frame, constants, operation.c),
    )
    written = u32(ALL_LANES) if mask & exists == exists else mask
    out, other = local(u8, 8 * LANES), local(u8, LANES)
    if operation.exchanges != 0:
        call(function, out, other, a, b, c, machine, operation.literal, mask, standing, written, frame)
    elif written == ALL_LANES and operation.result >= 0 and operation.other_result < 0:
        call(function, frame + operation.result, other, a, b, c)
        return
    else:
        call(function, out, other, a, b, c)
    if operation.result >= 0:
        keep(frame + operation.result, out, operation.result_bytes, written)
    if operation.other_result >= 0:
        keep(frame + operation.other_result, other, 1, written)


# Reads of the clock by each warp before it runs faster: code that measures time reads it less often than code that waits
_PATIENT_READS = 1024
_HASTE = 64  # Each read of it then takes it on by this part of the time since the first


def read_clock(machine: CoreMachine) -> u64:
    """Clock of a warp: warp instructions executed so far.

    Kernels that wait for it, as for 10 ms, would wait for millions of instructions: where warps have read it very often, it runs faster
    the longer they wait.
    """
    if machine.clock_reads == 0:
        machine.clock_began = machine.clock
    machine.clock_reads += 1
    if machine.clock_reads > _PATIENT_READS * machine.warps:
        machine.clock += (machine.clock - machine.clock_began) // (_HASTE * machine.warps)
    return u64(machine.clock)


# The schedule


def send(machine: CoreMachine, segment: s32, masks: Pointer[u32]) -> None:
    """Lanes of the masks wait for a segment."""
    waiting = machine.waiting + s64(segment) * machine.warps
    if machine.arrivals[segment] == 0:
        machine.arrived += 1
        machine.arrivals[segment] = machine.arrived
        copy(waiting, masks, 4 * machine.warps)
        return
    for warp in range(machine.warps):
        waiting[warp] |= masks[warp]


def send_lanes(machine: CoreMachine, segment: s64, warps: Pointer[s64], masks: Pointer[u32], count: s64) -> s64:
    """Send lanes of some warps on, after an end that Python knows; FAILED where they cannot go there."""
    if segment < 0 or segment >= machine.segment_count:
        return FAILED
    waiting = machine.waiting + segment * machine.warps
    if machine.arrivals[segment] == 0:
        machine.arrived += 1
        machine.arrivals[segment] = machine.arrived
        fill(waiting, 0, 4 * machine.warps)
    for place in range(count):
        if warps[place] < 0 or warps[place] >= machine.warps:
            return FAILED
        waiting[warps[place]] |= masks[place]
    return 0


def choose_segment(machine: CoreMachine) -> u32:
    """Turn to the first segment with waiting lanes or, where others have polled for long, to the one whose lanes have waited longest."""
    first, longest, count = -1, -1, 0
    for place in range(machine.segment_count):
        segment = s64(machine.order[place])
        arrival = machine.arrivals[segment]
        if arrival == 0:
            continue
        count += 1
        if first < 0:
            first = segment
        if longest < 0 or arrival < machine.arrivals[longest]:
            longest = segment
    if count == 0:
        return 0
    if count > 1 and machine.polled >= machine.patience:
        first = longest
        machine.polled = 0
        half = machine.patience // 2
        machine.patience = half if half > machine.least_patience else machine.least_patience
    machine.segment = first
    machine.base = machine.segments[first].base
    machine.arrivals[first] = 0
    copy(machine.current, machine.waiting + first * machine.warps, 4 * machine.warps)
    machine.operation = machine.segments[first].first
    return 1


def run_lane_operations(machine: CoreMachine, first: s64, last: s64) -> None:
    """Do operations that look at no memory, warp by warp."""
    for warp in range(machine.warps):
        standing = machine.current[warp]
        if standing == 0:
            continue
        frame, exists = frame_of(machine, warp), machine.exists[warp]
        for number in range(first, last):
            operation = machine.operations[number]
            mask = standing
            if operation.guard >= 0:
                holds = pack(frame + operation.guard)
                mask &= ~holds if operation.is_negated != 0 else holds
                if operation.counts != 0:
                    machine.guarded[operation.instruction] += s64(popcount(mask))
                if mask == 0:
                    continue
            execute(machine, operation, frame, mask, exists, standing)


def hold(machine: CoreMachine, piece: s64, first: s64, last: s64) -> None:
    """Leave a piece to single operations, for the warps from the first to before the last."""
    copy(machine.held, machine.current, 4 * machine.warps)
    fill(machine.current, 0, 4 * first)
    fill(machine.current + last, 0, 4 * (machine.warps - last))
    machine.is_held = 1
    machine.held_piece = piece
    machine.held_warp = last
    machine.refusals += 1
    if machine.refusals > _MOST_REFUSALS:
        machine.pieces[piece] = 0


def run_piece(machine: CoreMachine, piece: s64, first: s64) -> None:
    """Do a piece by the warps from one on."""
    found = s64(FAILED)
    if machine.pieces[piece] != 0:
        found = call(machine.pieces[piece], machine, first)
    if found == FAILED:
        hold(machine, piece, first, machine.warps)
    elif found < machine.warps:
        hold(machine, piece, found, found + 1)
    machine.operation = machine.piece_ends[piece] if found == machine.warps else piece


def let_go(machine: CoreMachine) -> None:
    """Resume the warps that waited while a piece was done operation by operation for others."""
    copy(machine.current, machine.held, 4 * machine.warps)
    machine.is_held = 0
    if machine.held_warp < machine.warps:
        run_piece(machine, machine.held_piece, machine.held_warp)


def begins_piece(machine: CoreMachine, operation: s64) -> u32:
    """Whether a piece begins with an operation, and may be done."""
    if machine.is_held != 0 or machine.pieces is None:
        return 0
    return u32(machine.pieces[operation] != 0)


def find_other(machine: CoreMachine, operation: s64, end: s64) -> s64:
    """The first operation from one on that is not done warp by warp."""
    last = operation
    while (
        last < end
        and machine.operations[last].code < MOST_FUNCTIONS
        and (last == operation or begins_piece(machine, last) == 0)
    ):
        last += 1
    return last


def run_operations(machine: CoreMachine, segment: SegmentRow) -> s32:
    """Do the operations from where it stands on; IDLE at their end."""
    while True:
        if machine.is_held != 0 and machine.operation == machine.piece_ends[machine.held_piece]:
            let_go(machine)
        if machine.is_held == 0 and machine.operation >= segment.last:
            return Stop.IDLE
        if begins_piece(machine, machine.operation) != 0:
            run_piece(machine, machine.operation, 0)
            continue
        operation = machine.operations[machine.operation]
        if operation.code < MOST_FUNCTIONS:
            end = segment.last
            if machine.is_held != 0:
                end = machine.piece_ends[machine.held_piece]
            last = find_other(machine, machine.operation, end)
            run_lane_operations(machine, machine.operation, last)
            machine.operation = last
            continue
        if operation.code == NOT_ZERO:
            found = check_not_zero(machine, operation)
        elif operation.code == NOTE:
            found = note_request(machine, operation)
        elif operation.code == TEXTURE:
            found = read_texture(machine, operation)
        elif operation.code == BULK:
            found = copy_bulk(machine, operation)
        else:
            found = access(machine, operation)
        if found != Stop.IDLE:
            return found
        machine.operation += 1
    return Stop.IDLE


def find_holding(machine: CoreMachine, segment: SegmentRow) -> s64:
    """Fill ``masks`` with the lanes whose predicate holds; their number."""
    count = 0
    for warp in range(machine.warps):
        mask = machine.current[warp]
        if mask != 0:
            holds = pack(frame_of(machine, warp) + segment.predicate)
            mask &= ~holds if segment.is_negated != 0 else holds
        machine.masks[warp] = mask
        count += s64(popcount(mask))
    return count


def count_lanes(masks: Pointer[u32], warps: s64) -> s64:
    """Number of lanes in some masks."""
    found = 0
    for warp in range(warps):
        found += s64(popcount(masks[warp]))
    return found


def retire(machine: CoreMachine, masks: Pointer[u32]) -> None:
    """Retire lanes that have exited."""
    for warp in range(machine.warps):
        mask = masks[warp]
        machine.live[warp] &= ~mask
        machine.live_count -= s64(popcount(mask))
        for lane in bits_of(mask):
            machine.live_lanes[warp * LANES + lane] = 0


def leave_out(machine: CoreMachine) -> None:
    """Remove the lanes of the masks from those at work."""
    for warp in range(machine.warps):
        machine.current[warp] &= ~machine.masks[warp]


def end_with_branch(machine: CoreMachine, segment: SegmentRow, standing: s64) -> s32:
    """Part the lanes by a predicate."""
    traces = machine.traces_branches != 0 and segment.end == End.BRANCH
    if traces and find_room(machine) == Stop.METER:
        return Stop.METER
    count = find_holding(machine, segment)
    if segment.end == End.GUARDED_EXIT:
        retire(machine, machine.masks)
        leave_out(machine)
        if count < standing:
            send(machine, segment.fallen, machine.current)
        return Stop.IDLE
    if traces and find_room(machine) != FAILED:
        found = note_branch(machine, segment, machine.masks)
        if found != Stop.IDLE:
            return found
    if count == standing:
        send(machine, segment.taken, machine.current)
    elif count == 0:
        send(machine, segment.fallen, machine.current)
    else:  # The lanes whose predicate is true are sent first.
        leave_out(machine)
        if segment.is_negated != 0:
            send(machine, segment.fallen, machine.current)
            send(machine, segment.taken, machine.masks)
        else:
            send(machine, segment.taken, machine.masks)
            send(machine, segment.fallen, machine.current)
    return Stop.IDLE


def end_with_barrier(machine: CoreMachine, segment: SegmentRow, standing: s64) -> s32:
    """Pass a barrier where all threads of all blocks are at it."""
    is_whole = machine.live_count == machine.threads * machine.blocks
    if standing != machine.live_count or machine.has_arrivals != 0 or not is_whole:
        return Stop.END
    if machine.checks != 0:
        pass_barrier(machine)
    send(machine, segment.taken, machine.current)
    return Stop.IDLE


def end_with_gate(machine: CoreMachine, segment: SegmentRow) -> s32:
    """Pass a gate of warps where all lanes of each are at it."""
    for warp in range(machine.warps):
        if machine.current[warp] != 0 and (machine.live[warp] & ~machine.current[warp]) != 0:
            return Stop.END
    if machine.checks != 0:
        pass_warps(machine, machine.current)
    send(machine, segment.taken, machine.current)
    return Stop.IDLE


def end_segment(machine: CoreMachine, segment: SegmentRow) -> s32:
    """Send the lanes of a segment on."""
    standing = count_lanes(machine.current, machine.warps)
    if segment.end in (End.JUMP, End.PARTING) and segment.taken < 0:
        return Stop.END  # a call that is seen for the first time
    if segment.end == End.JUMP:
        send(machine, segment.taken, machine.current)
        return Stop.IDLE
    if segment.end in (End.BRANCH, End.GUARDED_EXIT, End.PARTING):
        return end_with_branch(machine, segment, standing)
    if segment.end == End.EXIT:
        retire(machine, machine.current)
        return Stop.IDLE
    if segment.end == End.BARRIER:
        return end_with_barrier(machine, segment, standing)
    if segment.end == End.GATE:
        return end_with_gate(machine, segment)
    return Stop.END


def count_segment(machine: CoreMachine, segment: SegmentRow) -> None:
    """Count a segment that was executed."""
    warps = 0
    for warp in range(machine.warps):
        warps += s64(machine.current[warp] != 0)
    machine.warp_executions[machine.segment] += warps
    machine.lane_executions[machine.segment] += count_lanes(machine.current, machine.warps)
    if segment.counts != 0:
        machine.guarded[segment.instruction] += find_holding(machine, segment)
    machine.polled += s64(segment.is_polling)
    machine.clock += warps * segment.size
    machine.executed += warps * segment.size
    machine.quantum -= warps * segment.size + _A_TURN


def enter_segment(machine: CoreMachine, segment: SegmentRow) -> s32:
    """Note the lanes that enter a basic block."""
    if machine.traces_entries != 0 and segment.enters_block >= 0:
        found = find_room(machine)
        if found == Stop.METER:
            return found
        if found == Stop.IDLE:
            found = note_entry(machine, segment)
            if found != Stop.IDLE:
                return found
    machine.phase = Phase.OPERATIONS
    return Stop.IDLE


def run_segment(machine: CoreMachine, segment: SegmentRow) -> s32:
    """Do a segment's operations, and count them."""
    found = run_operations(machine, segment)
    if found != Stop.IDLE:
        return found
    count_segment(machine, segment)
    machine.phase = Phase.END
    if machine.executed > machine.most_executed:
        return Stop.BUDGET
    return s32(Stop.TIME if machine.quantum < 0 else Stop.IDLE)


def run_warps(machine: CoreMachine) -> s32:
    """Run the lanes of the batch until all are at their end, or something has to be done elsewhere."""
    while True:
        if machine.phase in (Phase.NOBODY, Phase.ASKED):
            if machine.phase == Phase.NOBODY and machine.polled >= machine.patience and machine.has_parked != 0:
                return Stop.POLLED
            if choose_segment(machine) == 0:
                return Stop.IDLE
            machine.phase = Phase.ENTRY
        segment = machine.segments[machine.segment]
        stop = s32(Stop.IDLE)
        if machine.phase == Phase.ENTRY:
            stop = enter_segment(machine, segment)
        if stop == Stop.IDLE and machine.phase == Phase.OPERATIONS:
            stop = run_segment(machine, segment)
        if stop == Stop.IDLE:
            stop = end_segment(machine, segment)
        if stop != Stop.IDLE:
            return stop
        machine.phase = Phase.NOBODY
    return Stop.IDLE


# Batches


def fill_block_index(machine: CoreMachine, axis: s64) -> None:
    """Write one axis of the block index of each block of a batch into the frames."""
    place, of_block = machine.block_places[axis], machine.warps // machine.blocks
    if place < 0:
        return
    numbers = machine.numbers + machine.batch * machine.blocks
    for warp in range(machine.warps):
        number = s64(numbers[warp // of_block])
        if axis == 0:
            number = number % machine.grid[0]
        else:
            number = number // machine.grid[0]
            number = number % machine.grid[1] if axis == 1 else number // machine.grid[1]
        put(view(frame_of(machine, warp) + place, u32), all_lanes(u32(number)))


def begin_batch(machine: CoreMachine) -> None:
    """All threads of the next blocks stand at the kernel's first instruction."""
    machine.batch += 1
    machine.base = 0
    copy(machine.live, machine.exists, 4 * machine.warps)
    for warp in range(machine.warps):
        for lane in range(LANES):
            machine.live_lanes[warp * LANES + lane] = u8(machine.exists[warp] >> lane & 1)
    machine.live_count = machine.threads * machine.blocks
    fill(machine.arrivals, 0, 8 * machine.segment_count)
    machine.arrived, machine.polled, machine.phase = 0, 0, 0
    machine.patience = machine.most_patience
    if machine.shared_bytes != 0:
        fill(machine.shared, 0, machine.shared_stride * machine.blocks)
    for warp in range(machine.warps):
        fill(frame_of(machine, warp) + machine.zeroed_first, 0, machine.zeroed_bytes)
    for axis in range(3):
        fill_block_index(machine, axis)
    send(machine, s32(machine.first_segment), machine.live)


def run_batches(machine: CoreMachine) -> s64:
    """Run on: lanes of the batch at work and, where they are all at their end, the next batches. Why it stopped."""
    while True:
        stop = run_warps(machine)
        if (
            stop != Stop.IDLE
            or machine.has_parked != 0
            or machine.has_arrivals != 0
            or machine.batch == machine.last_batch
        ):
            return s64(stop)
        begin_batch(machine)
    return 0


def begin_next_batch(machine: CoreMachine) -> s64:
    """Turn to the next batch after numpy finished one; FAILED where there is none."""
    if machine.batch >= machine.last_batch:
        return FAILED
    begin_batch(machine)
    return 0
