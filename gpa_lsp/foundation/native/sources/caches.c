/* What the requests of resident blocks find in caches of least recently used lines, and how far apart the loads of a line are. */
#include "reuse.h"
#include "sizes.h"

enum { LOAD, BYPASSING_LOAD, STORE, ATOMIC };
enum { EVERY = -1, NONE = -2 };
enum { L1_SECTORS, L1_HITS, L2_SECTORS, L2_HITS, STORE_SECTORS, COLUMNS };

/* Requests, and their orders: by wave and SM, as warps make them, and as a cache that all SMs share would get them. */
typedef struct {
    const int8_t *roles; /* by instruction */
    const uint32_t *instructions;
    const uint8_t *is_local;
    const int64_t *sizes; /* by list: sectors */
    const int64_t *order, *shared_order;
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
    int64_t *missed;     /* by request: where its sectors that L1 did not have lie, by line; EVERY, or NONE */
    uint8_t *sectors;    /* these */
    int64_t used;        /* of them */
    int64_t *sums;
} Work;

static int open_cache(Cache *cache, const LineSets *sets, int64_t references, int64_t lines, int has_singles)
{
    cache->lines = lines;
    cache->loaded = calloc((size_t)sets->line_count + 1, 1);
    cache->known = malloc(multiply_sizes((size_t)(sets->set_count + 1), sizeof *cache->known));
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

static int find_role(const Requests *requests, int64_t row)
{
    int role = requests->roles[requests->instructions[row]];
    return role == BYPASSING_LOAD && requests->is_local[row] ? LOAD : role;
}

static int64_t get_size(const Requests *requests, int64_t row)
{
    return requests->sizes[requests->sets->lists[row]];
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
    uint8_t *missed = work->sectors + work->used;
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
    int64_t size = get_size(requests, row);
    if (!is_dropped && distance >= 0 && distance < l1->lines && l1->known[set] == requests->sets->lists[row])
        found = size;
    else
        for (int64_t rank = 0; l1->lines >= 0 && rank < count; ++rank) {
            int64_t shown = is_dropped ? work->shown[rank] : get_distance(distance, work->distances, rank);
            uint8_t hits = look_up(l1, requests->sets->lines[first + rank], shown, masks[rank]);
            missed[rank] = masks[rank] & (uint8_t)~hits;
            found += __builtin_popcount(hits);
        }
    work->missed[row] = found == size ? NONE : found == 0 ? EVERY : work->used;
    work->used += work->missed[row] >= 0 ? count : 0;
    l1->known[set] = requests->sets->lists[row];
    work->sums[instruction * COLUMNS + L1_SECTORS] += size;
    work->sums[instruction * COLUMNS + L1_HITS] += found;
    work->sums[instruction * COLUMNS + L2_SECTORS] += size - found;
    return 1;
}

static void store(const Requests *requests, int64_t row, int64_t sequence, Work *work)
{
    int64_t set = find_set(requests, row), first = requests->sets->set_firsts[set], count = gpa_count_lines(requests->sets, set);
    for (int64_t rank = 0; work->stored != NULL && rank < count; ++rank)
        work->stored[requests->sets->lines[first + rank]] = (int32_t)(sequence + 1);
    work->sums[requests->instructions[row] * COLUMNS + STORE_SECTORS] += get_size(requests, row);
}

/* One wave on one SM: so many places of the order. */
static int look_in_l1(const Requests *requests, int64_t begin, int64_t end, int64_t sequence, Cache *l1, Work *work)
{
    int64_t references = 0;
    for (int64_t place = begin; place < end; ++place)
        references += gpa_count_lines(requests->sets, find_set(requests, requests->order[place]));
    gpa_begin_sequence(&l1->recency, references);
    for (int64_t place = begin; place < end; ++place) {
        int64_t row = requests->order[place];
        int role = find_role(requests, row);
        if (role >= STORE)
            store(requests, row, sequence, work);
        else if (role == BYPASSING_LOAD)
            work->sums[requests->instructions[row] * COLUMNS + L2_SECTORS] += get_size(requests, row);
        else if (!load(requests, row, sequence, l1, work))
            return 0;
    }
    return 1;
}

/* What L1 does not answer of a request; gives the sectors found. */
static int64_t pass_on(const Requests *requests, int64_t row, Cache *l2, Work *work)
{
    if (work->missed[row] == NONE)
        return 0;
    int64_t set = find_set(requests, row), first = requests->sets->set_firsts[set], count = gpa_count_lines(requests->sets, set);
    const uint8_t *missed = work->missed[row] == EVERY ? find_masks(requests, row) : work->sectors + work->missed[row];
    int64_t lines = 0, found = 0;
    for (int64_t rank = 0; rank < count; ++rank)
        lines += missed[rank] != 0;
    int64_t common = lines == count ? gpa_refer(&l2->recency, set, 0, work->distances) : INFINITE;
    for (int64_t rank = 0; rank < count; ++rank) {
        uint8_t wanted = missed[rank];
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

static void look_in_l2(const Requests *requests, int64_t references, Cache *l2, Work *work)
{
    gpa_begin_sequence(&l2->recency, references);
    for (int64_t turn = 0; turn < requests->count; ++turn) {
        int64_t row = requests->shared_order[turn], found = pass_on(requests, row, l2, work);
        if (find_role(requests, row) < STORE)
            work->sums[requests->instructions[row] * COLUMNS + L2_HITS] += found;
    }
}

static int is_well_formed(const Requests *requests, int64_t instruction_count)
{
    for (int64_t row = 0; row < requests->count; ++row)
        if (requests->instructions[row] >= instruction_count || requests->order[row] < 0 || requests->order[row] >= requests->count ||
            requests->shared_order[row] < 0 || requests->shared_order[row] >= requests->count)
            return 0;
    return 1;
}

/* References to lines of all requests; 0 in `work` without memory. */
static int open_work(const Requests *requests, int evicts_on_store, ReuseGroups *groups, int64_t *sums, Work *work, int64_t *references)
{
    int64_t most = 0;
    work->groups = groups;
    work->sums = sums;
    *references = 0;
    for (int64_t row = 0; row < requests->count; ++row) {
        int64_t lines = gpa_count_lines(requests->sets, find_set(requests, row));
        *references += lines;
        most = lines > most ? lines : most;
    }
    work->missed = malloc(multiply_sizes((size_t)(requests->count + 1), sizeof *work->missed));
    work->sectors = malloc((size_t)(*references + 1));
    if (work->missed != NULL)
        memset(work->missed, 0xFF, (size_t)(requests->count + 1) * sizeof *work->missed); /* EVERY */
    work->distances = malloc(multiply_sizes((size_t)(most + 1), sizeof *work->distances));
    work->shown = malloc(multiply_sizes((size_t)(most + 1), sizeof *work->shown));
    work->stored = evicts_on_store ? calloc((size_t)requests->sets->line_count + 1, sizeof *work->stored) : NULL;
    return work->missed != NULL && work->sectors != NULL && work->distances != NULL && work->shown != NULL &&
           (!evicts_on_store || work->stored != NULL) && gpa_open_fresh(&work->fresh, requests->sets, groups, 0, LINE_SHIFT);
}

static void close_work(Work *work)
{
    gpa_close_fresh(&work->fresh);
    free(work->missed);
    free(work->sectors);
    free(work->distances);
    free(work->shown);
    free(work->stored);
}

/* gpa_lsp.execution.traces.analyse: sums[instructions, 5] and the reuse of lines on each SM. Lines of a cache: -1 where its size is not known. */
EXPORT int64_t follow_waves(const int8_t *roles, const uint32_t *instructions, const uint8_t *is_local, const int64_t *sizes,
                            const int64_t *order, const int64_t *group_ends, int64_t group_count, const int64_t *shared_order, int64_t count,
                            const int32_t *lists, const int64_t *firsts, const int32_t *set_of,
                            const int32_t *dense, const uint8_t *parts, const int64_t *set_firsts, const int32_t *lines,
                            const int64_t *line_numbers, int64_t set_count, int64_t line_count, int64_t sector_count, int64_t instruction_count,
                            int64_t l1_lines, int64_t l2_lines, int64_t evicts_on_store, const uint64_t *bases, const uint64_t *ends,
                            const int64_t *numbers, int64_t array_count, int64_t arrays, int64_t *keys, int64_t *bins, int64_t *reuse_sums,
                            int64_t room, int64_t *sums)
{
    LineSets sets = {lists, firsts, set_of, dense, parts, set_firsts, lines, line_numbers, set_count, line_count, sector_count};
    Requests requests = {roles, instructions, is_local, sizes, order, shared_order, &sets, count};
    ReuseGroups groups;
    Cache l1, l2;
    Work work;
    int64_t references;
    memset(sums, 0, (size_t)(instruction_count * COLUMNS) * sizeof *sums);
    memset(&work, 0, sizeof work);
    memset(&l1, 0, sizeof l1);
    memset(&l2, 0, sizeof l2);
    if (!is_well_formed(&requests, instruction_count))
        return FAILED;
    int has_groups = gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, reuse_sums, room);
    int is_well = open_work(&requests, evicts_on_store != 0, &groups, sums, &work, &references) && has_groups &&
                  open_cache(&l1, &sets, references, l1_lines, 0);
    for (int64_t group = 0, begin = 0; is_well && group < group_count; begin = group_ends[group++])
        is_well = begin <= group_ends[group] && group_ends[group] <= count && look_in_l1(&requests, begin, group_ends[group], group, &l1, &work);
    close_cache(&l1);
    if (is_well && l2_lines >= 0) {
        is_well = open_cache(&l2, &sets, references, l2_lines, 1);
        if (is_well)
            look_in_l2(&requests, references, &l2, &work);
        close_cache(&l2);
    }
    close_work(&work);
    if (has_groups)
        gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}
