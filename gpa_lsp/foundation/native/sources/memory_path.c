/* Queues of the sub-cores, L1, and the SM's share of L2 and DRAM: gpa_lsp.execution.simulator.memory_path. */
#include "multiprocessor.h"
#include "sizes.h"

#define SMALLEST_QUEUE 16
#define TAGS_PER_CYCLE 4
#define FREE_TAGS 2
#define LOCAL_BIT (INT64_C(1) << 43)

static int append(Queue *queue, double value)
{
    if (queue->values == NULL || queue->count > queue->mask) {
        int64_t size = queue->values == NULL ? SMALLEST_QUEUE : 2 * (queue->mask + 1);
        double *values = malloc(multiply_sizes((size_t)size, sizeof *values));
        if (values == NULL)
            return 0;
        for (int64_t place = 0; place < queue->count; ++place)
            values[place] = queue->values[(queue->first + place) & queue->mask];
        free(queue->values);
        queue->values = values;
        queue->first = 0;
        queue->mask = size - 1;
    }
    queue->values[(queue->first + queue->count) & queue->mask] = value;
    queue->count += 1;
    return 1;
}

static double look(const Queue *queue, int64_t place)
{
    return queue->values[(queue->first + place) & queue->mask];
}

static void drop_until(Queue *queue, double time)
{
    while (queue->count > 0 && queue->values[queue->first] <= time) {
        queue->first = (queue->first + 1) & queue->mask;
        queue->count -= 1;
    }
}

static int open_cache(LineCache *cache, double lines)
{
    int64_t size = 16;
    while (size < 2 * (int64_t)lines)
        size *= 2;
    cache->room = (int32_t)lines;
    cache->mask = size - 1;
    cache->lines = malloc(multiply_sizes((size_t)lines + 1, sizeof *cache->lines));
    cache->ready = malloc(multiply_sizes((size_t)lines + 1, sizeof *cache->ready));
    cache->known = malloc((size_t)lines + 1);
    cache->heads = malloc(multiply_sizes((size_t)size, sizeof *cache->heads));
    cache->chains = malloc(multiply_sizes((size_t)lines + 1, sizeof *cache->chains));
    if (cache->heads != NULL)
        memset(cache->heads, 0xFF, (size_t)size * sizeof *cache->heads);
    return gpa_open_recency(&cache->recency, cache->room) && cache->lines != NULL && cache->ready != NULL && cache->known != NULL
           && cache->heads != NULL && cache->chains != NULL;
}

static int64_t hash(const LineCache *cache, int64_t line)
{
    uint64_t bits = (uint64_t)line * UINT64_C(0x9E3779B97F4A7C15);
    return (int64_t)((bits ^ (bits >> 32)) & (uint64_t)cache->mask);
}

static int32_t find_slot(const LineCache *cache, int64_t line)
{
    int32_t slot = cache->heads[hash(cache, line)];
    while (slot >= 0 && cache->lines[slot] != line)
        slot = cache->chains[slot];
    return slot;
}

/* A slot for a new line, that of the least recently used one where all are taken. */
static int32_t take_slot(LineCache *cache, int64_t line)
{
    int32_t slot = cache->recency.count;
    if (slot >= cache->room) {
        slot = cache->recency.oldest;
        int32_t *link = &cache->heads[hash(cache, cache->lines[slot])];
        while (*link != slot)
            link = &cache->chains[*link];
        *link = cache->chains[slot];
        gpa_forget_number(&cache->recency, slot);
    }
    int64_t head = hash(cache, line);
    cache->lines[slot] = line;
    cache->known[slot] = 0;
    cache->chains[slot] = cache->heads[head];
    cache->heads[head] = slot;
    gpa_append_number(&cache->recency, slot);
    return slot;
}

int gpa_open_memory(Memory *memory, const Model *model)
{
    memset(memory, 0, sizeof *memory);
    int is_well = gpa_open_table(&memory->l2_seen) & gpa_open_table(&memory->held);
    return open_cache(&memory->l1, model->l1_lines) && is_well;
}

void gpa_close_memory(Memory *memory)
{
    for (int sub_core = 0; sub_core < SUB_CORES; ++sub_core) {
        for (int unit = 0; unit < UNITS; ++unit)
            free(memory->queues[sub_core][unit].values);
        free(memory->lg_queues[sub_core].values);
    }
    free(memory->leaving.values);
    free(memory->misses.values);
    free(memory->l1.lines);
    free(memory->l1.ready);
    free(memory->l1.known);
    free(memory->l1.heads);
    free(memory->l1.chains);
    gpa_close_recency(&memory->l1.recency);
    gpa_close_table(&memory->l2_seen);
    gpa_close_table(&memory->held);
}

/* Why a queue does not take an instruction, -1 where it does, and until when. */
int gpa_find_queue_room(Memory *memory, const Model *model, const Row *row, int sub_core, double time, double *until)
{
    *until = time;
    if (row->is_lg) {
        Queue *queue = &memory->lg_queues[sub_core];
        drop_until(queue, time);
        if (queue->count >= model->lg_queue_instructions) {
            *until = look(queue, 0);
            return LG_THROTTLE;
        }
    }
    Queue *queue = &memory->queues[sub_core][row->unit];
    drop_until(queue, time);
    if (queue->count >= model->mio_queue_instructions) {
        *until = look(queue, 0);
        return row->throttle;
    }
    return -1;
}

static int leave_queue(Memory *memory, const Model *model, int sub_core, double begin, int is_lg)
{
    memory->accept_free = begin + model->accept_cycles;
    memory->unit_free[sub_core][LSU] = begin + model->address_cycles;
    memory->last[sub_core][LSU] = begin;
    if (is_lg && !append(&memory->lg_queues[sub_core], begin))
        return 0;
    return append(&memory->queues[sub_core][LSU], begin);
}

static int access_shared(Memory *memory, const Model *model, const Row *row, int32_t passes, int sub_core, double begin, Passage *passage)
{
    begin = later(begin, memory->data_free - model->data_queue_cycles);
    double start = later(begin, memory->data_free);
    memory->data_free = start + passes;
    memory->data_cycles += passes;
    passage->result = start + passes - 1 + row->latency;
    passage->read = begin + model->read_cycles + passes;
    passage->left = 0.0;
    return leave_queue(memory, model, sub_core, begin, 0);
}

/* What a store displaces goes to DRAM; where too much of that is due, the store waits. */
static double write_back(Memory *memory, const Model *model, double written, double departs)
{
    memory->dram_bytes += written;
    double cost = written / model->dram_bytes_per_cycle;
    if (memory->reads_until > departs + model->read_backlog_cycles)
        memory->write_back_free += cost; /* reads want the other half */
    memory->write_back_free = later(memory->write_back_free, departs) + cost;
    memory->dram_free = later(memory->dram_free, departs) + cost;
    return later(departs, memory->write_back_free - model->write_buffer_cycles);
}

/* Where too many are under way, the time at which there is room again. */
static double await_room(Queue *queue, double begin, double most)
{
    drop_until(queue, begin);
    return queue->count >= most ? later(begin, look(queue, queue->count - (int64_t)most)) : begin;
}

/* A line of L1, as the one used last. */
static int32_t take_line(LineCache *l1, int64_t line)
{
    int32_t slot = find_slot(l1, line);
    if (slot < 0)
        return take_slot(l1, line);
    if (l1->recency.newest != slot) {
        gpa_forget_number(&l1->recency, slot);
        gpa_append_number(&l1->recency, slot);
    }
    return slot;
}

/* Stores take lines of L1; what they leave there is read again only in local memory, where no other SM can have written since. */
static void keep_stored(Memory *memory, const Columns *columns, int64_t place, int64_t shift, double time)
{
    LineCache *l1 = &memory->l1;
    for (int64_t number = columns->first_sector[place]; number < columns->last_sector[place]; ++number) {
        int64_t sector = columns->sectors[number] + (columns->is_private[number] ? shift : 0);
        int part = (int)(sector & (LINE_SECTORS - 1));
        int32_t slot = take_line(l1, sector >> 2);
        if ((sector & LOCAL_BIT) && !(l1->known[slot] >> part & 1)) {
            l1->ready[slot][part] = time;
            l1->known[slot] |= (uint8_t)(1 << part);
        }
    }
}

/* Lanes that name the same address, of each line. */
static double count_repeats(const Columns *columns, int64_t place)
{
    return (double)columns->passes[place] / (columns->lines[place] > 1 ? columns->lines[place] : 1);
}

/* When L2 has done the last of a warp's atomic operations that come at a time. The first waits only for what came before it. 0 without memory. */
static int meet(Memory *memory, const Model *model, const Row *row, const Columns *columns, int64_t place, int64_t shift, double time,
                double *latest)
{
    double repeats = count_repeats(columns, place), cycles = row->interval * model->atomic_cycles;
    *latest = time;
    for (int64_t number = columns->first_sector[place]; number < columns->last_sector[place]; ++number) {
        int64_t *held = gpa_find_place(&memory->held, columns->sectors[number] + (columns->is_private[number] ? shift : 0));
        double start = 0.0;
        if (held == NULL)
            return 0;
        if (*held >= 0)
            memcpy(&start, held, sizeof start);
        start = later(time, start);
        double until = start + repeats * cycles;
        memcpy(held, &until, sizeof until);
        *latest = later(*latest, start + (repeats - 1.0) * cycles);
    }
    return 1;
}

static int store(Memory *memory, const Model *model, const Row *row, const Columns *columns, int64_t place, int64_t shift, int sub_core,
                 double begin, Passage *passage)
{
    int is_reduction = row->kind == REDUCTION;
    begin = await_room(&memory->leaving, begin, model->store_queue_instructions);
    int32_t passes = columns->passes[place];
    double start = later(begin, memory->tag_free);
    int32_t busy = columns->lines[place] > passes ? columns->lines[place] : passes;
    memory->tag_free = start + busy;
    memory->tag_cycles += busy;
    if (!leave_queue(memory, model, sub_core, begin, 1))
        return 0;
    if (!is_reduction && model->l1_lines > 0)
        keep_stored(memory, columns, place, shift, start + busy);
    double written = (double)(columns->last_sector[place] - columns->first_sector[place]) * SECTOR_BYTES;
    double sent = is_reduction ? written * count_repeats(columns, place) : written;
    memory->l2_bytes += sent;
    double departs = later(memory->store_free, start + passes) + sent / model->store_bytes_per_cycle;
    double back = written * model->written_back_ratio;
    if (back != 0.0)
        departs = write_back(memory, model, back, departs);
    memory->store_free = departs;
    if (is_reduction && !meet(memory, model, row, columns, place, shift, departs, &departs))
        return 0;
    passage->left = passage->result = departs + model->store_retire_cycles;
    passage->read = start + model->read_cycles + passes;
    return append(&memory->leaving, departs);
}

/* When a sector that L1 has not arrives; 0 without memory. */
static int fetch_sector(Memory *memory, const Model *model, int64_t sector, double time, double *ready)
{
    memory->l2_bytes += SECTOR_BYTES;
    memory->l2_free = later(memory->l2_free, time) + SECTOR_BYTES / model->l2_bytes_per_cycle;
    *ready = memory->l2_free + model->l2_cycles;
    int64_t *seen = gpa_find_place(&memory->l2_seen, sector);
    if (seen == NULL)
        return 0;
    if (*seen >= 0)
        return 1;
    *seen = 0;
    memory->hits_due += model->l2_hit_ratio;
    if (memory->hits_due >= 1.0) {
        memory->hits_due -= 1.0;
        return 1;
    }
    memory->dram_bytes += SECTOR_BYTES;
    memory->dram_free = later(memory->dram_free, memory->l2_free) + SECTOR_BYTES / model->dram_bytes_per_cycle;
    memory->reads_until = memory->dram_free;
    *ready = later(*ready, memory->dram_free + model->dram_cycles);
    return 1;
}

/* When the last sector that L1 had not is there; 0 where it had all. Those under way are waited for. */
static int look_up(Memory *memory, const Model *model, const Columns *columns, int64_t place, int64_t shift, double time, int uses_l1,
                   double *latest)
{
    LineCache *l1 = &memory->l1;
    *latest = 0.0;
    for (int64_t number = columns->first_sector[place]; number < columns->last_sector[place]; ++number) {
        int64_t sector = columns->sectors[number] + (columns->is_private[number] ? shift : 0);
        int part = (int)(sector & (LINE_SECTORS - 1));
        int32_t slot = uses_l1 ? take_line(l1, sector >> 2) : -1;
        double ready;
        if (slot >= 0 && (l1->known[slot] >> part & 1)) {
            ready = l1->ready[slot][part];
            if (ready <= time)
                continue;
        } else {
            if (!fetch_sector(memory, model, sector, time, &ready))
                return 0;
            if (slot >= 0) {
                l1->ready[slot][part] = ready;
                l1->known[slot] |= (uint8_t)(1 << part);
            }
        }
        *latest = later(*latest, ready);
    }
    return 1;
}

/* Cycles in which L1 has the lines of a load looked up and its data handed over. */
static double count_passes(const Model *model, int32_t passes, int32_t lines)
{
    if (model->l1_tags_per_cycle != 0.0)
        return passes + lines / model->l1_tags_per_cycle;
    int32_t looked_up = (lines + FREE_TAGS + TAGS_PER_CYCLE - 1) / TAGS_PER_CYCLE;
    return passes > looked_up ? passes : looked_up;
}

/* A load, or an atomic operation that returns something: tags, then what they miss from L2 and DRAM. */
static int load(Memory *memory, const Model *model, const Row *row, const Columns *columns, int64_t place, int64_t shift, int sub_core,
                double begin, Passage *passage)
{
    begin = await_room(&memory->misses, begin, model->miss_queue_instructions);
    begin = later(begin, memory->tag_free - model->tag_queue_cycles);
    double start = later(begin, memory->tag_free), latest;
    double passes = count_passes(model, columns->passes[place], columns->lines[place]);
    memory->tag_free = start + passes;
    memory->tag_cycles += passes;
    double hit = start + passes - 1 + row->latency;
    if (!leave_queue(memory, model, sub_core, begin, 1))
        return 0;
    if (!look_up(memory, model, columns, place, shift, start + passes, row->uses_l1 && model->l1_lines > 0, &latest))
        return 0;
    if (row->kind == ATOMIC && latest > 0) {
        double met;
        if (!meet(memory, model, row, columns, place, shift, start + passes, &met))
            return 0;
        latest = later(latest, met + model->l2_cycles);
    }
    passage->result = later(latest, hit);
    passage->read = begin + model->read_cycles;
    passage->left = 0.0;
    return latest > 0 ? append(&memory->misses, passage->result) : 1;
}

int gpa_enter_memory(Memory *memory, const Model *model, const Row *row, const Columns *columns, int64_t place, int64_t shift,
                     int sub_core, double time, Passage *passage)
{
    int unit = row->unit;
    int32_t passes = columns->passes[place];
    double begin = later(time + model->queue_cycles, memory->last[sub_core][unit] + 1.0);
    if (row->kind == SPECIAL || passes == 0) { /* or no lane is active */
        double again = 0.0;
        if (row->kind == SPECIAL) {
            double *held = row->is_shared_unit ? memory->shared_free : memory->unit_free[sub_core];
            begin = later(begin, held[unit]);
            again = passes > 1 ? (passes - 1) * row->interval : 0.0;
            held[unit] = begin + row->interval + again;
        }
        memory->last[sub_core][unit] = begin;
        passage->result = begin + row->latency + again;
        passage->read = begin + model->read_cycles;
        passage->left = 0.0;
        return append(&memory->queues[sub_core][unit], begin);
    }
    begin = later(begin, later(memory->accept_free, memory->unit_free[sub_core][LSU]));
    if (row->kind == SHARED)
        return access_shared(memory, model, row, passes, sub_core, begin, passage);
    if (row->kind == STORE || row->kind == REDUCTION)
        return store(memory, model, row, columns, place, shift, sub_core, begin, passage);
    return load(memory, model, row, columns, place, shift, sub_core, begin, passage);
}
