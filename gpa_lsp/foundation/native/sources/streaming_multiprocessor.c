/* One SM, event by event: gpa_lsp.execution.simulator.streaming_multiprocessor. */
#include <math.h>

#include "multiprocessor.h"

#define MOST_SEGMENTS 8
#define MOST_GATES 64
#define MOST_MOMENTS 3
#define MOST_LINES (1 << 24)
#define MOST_WARPS (1 << 24)
#define MOVED 5
#define VISIBLE_CYCLES 2.0

/* Blocks as columns: the warps of block b begin at starts[blocks[b].first_warp]. */
typedef struct {
    int64_t first_warp, warps; /* in starts, which has one more than there are warps */
    int64_t shift;             /* of sectors that the block alone touches */
} Block;

typedef struct {
    int reason;
    double until;
} Segment;

typedef struct {
    int64_t number, position, stop, shift, issues_seen;
    int32_t slot, place; /* among the warps and the blocks that are held */
    int32_t sub_core, fetched_line, segment_count;
    double boards[SCOREBOARDS];
    uint8_t long_boards[SCOREBOARDS];
    int32_t outstanding_count[SCOREBOARDS];
    double *outstanding; /* of each scoreboard, the latest ones, ascending */
    double store_done, async_done, issued_at;
    Segment segments[MOST_SEGMENTS];
} Warp;

/* A block that has begun, and the warps of it that have come to a barrier, in their order. */
typedef struct {
    int64_t left, arrived_count;
    double end;
    int32_t first_slot;
    int32_t *arrived;
    double *arrived_free;
} Held;

typedef struct {
    double time;
    int64_t number;
    int32_t slot;
} Waiting;

typedef struct {
    Waiting *waiting; /* a heap */
    int64_t waiting_count;
    int32_t *eligible;
    int64_t eligible_count;
    double pipe_free[PIPES];
    Ports ports;
    int64_t issues, last;
} SubCore;

typedef struct {
    const Row *rows;
    int64_t row_count;
    const Model *model;
    const Block *blocks;
    int64_t block_count, resident;
    const int64_t *starts;
    const int32_t *executed;
    const double *weights;
    Columns columns;
    int32_t has_depbar, kept; /* of what is outstanding at a scoreboard */
    double *all_cycles, *idle_cycles;
    double weighted, plain;
    Memory memory;
    Supply supply;
    SubCore sub_cores[SUB_CORES];
    Warp *warps;
    double *outstanding;
    Held *held;
    int32_t *arrived;
    double *arrived_free;
    int32_t *free_places;
    int64_t free_count, most_warps;
    double *block_starts; /* a heap */
    int64_t start_count;
    int64_t begun, done, warp_count, issued;
    int next_sub_core;
    double last_start, latest_end;
    int32_t *free, *blocked;
    int *lacks;
    struct {
        int64_t step;
        int reason;
        double until;
    } gates[MOST_GATES];
    int64_t steps;
} Sm;

static int is_before(const Waiting *one, const Waiting *other)
{
    return one->time < other->time || (one->time == other->time && one->number < other->number);
}

static void push(SubCore *sub_core, Waiting entry)
{
    int64_t place = sub_core->waiting_count++;
    while (place > 0 && is_before(&entry, &sub_core->waiting[(place - 1) / 2])) {
        sub_core->waiting[place] = sub_core->waiting[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    sub_core->waiting[place] = entry;
}

static Waiting pop(SubCore *sub_core)
{
    Waiting first = sub_core->waiting[0], moved = sub_core->waiting[--sub_core->waiting_count];
    int64_t count = sub_core->waiting_count, place = 0;
    for (int64_t child = 1; child < count; child = 2 * place + 1) {
        if (child + 1 < count && is_before(&sub_core->waiting[child + 1], &sub_core->waiting[child]))
            child += 1;
        if (!is_before(&sub_core->waiting[child], &moved))
            break;
        sub_core->waiting[place] = sub_core->waiting[child];
        place = child;
    }
    sub_core->waiting[place] = moved;
    return first;
}

/* Blocks that may begin: at most as many as are held. */
static void push_start(Sm *sm, double time)
{
    int64_t place = sm->start_count++;
    while (place > 0 && sm->block_starts[place - 1] < time) {
        sm->block_starts[place] = sm->block_starts[place - 1];
        place -= 1;
    }
    sm->block_starts[place] = time; /* the first one last */
}

static void account(Sm *sm, int64_t row, int reason, double cycles, double weight, double idle_share)
{
    int64_t index = row * REASONS + reason;
    double counted = cycles * weight;
    sm->all_cycles[index] += counted;
    sm->idle_cycles[index] += counted * idle_share;
    sm->weighted += counted;
    sm->plain += cycles;
}

/* Cycles that a warp spent in front of its next instruction. */
static void account_next(Sm *sm, const Warp *warp, int reason, double cycles, double idle_share)
{
    account(sm, sm->executed[warp->position], reason, cycles, sm->weights[warp->position], idle_share);
}

static void wait_for(Warp *warp, int reason, double until)
{
    warp->segments[warp->segment_count].reason = reason;
    warp->segments[warp->segment_count].until = until;
    warp->segment_count += 1;
}

static double find_scoreboard(const Warp *warp, int32_t mask, int *is_long)
{
    double latest = 0.0;
    *is_long = 0;
    for (int number = 0; number < SCOREBOARDS; ++number) {
        if ((mask >> number & 1) && warp->boards[number] > latest) {
            latest = warp->boards[number];
            *is_long = warp->long_boards[number];
        }
    }
    return latest;
}

/* When a warp can issue its next instruction, and what it waits for until then. */
static void schedule(Sm *sm, Warp *warp, double now, int starts)
{
    const Row *row = &sm->rows[sm->executed[warp->position]];
    if (row->fetch_line != warp->fetched_line) {
        warp->fetched_line = row->fetch_line;
        double ready = gpa_fetch_code(&sm->supply, sm->model, warp->sub_core, row->fetch_line, now);
        if (starts)
            ready = later(ready, now + sm->model->warp_start_cycles);
        if (ready > now) {
            wait_for(warp, NO_INSTRUCTIONS, ready);
            now = ready;
        }
    }
    if (row->wait_mask) {
        int is_long;
        double latest = find_scoreboard(warp, row->wait_mask, &is_long);
        if (latest > now) {
            wait_for(warp, is_long ? LONG_SCOREBOARD : SHORT_SCOREBOARD, latest);
            now = latest;
        }
    }
    if (row->constant >= 0) {
        double ready = gpa_read_constant(&sm->supply, sm->model, row->constant, row->far_constant, now);
        if (ready > now) {
            wait_for(warp, IMC_MISS, ready);
            now = ready;
        }
    }
    push(&sm->sub_cores[warp->sub_core], (Waiting){.time = now, .number = warp->number, .slot = warp->slot});
}

/* Give the next block's warps to the sub-cores, in turn. */
static void begin_block(Sm *sm, double time)
{
    const Block *block = &sm->blocks[sm->begun];
    int32_t place = sm->free_places[--sm->free_count];
    Held *held = &sm->held[place];
    held->first_slot = (int32_t)(place * sm->most_warps);
    held->left = block->warps;
    held->end = time;
    held->arrived_count = 0;
    sm->latest_end = later(sm->latest_end, time);
    for (int64_t index = 0; index < block->warps; ++index) {
        Warp *warp = &sm->warps[held->first_slot + index];
        double *outstanding = warp->outstanding;
        memset(warp, 0, sizeof *warp);
        warp->outstanding = outstanding;
        warp->number = sm->warp_count++;
        warp->slot = (int32_t)(held->first_slot + index);
        warp->place = place;
        warp->sub_core = (int32_t)((sm->next_sub_core + index) % SUB_CORES);
        warp->position = sm->starts[block->first_warp + index];
        warp->stop = sm->starts[block->first_warp + index + 1];
        warp->shift = block->shift;
        warp->fetched_line = -1;
        warp->issued_at = time + sm->model->warp_launch_cycles * (double)(index / SUB_CORES);
        warp->issues_seen = sm->sub_cores[warp->sub_core].issues;
        schedule(sm, warp, warp->issued_at, 1);
    }
    sm->begun += 1;
    sm->next_sub_core = (int)((sm->next_sub_core + block->warps) % SUB_CORES);
}

/* Add up what a warp waited for since it issued. */
static void settle(Sm *sm, Warp *warp)
{
    if (warp->segment_count == 0)
        return;
    double begin = warp->issued_at;
    double length = warp->segments[warp->segment_count - 1].until - begin;
    int64_t busy = sm->sub_cores[warp->sub_core].issues - warp->issues_seen;
    double idle = length > 0 ? later(0.0, 1.0 - (double)busy / length) : 0.0;
    for (int number = 0; number < warp->segment_count; ++number) {
        double until = warp->segments[number].until;
        if (until > begin) {
            account_next(sm, warp, warp->segments[number].reason, until - begin, idle);
            begin = until;
        }
    }
    warp->segment_count = 0;
}

static void keep_outstanding(Sm *sm, Warp *warp, int number, double until)
{
    double *kept = warp->outstanding + (int64_t)number * sm->kept;
    int32_t count = warp->outstanding_count[number], place = count;
    if (count == sm->kept) {
        if (until <= kept[0])
            return;
        memmove(kept, kept + 1, (size_t)(count - 1) * sizeof *kept);
        place = --count;
    }
    while (place > 0 && kept[place - 1] > until) {
        kept[place] = kept[place - 1];
        place -= 1;
    }
    kept[place] = until;
    warp->outstanding_count[number] = count + 1;
}

static void set_board(Sm *sm, Warp *warp, const Row *row, int number, double until)
{
    if (number < 0)
        return;
    if (until >= warp->boards[number]) {
        warp->boards[number] = until;
        warp->long_boards[number] = (uint8_t)row->is_long;
    }
    if (sm->has_depbar)
        keep_outstanding(sm, warp, number, until);
}

/* Give an instruction to what executes it, and set its scoreboards. */
static int execute(Sm *sm, Warp *warp, SubCore *sub_core, const Row *row, double time)
{
    double result = 0.0, read = 0.0;
    if (row->kind == FIXED) {
        sub_core->pipe_free[row->pipe] = time + row->interval;
        result = time + row->latency;
    } else if (row->kind == ASYNC_FENCE) {
        result = later(time + row->latency, warp->async_done);
    } else if (row->unit >= 0) {
        Passage passage;
        if (!gpa_enter_memory(&sm->memory, sm->model, row, &sm->columns, warp->position, warp->shift, warp->sub_core, time, &passage))
            return 0;
        result = passage.result;
        read = passage.read;
        warp->store_done = later(warp->store_done, passage.left);
        if (row->is_async)
            warp->async_done = later(warp->async_done, result);
    }
    double visible = time + VISIBLE_CYCLES;
    set_board(sm, warp, row, row->write_board, later(result, visible));
    set_board(sm, warp, row, row->read_board, later(read != 0.0 ? read : result, visible));
    return 1;
}

/* Until when an instruction holds its warp beyond its stall count; what for is added to the segments. */
static double hold(Sm *sm, Warp *warp, const Row *row, double free)
{
    if (row->kind == CONVERGE) {
        free += sm->model->converge_cycles;
        wait_for(warp, BRANCH_RESOLVING, free);
    } else if (row->kind == MEMBAR_WAIT) {
        free = later(free + sm->model->membar_cycles, warp->store_done);
        wait_for(warp, MEMBAR, free);
    } else if (row->depbar_left >= 0) {
        int32_t count = warp->outstanding_count[row->depbar_board];
        const double *kept = warp->outstanding + (int64_t)row->depbar_board * sm->kept;
        if (count > row->depbar_left && kept[count - 1 - row->depbar_left] > free) {
            free = kept[count - 1 - row->depbar_left];
            wait_for(warp, LONG_SCOREBOARD, free);
        }
    }
    return free;
}

/* Of all cycles until now, those in which a warp's scheduler issued nothing. */
static double find_idle_share(const Sm *sm, const Warp *warp, double time)
{
    return time > 0 ? later(0.0, 1.0 - (double)sm->sub_cores[warp->sub_core].issues / time) : 1.0;
}

/* What a warp waits for that goes on elsewhere. Until it is on its way there it is counted at the row behind the jump. */
static double jump(Sm *sm, Warp *warp, const Row *row, double time)
{
    const Model *model = sm->model;
    int is_return = row->kind == RETURN;
    double free = time + row->stall;
    double leaves = free + (is_return ? model->return_resolve_cycles : 0.0);
    double weight = sm->weights[warp->position - 1];
    double idle = find_idle_share(sm, warp, time);
    int64_t behind = row - sm->rows + 1;
    account(sm, behind, WAIT, free - time - 1.0, weight, idle);
    account(sm, behind, BRANCH_RESOLVING, leaves - free, weight, idle);
    warp->issued_at = leaves;
    warp->fetched_line = -1;
    double resolved = leaves + (is_return ? 0.0 : model->branch_resolve_cycles);
    wait_for(warp, BRANCH_RESOLVING, resolved);
    wait_for(warp, NO_INSTRUCTIONS, resolved + model->jump_fetch_cycles);
    return resolved + model->jump_fetch_cycles;
}

/* Let a block's warps go on where all that are left have come. */
static void open_barrier(Sm *sm, Held *held, double time)
{
    if (held->arrived_count == 0 || held->arrived_count < held->left)
        return;
    double open_at = time + sm->model->barrier_open_cycles;
    int64_t count = held->arrived_count;
    held->arrived_count = 0;
    for (int64_t place = 0; place < count; ++place) {
        Warp *warp = &sm->warps[held->arrived[place]];
        double free = held->arrived_free[place], until = later(free, open_at);
        wait_for(warp, WAIT, free);
        wait_for(warp, BARRIER, until);
        schedule(sm, warp, until, 0);
    }
}

/* The end of a warp: what it stored has to leave first. Samples of that time fall on the row behind its last one. */
static void leave(Sm *sm, Warp *warp, const Row *row, double time, double free)
{
    const Model *model = sm->model;
    double resolved = later(free, time + model->exit_resolve_cycles);
    double done = later(resolved, warp->store_done);
    double weight = sm->weights[warp->position];
    double idle = find_idle_share(sm, warp, time);
    double begin = time + 1.0;
    const Segment segments[] = {{WAIT, free}, {BRANCH_RESOLVING, resolved}, {DRAIN, done}};
    for (int number = 0; number < 3; ++number) {
        if (segments[number].until > begin) {
            account(sm, row - sm->rows + 1, segments[number].reason, segments[number].until - begin, weight, idle);
            begin = segments[number].until;
        }
    }
    Held *held = &sm->held[warp->place];
    held->left -= 1;
    held->end = later(held->end, done);
    sm->latest_end = later(sm->latest_end, held->end);
    if (held->left == 0) {
        sm->done += 1;
        sm->last_start = later(sm->last_start + model->block_interval_cycles, held->end + model->block_launch_cycles);
        push_start(sm, sm->last_start);
        sm->free_places[sm->free_count++] = warp->place;
    } else {
        open_barrier(sm, held, time);
    }
}

static int issue(Sm *sm, Warp *warp, SubCore *sub_core, double time)
{
    int64_t position = warp->position;
    const Row *row = &sm->rows[sm->executed[position]];
    account_next(sm, warp, SELECTED, 1.0, 0.0);
    sub_core->issues += 1;
    sub_core->last = warp->number;
    sm->issued += 1;
    if (!execute(sm, warp, sub_core, row, time))
        return 0;
    warp->issued_at = time + 1.0;
    warp->issues_seen = sub_core->issues;
    double free = time + row->stall;
    if (position + 1 >= warp->stop) {
        leave(sm, warp, row, time, free);
        return 1;
    }
    warp->position = position + 1;
    if (row->kind == BARRIER_WAIT) {
        Held *held = &sm->held[warp->place];
        held->arrived[held->arrived_count] = warp->slot;
        held->arrived_free[held->arrived_count] = free;
        held->arrived_count += 1;
        open_barrier(sm, held, time);
        return 1;
    }
    if (sm->executed[position + 1] != sm->executed[position] + 1)
        free = jump(sm, warp, row, time);
    else
        wait_for(warp, WAIT, free);
    schedule(sm, warp, hold(sm, warp, row, free), 0);
    return 1;
}

/* Of the warps whose operands are there: those that can issue, the others with what they lack, and when the first of that is there. */
static double sort_out(Sm *sm, int number, double time, int64_t *free_count, int64_t *blocked_count)
{
    SubCore *sub_core = &sm->sub_cores[number];
    double opens = INFINITY;
    *free_count = *blocked_count = 0;
    sm->steps += 1;
    for (int64_t place = 0; place < sub_core->eligible_count; ++place) {
        int32_t slot = sub_core->eligible[place];
        const Row *row = &sm->rows[sm->executed[sm->warps[slot].position]];
        if (sm->gates[row->gate].step != sm->steps) {
            double until = time;
            int reason = -1;
            if (row->unit >= 0) {
                reason = gpa_find_queue_room(&sm->memory, sm->model, row, number, time, &until);
            } else if (sub_core->pipe_free[row->pipe] > time) {
                reason = MATH_PIPE_THROTTLE;
                until = sub_core->pipe_free[row->pipe];
            }
            sm->gates[row->gate].step = sm->steps;
            sm->gates[row->gate].reason = reason;
            sm->gates[row->gate].until = until;
        }
        if (sm->gates[row->gate].reason < 0) {
            sm->free[(*free_count)++] = slot;
        } else {
            sm->blocked[*blocked_count] = slot;
            sm->lacks[(*blocked_count)++] = sm->gates[row->gate].reason;
            opens = sm->gates[row->gate].until < opens ? sm->gates[row->gate].until : opens;
        }
    }
    return opens;
}

/* The warp that issued last, else the youngest. */
static int32_t choose(const Sm *sm, int64_t count, int64_t last)
{
    int32_t chosen = sm->free[0];
    for (int64_t place = 0; place < count; ++place) {
        int64_t number = sm->warps[sm->free[place]].number;
        if (number == last)
            return sm->free[place];
        if (number > sm->warps[chosen].number)
            chosen = sm->free[place];
    }
    return chosen;
}

static void remove_eligible(SubCore *sub_core, int32_t slot)
{
    int64_t place = 0;
    while (sub_core->eligible[place] != slot)
        place += 1;
    sub_core->eligible_count -= 1;
    memmove(sub_core->eligible + place, sub_core->eligible + place + 1,
            (size_t)(sub_core->eligible_count - place) * sizeof *sub_core->eligible);
}

/* What a sub-core does at a time, and when it has to be asked again; 0 without memory. */
static int step(Sm *sm, int number, double time, double *again)
{
    SubCore *sub_core = &sm->sub_cores[number];
    while (sub_core->waiting_count > 0 && sub_core->waiting[0].time <= time) {
        int32_t slot = pop(sub_core).slot;
        settle(sm, &sm->warps[slot]);
        sub_core->eligible[sub_core->eligible_count++] = slot;
    }
    double soonest = sub_core->waiting_count > 0 ? sub_core->waiting[0].time : INFINITY;
    *again = soonest;
    if (sub_core->eligible_count == 0)
        return 1;
    int64_t free_count, blocked_count;
    double opens = sort_out(sm, number, time, &free_count, &blocked_count);
    if (free_count == 0) {
        soonest = later(opens < soonest ? opens : soonest, time + 1.0);
        for (int64_t place = 0; place < blocked_count; ++place)
            account_next(sm, &sm->warps[sm->blocked[place]], sm->lacks[place], soonest - time, 1.0);
        *again = soonest;
        return 1;
    }
    Warp *chosen = &sm->warps[choose(sm, free_count, sub_core->last)];
    const Row *row = &sm->rows[sm->executed[chosen->position]];
    int is_held = !gpa_try_read_operands(&sub_core->ports, sm->model, row, chosen->number, time);
    for (int64_t place = 0; place < blocked_count; ++place)
        account_next(sm, &sm->warps[sm->blocked[place]], sm->lacks[place], 1.0, is_held ? 1.0 : 0.0);
    *again = time + 1.0;
    if (is_held) {
        sub_core->last = chosen->number;
        for (int64_t place = 0; place < free_count; ++place)
            account_next(sm, &sm->warps[sm->free[place]], DISPATCH_STALL, 1.0, 1.0);
        return 1;
    }
    for (int64_t place = 0; place < free_count; ++place) {
        if (sm->free[place] != chosen->slot)
            account_next(sm, &sm->warps[sm->free[place]], NOT_SELECTED, 1.0, 0.0);
    }
    remove_eligible(sub_core, chosen->slot);
    return issue(sm, chosen, sub_core, time);
}

/* What was added up until now: sums are the time, blocks that ended, and what moved; cycles are all, then idle ones. */
static void mark(const Sm *sm, double time, int64_t number, double *sums, double *cycles)
{
    const Memory *memory = &sm->memory;
    int64_t size = (sm->row_count + 1) * REASONS;
    double *own = sums + number * (2 + MOVED);
    own[0] = time;
    own[1] = (double)sm->done;
    own[2] = memory->dram_bytes;
    own[3] = memory->l2_bytes;
    own[4] = memory->tag_cycles;
    own[5] = memory->data_cycles;
    own[6] = (double)sm->issued;
    memcpy(cycles + 2 * number * size, sm->all_cycles, (size_t)size * sizeof *cycles);
    memcpy(cycles + (2 * number + 1) * size, sm->idle_cycles, (size_t)size * sizeof *cycles);
}

/* A block that began, or a barrier that opened, may have made warps of other sub-cores ready. */
static void wake(const Sm *sm, double *following, double time)
{
    for (int number = 0; number < SUB_CORES; ++number) {
        const SubCore *sub_core = &sm->sub_cores[number];
        if (sub_core->waiting_count > 0 && sub_core->waiting[0].time < following[number])
            following[number] = later(sub_core->waiting[0].time, time);
    }
}

/* Until all blocks have ended, or enough was issued; how many moments were marked, FAILED without memory. */
static int64_t run(Sm *sm, int64_t most_issues, double *sums, double *cycles)
{
    double following[SUB_CORES] = {0.0}, last = 0.0;
    int64_t moments = 0;
    while (sm->issued < most_issues) {
        double time = following[0];
        for (int number = 1; number < SUB_CORES; ++number)
            time = following[number] < time ? following[number] : time;
        if (sm->start_count > 0 && sm->begun < sm->block_count && sm->block_starts[sm->start_count - 1] <= time) {
            time = sm->block_starts[--sm->start_count];
            if (sm->done >= sm->resident && moments == 0)
                mark(sm, time, moments++, sums, cycles);
            begin_block(sm, time);
            if (sm->begun == sm->block_count && moments > 0)
                mark(sm, time, moments++, sums, cycles);
        } else if (time == INFINITY) {
            break;
        } else {
            last = time;
            for (int number = 0; number < SUB_CORES; ++number) {
                if (following[number] <= time && !step(sm, number, time, &following[number]))
                    return FAILED;
            }
        }
        wake(sm, following, time);
    }
    mark(sm, later(last, sm->latest_end), moments++, sums, cycles);
    return moments;
}

static int are_reads_sound(const Row *row)
{
    for (int place = 0; place < OPERANDS; ++place) {
        int32_t first = row->first[place], count = row->count[place];
        if (first < -1 || first >= REGISTERS || count < 0 || count > MOST_OPERAND_REGISTERS || (count > 0 && first < 0))
            return 0;
    }
    return 1;
}

static int is_row_sound(const Row *row)
{
    int is_memory = row->kind == LOAD || row->kind == STORE || row->kind == SHARED || row->kind == REDUCTION || row->kind == ATOMIC;
    return row->kind >= 0 && row->kind < KINDS && row->pipe >= 0 && row->pipe < PIPES && row->unit >= -1 && row->unit < UNITS
           && (!is_memory || row->unit == LSU) && row->gate >= 0 && row->gate < MOST_GATES && row->throttle >= 0
           && row->throttle < REASONS && row->write_board >= -1 && row->write_board < SCOREBOARDS && row->read_board >= -1
           && row->read_board < SCOREBOARDS && row->depbar_board >= -1 && row->depbar_board < SCOREBOARDS
           && row->depbar_left <= MOST_LEFT && (row->depbar_left < 0 || row->depbar_board >= 0) && row->fetch_line >= 0
           && row->fetch_line < MOST_LINES && row->constant < MOST_LINES && row->far_constant < MOST_LINES
           && (row->constant < 0 || row->far_constant >= 0) && are_reads_sound(row);
}

static int is_model_sound(const Model *model)
{
    return model->bank_registers_per_cycle > 0 && model->l1_lines >= 0 && model->l1_lines < 1 << 24 && model->mio_queue_instructions >= 1 && model->lg_queue_instructions >= 1
           && model->store_queue_instructions >= 1 && model->miss_queue_instructions >= 1 && model->code_prefetch_lines >= 0
           && model->code_prefetch_lines < 1 << 16;
}

/* Whether no index leads outside. Sizes are those of the arrays: rows, executions, sectors, warps, blocks. */
static int is_sound(const Sm *sm, const int64_t *sizes)
{
    for (int64_t number = 0; number < sm->row_count; ++number) {
        if (!is_row_sound(&sm->rows[number]))
            return 0;
    }
    for (int64_t place = 0; place < sizes[1]; ++place) {
        const Columns *columns = &sm->columns;
        if (sm->executed[place] < 0 || sm->executed[place] >= sm->row_count || columns->passes[place] < 0 || columns->lines[place] < 0
            || columns->first_sector[place] < 0 || columns->first_sector[place] > columns->last_sector[place]
            || columns->last_sector[place] > sizes[2])
            return 0;
    }
    for (int64_t number = 0; number < sm->block_count; ++number) {
        const Block *block = &sm->blocks[number];
        if (block->warps < 1 || block->first_warp < 0 || block->first_warp > sizes[3] || block->warps > sizes[3] - block->first_warp)
            return 0;
        for (int64_t warp = block->first_warp; warp < block->first_warp + block->warps; ++warp) {
            if (sm->starts[warp] < 0 || sm->starts[warp] >= sm->starts[warp + 1] || sm->starts[warp + 1] > sizes[1])
                return 0;
        }
    }
    return is_model_sound(sm->model) && sm->block_count > 0 && sm->resident > 0 && sm->resident <= sm->block_count;
}

static void *reserve(int64_t count, size_t bytes, int *is_well)
{
    void *found = calloc((size_t)(count > 0 ? count : 1), bytes);
    *is_well = *is_well && found != NULL;
    return found;
}

/* Room for as many blocks as are held at once. */
static int open_sm(Sm *sm)
{
    int is_well = 1;
    int32_t lines = 0, constants = 0, far_constants = 0;
    for (int64_t number = 0; number < sm->row_count; ++number) {
        const Row *row = &sm->rows[number];
        lines = row->fetch_line >= lines ? row->fetch_line + 1 : lines;
        constants = row->constant >= constants ? row->constant + 1 : constants;
        far_constants = row->far_constant >= far_constants ? row->far_constant + 1 : far_constants;
        sm->has_depbar |= row->depbar_board >= 0;
        sm->kept = row->depbar_left >= sm->kept ? row->depbar_left + 1 : sm->kept;
    }
    sm->kept = sm->kept > 0 ? sm->kept : 1;
    for (int64_t number = 0; number < sm->block_count; ++number)
        sm->most_warps = sm->blocks[number].warps > sm->most_warps ? sm->blocks[number].warps : sm->most_warps;
    if (sm->most_warps > MOST_WARPS / sm->resident)
        return 0;
    int64_t held = sm->most_warps * sm->resident;
    is_well = gpa_open_memory(&sm->memory, sm->model);
    is_well = gpa_open_supply(&sm->supply, sm->model, lines, constants, far_constants) && is_well;
    sm->warps = reserve(held, sizeof *sm->warps, &is_well);
    sm->outstanding = reserve(sm->has_depbar ? held * SCOREBOARDS * sm->kept : 1, sizeof *sm->outstanding, &is_well);
    sm->held = reserve(sm->resident, sizeof *sm->held, &is_well);
    sm->arrived = reserve(held, sizeof *sm->arrived, &is_well);
    sm->arrived_free = reserve(held, sizeof *sm->arrived_free, &is_well);
    sm->free_places = reserve(sm->resident, sizeof *sm->free_places, &is_well);
    sm->block_starts = reserve(sm->block_count, sizeof *sm->block_starts, &is_well);
    sm->free = reserve(held, sizeof *sm->free, &is_well);
    sm->blocked = reserve(held, sizeof *sm->blocked, &is_well);
    sm->lacks = reserve(held, sizeof *sm->lacks, &is_well);
    sm->all_cycles = reserve((sm->row_count + 1) * REASONS, sizeof *sm->all_cycles, &is_well);
    sm->idle_cycles = reserve((sm->row_count + 1) * REASONS, sizeof *sm->idle_cycles, &is_well);
    for (int number = 0; number < SUB_CORES; ++number) {
        sm->sub_cores[number].waiting = reserve(held, sizeof *sm->sub_cores[number].waiting, &is_well);
        sm->sub_cores[number].eligible = reserve(held, sizeof *sm->sub_cores[number].eligible, &is_well);
        sm->sub_cores[number].last = -1;
        gpa_open_ports(&sm->sub_cores[number].ports);
    }
    if (!is_well)
        return 0;
    for (int64_t place = 0; place < sm->resident; ++place) {
        sm->held[place].arrived = sm->arrived + place * sm->most_warps;
        sm->held[place].arrived_free = sm->arrived_free + place * sm->most_warps;
        sm->free_places[sm->free_count++] = (int32_t)place;
    }
    for (int64_t slot = 0; sm->has_depbar && slot < held; ++slot)
        sm->warps[slot].outstanding = sm->outstanding + slot * SCOREBOARDS * sm->kept;
    return 1;
}

static void close_sm(Sm *sm)
{
    gpa_close_memory(&sm->memory);
    gpa_close_supply(&sm->supply);
    for (int number = 0; number < SUB_CORES; ++number) {
        free(sm->sub_cores[number].waiting);
        free(sm->sub_cores[number].eligible);
    }
    free(sm->warps);
    free(sm->outstanding);
    free(sm->held);
    free(sm->arrived);
    free(sm->arrived_free);
    free(sm->free_places);
    free(sm->block_starts);
    free(sm->free);
    free(sm->blocked);
    free(sm->lacks);
    free(sm->all_cycles);
    free(sm->idle_cycles);
}

/* gpa_lsp.execution.simulator.streaming_multiprocessor.simulate_sm.

   sizes: rows, executions, sectors, warps, blocks, resident blocks, most issues, bytes of a Row, bytes of the Model.
   starts: int64[warps + 1]. totals: float64[4], weighted and plain cycles, issued instructions, blocks that ended.
   sums: float64[3][7]. cycles: float64[3][2][rows + 1][reasons].
   Gives the moments that were marked; FAILED where an index leads outside, or without memory. */
EXPORT int64_t simulate_blocks(const int64_t *sizes, const Row *rows, const Model *model, const Block *blocks, const int64_t *starts,
                               const int32_t *executed, const int32_t *passes, const int32_t *lines, const int64_t *first_sector,
                               const int64_t *last_sector, const double *weights, const int64_t *sectors, const uint8_t *is_private,
                               double *totals, double *sums, double *cycles)
{
    if (sizes[7] != (int64_t)sizeof(Row) || sizes[8] != (int64_t)sizeof(Model))
        return FAILED;
    Sm sm = {
        .rows = rows, .row_count = sizes[0], .model = model, .blocks = blocks, .block_count = sizes[4], .resident = sizes[5],
        .starts = starts, .executed = executed, .weights = weights,
        .columns = {.passes = passes, .lines = lines, .first_sector = first_sector, .last_sector = last_sector, .sectors = sectors,
                    .is_private = is_private},
    };
    if (!is_sound(&sm, sizes))
        return FAILED;
    int64_t moments = FAILED;
    if (open_sm(&sm)) {
        sm.last_start = (double)(sm.resident - 1) * model->block_interval_cycles;
        for (int64_t number = 0; number < sm.resident; ++number)
            begin_block(&sm, (double)number * model->block_interval_cycles);
        moments = run(&sm, sizes[6], sums, cycles);
        totals[0] = sm.weighted;
        totals[1] = sm.plain;
        totals[2] = (double)sm.issued;
        totals[3] = (double)sm.done;
    }
    close_sm(&sm);
    return moments;
}
