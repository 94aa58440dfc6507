/* The reuse of global memory by one piece of a trace, by instruction and array. */
#include "reuse.h"
#include "lanes.h"
#include "sizes.h"

#define BINS 34
#define FINITE_BINS 33
#define FIRST_ARRAY 2
#define SECTOR_SHIFT 5
#define MOST_UNITS (LANES * (256 / 4 + 2))

int gpa_open_reuse(ReuseGroups *groups, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers, int64_t count, int64_t arrays,
                   int64_t *keys, int64_t *bins, int64_t *sums, int64_t room)
{
    ReuseGroups opened = {bases, ends, numbers, count, arrays, {NULL, NULL, NULL, 0, 0, 0, 0}, keys, bins, sums, 0, room, {0}, {0}};
    *groups = opened;
    memset(groups->recent_keys, 0xFF, sizeof groups->recent_keys);
    memset(bins, 0, (size_t)(room * BINS) * sizeof *bins);
    memset(sums, 0, (size_t)(room * 2) * sizeof *sums);
    return gpa_open_table(&groups->places);
}

void gpa_close_reuse(ReuseGroups *groups)
{
    gpa_close_table(&groups->places);
}

/* The place of the last array that begins at an address or before; -1 for none. */
static int64_t locate(const ReuseGroups *groups, uint64_t address)
{
    int64_t low = 0, high = groups->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (groups->bases[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

int64_t gpa_find_array(const ReuseGroups *groups, uint64_t first, uint64_t last)
{
    int64_t place = locate(groups, first);
    if (place != locate(groups, last))
        return SEVERAL;
    if (place < 0 || groups->ends[place] <= first)
        return OUTSIDE;
    return groups->ends[place] > last ? groups->numbers[place] : SEVERAL;
}

int64_t gpa_find_group(ReuseGroups *groups, int64_t instruction, int64_t array)
{
    int64_t key = instruction * groups->arrays + array + FIRST_ARRAY;
    int64_t recent = (instruction + array * 8) & (RECENT - 1);
    if (key == groups->recent_keys[recent])
        return groups->recent_groups[recent];
    int64_t *place = gpa_find_place(&groups->places, key);
    if (place == NULL)
        return FAILED;
    if (*place < 0) {
        *place = groups->groups;
        if (groups->groups == groups->room)
            return FAILED;
        groups->keys[groups->groups++] = key;
    }
    groups->recent_keys[recent] = key;
    groups->recent_groups[recent] = *place;
    return *place;
}

void gpa_add_distance(ReuseGroups *groups, int64_t group, int64_t distance, int64_t count)
{
    int64_t bin = distance < 0 ? FINITE_BINS : distance == 0 ? 0 : 64 - __builtin_clzll((uint64_t)distance);
    if (distance >= 0 && bin >= FINITE_BINS)
        bin = FINITE_BINS - 1;
    groups->bins[group * BINS + bin] += count;
    groups->sums[group * 2 + 1] += distance < 0 ? 0 : distance * count;
}

static uint64_t find_address(const FreshLines *fresh, int64_t line)
{
    uint64_t part = (uint64_t)line & ((UINT64_C(1) << fresh->part_bits) - 1);
    return ((uint64_t)fresh->of->line_numbers[line >> fresh->part_bits] << fresh->part_bits | part) << fresh->shift;
}

/* Without the arrays of sets. */
static int open_fresh(FreshLines *fresh, const LineSets *of, const ReuseGroups *groups, int part_bits, int shift)
{
    size_t sets = (size_t)of->set_count + 1;
    FreshLines opened = {of, groups, part_bits, shift, NULL, NULL, NULL, NULL};
    *fresh = opened;
    fresh->arrays = malloc(multiply_sizes(sets, sizeof *fresh->arrays));
    fresh->of_set = calloc(sets, sizeof *fresh->of_set);
    fresh->fresh = calloc((size_t)of->line_count + 1, sizeof *fresh->fresh);
    fresh->has_fresh = calloc(sets, 1);
    return fresh->arrays != NULL && fresh->of_set != NULL && fresh->fresh != NULL && fresh->has_fresh != NULL;
}

int gpa_open_fresh(FreshLines *fresh, const LineSets *of, const ReuseGroups *groups, int part_bits, int shift)
{
    if (!open_fresh(fresh, of, groups, part_bits, shift))
        return 0;
    for (int64_t set = 0; set < of->set_count; ++set) {
        uint64_t first = find_address(fresh, of->lines[of->set_firsts[set]]), last = find_address(fresh, of->lines[of->set_firsts[set + 1] - 1]);
        fresh->arrays[set] = (int32_t)gpa_find_array(groups, first, last);
    }
    return 1;
}

void gpa_close_fresh(FreshLines *fresh)
{
    free(fresh->arrays);
    free(fresh->of_set);
    free(fresh->fresh);
    free(fresh->has_fresh);
}

/* So many units are used again, or for the first time. */
static void note_use(ReuseGroups *groups, int32_t *fresh, int64_t group, int64_t distance, int64_t count)
{
    if (distance != INFINITE && *fresh != 0)
        groups->sums[(*fresh - 1) * 2] -= count;
    *fresh = distance == INFINITE ? (int32_t)(group + 1) : 0;
    groups->sums[group * 2] += distance == INFINITE ? count : 0;
}

static int64_t find_line_group(const FreshLines *fresh, ReuseGroups *groups, int64_t instruction, int64_t set, int64_t line)
{
    int64_t array = fresh->arrays[set];
    if (array == SEVERAL) {
        uint64_t address = find_address(fresh, line);
        array = gpa_find_array(groups, address, address);
    }
    return gpa_find_group(groups, instruction, array);
}

int gpa_sum_lines(FreshLines *fresh, ReuseGroups *groups, int64_t instruction, int64_t set, const int64_t *distances, const int64_t *shown)
{
    int64_t first = fresh->of->set_firsts[set], count = fresh->of->set_firsts[set + 1] - first;
    int has_fresh = 0;
    for (int64_t rank = 0; rank < count; ++rank) {
        int64_t line = fresh->of->lines[first + rank], group = find_line_group(fresh, groups, instruction, set, line);
        if (group < 0)
            return 0;
        if (fresh->of_set[set] != 0)
            fresh->fresh[line] = fresh->of_set[set];
        gpa_add_distance(groups, group, shown[rank], 1);
        note_use(groups, &fresh->fresh[line], group, distances[rank], 1);
        has_fresh |= distances[rank] == INFINITE;
    }
    fresh->of_set[set] = 0;
    fresh->has_fresh[set] = (uint8_t)has_fresh;
    return 1;
}

int gpa_sum_set(FreshLines *fresh, ReuseGroups *groups, int64_t instruction, int64_t set, int is_own, int64_t distance,
                const int64_t *distances)
{
    if (distance == SEVERAL)
        return gpa_sum_lines(fresh, groups, instruction, set, distances, distances);
    const int32_t *lines = fresh->of->lines + fresh->of->set_firsts[set];
    int64_t count = fresh->of->set_firsts[set + 1] - fresh->of->set_firsts[set];
    if (fresh->arrays[set] == SEVERAL) {
        int64_t same[MOST_UNITS];
        for (int64_t rank = 0; rank < count; ++rank)
            same[rank] = distance;
        return gpa_sum_lines(fresh, groups, instruction, set, same, same);
    }
    int64_t group = gpa_find_group(groups, instruction, fresh->arrays[set]);
    if (group < 0)
        return 0;
    gpa_add_distance(groups, group, distance, count);
    if (is_own && !fresh->has_fresh[set])
        note_use(groups, &fresh->of_set[set], group, distance, count);
    else if (fresh->has_fresh[set] || distance == INFINITE)
        for (int64_t rank = 0; rank < count; ++rank)
            note_use(groups, &fresh->fresh[lines[rank]], group, distance, 1);
    fresh->has_fresh[set] = distance == INFINITE && !(is_own && fresh->of_set[set] != 0);
    return 1;
}

typedef struct {
    int32_t set, instruction;
} Reference;

/* Rows of a trace, in order, as one sequence for each block or warp. */
typedef struct {
    const uint32_t *blocks, *instructions;
    const uint16_t *warps;
    const uint8_t *erasing; /* by instruction; NULL for none */
    const int64_t *rows;
    int is_by_warp;
    Reference *references; /* by place of a row */
    int64_t *ends;         /* by place of a row: the lines that were referred to up to it */
    int64_t listed;        /* lines so far */
} Sequences;

/* Room for what is found of so many rows. */
static int open_sequences(Sequences *of, int64_t count)
{
    of->references = malloc(multiply_sizes((size_t)(count + 1), sizeof *of->references));
    of->ends = malloc(multiply_sizes((size_t)(count + 1), sizeof *of->ends));
    return of->references != NULL && of->ends != NULL;
}

static void close_sequences(Sequences *of)
{
    free(of->references);
    free(of->ends);
}

static void note_reference(Sequences *of, int64_t place, int64_t set, int64_t lines)
{
    Reference found = {(int32_t)set, (int32_t)of->instructions[of->rows[place]]};
    of->references[place] = found;
    of->ends[place] = of->listed += lines;
}

static int is_same(const Sequences *of, int64_t first, int64_t second)
{
    return of->blocks[first] == of->blocks[second] && (!of->is_by_warp || of->warps[first] == of->warps[second]);
}

static int64_t find_end(const Sequences *of, int64_t row, int64_t kept)
{
    int64_t end = row + 1;
    while (end < kept && is_same(of, of->rows[row], of->rows[end]))
        ++end;
    return end;
}

/* The rows that are kept of those that were listed: without the block that is not whole, unless it is the only one. */
static int64_t cut(const Sequences *of, int64_t listed, int has_others)
{
    int64_t begin = 0;
    while (of->blocks[of->rows[begin]] != of->blocks[of->rows[listed - 1]])
        ++begin;
    return begin || has_others ? begin : listed;
}

/* The reuse of lines, or of their parts. Found: references, sequences, whether rows were left out. */
static int measure_rows(const Sequences *of, Recency *recency, FreshLines *fresh, ReuseGroups *groups, int64_t listed, int64_t count, int has_others,
                        int64_t *found)
{
    int64_t most = 0, kept = listed < count ? cut(of, listed, has_others) : listed;
    for (int64_t set = 0; set < recency->of->set_count; ++set)
        most = gpa_count_lines(recency->of, set) > most ? gpa_count_lines(recency->of, set) : most;
    int64_t *distances = malloc(multiply_sizes((size_t)(most + 1), sizeof *distances));
    int is_well = distances != NULL;
    found[0] = kept ? of->ends[kept - 1] : 0;
    found[1] = 0;
    found[2] = listed < count;
    for (int64_t row = 0, end; is_well && row < kept; row = end) {
        end = find_end(of, row, kept);
        gpa_begin_sequence(recency, of->ends[end - 1] - (row ? of->ends[row - 1] : 0));
        for (int64_t one = row; is_well && one < end; ++one) {
            int64_t set = of->references[one].set, instruction = of->references[one].instruction;
            int is_erasing = of->erasing != NULL && of->erasing[instruction];
            int64_t distance = gpa_refer(recency, set, is_erasing, distances);
            is_well = is_erasing || gpa_sum_set(fresh, groups, instruction, set, gpa_is_own(recency, set), distance, distances);
        }
        found[1] += 1;
    }
    free(distances);
    return is_well;
}

/* gpa_lsp.execution.traces.reuse_distance: lines of rows in order. Found: see measure_rows. Gives how many groups. */
EXPORT int64_t add_line_reuse(const uint32_t *blocks, const uint16_t *warps, const uint32_t *instructions, const int64_t *rows, int64_t count,
                              int64_t chunk, int64_t is_by_warp, const uint8_t *erasing, int64_t most, int64_t has_others, const int32_t *lists,
                              const int64_t *firsts, const int32_t *set_of, const int32_t *dense, const uint8_t *parts,
                              const int64_t *set_firsts, const int32_t *lines, const int64_t *line_numbers, int64_t set_count,
                              int64_t line_count, int64_t sector_count, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers,
                              int64_t array_count, int64_t arrays, int64_t *keys, int64_t *bins, int64_t *sums, int64_t room, int64_t *found)
{
    LineSets sets = {lists, firsts, set_of, dense, parts, set_firsts, lines, line_numbers, set_count, line_count, sector_count};
    Sequences of = {blocks, instructions, warps, erasing, rows, is_by_warp != 0, NULL, NULL, 0};
    Recency recency;
    FreshLines fresh;
    ReuseGroups groups;
    memset(&recency, 0, sizeof recency);
    memset(&fresh, 0, sizeof fresh);
    int64_t row = 0;
    int is_well = gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, sums, room) && open_sequences(&of, count);
    while (is_well && row < count && of.listed <= most)
        for (int64_t end = row + chunk < count ? row + chunk : count; row < end; ++row) {
            int64_t set = sets.sets[sets.lists[rows[row]]];
            note_reference(&of, row, set, gpa_count_lines(&sets, set));
        }
    is_well = is_well && gpa_open_line_recency(&recency, &sets, of.listed, 0) && gpa_open_fresh(&fresh, &sets, &groups, 0, LINE_SHIFT) &&
              measure_rows(&of, &recency, &fresh, &groups, row, count, has_others != 0, found);
    gpa_close_line_recency(&recency);
    gpa_close_fresh(&fresh);
    close_sequences(&of);
    gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}

/* What rows of a kind touch of their sectors: which parts of each. */
typedef struct {
    int64_t first, sectors, parts; /* first: of the masks; sectors: 0 where it was not looked at */
} Pattern;

/* Sets of parts of sectors: rows with the same request share one. */
typedef struct {
    const LineSets *lines;
    const int64_t *sectors; /* by place of a list: address over 32 */
    int64_t place_count;
    int shift, bits;         /* of the number of a part in its sector */
    const int32_t *kinds;    /* by row */
    const int64_t *requests; /* by row */
    Pattern *patterns;       /* by kind */
    uint8_t *masks;          /* of patterns */
    int64_t used, room;      /* of masks */
    int32_t *sets;           /* by request; -1 where it has none yet */
    int64_t *rows;           /* by set: the first one */
    int64_t *firsts;         /* by set, and the end of the last one */
    int64_t count;           /* of sets */
    uint8_t *taken, *shared; /* by sector: parts that a set has, and that several have */
    int32_t *arrays;         /* by set, as FreshLines has them */
    uint8_t *is_own;         /* by set, as Recency has it */
    int32_t *numbers;        /* by sector, of those with parts that are told apart; -1 for the others */
    int64_t *known_sectors;  /* by such a number: address over 32 */
    int64_t known;
    int32_t *parts; /* of sets whose parts are told apart: the number of a sector and of the part in it */
} Parts;

static int open_parts(Parts *parts, int64_t request_count, int64_t kind_count)
{
    size_t sets = (size_t)request_count + 1, sectors = (size_t)parts->lines->sector_count + 1;
    parts->bits = SECTOR_SHIFT - parts->shift;
    if (parts->shift < 2 || parts->shift > SECTOR_SHIFT || parts->lines->sector_count >= INT32_MAX >> parts->bits || request_count >= INT32_MAX)
        return 0;
    parts->patterns = calloc((size_t)kind_count + 1, sizeof *parts->patterns);
    parts->sets = malloc(multiply_sizes(sets, sizeof *parts->sets));
    parts->rows = malloc(multiply_sizes(sets, sizeof *parts->rows));
    parts->firsts = calloc(sets, sizeof *parts->firsts);
    parts->arrays = malloc(multiply_sizes(sets, sizeof *parts->arrays));
    parts->is_own = malloc(sets);
    parts->taken = calloc(sectors, 1);
    parts->shared = calloc(sectors, 1);
    parts->numbers = malloc(multiply_sizes(sectors, sizeof *parts->numbers));
    parts->known_sectors = malloc(multiply_sizes(sectors, sizeof *parts->known_sectors));
    if (parts->sets == NULL || parts->numbers == NULL)
        return 0;
    memset(parts->sets, 0xFF, sets * sizeof *parts->sets);
    memset(parts->numbers, 0xFF, sectors * sizeof *parts->numbers);
    return parts->patterns != NULL && parts->rows != NULL && parts->firsts != NULL && parts->arrays != NULL && parts->is_own != NULL &&
           parts->taken != NULL && parts->shared != NULL && parts->known_sectors != NULL;
}

static void close_parts(Parts *parts)
{
    free(parts->patterns);
    free(parts->masks);
    free(parts->sets);
    free(parts->rows);
    free(parts->firsts);
    free(parts->arrays);
    free(parts->is_own);
    free(parts->taken);
    free(parts->shared);
    free(parts->numbers);
    free(parts->known_sectors);
    free(parts->parts);
}

/* The pattern of a row's kind, found from the row where no other was looked at; NULL without memory, or where the row leads nowhere. */
static const Pattern *find_pattern(Parts *parts, const LaneColumns *columns, const uint8_t *widths, int64_t row)
{
    Pattern *pattern = &parts->patterns[parts->kinds[row]];
    if (pattern->sectors != 0)
        return pattern;
    uint64_t sorted[LANES];
    int64_t units[MOST_UNITS], known = -1, lanes = gpa_sort_lanes(columns, row, sorted);
    if (parts->used + MOST_UNITS > parts->room) {
        int64_t room = 2 * parts->room + MOST_UNITS;
        uint8_t *larger = realloc(parts->masks, (size_t)room);
        if (larger == NULL)
            return NULL;
        parts->masks = larger;
        parts->room = room;
    }
    pattern->first = parts->used;
    pattern->parts = lanes == 0 ? 0 : gpa_list_units(sorted, (int)lanes, widths[row], parts->shift, units);
    for (int64_t rank = 0; rank < pattern->parts; ++rank) {
        if (units[rank] >> parts->bits != known)
            parts->masks[parts->used++] = 0;
        known = units[rank] >> parts->bits;
        parts->masks[parts->used - 1] |= (uint8_t)(1 << (units[rank] & ((1 << parts->bits) - 1)));
    }
    pattern->sectors = parts->used - pattern->first;
    return pattern->sectors == 0 ? NULL : pattern;
}

static void take_sectors(uint8_t *taken, uint8_t *shared, const uint8_t *masks, int64_t count)
{
    for (int64_t rank = 0; rank < count; ++rank) {
        shared[rank] |= taken[rank] & masks[rank];
        taken[rank] |= masks[rank];
    }
}

static int has_shared(const uint8_t *shared, const uint8_t *masks, int64_t count)
{
    int found = 0;
    for (int64_t rank = 0; rank < count; ++rank)
        found |= shared[rank] & masks[rank];
    return found;
}

/* As many sectors as can be looked at together: all where their numbers follow each other, as those of a list that shares none do. */
static int64_t find_step(const int32_t *numbers, int64_t count)
{
    int32_t differs = 0;
    for (int32_t rank = 0; rank < (int32_t)count; ++rank)
        differs |= numbers[rank] ^ (numbers[0] + rank);
    return differs ? 1 : count;
}

/* The set of a request that has none yet. */
static int add_set(Parts *parts, const LaneColumns *columns, const uint8_t *widths, int64_t row)
{
    const Pattern *pattern = find_pattern(parts, columns, widths, row);
    int64_t place = parts->lines->firsts[parts->lines->lists[row]];
    if (pattern == NULL || place + pattern->sectors > parts->place_count)
        return 0;
    const int32_t *numbers = parts->lines->dense + place;
    for (int64_t rank = 0, step = find_step(numbers, pattern->sectors); rank < pattern->sectors; rank += step)
        take_sectors(parts->taken + numbers[rank], parts->shared + numbers[rank], parts->masks + pattern->first + rank, step);
    parts->rows[parts->count] = row;
    parts->sets[parts->requests[row]] = (int32_t)parts->count;
    parts->firsts[parts->count + 1] = parts->firsts[parts->count] + pattern->parts;
    parts->count += 1;
    return 1;
}

/* The parts of a set, which are told apart. */
static void list_set(Parts *parts, int64_t set, const int64_t *sectors, const int32_t *numbers, const uint8_t *masks, int64_t count)
{
    int32_t *to = parts->parts + parts->firsts[set];
    for (int64_t rank = 0; rank < count; ++rank) {
        int32_t *known = &parts->numbers[numbers[rank]];
        if (*known < 0) {
            parts->known_sectors[parts->known] = sectors[rank];
            *known = (int32_t)parts->known++;
        }
        for (uint32_t left = masks[rank]; left != 0; left &= left - 1)
            *to++ = *known << parts->bits | __builtin_ctz(left);
    }
}

/* In which arrays sets lie, and whether they have their parts for themselves; where one cannot go by that, their parts. */
static int finish_sets(Parts *parts, const ReuseGroups *groups)
{
    parts->parts = malloc(multiply_sizes((size_t)(parts->firsts[parts->count] + 1), sizeof *parts->parts));
    for (int64_t set = 0; parts->parts != NULL && set < parts->count; ++set) {
        const Pattern *pattern = &parts->patterns[parts->kinds[parts->rows[set]]];
        int64_t place = parts->lines->firsts[parts->lines->lists[parts->rows[set]]], last = pattern->sectors - 1;
        const uint8_t *masks = parts->masks + pattern->first;
        const int64_t *sectors = parts->sectors + place;
        const int32_t *numbers = parts->lines->dense + place;
        uint64_t low = (uint64_t)sectors[0] << parts->bits | (uint64_t)__builtin_ctz(masks[0]);
        uint64_t high = (uint64_t)sectors[last] << parts->bits | (uint64_t)(31 - __builtin_clz(masks[last]));
        int is_shared = 0;
        for (int64_t rank = 0, step = find_step(numbers, last + 1); rank <= last; rank += step)
            is_shared |= has_shared(parts->shared + numbers[rank], masks + rank, step);
        parts->arrays[set] = (int32_t)gpa_find_array(groups, low << parts->shift, high << parts->shift);
        parts->is_own[set] = !is_shared;
        if (is_shared || parts->arrays[set] == SEVERAL)
            list_set(parts, set, sectors, numbers, masks, last + 1);
    }
    return parts->parts != NULL;
}

/* The same for parts of sectors, of 2**shift bytes. Requests and kinds have numbers by row: rows of one request touch the same bytes, those of one
 * kind the same parts of their sectors. */
EXPORT int64_t add_part_reuse(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                              const uint8_t *widths, int64_t shift, const int64_t *requests, int64_t request_count, const int32_t *kinds,
                              int64_t kind_count, const int64_t *sectors, int64_t place_count, const uint32_t *blocks, const uint16_t *warps,
                              const uint32_t *instructions, const int64_t *rows, int64_t count, int64_t chunk, int64_t is_by_warp,
                              const uint8_t *erasing, int64_t most, int64_t has_others, const int32_t *lists, const int64_t *firsts,
                              const int32_t *set_of, const int32_t *dense, const uint8_t *masks_of, const int64_t *set_firsts,
                              const int32_t *lines, const int64_t *line_numbers, int64_t set_count, int64_t line_count, int64_t sector_count,
                              const uint64_t *bases, const uint64_t *ends, const int64_t *numbers, int64_t array_count, int64_t arrays,
                              int64_t *keys, int64_t *bins, int64_t *sums, int64_t room, int64_t *found)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    LineSets sets = {lists, firsts, set_of, dense, masks_of, set_firsts, lines, line_numbers, set_count, line_count, sector_count};
    Sequences of = {blocks, instructions, warps, erasing, rows, is_by_warp != 0, NULL, NULL, 0};
    Recency recency;
    FreshLines fresh;
    ReuseGroups groups;
    Parts parts;
    memset(&recency, 0, sizeof recency);
    memset(&fresh, 0, sizeof fresh);
    memset(&parts, 0, sizeof parts);
    parts.lines = &sets;
    parts.sectors = sectors;
    parts.place_count = place_count;
    parts.shift = (int)shift;
    parts.kinds = kinds;
    parts.requests = requests;
    int64_t row = 0;
    int is_well = gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, sums, room) && open_sequences(&of, count) &&
                  open_parts(&parts, request_count, kind_count);
    while (is_well && row < count && of.listed <= most)
        for (int64_t end = row + chunk < count ? row + chunk : count; is_well && row < end; ++row) {
            int64_t request = requests[rows[row]];
            is_well = parts.sets[request] >= 0 || add_set(&parts, &columns, widths, rows[row]);
            if (is_well) {
                int64_t set = parts.sets[request];
                note_reference(&of, row, set, parts.firsts[set + 1] - parts.firsts[set]);
            }
        }
    is_well = is_well && finish_sets(&parts, &groups);
    LineSets of_parts = {NULL, NULL, NULL, NULL, NULL, parts.firsts, parts.parts, parts.known_sectors, parts.count, parts.known << parts.bits, 0};
    is_well = is_well && gpa_open_own_recency(&recency, &of_parts, of.listed, parts.is_own) &&
              open_fresh(&fresh, &of_parts, &groups, parts.bits, parts.shift);
    if (is_well) {
        memcpy(fresh.arrays, parts.arrays, (size_t)parts.count * sizeof *fresh.arrays);
        is_well = measure_rows(&of, &recency, &fresh, &groups, row, count, has_others != 0, found);
    }
    gpa_close_line_recency(&recency);
    gpa_close_fresh(&fresh);
    close_parts(&parts);
    close_sequences(&of);
    gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}
