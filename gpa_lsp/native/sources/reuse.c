/* The reuse of global memory by one piece of a trace, by instruction and array. */
#include "reuse.h"
#include "lanes.h"

#define BINS 34
#define FINITE_BINS 33
#define FIRST_ARRAY 2
#define SECTOR_SHIFT 5

int gpa_open_reuse(ReuseGroups *groups, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers, int64_t count, int64_t arrays,
                   int64_t *keys, int64_t *bins, int64_t *sums, int64_t room)
{
    ReuseGroups opened = {bases, ends, numbers, count, arrays, {NULL, NULL, NULL, 0, 0, 0, 0}, keys, bins, sums, 0, room, -1, FAILED};
    *groups = opened;
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
    if (key == groups->last_key)
        return groups->last_group;
    int64_t *place = gpa_find_place(&groups->places, key);
    if (place == NULL)
        return FAILED;
    if (*place < 0) {
        *place = groups->groups;
        if (groups->groups == groups->room)
            return FAILED;
        groups->keys[groups->groups++] = key;
    }
    groups->last_key = key;
    groups->last_group = *place;
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

int gpa_open_fresh(FreshLines *fresh, const LineSets *of, const ReuseGroups *groups, int part_bits, int shift)
{
    size_t sets = (size_t)of->set_count + 1;
    FreshLines opened = {of, groups, part_bits, shift, NULL, NULL, NULL, NULL};
    *fresh = opened;
    fresh->arrays = malloc(sets * sizeof *fresh->arrays);
    fresh->of_set = calloc(sets, sizeof *fresh->of_set);
    fresh->fresh = calloc((size_t)of->line_count + 1, sizeof *fresh->fresh);
    fresh->has_fresh = calloc(sets, 1);
    if (fresh->arrays == NULL || fresh->of_set == NULL || fresh->fresh == NULL || fresh->has_fresh == NULL)
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
        int64_t same[LANES * (256 / 4 + 2)];
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

/* Rows of a trace, in order, as one sequence for each block or warp. */
typedef struct {
    const uint32_t *blocks, *instructions;
    const uint16_t *warps;
    const uint8_t *erasing; /* by instruction; NULL for none */
    const int64_t *rows;
    int is_by_warp;
} Sequences;

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
static int64_t cut(const uint32_t *blocks, const int64_t *rows, int64_t listed, int has_others)
{
    int64_t begin = 0;
    while (blocks[rows[begin]] != blocks[rows[listed - 1]])
        ++begin;
    return begin || has_others ? begin : listed;
}

/* The reuse of lines, or of their parts; see FreshLines. */
static int measure_lines(const Sequences *of, const LineSets *sets, int part_bits, int shift, const int64_t *ends, int64_t kept,
                         ReuseGroups *groups, int64_t *found)
{
    Recency recency;
    FreshLines fresh = {sets, groups, part_bits, shift, NULL, NULL, NULL, NULL};
    int64_t most = 0, last = kept ? ends[kept - 1] : 0;
    for (int64_t set = 0; set < sets->set_count; ++set)
        most = gpa_count_lines(sets, set) > most ? gpa_count_lines(sets, set) : most;
    int64_t *distances = malloc((size_t)(most + 1) * sizeof *distances);
    int is_well = gpa_open_line_recency(&recency, sets, last, 0) && gpa_open_fresh(&fresh, sets, groups, part_bits, shift) && distances != NULL;
    for (int64_t row = 0, end; is_well && row < kept; row = end) {
        end = find_end(of, row, kept);
        gpa_begin_sequence(&recency, ends[end - 1] - (row ? ends[row - 1] : 0));
        for (int64_t one = row; is_well && one < end; ++one) {
            int64_t from = of->rows[one], set = sets->sets[sets->lists[from]], instruction = of->instructions[from];
            int is_erasing = of->erasing != NULL && of->erasing[instruction];
            int64_t distance = gpa_refer(&recency, set, is_erasing, distances);
            is_well = is_erasing || gpa_sum_set(&fresh, groups, instruction, set, gpa_is_own(&recency, set), distance, distances);
        }
        found[1] += 1;
    }
    gpa_close_line_recency(&recency);
    gpa_close_fresh(&fresh);
    free(distances);
    found[0] = last;
    return is_well;
}

/* gpa_lsp.traces.reuse_distance: lines of rows in order. Found: references, sequences, whether rows were left out. Gives how many groups. */
EXPORT int64_t add_line_reuse(const uint32_t *blocks, const uint16_t *warps, const uint32_t *instructions, const int64_t *rows, int64_t count,
                              int64_t chunk, int64_t is_by_warp, const uint8_t *erasing, int64_t most, int64_t has_others, const int32_t *lists,
                              const int64_t *firsts, const int32_t *set_of, const int32_t *dense, const uint8_t *parts,
                              const int64_t *set_firsts, const int32_t *lines, const int64_t *line_numbers, int64_t set_count,
                              int64_t line_count, int64_t sector_count, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers,
                              int64_t array_count, int64_t arrays, int64_t *keys, int64_t *bins, int64_t *sums, int64_t room, int64_t *found)
{
    LineSets sets = {lists, firsts, set_of, dense, parts, set_firsts, lines, line_numbers, set_count, line_count, sector_count};
    Sequences of = {blocks, instructions, warps, erasing, rows, is_by_warp != 0};
    ReuseGroups groups;
    int64_t row = 0, listed = 0, *listed_ends = malloc((size_t)(count + 1) * sizeof *listed_ends);
    found[0] = found[1] = found[2] = 0;
    if (listed_ends == NULL || !gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, sums, room)) {
        free(listed_ends);
        return FAILED;
    }
    while (row < count && listed <= most)
        for (int64_t end = row + chunk < count ? row + chunk : count; row < end; ++row) {
            listed += gpa_count_lines(&sets, sets.sets[sets.lists[rows[row]]]);
            listed_ends[row] = listed;
        }
    found[2] = row < count;
    int is_well = measure_lines(&of, &sets, 0, LINE_SHIFT, listed_ends, found[2] ? cut(blocks, rows, row, has_others != 0) : row, &groups, found);
    free(listed_ends);
    gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}

/* Sets of parts of sectors: rows with the same request share one. */
typedef struct {
    const LineSets *lines;
    int bits;                /* of the number of a part in its sector */
    const int32_t *requests; /* by row */
    int32_t *sets;           /* by request; -1 where it was not listed */
    int64_t *firsts;         /* by set, and the end of the last one */
    int32_t *parts;          /* of all sets: the number of a sector and of the part in it */
    int64_t *sectors;        /* by number: address over 32 */
    int64_t count, used, room;
} Parts;

static int open_parts(Parts *parts, const LineSets *lines, int shift, const int32_t *requests, int64_t request_count)
{
    memset(parts, 0, sizeof *parts);
    parts->lines = lines;
    parts->bits = SECTOR_SHIFT - shift;
    parts->requests = requests;
    if (shift < 2 || shift > SECTOR_SHIFT || lines->sector_count >= INT32_MAX >> parts->bits)
        return 0;
    parts->sets = malloc((size_t)(request_count + 1) * sizeof *parts->sets);
    parts->firsts = malloc((size_t)(request_count + 1) * sizeof *parts->firsts);
    parts->sectors = malloc((size_t)(lines->sector_count + 1) * sizeof *parts->sectors);
    if (parts->sets == NULL || parts->firsts == NULL || parts->sectors == NULL)
        return 0;
    memset(parts->sets, 0xFF, (size_t)(request_count + 1) * sizeof *parts->sets);
    parts->firsts[0] = 0;
    return 1;
}

static void close_parts(Parts *parts)
{
    free(parts->sets);
    free(parts->firsts);
    free(parts->parts);
    free(parts->sectors);
}

/* The set of a row, from its units: sectors follow each other as they do in its list. */
static int list_row(Parts *parts, int64_t row, const int64_t *units, int64_t count)
{
    if (parts->used + count > parts->room) {
        int64_t room = 2 * parts->room + count + 1024;
        int32_t *larger = realloc(parts->parts, (size_t)room * sizeof *larger);
        if (larger == NULL)
            return 0;
        parts->parts = larger;
        parts->room = room;
    }
    int64_t place = parts->lines->firsts[parts->lines->lists[row]] - 1, known = -1;
    for (int64_t rank = 0; rank < count; ++rank) {
        int64_t sector = units[rank] >> parts->bits;
        place += sector != known;
        known = sector;
        parts->sectors[parts->lines->dense[place]] = sector;
        parts->parts[parts->used++] = (parts->lines->dense[place] << parts->bits) | (int32_t)(units[rank] & ((1 << parts->bits) - 1));
    }
    parts->sets[parts->requests[row]] = (int32_t)parts->count++;
    parts->firsts[parts->count] = parts->used;
    return 1;
}

/* The same for parts of sectors, of 2**shift bytes. Requests have numbers by row: those of one number touch the same bytes. */
EXPORT int64_t add_part_reuse(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                              const uint8_t *widths, int64_t shift, const int32_t *requests, int64_t request_count, const uint32_t *blocks,
                              const uint16_t *warps, const uint32_t *instructions, const int64_t *rows, int64_t count, int64_t chunk,
                              int64_t is_by_warp, const uint8_t *erasing, int64_t most, int64_t has_others, const int32_t *lists,
                              const int64_t *firsts, const int32_t *set_of, const int32_t *dense, const uint8_t *masks_of,
                              const int64_t *set_firsts, const int32_t *lines, const int64_t *line_numbers, int64_t set_count,
                              int64_t line_count, int64_t sector_count, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers,
                              int64_t array_count, int64_t arrays, int64_t *keys, int64_t *bins, int64_t *sums, int64_t room, int64_t *found)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    LineSets sets = {lists, firsts, set_of, dense, masks_of, set_firsts, lines, line_numbers, set_count, line_count, sector_count};
    Sequences of = {blocks, instructions, warps, erasing, rows, is_by_warp != 0};
    ReuseGroups groups;
    Parts parts;
    uint64_t sorted[LANES];
    int64_t units[LANES * (256 / 4 + 2)], row = 0, listed = 0, *listed_ends = malloc((size_t)(count + 1) * sizeof *listed_ends);
    int has_groups = gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, sums, room);
    int is_well = open_parts(&parts, &sets, (int)shift, requests, request_count) && has_groups && listed_ends != NULL;
    found[0] = found[1] = found[2] = 0;
    while (is_well && row < count && listed <= most)
        for (int64_t end = row + chunk < count ? row + chunk : count; is_well && row < end; ++row) {
            int64_t from = rows[row], lanes;
            if (parts.sets[requests[from]] < 0)
                is_well = (lanes = gpa_sort_lanes(&columns, from, sorted)) != 0 &&
                          list_row(&parts, from, units, gpa_list_units(sorted, (int)lanes, widths[from], (int)shift, units));
            if (is_well) {
                int64_t set = parts.sets[requests[from]];
                listed += parts.firsts[set + 1] - parts.firsts[set];
                listed_ends[row] = listed;
            }
        }
    if (is_well) {
        LineSets of_parts = {requests, NULL, parts.sets, NULL, NULL, parts.firsts, parts.parts, parts.sectors, parts.count,
                             sector_count << parts.bits, sector_count};
        found[2] = row < count;
        int64_t kept = found[2] ? cut(blocks, rows, row, has_others != 0) : row;
        is_well = measure_lines(&of, &of_parts, parts.bits, (int)shift, listed_ends, kept, &groups, found);
    }
    close_parts(&parts);
    free(listed_ends);
    if (has_groups)
        gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}
