/* What the requests of resident blocks find in caches of least recently used lines, and how far apart the loads of a line are. */
#include "distances.h"
#include "reuse.h"

enum { LOAD, BYPASSING_LOAD, STORE, ATOMIC };
enum { L1_SECTORS, L1_HITS, L2_SECTORS, L2_HITS, STORE_SECTORS, COLUMNS };

#define SECTOR_BITS 2
#define SECTORS (1 << SECTOR_BITS)
#define LINE_SHIFT 7

/* n requests, by wave and SM, as warps make them; the sectors of each lie together, ascending. */
typedef struct {
    const int64_t *roles, *instructions, *groups, *starts, *sizes;
    const int64_t *sectors;
    int64_t count;
} Requests;

/* What is known of a line: numbers of references to lines, -1 for none. */
typedef struct {
    int64_t last_miss;
    int64_t loaded[SECTORS];
    int64_t is_stored;
} Line;

typedef struct {
    Table table, measured;
    MarkCounts marks;
    Line *lines;
    int64_t used, room;
    int64_t *units, *distances;
    uint8_t *is_streaming, *is_dropped;
} Cache;

static int open_cache(Cache *cache, int64_t references)
{
    size_t most = (size_t)references + 1;
    memset(cache, 0, sizeof *cache);
    cache->units = malloc(most * sizeof *cache->units);
    cache->distances = malloc(most * sizeof *cache->distances);
    cache->is_streaming = malloc(most);
    cache->is_dropped = malloc(most);
    return cache->units != NULL && cache->distances != NULL && cache->is_streaming != NULL && cache->is_dropped != NULL &&
           gpa_open_marks(&cache->marks, references) && gpa_open_table(&cache->table) && gpa_open_table(&cache->measured);
}

static void close_cache(Cache *cache)
{
    gpa_close_table(&cache->table);
    gpa_close_table(&cache->measured);
    gpa_close_marks(&cache->marks);
    free(cache->lines);
    free(cache->units);
    free(cache->distances);
    free(cache->is_streaming);
    free(cache->is_dropped);
}

static void empty_cache(Cache *cache)
{
    gpa_clear_table(&cache->table);
    cache->used = 0;
}

static Line *find_line(Cache *cache, int64_t number)
{
    int64_t *place = gpa_find_place(&cache->table, number);
    if (place == NULL)
        return NULL;
    if (*place < 0) {
        *place = cache->used;
        if (cache->used == cache->room) {
            int64_t room = 2 * cache->room + 1024;
            Line *larger = realloc(cache->lines, (size_t)room * sizeof *larger);
            if (larger == NULL)
                return NULL;
            cache->lines = larger;
            cache->room = room;
        }
        memset(&cache->lines[cache->used], 0xFF, sizeof *cache->lines);
        cache->lines[cache->used].is_stored = 0;
        cache->used += 1;
    }
    return &cache->lines[*place];
}

/* The end of the run of sectors of one line. */
static int64_t end_of_line(const int64_t *sectors, int64_t place, int64_t end)
{
    int64_t line = sectors[place] >> SECTOR_BITS;
    while (++place < end && sectors[place] >> SECTOR_BITS == line)
        ;
    return place;
}

/* The lines that the requests load through L1, and whether a store made each invalid before; how many. */
static int64_t list_l1_lines(const Requests *requests, int64_t begin, int64_t end, int evicts_on_store, Cache *cache)
{
    int64_t found = 0;
    for (int64_t row = begin; row < end; ++row) {
        int is_load = requests->roles[row] == LOAD;
        if (!is_load && (!evicts_on_store || requests->roles[row] < STORE))
            continue;
        int64_t place = requests->starts[row], last = place + requests->sizes[row];
        for (; place < last; place = end_of_line(requests->sectors, place, last)) {
            int64_t number = requests->sectors[place] >> SECTOR_BITS;
            int is_dropped = 0;
            if (evicts_on_store) {
                Line *line = find_line(cache, number);
                if (line == NULL)
                    return FAILED;
                is_dropped = line->is_stored;
                line->is_stored = !is_load;
            }
            if (is_load) {
                cache->units[found] = number;
                cache->is_dropped[found++] = (uint8_t)is_dropped;
            }
        }
    }
    return found;
}

/* The sectors of one reference to a line: which of them were loaded since the line was missed. Gives their number; hits may be NULL. */
static int64_t look_up(Line *line, const int64_t *sectors, int64_t place, int64_t end, int64_t reference, int is_hit, uint8_t *hits)
{
    int64_t count = 0;
    if (!is_hit)
        line->last_miss = reference;
    for (; place < end; ++place) {
        int64_t *loaded = &line->loaded[sectors[place] & (SECTORS - 1)];
        int is_found = *loaded >= 0 && *loaded >= line->last_miss;
        *loaded = reference;
        count += is_found;
        if (hits != NULL)
            hits[place] = (uint8_t)is_found;
    }
    return count;
}

/* One wave on one SM. */
static int look_in_l1(const Requests *requests, int64_t begin, int64_t end, int64_t lines, int evicts_on_store, Cache *cache, ReuseGroups *groups,
                      uint8_t *hits)
{
    int64_t last = -1, reference = 0;
    empty_cache(cache);
    int64_t count = list_l1_lines(requests, begin, end, evicts_on_store, cache);
    if (count < 0 || !gpa_measure_group(cache->units, NULL, 0, count, &cache->measured, &cache->marks, cache->distances, cache->is_streaming))
        return 0;
    gpa_clear_table(&cache->measured);
    for (int64_t row = begin; row < end; ++row) {
        if (requests->roles[row] != LOAD)
            continue;
        int64_t place = requests->starts[row], stop = place + requests->sizes[row], first = reference;
        for (int64_t next; place < stop; place = next, ++reference) {
            next = end_of_line(requests->sectors, place, stop);
            if (cache->is_dropped[reference])
                cache->distances[reference] = -1;
            if (lines < 0)
                continue;
            Line *line = find_line(cache, cache->units[reference]);
            if (line == NULL)
                return 0;
            int is_hit = cache->distances[reference] >= 0 && cache->distances[reference] < lines;
            look_up(line, requests->sectors, place, next, reference, is_hit, hits);
        }
        if (!gpa_sum_reuse(groups, requests->instructions[row], cache->units + first, cache->distances + first, cache->is_streaming + first,
                           reference - first, LINE_SHIFT, &last))
            return 0;
    }
    return 1;
}

/* Whether a sector goes on to L2. */
static int goes_on(const Requests *requests, int64_t row, int64_t place, const uint8_t *hits)
{
    return requests->roles[row] != LOAD || !hits[place];
}

/* The sectors of a request that reach L2, in place of all; how many. */
static int64_t list_seen(const Requests *requests, int64_t row, const uint8_t *hits, int64_t *seen)
{
    int64_t count = 0;
    for (int64_t place = requests->starts[row]; place < requests->starts[row] + requests->sizes[row]; ++place)
        if (goes_on(requests, row, place, hits))
            seen[count++] = requests->sectors[place];
    return count;
}

static int look_in_l2(const Requests *requests, const int64_t *order, int64_t lines, const uint8_t *hits, Cache *cache, int64_t *seen, int64_t *sums)
{
    int64_t references = 0;
    empty_cache(cache);
    for (int64_t turn = 0; turn < requests->count; ++turn) {
        int64_t count = list_seen(requests, order[turn], hits, seen);
        for (int64_t place = 0; place < count; place = end_of_line(seen, place, count))
            cache->units[references++] = seen[place] >> SECTOR_BITS;
    }
    if (!gpa_measure_group(cache->units, NULL, 0, references, &cache->measured, &cache->marks, cache->distances, cache->is_streaming))
        return 0;
    int64_t reference = 0;
    for (int64_t turn = 0; turn < requests->count; ++turn) {
        int64_t row = order[turn], count = list_seen(requests, row, hits, seen), found = 0;
        for (int64_t place = 0, next; place < count; place = next, ++reference) {
            next = end_of_line(seen, place, count);
            Line *line = find_line(cache, cache->units[reference]);
            if (line == NULL)
                return 0;
            int is_hit = cache->distances[reference] >= 0 && cache->distances[reference] < lines;
            found += look_up(line, seen, place, next, reference, is_hit, NULL);
        }
        if (requests->roles[row] < STORE)
            sums[requests->instructions[row] * COLUMNS + L2_HITS] += found;
    }
    return 1;
}

static void count_sectors(const Requests *requests, const uint8_t *hits, int64_t *sums)
{
    for (int64_t row = 0; row < requests->count; ++row) {
        int64_t *sum = sums + requests->instructions[row] * COLUMNS, size = requests->sizes[row], found = 0;
        if (requests->roles[row] == LOAD) {
            for (int64_t place = requests->starts[row]; place < requests->starts[row] + size; ++place)
                found += hits[place];
            sum[L1_SECTORS] += size;
            sum[L1_HITS] += found;
        }
        if (requests->roles[row] < STORE)
            sum[L2_SECTORS] += size - found;
        else
            sum[STORE_SECTORS] += size;
    }
}

static int is_well_formed(const Requests *requests, const int64_t *order, int64_t sector_count, int64_t instruction_count, int64_t *largest)
{
    *largest = 0;
    for (int64_t row = 0; row < requests->count; ++row) {
        int64_t start = requests->starts[row], size = requests->sizes[row];
        if (start < 0 || size < 0 || start > sector_count - size || requests->instructions[row] < 0 ||
            requests->instructions[row] >= instruction_count || order[row] < 0 || order[row] >= requests->count)
            return 0;
        *largest = size > *largest ? size : *largest;
    }
    return 1;
}

/* gpa_lsp.traces.wave_answers: sums[instructions, 5] and the reuse of lines on each SM. Lines of a cache: -1 where its size is not known. */
EXPORT int64_t follow_waves(const int64_t *roles, const int64_t *instructions, const int64_t *groups_of, const int64_t *starts,
                            const int64_t *sizes, const int64_t *order, int64_t count, const int64_t *sectors, int64_t sector_count,
                            int64_t instruction_count, int64_t l1_lines, int64_t l2_lines, int64_t evicts_on_store, const uint64_t *bases,
                            const uint64_t *ends, const int64_t *numbers, int64_t array_count, int64_t arrays, int64_t *keys, int64_t *bins,
                            int64_t *reuse_sums, int64_t room, int64_t *sums)
{
    Requests requests = {roles, instructions, groups_of, starts, sizes, sectors, count};
    ReuseGroups groups;
    Cache cache;
    int64_t largest;
    memset(sums, 0, (size_t)(instruction_count * COLUMNS) * sizeof *sums);
    if (!is_well_formed(&requests, order, sector_count, instruction_count, &largest))
        return FAILED;
    uint8_t *hits = calloc((size_t)sector_count + 1, 1);
    int64_t *seen = malloc((size_t)(largest + 1) * sizeof *seen);
    int has_groups = gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, reuse_sums, room);
    int is_well = open_cache(&cache, sector_count) && has_groups && hits != NULL && seen != NULL;
    for (int64_t begin = 0, end; is_well && begin < count; begin = end) {
        for (end = begin + 1; end < count && groups_of[end] == groups_of[begin]; ++end)
            ;
        is_well = look_in_l1(&requests, begin, end, l1_lines, evicts_on_store != 0, &cache, &groups, hits);
    }
    if (is_well)
        count_sectors(&requests, hits, sums);
    if (is_well && l2_lines >= 0)
        is_well = look_in_l2(&requests, order, l2_lines, hits, &cache, seen, sums);
    close_cache(&cache);
    if (has_groups)
        gpa_close_reuse(&groups);
    free(hits);
    free(seen);
    return is_well ? groups.groups : FAILED;
}
