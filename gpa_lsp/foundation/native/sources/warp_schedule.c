/* Which lanes run next, and what they do: the order of gpa_lsp.execution.emulator.engine.scheduler. */
#include "warps.h"

/* Lanes of the masks wait for a segment. */
static void send(Machine *machine, int64_t segment, const uint32_t *masks)
{
    uint32_t *waiting = machine->waiting + segment * machine->warps;
    if (machine->arrivals[segment] == 0) {
        machine->arrivals[segment] = ++machine->arrived;
        memcpy(waiting, masks, (size_t)machine->warps * sizeof *waiting);
        return;
    }
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        waiting[warp] |= masks[warp];
}

/* From Python: lanes of some warps go on. */
EXPORT int64_t send_lanes(Machine *machine, int64_t segment, const int64_t *warps, const uint32_t *masks, int64_t count)
{
    if (segment < 0 || segment >= machine->segment_count)
        return FAILED;
    uint32_t *waiting = machine->waiting + segment * machine->warps;
    if (machine->arrivals[segment] == 0) {
        machine->arrivals[segment] = ++machine->arrived;
        memset(waiting, 0, (size_t)machine->warps * sizeof *waiting);
    }
    for (int64_t place = 0; place < count; ++place) {
        if (warps[place] < 0 || warps[place] >= machine->warps)
            return FAILED;
        waiting[warps[place]] |= masks[place];
    }
    return 0;
}

static int pick(Machine *machine)
{
    int64_t first = -1, longest = -1, count = 0;
    for (int64_t segment = 0; segment < machine->segment_count; ++segment) {
        if (machine->arrivals[segment] == 0)
            continue;
        count += 1;
        if (first < 0)
            first = segment;
        if (longest < 0 || machine->arrivals[segment] < machine->arrivals[longest])
            longest = segment;
    }
    if (count == 0)
        return 0;
    if (count > 1 && machine->polled >= machine->patience) {
        first = longest;
        machine->polled = 0;
        machine->patience = machine->patience / 2 > machine->least_patience ? machine->patience / 2 : machine->least_patience;
    }
    machine->segment = first;
    machine->arrivals[first] = 0;
    memcpy(machine->current, machine->waiting + first * machine->warps, (size_t)machine->warps * sizeof *machine->current);
    machine->operation = machine->segments[first].first;
    return 1;
}

static void run_pure(Machine *machine, const Operation *first, const Operation *last)
{
    for (int64_t warp = 0; warp < machine->warps; ++warp) {
        uint32_t lanes = machine->current[warp];
        if (lanes == 0)
            continue;
        uint8_t *frame = machine->frames + warp * machine->frame_bytes;
        for (const Operation *operation = first; operation < last; ++operation) {
            uint32_t mask = lanes;
            if (operation->guard >= 0) {
                uint32_t holds = gpa_pack_predicate(frame + operation->guard);
                mask &= operation->is_negated ? ~holds : holds;
                if (operation->counts)
                    machine->guarded[operation->instruction] += __builtin_popcount(mask);
                if (mask == 0)
                    continue;
            }
            gpa_execute(operation, frame, machine->constants, mask, machine->exists[warp], lanes);
        }
    }
}

/* Pieces that leave more warps to the interpreter than this are no longer asked. */
#define MOST_REFUSALS (1 << 14)

/* Leaves a piece to the interpreter, for the warps from the first to before the last. */
static void hold(Machine *machine, int64_t piece, int64_t first, int64_t last)
{
    memcpy(machine->held, machine->current, (size_t)machine->warps * sizeof *machine->held);
    memset(machine->current, 0, (size_t)first * sizeof *machine->current);
    memset(machine->current + last, 0, (size_t)(machine->warps - last) * sizeof *machine->current);
    machine->is_held = 1;
    machine->held_piece = piece;
    machine->held_warp = last;
    if (++machine->refusals > MOST_REFUSALS)
        machine->pieces[piece] = NULL;
}

/* What was written in C, by the warps from one on. */
static void run_piece(Machine *machine, int64_t piece, int64_t from)
{
    int64_t found = machine->pieces[piece] == NULL ? FAILED : machine->pieces[piece](machine, from);
    if (found == FAILED)
        hold(machine, piece, from, machine->warps);
    else if (found < machine->warps)
        hold(machine, piece, found, found + 1);
    machine->operation = found == machine->warps ? machine->piece_ends[piece] : piece;
}

/* The interpreter has done a piece for some warps: the others go on. */
static void let_go(Machine *machine)
{
    memcpy(machine->current, machine->held, (size_t)machine->warps * sizeof *machine->held);
    machine->is_held = 0;
    if (machine->held_warp < machine->warps)
        run_piece(machine, machine->held_piece, machine->held_warp);
}

/* The first operation from one on that the interpreter does not do warp by warp. */
static int64_t find_impure(const Machine *machine, int64_t operation, int64_t end)
{
    int64_t last = operation;
    while (last < end && gpa_is_pure(machine->operations[last].code) &&
           (last == operation || machine->is_held || machine->pieces == NULL || machine->pieces[last] == NULL))
        ++last;
    return last;
}

/* The operations from where it stands on; STOP_IDLE at their end. */
static int run_operations(Machine *machine, const Segment *segment)
{
    for (;;) {
        if (machine->is_held && machine->operation == machine->piece_ends[machine->held_piece])
            let_go(machine);
        if (!machine->is_held && machine->operation >= segment->last)
            return STOP_IDLE;
        if (!machine->is_held && machine->pieces && machine->pieces[machine->operation]) {
            run_piece(machine, machine->operation, 0);
            continue;
        }
        Operation *operation = machine->operations + machine->operation;
        int found = STOP_IDLE;
        if (gpa_is_pure(operation->code)) {
            int64_t end = machine->is_held ? machine->piece_ends[machine->held_piece] : segment->last;
            int64_t last = find_impure(machine, machine->operation, end);
            run_pure(machine, operation, machine->operations + last);
            machine->operation = last;
            continue;
        }
        if (operation->code == CODE_PYTHON)
            found = STOP_STEP;
        else if (operation->code == CODE_DIVIDE)
            found = gpa_divide(machine, operation);
        else
            found = gpa_access(machine, operation);
        if (found != STOP_IDLE)
            return found;
        machine->operation += 1;
    }
}

/* Which lanes of the fragment hold a predicate; how many. */
static int64_t find_holding(Machine *machine, const Segment *segment)
{
    int64_t count = 0;
    for (int64_t warp = 0; warp < machine->warps; ++warp) {
        uint32_t mask = machine->current[warp];
        if (mask) {
            uint32_t holds = gpa_pack_predicate(machine->frames + warp * machine->frame_bytes + segment->predicate);
            mask &= segment->is_negated ? ~holds : holds;
        }
        machine->masks[warp] = mask;
        count += __builtin_popcount(mask);
    }
    return count;
}

static int64_t count_lanes(const uint32_t *masks, int64_t warps)
{
    int64_t lanes = 0;
    for (int64_t warp = 0; warp < warps; ++warp)
        lanes += __builtin_popcount(masks[warp]);
    return lanes;
}

static void retire(Machine *machine, const uint32_t *masks)
{
    for (int64_t warp = 0; warp < machine->warps; ++warp) {
        machine->live[warp] &= ~masks[warp];
        machine->live_count -= __builtin_popcount(masks[warp]);
        for (uint32_t left = masks[warp]; left; left &= left - 1)
            machine->live_lanes[warp * LANES + __builtin_ctz(left)] = 0;
    }
}

static void leave_out(Machine *machine)
{
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        machine->current[warp] &= ~machine->masks[warp];
}

static int end_with_branch(Machine *machine, const Segment *segment, int64_t lanes)
{
    if (machine->traces_branches && gpa_find_room(machine) == STOP_METER)
        return STOP_METER;
    int64_t count = find_holding(machine, segment);
    if (segment->end == END_GUARDED_EXIT) {
        retire(machine, machine->masks);
        leave_out(machine);
        if (count < lanes)
            send(machine, segment->fallen, machine->current);
        return STOP_IDLE;
    }
    if (machine->traces_branches && gpa_find_room(machine) != FAILED) {
        int found = gpa_note_branch(machine, segment, machine->masks);
        if (found != STOP_IDLE)
            return found;
    }
    if (count == lanes)
        send(machine, segment->taken, machine->current);
    else if (count == 0)
        send(machine, segment->fallen, machine->current);
    else {
        /* The lanes whose predicate is true are sent first. */
        leave_out(machine);
        if (segment->is_negated) {
            send(machine, segment->fallen, machine->current);
            send(machine, segment->taken, machine->masks);
        } else {
            send(machine, segment->taken, machine->masks);
            send(machine, segment->fallen, machine->current);
        }
    }
    return STOP_IDLE;
}

static int end_with_barrier(Machine *machine, const Segment *segment, int64_t lanes)
{
    int is_whole = machine->live_count == machine->threads * machine->blocks;
    if (lanes != machine->live_count || machine->has_arrivals || !is_whole)
        return STOP_END;
    if (machine->checks)
        gpa_pass_barrier(machine);
    send(machine, segment->taken, machine->current);
    return STOP_IDLE;
}

static int end_with_gate(Machine *machine, const Segment *segment)
{
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        if (machine->current[warp] && (machine->live[warp] & ~machine->current[warp]))
            return STOP_END;
    if (machine->checks) {
        machine->time += 1;
        for (int64_t warp = 0; warp < machine->warps; ++warp)
            if (machine->current[warp])
                machine->warp_since[warp] = machine->time << 30;
        machine->warps_met = 1;
    }
    send(machine, segment->taken, machine->current);
    return STOP_IDLE;
}

static int end_segment(Machine *machine, const Segment *segment)
{
    int64_t lanes = count_lanes(machine->current, machine->warps);
    switch (segment->end) {
    case END_JUMP:
        send(machine, segment->taken, machine->current);
        return STOP_IDLE;
    case END_BRANCH:
    case END_GUARDED_EXIT:
        return end_with_branch(machine, segment, lanes);
    case END_EXIT:
        retire(machine, machine->current);
        return STOP_IDLE;
    case END_BARRIER:
        return end_with_barrier(machine, segment, lanes);
    case END_GATE:
        return end_with_gate(machine, segment);
    default:
        return STOP_END;
    }
}

/* What a segment that was executed counts for. */
static int64_t count_segment(Machine *machine, const Segment *segment)
{
    int64_t warps = 0;
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        warps += machine->current[warp] != 0;
    machine->warp_executions[machine->segment] += warps;
    machine->lane_executions[machine->segment] += count_lanes(machine->current, machine->warps);
    if (segment->counts)
        machine->guarded[segment->instruction] += find_holding(machine, segment);
    machine->polled += segment->is_polling;
    machine->clock += warps * segment->size;
    machine->executed += warps * segment->size;
    machine->quantum -= warps * segment->size + 8;
    return warps * segment->size;
}

/* Phases: 0 nobody runs, 1 in the operations of a segment, 2 at its end, 3 before its entry is noted, 4 nobody runs and those who wait were asked. */
static int run_warps(Machine *machine)
{
    for (;;) {
        if (machine->phase == 0 || machine->phase == 4) {
            if (machine->phase == 0 && machine->polled >= machine->patience && machine->has_parked)
                return STOP_POLLED;
            if (!pick(machine))
                return STOP_IDLE;
            machine->phase = 3;
        }
        const Segment *segment = machine->segments + machine->segment;
        if (machine->phase == 3) {
            if (machine->traces_entries && segment->enters_block >= 0) {
                int found = gpa_find_room(machine);
                if (found == STOP_METER)
                    return found;
                if (found == STOP_IDLE && (found = gpa_note_entry(machine, segment)) != STOP_IDLE)
                    return found;
            }
            machine->phase = 1;
        }
        if (machine->phase == 1) {
            int found = run_operations(machine, segment);
            if (found != STOP_IDLE)
                return found;
            count_segment(machine, segment);
            machine->phase = 2;
            if (machine->executed > machine->most_executed)
                return STOP_BUDGET;
            if (machine->quantum < 0)
                return STOP_TIME;
        }
        int found = end_segment(machine, segment);
        if (found != STOP_IDLE)
            return found;
        machine->phase = 0;
    }
}

static void fill_block_index(Machine *machine, int axis)
{
    int64_t place = machine->block_places[axis], of_block = machine->warps / machine->blocks;
    const uint32_t *numbers = machine->numbers + machine->batch * machine->blocks;
    if (place < 0)
        return;
    for (int64_t warp = 0, block = 0; block < machine->blocks; ++block) {
        int64_t number = numbers[block];
        number = axis == 0 ? number % machine->grid[0] : number / machine->grid[0];
        number = axis == 1 ? number % machine->grid[1] : axis == 2 ? number / machine->grid[1] : number;
        for (int64_t behind = warp + of_block; warp < behind; ++warp) {
            uint32_t *to = (uint32_t *)(machine->frames + warp * machine->frame_bytes + place);
            for (int lane = 0; lane < LANES; ++lane)
                to[lane] = (uint32_t)number;
        }
    }
}

/* All threads of the next blocks stand at the kernel's first instruction. */
static void begin_batch(Machine *machine)
{
    machine->batch += 1;
    memcpy(machine->live, machine->exists, (size_t)machine->warps * sizeof *machine->live);
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        for (int lane = 0; lane < LANES; ++lane)
            machine->live_lanes[warp * LANES + lane] = machine->exists[warp] >> lane & 1;
    machine->live_count = machine->threads * machine->blocks;
    memset(machine->arrivals, 0, (size_t)machine->segment_count * sizeof *machine->arrivals);
    machine->arrived = machine->polled = machine->phase = 0;
    machine->patience = machine->most_patience;
    if (machine->shared_bytes)
        memset(machine->shared, 0, (size_t)(machine->shared_stride * machine->blocks));
    if (machine->zeroed_bytes)
        for (int64_t warp = 0; warp < machine->warps; ++warp)
            memset(machine->frames + warp * machine->frame_bytes + machine->zeroed_first, 0, (size_t)machine->zeroed_bytes);
    for (int axis = 0; axis < 3; ++axis)
        fill_block_index(machine, axis);
    send(machine, machine->first_segment, machine->live);
}

/* Run on: lanes of the batch at work and, where they are all at their end, the next batches. */
EXPORT int64_t run_batches(Machine *machine)
{
    for (;;) {
        int stop = run_warps(machine);
        if (stop != STOP_IDLE || machine->has_parked || machine->has_arrivals || machine->batch == machine->last_batch)
            return stop;
        begin_batch(machine);
    }
}

/* What Python saw to the end of a batch for. */
EXPORT int64_t begin_next_batch(Machine *machine)
{
    if (machine->batch >= machine->last_batch)
        return FAILED;
    begin_batch(machine);
    return 0;
}
