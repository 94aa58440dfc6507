/* Accesses of all lanes that stand at an instruction, its trace, and the checks of shared memory.

What is wrong with an access, or not known here, is left to Python before anything has changed. */
#include "warps.h"
#include "sizes.h"

#define SHARED_WINDOW UINT64_C(0x7FFD00000000)
#define LOCAL_WINDOW UINT64_C(0x7FFE00000000)
#define WINDOW_BYTES (UINT64_C(1) << 32)
#define ROW_BYTES 28
#define BRANCH_ROW_BYTES 22
#define ENTRY_ROW_BYTES 14
#define METERED_AT_ONCE (1 << 20)
/* Room at first: what is never touched costs nothing. */
#define FEWEST_ROWS (1 << 14)

/* Of stamps, as gpa_lsp.execution.emulator.engine.shared_checks has them. */
#define THREAD_SHIFT 20
#define TIME_SHIFT 30
#define THREAD_MASK 1023
#define INSTRUCTION_MASK ((1 << 19) - 1)

#define FOR_WARPS(warp)                                                                                                \
    for (int64_t warp = 0; warp < machine->warps; ++warp)                                                              \
        if (machine->masks[warp])
#define FOR_LANES(lane, mask) for (uint32_t left_##lane = (mask), lane; left_##lane && (lane = (uint32_t)__builtin_ctz(left_##lane), 1); left_##lane &= left_##lane - 1)

static uint8_t *frame_of(const Machine *machine, int64_t warp)
{
    return machine->frames + warp * machine->frame_bytes;
}

static uint32_t guard_of(const Machine *machine, const Operation *operation, int64_t warp)
{
    uint32_t mask = machine->current[warp];
    if (operation->guard < 0 || mask == 0)
        return mask;
    uint32_t holds = gpa_pack_predicate(frame_of(machine, warp) + operation->guard);
    return mask & (operation->is_negated ? ~holds : holds);
}

/* Masks of the lanes whose guard holds; whether there are any. */
static int find_masks(Machine *machine, const Operation *operation)
{
    uint32_t any = 0;
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        any |= machine->masks[warp] = guard_of(machine, operation, warp);
    return any != 0;
}

static void count_guarded(Machine *machine, const Operation *operation)
{
    if (operation->guard >= 0)
        FOR_WARPS(warp)
            machine->guarded[operation->instruction] += __builtin_popcount(machine->masks[warp]);
}

/* The addresses of all lanes of the masks. */
static void find_addresses(Machine *machine, const Operation *operation)
{
    uint64_t offset = (uint64_t)operation->literal;
    int is_private = operation->space == SPACE_SHARED || operation->space == SPACE_LOCAL;
    FOR_WARPS(warp)
    {
        const uint8_t *from = gpa_operand(frame_of(machine, warp), machine->constants, operation->a);
        uint64_t *to = machine->addresses + warp * LANES;
        if (operation->address_bytes == 8)
            for (int lane = 0; lane < LANES; ++lane)
                to[lane] = ((const uint64_t *)from)[lane] + offset;
        else
            for (int lane = 0; lane < LANES; ++lane) {
                uint64_t address = ((const uint32_t *)from)[lane] + offset;
                to[lane] = is_private ? (uint32_t)address : address;
            }
    }
}

static int64_t find_region(const Machine *machine, uint64_t address)
{
    int64_t low = 0, high = machine->region_count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (machine->region_bases[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* Whether the lanes of a mask access multiples of their width (less one: low_bits), no further behind a base than allowed. */
static int are_within(const uint64_t *address, uint32_t mask, uint64_t base, uint64_t furthest, uint64_t low_bits)
{
    uint8_t is_wrong[LANES];
    if (mask == UINT32_MAX) {
        uint64_t furthest_lane = 0, bits = 0;
        for (int lane = 0; lane < LANES; ++lane) {
            uint64_t offset = address[lane] - base;
            furthest_lane = offset > furthest_lane ? offset : furthest_lane;
            bits |= address[lane];
        }
        return furthest_lane <= furthest && (bits & low_bits) == 0;
    }
    for (int lane = 0; lane < LANES; ++lane)
        is_wrong[lane] = (address[lane] - base > furthest) | ((address[lane] & low_bits) != 0);
    return (gpa_pack_predicate(is_wrong) & mask) == 0;
}

/* Whether the lanes of a warp may access global memory, each in its region; the region of the last of them. */
static int check_lanes(Machine *machine, const Operation *operation, int64_t warp, uint64_t bytes, int64_t *region)
{
    const uint64_t *address = machine->addresses + warp * LANES;
    FOR_LANES(lane, machine->masks[warp])
    {
        uint64_t offset = address[lane] - machine->region_bases[*region], size = (uint64_t)machine->region_bytes[*region];
        if (offset > size || size - offset < bytes) {
            *region = find_region(machine, address[lane]);
            if (*region < 0)
                return 0;
            offset = address[lane] - machine->region_bases[*region];
            size = (uint64_t)machine->region_bytes[*region];
            if (offset > size || size - offset < bytes)
                return 0;
        }
        int is_fixed = machine->region_spaces[*region] != SPACE_GLOBAL;
        if ((address[lane] & (bytes - 1)) != 0 || (is_fixed && (operation->kind != 0 || operation->space == SPACE_GENERIC)))
            return 0;
    }
    return 1;
}

/* Whether all lanes may access global memory. */
static int check_global(Machine *machine, Operation *operation)
{
    uint64_t bytes = (uint64_t)operation->elements * (uint64_t)operation->element_bytes;
    if (machine->region_count == 0)
        return 0;
    int64_t region = operation->region;
    if (region < 0 || region >= machine->region_count)
        region = 0;
    FOR_WARPS(warp)
    {
        uint64_t size = (uint64_t)machine->region_bytes[region];
        if (machine->region_spaces[region] == SPACE_GLOBAL && size >= bytes &&
            are_within(machine->addresses + warp * LANES, machine->masks[warp], machine->region_bases[region], size - bytes, bytes - 1))
            continue;
        if (!check_lanes(machine, operation, warp, bytes, &region))
            return 0;
    }
    operation->region = (int32_t)region;
    return 1;
}

static int check_private(Machine *machine, const Operation *operation, int64_t size)
{
    uint64_t bytes = (uint64_t)operation->elements * (uint64_t)operation->element_bytes;
    if (size < (int64_t)bytes)
        return 0;
    FOR_WARPS(warp)
        if (!are_within(machine->addresses + warp * LANES, machine->masks[warp], 0, (uint64_t)size - bytes, bytes - 1))
            return 0;
    return 1;
}

/* The space all lanes go to by generic addresses, which become those of the space; GENERIC where they part. */
static int find_space(Machine *machine)
{
    int any = 0, shared = 1, local = 1, none = 1;
    FOR_WARPS(warp)
        FOR_LANES(lane, machine->masks[warp])
        {
            uint64_t address = machine->addresses[warp * LANES + lane];
            int in_shared = address - SHARED_WINDOW < WINDOW_BYTES, in_local = address - LOCAL_WINDOW < WINDOW_BYTES;
            any = 1;
            shared &= in_shared;
            local &= in_local;
            none &= !in_shared && !in_local;
        }
    if (!any || none)
        return SPACE_GLOBAL;
    if (!shared && !local)
        return SPACE_GENERIC;
    uint64_t window = shared ? SHARED_WINDOW : LOCAL_WINDOW;
    FOR_WARPS(warp)
        for (int lane = 0; lane < LANES; ++lane)
            machine->addresses[warp * LANES + lane] -= window;
    return shared ? SPACE_SHARED : SPACE_LOCAL;
}

/* What the addresses of a warp count from: of shared memory that of its block; of global memory what the arena begins at. */
static uint8_t *base_of(const Machine *machine, int space, int64_t warp)
{
    if (space == SPACE_SHARED)
        return machine->shared + machine->slots[warp] * machine->shared_stride;
    return (uint8_t *)((uintptr_t)machine->arena - (uintptr_t)machine->arena_base);
}

/* Where the value of a lane lies. */
static uint8_t *place_of(const Machine *machine, int space, int64_t warp, uint32_t lane)
{
    uint64_t address = machine->addresses[warp * LANES + lane];
    if (space == SPACE_LOCAL)
        return machine->local + (warp * LANES + lane) * machine->local_stride + (int64_t)address;
    return base_of(machine, space, warp) + address;
}

/* --- the trace --- */

static int grow(void **column, int64_t room, size_t bytes)
{
    void *larger = realloc(*column, multiply_sizes((size_t)room, bytes));
    if (larger == NULL)
        return 0;
    *column = larger;
    return 1;
}

static int reserve(Rows *rows, int64_t more, int64_t addresses)
{
    if (rows->count + more > rows->room) {
        int64_t room = 2 * rows->room + more + FEWEST_ROWS;
        if (!grow((void **)&rows->warp, room, 4) || !grow((void **)&rows->instruction, room, 4) || !grow((void **)&rows->execution, room, 4) ||
            !grow((void **)&rows->mask, room, 4) || !grow((void **)&rows->other, room, 4) || !grow((void **)&rows->bytes, room, 1) ||
            !grow((void **)&rows->space, room, 1))
            return 0;
        rows->room = room;
    }
    if (rows->address_count + addresses > rows->address_room) {
        int64_t room = 2 * rows->address_room + addresses + FEWEST_ROWS * LANES;
        if (!grow((void **)&rows->addresses, room, 8))
            return 0;
        rows->address_room = room;
    }
    return 1;
}

/* Leaves the rows to who took their columns, each of which is to be given to free_column. */
EXPORT int64_t forget_rows(Machine *machine)
{
    memset(&machine->accesses, 0, sizeof machine->accesses);
    memset(&machine->branches, 0, sizeof machine->branches);
    memset(&machine->entries, 0, sizeof machine->entries);
    return 0;
}

EXPORT int64_t free_column(void *column)
{
    free(column);
    return 0;
}

EXPORT int64_t free_rows(Machine *machine)
{
    Rows *all[] = {&machine->accesses, &machine->branches, &machine->entries};
    for (int number = 0; number < 3; ++number) {
        Rows *rows = all[number];
        free(rows->warp);
        free(rows->instruction);
        free(rows->execution);
        free(rows->mask);
        free(rows->other);
        free(rows->bytes);
        free(rows->space);
        free(rows->addresses);
        memset(rows, 0, sizeof *rows);
    }
    return 0;
}

/* Whether another row is taken: STOP_IDLE; not: -1; or only when what is held was metered. */
int gpa_find_room(Machine *machine)
{
    if (machine->held_bytes >= machine->limit_bytes) {
        machine->is_cut_off = 1;
        return FAILED;
    }
    return machine->held_bytes - machine->metered_bytes > METERED_AT_ONCE ? STOP_METER : STOP_IDLE;
}

static uint32_t next_execution(Machine *machine, int64_t number, int64_t warp)
{
    return machine->executions[number * machine->warps + warp]++;
}

static int64_t append(Machine *machine, Rows *rows, int64_t warp, uint32_t instruction, uint32_t execution, uint32_t mask)
{
    (void)machine;
    int64_t row = rows->count++;
    rows->warp[row] = (uint32_t)warp;
    rows->instruction[row] = instruction;
    rows->execution[row] = execution;
    rows->mask[row] = mask;
    return row;
}

static int note_access(Machine *machine, const Operation *operation, int space)
{
    if (!machine->traces_accesses || space == SPACE_PARAM || machine->left_out_spaces >> space & 1)
        return STOP_IDLE;
    int found = gpa_find_room(machine);
    if (found == FAILED)
        return STOP_IDLE;
    Rows *rows = &machine->accesses;
    int64_t more = 0, addresses = 0;
    FOR_WARPS(warp)
    {
        more += 1;
        addresses += __builtin_popcount(machine->masks[warp]);
    }
    if (!reserve(rows, more, addresses))
        return STOP_MEMORY;
    FOR_WARPS(warp)
    {
        uint32_t mask = machine->masks[warp], execution = next_execution(machine, operation->number_of_execution, warp);
        if (execution >= machine->most_executions) {
            machine->is_cut = 1;
            more -= 1;
            addresses -= __builtin_popcount(mask);
            continue;
        }
        int64_t row = append(machine, rows, warp, (uint32_t)operation->instruction, execution, mask);
        rows->bytes[row] = (uint8_t)(operation->elements * operation->element_bytes);
        rows->space[row] = (uint8_t)space;
        const uint64_t *address = machine->addresses + warp * LANES;
        if (mask == UINT32_MAX) {
            memcpy(rows->addresses + rows->address_count, address, LANES * sizeof *address);
            rows->address_count += LANES;
        } else
            FOR_LANES(lane, mask)
                rows->addresses[rows->address_count++] = address[lane];
    }
    machine->held_bytes += more * ROW_BYTES + addresses * 8;
    return STOP_IDLE;
}

int gpa_note_branch(Machine *machine, const Segment *segment, const uint32_t *taken)
{
    Rows *rows = &machine->branches;
    if (!reserve(rows, machine->warps, 0))
        return STOP_MEMORY;
    int64_t before = rows->count;
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        if (machine->current[warp]) {
            uint32_t execution = next_execution(machine, segment->number_of_execution, warp);
            int64_t row = append(machine, rows, warp, (uint32_t)segment->instruction, execution, machine->current[warp]);
            rows->other[row] = taken[warp];
        }
    machine->held_bytes += (rows->count - before) * BRANCH_ROW_BYTES;
    return STOP_IDLE;
}

int gpa_note_entry(Machine *machine, const Segment *segment)
{
    Rows *rows = &machine->entries;
    if (!reserve(rows, machine->warps, 0))
        return STOP_MEMORY;
    int64_t before = rows->count;
    for (int64_t warp = 0; warp < machine->warps; ++warp)
        if (machine->current[warp])
            append(machine, rows, warp, (uint32_t)segment->enters_block, 0, machine->current[warp]);
    machine->held_bytes += (rows->count - before) * ENTRY_ROW_BYTES;
    return STOP_IDLE;
}

enum { ACCESSES, BRANCHES, ENTRIES };

/* What Python executed: rows of one instruction, with the addresses of their lanes; or branches, with the lanes that jumped; or entries of a
   block. Their numbers of execution are given where the number to count by is negative. */
EXPORT int64_t append_rows(Machine *machine, int64_t kind, const int64_t *warps, const uint32_t *masks, const uint32_t *taken,
                           const uint32_t *executions, int64_t count, int64_t instruction, int64_t number, int64_t bytes, int64_t space,
                           const uint64_t *addresses, int64_t address_count)
{
    static const int64_t row_bytes[] = {ROW_BYTES, BRANCH_ROW_BYTES, ENTRY_ROW_BYTES};
    Rows *rows = kind == BRANCHES ? &machine->branches : kind == ENTRIES ? &machine->entries : &machine->accesses;
    if (!reserve(rows, count, address_count))
        return FAILED;
    int64_t before = rows->count, next = 0, kept = rows->address_count;
    for (int64_t place = 0; place < count; ++place) {
        int64_t lanes = address_count ? __builtin_popcount(masks[place]) : 0;
        if (warps[place] < 0 || warps[place] >= machine->warps || next + lanes > address_count)
            return FAILED;
        uint32_t execution = number < 0 ? executions[place] : next_execution(machine, number, warps[place]);
        next += lanes;
        if (kind == ACCESSES && execution >= machine->most_executions) {
            machine->is_cut = 1;
            continue;
        }
        if (lanes)
            memcpy(rows->addresses + rows->address_count, addresses + next - lanes, (size_t)lanes * sizeof *addresses);
        rows->address_count += lanes;
        int64_t row = append(machine, rows, warps[place], (uint32_t)instruction, execution, masks[place]);
        rows->bytes[row] = (uint8_t)bytes;
        rows->space[row] = (uint8_t)space;
        rows->other[row] = kind == BRANCHES ? taken[place] : 0;
    }
    machine->held_bytes += (rows->count - before) * row_bytes[kind] + 8 * (rows->address_count - kept);
    return 0;
}

/* --- checks of shared memory, as gpa_lsp.execution.emulator.engine.shared_checks has them --- */

static int64_t unit_of(const Machine *machine, int64_t warp, uint32_t lane)
{
    int64_t slot = machine->slots[warp] * machine->shared_stride;
    return (slot + (int64_t)machine->addresses[warp * LANES + lane]) >> machine->unit_shift;
}

static int64_t thread_of(const Machine *machine, int64_t warp, uint32_t lane)
{
    return machine->ranks[warp] * LANES + lane;
}

static int64_t count_units(const Machine *machine, const Operation *operation)
{
    int64_t units = (int64_t)operation->elements * operation->element_bytes >> machine->unit_shift;
    return units > 0 ? units : 1;
}

static int is_race(const Machine *machine, const Operation *operation, const int64_t *shadow, int64_t step)
{
    int64_t highest = 0;
    FOR_WARPS(warp)
        FOR_LANES(lane, machine->masks[warp])
        {
            int64_t found = shadow[unit_of(machine, warp, lane) + step];
            highest = found > highest ? found : highest;
        }
    if (highest < machine->oldest || highest <= 0)
        return 0;
    FOR_WARPS(warp)
    {
        int64_t since = machine->block_since[machine->slots[warp]];
        FOR_LANES(lane, machine->masks[warp])
        {
            int64_t found = shadow[unit_of(machine, warp, lane) + step], thread = thread_of(machine, warp, lane);
            int64_t who = found >> THREAD_SHIFT & THREAD_MASK;
            if (found < since || found == 0 || who == thread || (operation->is_strong && (found & 1)))
                continue;
            if (machine->warps_met && who >> 5 == thread >> 5 && found < machine->warp_since[warp])
                continue;
            return 1;
        }
    }
    return 0;
}

/* Whether the checks have anything to report; nothing is changed. */
static int is_suspect(const Machine *machine, const Operation *operation, int is_write)
{
    for (int64_t step = 0; step < count_units(machine, operation); ++step) {
        if (!is_write && machine->unwritten && !operation->is_known)
            FOR_WARPS(warp)
                FOR_LANES(lane, machine->masks[warp])
                    if (!machine->is_written[unit_of(machine, warp, lane) + step])
                        return 1;
        if (machine->has_writes && is_race(machine, operation, machine->writes, step))
            return 1;
        if (machine->has_losers && (is_write || machine->has_writes) && is_race(machine, operation, machine->losers, step))
            return 1;
        if (is_write && machine->has_reads &&
            (is_race(machine, operation, machine->reads, step) || is_race(machine, operation, machine->others, step)))
            return 1;
    }
    return 0;
}

static int64_t next_stamp(Machine *machine, const Operation *operation)
{
    machine->time += 1;
    int64_t low = (int64_t)(operation->instruction & INSTRUCTION_MASK) << 1 | (operation->is_strong != 0);
    return machine->time << TIME_SHIFT | low;
}

static int64_t stamp_of(const Machine *machine, int64_t stamp, int64_t warp, uint32_t lane)
{
    return stamp + (thread_of(machine, warp, lane) << THREAD_SHIFT);
}

static void note_reads(Machine *machine, int64_t stamp, int64_t step)
{
    int is_all = 1;
    machine->has_reads = 1;
    FOR_WARPS(warp)
    {
        int64_t since = machine->in_step ? machine->oldest : machine->block_since[machine->slots[warp]];
        uint32_t fresh = 0;
        FOR_LANES(lane, machine->masks[warp])
        {
            int64_t before = machine->reads[unit_of(machine, warp, lane) + step];
            fresh |= (uint32_t)(before < since || before == 0) << lane;
        }
        machine->before[warp] = fresh;
        is_all &= fresh == UINT32_MAX;
    }
    FOR_WARPS(warp)
        FOR_LANES(lane, (uint32_t)machine->before[warp])
            machine->reads[unit_of(machine, warp, lane) + step] = stamp_of(machine, stamp, warp, lane);
    for (int64_t warp = machine->warps - 1; warp >= 0; --warp)
        if (machine->masks[warp])
            for (int lane = LANES - 1; lane >= 0; --lane)
                if (machine->before[warp] >> lane & 1)
                    machine->others[unit_of(machine, warp, (uint32_t)lane) + step] = stamp_of(machine, stamp, warp, (uint32_t)lane);
    if (is_all)
        return;
    FOR_WARPS(warp)
        FOR_LANES(lane, machine->masks[warp])
        {
            int64_t own = stamp_of(machine, stamp, warp, lane), unit = unit_of(machine, warp, lane) + step;
            if (((machine->reads[unit] ^ own) >> (THREAD_SHIFT + 5) & (THREAD_MASK >> 5)) != 0)
                machine->others[unit] = own;
        }
}

static void note_writes(Machine *machine, int64_t stamp, int64_t step)
{
    FOR_WARPS(warp)
        FOR_LANES(lane, machine->masks[warp])
            machine->writes[unit_of(machine, warp, lane) + step] = stamp_of(machine, stamp, warp, lane);
    for (int64_t warp = machine->warps - 1; warp >= 0; --warp)
        if (machine->masks[warp])
            for (int lane = LANES - 1; lane >= 0; --lane) {
                if (!(machine->masks[warp] >> lane & 1))
                    continue;
                int64_t own = stamp_of(machine, stamp, warp, (uint32_t)lane), unit = unit_of(machine, warp, (uint32_t)lane) + step;
                if (machine->writes[unit] != own) {
                    machine->losers[unit] = own;
                    machine->has_losers = 1;
                }
                if (machine->unwritten)
                    machine->is_written[unit] = 1;
            }
}

static void note_shared(Machine *machine, const Operation *operation)
{
    for (int64_t step = 0; step < count_units(machine, operation); ++step) {
        int64_t stamp = next_stamp(machine, operation);
        if (operation->kind == 0)
            note_reads(machine, stamp, step);
        else
            note_writes(machine, stamp, step);
    }
    if (operation->kind != 0)
        machine->has_writes = 1;
}

void gpa_pass_barrier(Machine *machine)
{
    machine->time += 1;
    int64_t now = machine->time << TIME_SHIFT;
    for (int64_t block = 0; block < machine->blocks; ++block)
        machine->block_since[block] = now;
    machine->has_writes = machine->has_reads = machine->has_losers = 0;
    machine->oldest = now;
    machine->in_step = 1;
    if (machine->unwritten) {
        int64_t written = 0;
        for (int64_t unit = 0; unit < machine->units; ++unit)
            written += machine->is_written[unit];
        machine->unwritten = machine->units - written;
    }
}

/* --- loads, stores, atomic operations --- */

static inline uint64_t take(const uint8_t *from, int32_t bytes)
{
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    switch (bytes) {
    case 8:
        memcpy(&eight, from, sizeof eight);
        return eight;
    case 4:
        memcpy(&four, from, sizeof four);
        return four;
    case 2:
        memcpy(&two, from, sizeof two);
        return two;
    default:
        return *from;
    }
}

static inline void give(uint8_t *to, uint64_t value, int32_t bytes)
{
    uint32_t four = (uint32_t)value;
    uint16_t two = (uint16_t)value;
    switch (bytes) {
    case 8:
        memcpy(to, &value, sizeof value);
        break;
    case 4:
        memcpy(to, &four, sizeof four);
        break;
    case 2:
        memcpy(to, &two, sizeof two);
        break;
    default:
        *to = (uint8_t)value;
    }
}

/* A value into a register that may be wider. */
static void put_value(const Operation *operation, uint8_t *registers, uint32_t lane, uint64_t value)
{
    if (operation->is_signed && operation->register_bytes > operation->element_bytes) {
        int unused = 64 - 8 * operation->element_bytes;
        value = (uint64_t)((int64_t)(value << unused) >> unused);
    }
    give(registers + lane * (uint32_t)operation->register_bytes, value, operation->register_bytes);
}

enum { SCATTERED, IN_A_ROW, AT_ONE_PLACE };

/* How all 32 lanes of a warp lie: one behind the other, at one place, or otherwise. */
static int find_order(const uint64_t *address, uint64_t bytes)
{
    uint64_t beside = 0, apart = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        beside |= address[lane] - address[0] - (uint64_t)lane * bytes;
        apart |= address[lane] ^ address[0];
    }
    return beside == 0 ? IN_A_ROW : apart == 0 ? AT_ONE_PLACE : SCATTERED;
}

static int is_simple(const Operation *operation, int space, uint32_t mask)
{
    return mask == UINT32_MAX && space != SPACE_LOCAL && operation->elements == 1 && operation->register_bytes == operation->element_bytes;
}

#define SPREAD_AS(T)                                                                                                   \
    {                                                                                                                  \
        T value;                                                                                                       \
        memcpy(&value, from, sizeof value);                                                                            \
        for (int lane = 0; lane < LANES; ++lane)                                                                       \
            ((T *)to)[lane] = value;                                                                                   \
    }

/* One value for each lane, where they lie in order; whether they do. */
static int load_in_order(const uint8_t *base, const uint64_t *address, uint8_t *to, int bytes)
{
    int order = find_order(address, (uint64_t)bytes);
    if (order == SCATTERED)
        return 0;
    const uint8_t *from = base + address[0];
    if (order == IN_A_ROW)
        memcpy(to, from, (size_t)bytes * LANES);
    else if (bytes == 4)
        SPREAD_AS(uint32_t)
    else if (bytes == 8)
        SPREAD_AS(uint64_t)
    else if (bytes == 2)
        SPREAD_AS(uint16_t)
    else
        SPREAD_AS(uint8_t)
    return 1;
}

#define LOAD_AS(T)                                                                                                     \
    {                                                                                                                  \
        const uint8_t *from = base_of(machine, space, warp) + element * (int)sizeof(T);                                \
        const uint64_t *address = machine->addresses + warp * LANES;                                                   \
        if (space == SPACE_LOCAL)                                                                                      \
            FOR_LANES(lane, mask)                                                                                      \
                memcpy(to + lane * sizeof(T), place_of(machine, space, warp, lane) + element * (int)sizeof(T), sizeof(T)); \
        else if (mask == UINT32_MAX)                                                                                   \
            for (int lane = 0; lane < LANES; ++lane)                                                                   \
                memcpy(to + lane * (int)sizeof(T), from + address[lane], sizeof(T));                                   \
        else                                                                                                           \
            FOR_LANES(lane, mask)                                                                                      \
                memcpy(to + lane * sizeof(T), from + address[lane], sizeof(T));                                        \
    }

static void load(Machine *machine, const Operation *operation, int space)
{
    FOR_WARPS(warp)
    {
        uint32_t mask = machine->masks[warp];
        for (int element = 0; element < operation->elements; ++element) {
            if (operation->places[element] < 0)
                continue;
            uint8_t *to = frame_of(machine, warp) + operation->places[element];
            if (is_simple(operation, space, mask) &&
                load_in_order(base_of(machine, space, warp), machine->addresses + warp * LANES, to, operation->element_bytes))
                continue;
            if (operation->register_bytes != operation->element_bytes) {
                FOR_LANES(lane, mask)
                    put_value(operation, to, lane,
                              take(place_of(machine, space, warp, lane) + element * operation->element_bytes, operation->element_bytes));
            } else if (operation->element_bytes == 4) {
                LOAD_AS(uint32_t)
            } else if (operation->element_bytes == 8) {
                LOAD_AS(uint64_t)
            } else if (operation->element_bytes == 2) {
                LOAD_AS(uint16_t)
            } else {
                LOAD_AS(uint8_t)
            }
        }
    }
}

static uint64_t value_of(const Machine *machine, const Operation *operation, int64_t warp, uint32_t lane, int32_t place)
{
    const uint8_t *from = gpa_operand(frame_of(machine, warp), machine->constants, place);
    int32_t bytes = place >= 0 ? operation->register_bytes : operation->element_bytes;
    return take(from + lane * (uint32_t)bytes, operation->element_bytes);
}

/* One value of each lane, where they lie one behind the other; whether they do. */
static int store_in_order(const Machine *machine, const Operation *operation, int space, int64_t warp)
{
    const uint64_t *address = machine->addresses + warp * LANES;
    uint64_t bytes = (uint64_t)operation->element_bytes;
    if (!is_simple(operation, space, machine->masks[warp]) || find_order(address, bytes) != IN_A_ROW)
        return 0;
    memcpy(base_of(machine, space, warp) + address[0], gpa_operand(frame_of(machine, warp), machine->constants, operation->places[0]),
           bytes * LANES);
    return 1;
}

static void store(Machine *machine, const Operation *operation, int space)
{
    FOR_WARPS(warp)
    {
        if (store_in_order(machine, operation, space, warp))
            continue;
        FOR_LANES(lane, machine->masks[warp])
        {
            uint8_t *to = place_of(machine, space, warp, lane);
            for (int element = 0; element < operation->elements; ++element) {
                uint64_t value = value_of(machine, operation, warp, lane, operation->places[element]);
                give(to + element * operation->element_bytes, value, operation->element_bytes);
            }
        }
    }
}

static int differs(const Operation *operation, uint64_t found, uint64_t stored)
{
    if (!operation->is_float)
        return found != stored;
    double first, second;
    if (operation->element_bytes == 4) {
        float narrow[2];
        uint32_t bits[2] = {(uint32_t)found, (uint32_t)stored};
        memcpy(narrow, bits, sizeof narrow);
        first = narrow[0];
        second = narrow[1];
    } else {
        memcpy(&first, &found, sizeof first);
        memcpy(&second, &stored, sizeof second);
    }
    return first != second && second == second;
}

/* Store to shared memory; where lanes lose what they stored to others that stored something else, all is as before, and they do. */
static int store_shared(Machine *machine, const Operation *operation)
{
    int64_t lanes = machine->warps * LANES;
    FOR_WARPS(warp)
        FOR_LANES(lane, machine->masks[warp])
            for (int element = 0; element < operation->elements; ++element)
                machine->before[element * lanes + warp * LANES + lane] =
                    take(place_of(machine, SPACE_SHARED, warp, lane) + element * operation->element_bytes, operation->element_bytes);
    store(machine, operation, SPACE_SHARED);
    int is_lost = 0;
    FOR_WARPS(warp)
        FOR_LANES(lane, machine->masks[warp])
            for (int element = 0; element < operation->elements; ++element) {
                uint64_t found =
                    take(place_of(machine, SPACE_SHARED, warp, lane) + element * operation->element_bytes, operation->element_bytes);
                uint64_t stored = value_of(machine, operation, warp, lane, operation->places[element]);
                is_lost |= found != stored && differs(operation, found, stored);
            }
    if (is_lost)
        FOR_WARPS(warp)
            FOR_LANES(lane, machine->masks[warp])
                for (int element = 0; element < operation->elements; ++element)
                    give(place_of(machine, SPACE_SHARED, warp, lane) + element * operation->element_bytes,
                         machine->before[element * lanes + warp * LANES + lane], operation->element_bytes);
    return is_lost;
}

enum { ATOM_ADD, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_CAS, ATOM_INC, ATOM_DEC, ATOM_MIN, ATOM_MAX, ATOM_MIN_S, ATOM_MAX_S, ATOM_ADD_FLOAT };

static uint64_t add_floats(int32_t bytes, uint64_t old, uint64_t value)
{
    uint64_t result = 0;
    if (bytes == 4) {
        float terms[2], sum;
        uint32_t bits[2] = {(uint32_t)old, (uint32_t)value}, found;
        memcpy(terms, bits, sizeof terms);
        sum = terms[0] + terms[1];
        memcpy(&found, &sum, sizeof found);
        return sum == sum ? found : UINT32_C(0x7FFFFFFF);
    }
    double terms[2], sum;
    memcpy(&terms[0], &old, 8);
    memcpy(&terms[1], &value, 8);
    sum = terms[0] + terms[1];
    memcpy(&result, &sum, 8);
    return result;
}

static uint64_t change(const Operation *operation, uint64_t old, uint64_t value, uint64_t other)
{
    int32_t bytes = operation->element_bytes;
    int64_t signed_old = bytes == 4 ? (int32_t)old : (int64_t)old, signed_value = bytes == 4 ? (int32_t)value : (int64_t)value;
    switch (operation->combination) {
    case ATOM_ADD:
        return old + value;
    case ATOM_AND:
        return old & value;
    case ATOM_OR:
        return old | value;
    case ATOM_XOR:
        return old ^ value;
    case ATOM_EXCH:
        return value;
    case ATOM_CAS:
        return old == value ? other : old;
    case ATOM_INC:
        return old >= value ? 0 : old + 1;
    case ATOM_DEC:
        return old == 0 || old > value ? value : old - 1;
    case ATOM_MIN:
        return old < value ? old : value;
    case ATOM_MAX:
        return old > value ? old : value;
    case ATOM_MIN_S:
        return signed_old < signed_value ? old : value;
    case ATOM_MAX_S:
        return signed_old > signed_value ? old : value;
    default:
        return add_floats(bytes, old, value);
    }
}

static void change_in_order(Machine *machine, const Operation *operation, int space)
{
    FOR_WARPS(warp)
        FOR_LANES(lane, machine->masks[warp])
        {
            uint8_t *at = place_of(machine, space, warp, lane);
            uint64_t old = take(at, operation->element_bytes);
            uint64_t value = value_of(machine, operation, warp, lane, operation->b), other = 0;
            if (operation->combination == ATOM_CAS)
                other = value_of(machine, operation, warp, lane, operation->c);
            uint64_t now = change(operation, old, value, other);
            give(at, now, operation->element_bytes);
            if (operation->result >= 0)
                memcpy(frame_of(machine, warp) + operation->result + lane * (uint32_t)operation->register_bytes, &old,
                       (size_t)operation->register_bytes);
        }
}

static void mark_lanes(const Machine *machine, const Operation *operation)
{
    uint64_t bytes = (uint64_t)operation->elements * (uint64_t)operation->element_bytes;
    uint8_t marks = operation->code == CODE_LOAD ? MARK_READ : operation->code == CODE_STORE ? MARK_WRITTEN : MARK_READ | MARK_WRITTEN;
    marks = gpa_choose_marks(bytes, marks);
    FOR_WARPS(warp)
    {
        const uint64_t *address = machine->addresses + warp * LANES;
        int order = machine->masks[warp] == UINT32_MAX ? find_order(address, bytes) : SCATTERED;
        if (order != IN_A_ROW) {
            gpa_mark_lanes(machine, address, 0, bytes, order == AT_ONE_PLACE ? 1 : machine->masks[warp], marks);
            continue;
        }
        gpa_mark_words(machine, address[0], bytes * LANES, marks);
        gpa_mark_chunk(machine, address[0], marks);
        gpa_mark_chunk(machine, address[LANES - 1], marks);
    }
}

int gpa_access(Machine *machine, Operation *operation)
{
    if (!find_masks(machine, operation)) {
        return STOP_IDLE;
    }
    if (machine->traces_accesses && machine->held_bytes < machine->limit_bytes &&
        machine->held_bytes - machine->metered_bytes > METERED_AT_ONCE)
        return STOP_METER;
    find_addresses(machine, operation);
    int space = operation->space;
    if (space == SPACE_GENERIC && (space = find_space(machine)) == SPACE_GENERIC)
        return STOP_STEP;
    int is_private = space == SPACE_SHARED || space == SPACE_LOCAL;
    int64_t size = space == SPACE_SHARED ? machine->shared_bytes : machine->local_stride;
    if (is_private ? !check_private(machine, operation, size) : !check_global(machine, operation))
        return STOP_STEP;
    int is_checked = space == SPACE_SHARED && machine->checks;
    if (is_checked && is_suspect(machine, operation, operation->kind != 0))
        return STOP_STEP;
    if (is_checked && operation->code == CODE_STORE && store_shared(machine, operation))
        return STOP_STEP;
    count_guarded(machine, operation);
    int found = note_access(machine, operation, space);
    if (found != STOP_IDLE)
        return found;
    if (is_checked)
        note_shared(machine, operation);
    if (machine->word_marks != NULL && !is_private)
        mark_lanes(machine, operation);
    if (operation->code == CODE_LOAD)
        load(machine, operation, space);
    else if (operation->code == CODE_ATOMIC)
        change_in_order(machine, operation, space);
    else if (!is_checked)
        store(machine, operation, space);
    return STOP_IDLE;
}

#define DIVIDE(U, S, name_u, name_s)                                                                                   \
    static uint64_t name_u(uint64_t first, uint64_t second, int rest)                                                  \
    {                                                                                                                  \
        return rest ? (U)((U)first % (U)second) : (U)((U)first / (U)second);                                           \
    }                                                                                                                  \
    static uint64_t name_s(uint64_t first, uint64_t second, int rest)                                                  \
    {                                                                                                                  \
        S a = (S)first, b = (S)second;                                                                                 \
        if (b == -1)                                                                                                   \
            return rest ? 0 : (U)((U)0 - (U)a);                                                                        \
        return rest ? (U)(a % b) : (U)(a / b);                                                                         \
    }
DIVIDE(uint16_t, int16_t, divide_u16, divide_s16)
DIVIDE(uint32_t, int32_t, divide_u32, divide_s32)
DIVIDE(uint64_t, int64_t, divide_u64, divide_s64)

/* Quotients and remainders of integers; a divisor of 0 is left to Python. Literal 1 asks for the remainder. */
int gpa_divide(Machine *machine, Operation *operation)
{
    find_masks(machine, operation);
    int32_t bytes = operation->element_bytes;
    FOR_WARPS(warp)
    {
        const uint8_t *by = gpa_operand(frame_of(machine, warp), machine->constants, operation->b);
        FOR_LANES(lane, machine->masks[warp])
            if (take(by + lane * (uint32_t)bytes, bytes) == 0)
                return STOP_STEP;
    }
    count_guarded(machine, operation);
    uint64_t (*divide)(uint64_t, uint64_t, int) = bytes == 2   ? (operation->is_signed ? divide_s16 : divide_u16)
                                                  : bytes == 4 ? (operation->is_signed ? divide_s32 : divide_u32)
                                                               : (operation->is_signed ? divide_s64 : divide_u64);
    FOR_WARPS(warp)
    {
        uint8_t *frame = frame_of(machine, warp);
        const uint8_t *of = gpa_operand(frame, machine->constants, operation->a);
        const uint8_t *by = gpa_operand(frame, machine->constants, operation->b);
        FOR_LANES(lane, machine->masks[warp])
        {
            uint64_t found = divide(take(of + lane * (uint32_t)bytes, bytes), take(by + lane * (uint32_t)bytes, bytes), operation->literal != 0);
            give(frame + operation->result + lane * (uint32_t)bytes, found, bytes);
        }
    }
    return STOP_IDLE;
}
