/* What the requests of resident blocks find in caches of least recently used lines, and how far apart the loads of a line are. */
#include "reuse.h"

enum { LOAD, BYPASSING_LOAD, STORE, ATOMIC };
enum { L1_SECTORS, L1_HITS, L2_SECTORS, L2_HITS, STORE_SECTORS, COLUMNS };

/* n requests, by wave and SM, as warps make them. */
typedef struct {
    const int64_t *roles, *instructions, *groups, *sizes;
    const LineSets *sets;
    int64_t count;
} Requests;

/* A cache of each SM, or of all. Lines have numbers. */
typedef struct {
    Recency recency;
    int64_t lines;    /* of the cache; -1 where its size is not known */
    uint8_t *loaded;  /* by line: sectors loaded since it was missed */
    int32_t *known;   /* by set: the list whose sectors of all its lines were loaded last, while nobody else took a line */
} Cache;

typedef struct {
    FreshLines fresh;
    ReuseGroups *groups;
    int32_t *stored;     /* by line: the sequence that stored to it last, plus one */
    int64_t *distances, *shown; /* of the lines of a set */
    uint8_t *hits;       /* by request and line: sectors found in L1 */
    int64_t *offsets;    /* of requests in them */
    int64_t *sums;
} Work;

static int open_cache(Cache *cache, const LineSets *sets, int64_t references, int64_t lines, int has_singles)
{
    cache->lines = lines;
    cache->loaded = calloc((size_t)sets->line_count + 1, 1);
    cache->known = malloc((size_t)(sets->set_count + 1) * sizeof *cache->known);
    if (cache->known != NULL)
        memset(cache->known, 0xFF, (size_t)(sets->set_count + 1) * sizeof *cache->known);
    return gpa_open_line_recency(&cache->recency, sets, references, has_singles) && cache->loaded != NULL && cache->known != NULL;
}

static void close_cache(Cache *cache)
{
    gpa_close_line_recency(&cache->recency);
    free(cache->loaded);
    free(cache->known);
}

static int64_t find_set(const Requests *requests, int64_t row)
{
    return requests->sets->sets[requests->sets->lists[row]];
}

/* Which sectors of each line of a request there are. */
static const uint8_t *find_masks(const Requests *requests, int64_t row)
{
    return requests->sets->masks + requests->sets->firsts[requests->sets->lists[row]];
}

/* The wanted sectors of a line that were loaded since it was missed. */
static uint8_t look_up(Cache *cache, int64_t line, int64_t distance, uint8_t wanted)
{
    uint8_t loaded = distance >= 0 && distance < cache->lines ? cache->loaded[line] : 0;
    cache->loaded[line] = loaded | wanted;
    return loaded & wanted;
}

static int64_t get_distance(int64_t distance, const int64_t *distances, int64_t rank)
{
    return distance == SEVERAL ? distances[rank] : distance;
}

static int load(const Requests *requests, int64_t row, int64_t sequence, Cache *l1, Work *work)
{
    int64_t set = find_set(requests, row), first = requests->sets->set_firsts[set], count = gpa_count_lines(requests->sets, set), found = 0;
    int64_t distance = gpa_refer(&l1->recency, set, 0, work->distances), instruction = requests->instructions[row];
    const uint8_t *masks = find_masks(requests, row);
    uint8_t *hits = work->hits + work->offsets[row];
    int is_dropped = 0;
    for (int64_t rank = 0; work->stored != NULL && rank < count; ++rank) {
        int32_t *stored = &work->stored[requests->sets->lines[first + rank]];
        work->distances[rank] = get_distance(distance, work->distances, rank);
        work->shown[rank] = *stored == sequence + 1 ? INFINITE : work->distances[rank];
        is_dropped |= *stored == sequence + 1;
        *stored = 0;
    }
    if (is_dropped ? !gpa_sum_lines(&work->fresh, work->groups, instruction, set, work->distances, work->shown)
                   : !gpa_sum_set(&work->fresh, work->groups, instruction, set, gpa_is_own(&l1->recency, set), distance, work->distances))
        return 0;
    if (!is_dropped && distance >= 0 && distance < l1->lines && l1->known[set] == requests->sets->lists[row]) {
        memcpy(hits, masks, (size_t)count);
        found = requests->sizes[row];
    } else
        for (int64_t rank = 0; l1->lines >= 0 && rank < count; ++rank) {
            int64_t shown = is_dropped ? work->shown[rank] : get_distance(distance, work->distances, rank);
            hits[rank] = look_up(l1, requests->sets->lines[first + rank], shown, masks[rank]);
            found += __builtin_popcount(hits[rank]);
        }
    l1->known[set] = requests->sets->lists[row];
    work->sums[instruction * COLUMNS + L1_SECTORS] += requests->sizes[row];
    work->sums[instruction * COLUMNS + L1_HITS] += found;
    work->sums[instruction * COLUMNS + L2_SECTORS] += requests->sizes[row] - found;
    return 1;
}

static void store(const Requests *requests, int64_t row, int64_t sequence, Work *work)
{
    int64_t set = find_set(requests, row), first = requests->sets->set_firsts[set], count = gpa_count_lines(requests->sets, set);
    for (int64_t rank = 0; work->stored != NULL && rank < count; ++rank)
        work->stored[requests->sets->lines[first + rank]] = (int32_t)(sequence + 1);
    work->sums[requests->instructions[row] * COLUMNS + STORE_SECTORS] += requests->sizes[row];
}

/* One wave on one SM. */
static int look_in_l1(const Requests *requests, int64_t begin, int64_t end, int64_t sequence, Cache *l1, Work *work)
{
    int64_t references = 0;
    for (int64_t row = begin; row < end; ++row)
        references += requests->roles[row] == LOAD ? gpa_count_lines(requests->sets, find_set(requests, row)) : 0;
    gpa_begin_sequence(&l1->recency, references);
    for (int64_t row = begin; row < end; ++row)
        if (requests->roles[row] >= STORE)
            store(requests, row, sequence, work);
        else if (requests->roles[row] == BYPASSING_LOAD)
            work->sums[requests->instructions[row] * COLUMNS + L2_SECTORS] += requests->sizes[row];
        else if (!load(requests, row, sequence, l1, work))
            return 0;
    return 1;
}

/* What L1 does not answer of a request; gives the sectors found. */
static int64_t pass_on(const Requests *requests, int64_t row, Cache *l2, Work *work)
{
    int64_t set = find_set(requests, row), first = requests->sets->set_firsts[set], count = gpa_count_lines(requests->sets, set);
    const uint8_t *masks = find_masks(requests, row), *hits = work->hits + work->offsets[row];
    int64_t lines = 0, found = 0;
    if (memcmp(masks, hits, (size_t)count) == 0)
        return 0;
    for (int64_t rank = 0; rank < count; ++rank)
        lines += (masks[rank] & ~hits[rank]) != 0;
    int64_t common = lines == count ? gpa_refer(&l2->recency, set, 0, work->distances) : INFINITE;
    for (int64_t rank = 0; rank < count; ++rank) {
        uint8_t wanted = masks[rank] & (uint8_t)~hits[rank];
        int64_t line = requests->sets->lines[first + rank], distance = get_distance(common, work->distances, rank), own;
        if (wanted == 0)
            continue;
        if (lines < count) {
            distance = gpa_refer(&l2->recency, requests->sets->set_count + line, 0, &own);
            distance = distance == SEVERAL ? own : distance;
        }
        found += __builtin_popcount(look_up(l2, line, distance, wanted));
    }
    return found;
}

static void look_in_l2(const Requests *requests, const int64_t *order, int64_t references, Cache *l2, Work *work)
{
    gpa_begin_sequence(&l2->recency, references);
    for (int64_t turn = 0; turn < requests->count; ++turn) {
        int64_t found = pass_on(requests, order[turn], l2, work);
        if (requests->roles[order[turn]] < STORE)
            work->sums[requests->instructions[order[turn]] * COLUMNS + L2_HITS] += found;
    }
}

static int is_well_formed(const Requests *requests, const int64_t *order, int64_t instruction_count)
{
    for (int64_t row = 0; row < requests->count; ++row)
        if (requests->instructions[row] < 0 || requests->instructions[row] >= instruction_count || order[row] < 0 || order[row] >= requests->count)
            return 0;
    return 1;
}

/* References to lines of all requests; 0 in `work` without memory. */
static int open_work(const Requests *requests, int evicts_on_store, ReuseGroups *groups, int64_t *sums, Work *work, int64_t *references)
{
    int64_t most = 0;
    work->groups = groups;
    work->sums = sums;
    work->offsets = malloc((size_t)(requests->count + 1) * sizeof *work->offsets);
    *references = 0;
    for (int64_t row = 0; work->offsets != NULL && row < requests->count; ++row) {
        int64_t lines = gpa_count_lines(requests->sets, find_set(requests, row));
        work->offsets[row] = *references;
        *references += lines;
        most = lines > most ? lines : most;
    }
    work->hits = calloc((size_t)*references + 1, 1);
    work->distances = malloc((size_t)(most + 1) * sizeof *work->distances);
    work->shown = malloc((size_t)(most + 1) * sizeof *work->shown);
    work->stored = evicts_on_store ? calloc((size_t)requests->sets->line_count + 1, sizeof *work->stored) : NULL;
    return work->offsets != NULL && work->hits != NULL && work->distances != NULL && work->shown != NULL &&
           (!evicts_on_store || work->stored != NULL) && gpa_open_fresh(&work->fresh, requests->sets, groups, 0, LINE_SHIFT);
}

static void close_work(Work *work)
{
    gpa_close_fresh(&work->fresh);
    free(work->offsets);
    free(work->hits);
    free(work->distances);
    free(work->shown);
    free(work->stored);
}

/* gpa_lsp.traces.wave_answers: sums[instructions, 5] and the reuse of lines on each SM. Lines of a cache: -1 where its size is not known. */
EXPORT int64_t follow_waves(const int64_t *roles, const int64_t *instructions, const int64_t *groups_of, const int64_t *sizes,
                            const int64_t *order, int64_t count, const int32_t *lists, const int64_t *firsts, const int32_t *set_of,
                            const int32_t *dense, const uint8_t *parts, const int64_t *set_firsts, const int32_t *lines,
                            const int64_t *line_numbers, int64_t set_count, int64_t line_count, int64_t sector_count, int64_t instruction_count,
                            int64_t l1_lines, int64_t l2_lines, int64_t evicts_on_store, const uint64_t *bases, const uint64_t *ends,
                            const int64_t *numbers, int64_t array_count, int64_t arrays, int64_t *keys, int64_t *bins, int64_t *reuse_sums,
                            int64_t room, int64_t *sums)
{
    LineSets sets = {lists, firsts, set_of, dense, parts, set_firsts, lines, line_numbers, set_count, line_count, sector_count};
    Requests requests = {roles, instructions, groups_of, sizes, &sets, count};
    ReuseGroups groups;
    Cache l1, l2;
    Work work;
    int64_t references;
    memset(sums, 0, (size_t)(instruction_count * COLUMNS) * sizeof *sums);
    memset(&work, 0, sizeof work);
    memset(&l1, 0, sizeof l1);
    memset(&l2, 0, sizeof l2);
    if (!is_well_formed(&requests, order, instruction_count))
        return FAILED;
    int has_groups = gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, reuse_sums, room);
    int is_well = open_work(&requests, evicts_on_store != 0, &groups, sums, &work, &references) && has_groups &&
                  open_cache(&l1, &sets, references, l1_lines, 0);
    for (int64_t begin = 0, end, sequence = 0; is_well && begin < count; begin = end, ++sequence) {
        for (end = begin + 1; end < count && groups_of[end] == groups_of[begin]; ++end)
            ;
        is_well = look_in_l1(&requests, begin, end, sequence, &l1, &work);
    }
    close_cache(&l1);
    if (is_well && l2_lines >= 0) {
        is_well = open_cache(&l2, &sets, references, l2_lines, 1);
        if (is_well)
            look_in_l2(&requests, order, references, &l2, &work);
        close_cache(&l2);
    }
    close_work(&work);
    if (has_groups)
        gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}
