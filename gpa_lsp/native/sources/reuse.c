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

int gpa_open_fresh(FreshLines *fresh, const LineSets *of, const ReuseGroups *groups)
{
    size_t lines = (size_t)of->line_count + 1;
    fresh->of = of;
    fresh->arrays = malloc(lines * sizeof *fresh->arrays);
    fresh->fresh = calloc(lines, sizeof *fresh->fresh);
    fresh->has_fresh = calloc((size_t)of->set_count + 1, 1);
    if (fresh->arrays == NULL || fresh->fresh == NULL || fresh->has_fresh == NULL)
        return 0;
    for (int64_t line = 0; line < of->line_count; ++line) {
        uint64_t address = (uint64_t)of->line_numbers[line] << LINE_SHIFT;
        fresh->arrays[line] = (int32_t)gpa_find_array(groups, address, address);
    }
    return 1;
}

void gpa_close_fresh(FreshLines *fresh)
{
    free(fresh->arrays);
    free(fresh->fresh);
    free(fresh->has_fresh);
}

/* A unit is used again, or for the first time. */
static void note_use(ReuseGroups *groups, int32_t *fresh, int64_t group, int64_t distance)
{
    if (distance != INFINITE && *fresh != 0)
        groups->sums[(*fresh - 1) * 2] -= 1;
    *fresh = distance == INFINITE ? (int32_t)(group + 1) : 0;
    groups->sums[group * 2] += distance == INFINITE;
}

int gpa_sum_lines(FreshLines *fresh, ReuseGroups *groups, int64_t instruction, int64_t set, const int64_t *distances, const int64_t *shown)
{
    int64_t first = fresh->of->set_firsts[set], count = fresh->of->set_firsts[set + 1] - first;
    int has_fresh = 0;
    for (int64_t rank = 0; rank < count; ++rank) {
        int64_t line = fresh->of->lines[first + rank], group = gpa_find_group(groups, instruction, fresh->arrays[line]);
        if (group < 0)
            return 0;
        gpa_add_distance(groups, group, shown[rank], 1);
        note_use(groups, &fresh->fresh[line], group, distances[rank]);
        has_fresh |= distances[rank] == INFINITE;
    }
    fresh->has_fresh[set] = (uint8_t)has_fresh;
    return 1;
}

int gpa_sum_set(FreshLines *fresh, ReuseGroups *groups, int64_t instruction, int64_t set, int64_t distance, const int64_t *distances)
{
    if (distance == SEVERAL)
        return gpa_sum_lines(fresh, groups, instruction, set, distances, distances);
    const int32_t *lines = fresh->of->lines + fresh->of->set_firsts[set];
    int64_t count = fresh->of->set_firsts[set + 1] - fresh->of->set_firsts[set];
    for (int64_t rank = 0, end; rank < count; rank = end) {
        int32_t array = fresh->arrays[lines[rank]];
        int64_t group = gpa_find_group(groups, instruction, array);
        if (group < 0)
            return 0;
        for (end = rank + 1; end < count && fresh->arrays[lines[end]] == array; ++end)
            ;
        gpa_add_distance(groups, group, distance, end - rank);
    }
    if (fresh->has_fresh[set])
        for (int64_t rank = 0; rank < count; ++rank)
            note_use(groups, &fresh->fresh[lines[rank]], 0, distance);
    fresh->has_fresh[set] = 0;
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

static int measure_lines(const Sequences *of, const LineSets *sets, const int64_t *ends, int64_t kept, ReuseGroups *groups, int64_t *found)
{
    Recency recency;
    FreshLines fresh = {NULL, NULL, NULL, NULL};
    int64_t most = 0, last = kept ? ends[kept - 1] : 0;
    for (int64_t set = 0; set < sets->set_count; ++set)
        most = gpa_count_lines(sets, set) > most ? gpa_count_lines(sets, set) : most;
    int64_t *distances = malloc((size_t)(most + 1) * sizeof *distances);
    int is_well = gpa_open_line_recency(&recency, sets, last) && gpa_open_fresh(&fresh, sets, groups) && distances != NULL;
    for (int64_t row = 0, end; is_well && row < kept; row = end) {
        end = find_end(of, row, kept);
        gpa_begin_sequence(&recency, ends[end - 1] - (row ? ends[row - 1] : 0));
        for (int64_t one = row; is_well && one < end; ++one) {
            int64_t from = of->rows[one], set = sets->sets[sets->lists[from]], instruction = of->instructions[from];
            int is_erasing = of->erasing != NULL && of->erasing[instruction];
            int64_t distance = gpa_refer(&recency, set, is_erasing, distances);
            is_well = is_erasing || gpa_sum_set(&fresh, groups, instruction, set, distance, distances);
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
    int is_well = measure_lines(&of, &sets, listed_ends, found[2] ? cut(blocks, rows, row, has_others != 0) : row, &groups, found);
    free(listed_ends);
    gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}

/* Parts of sectors, by their number: so many of each sector. */
typedef struct {
    const LineSets *sets;
    int bits;               /* of the number of a part in its sector */
    int64_t *sectors;       /* by number: address over 32 */
    int32_t *arrays;        /* by sector: the array it lies in, or SEVERAL */
    int32_t *last, *fresh;  /* by part: the place it was referred to last, and as in FreshLines */
    int32_t *parts;         /* of all rows */
    int64_t *ends;          /* of rows: their parts lie before */
    int64_t count, room;
} Parts;

static int open_parts(Parts *parts, const LineSets *sets, int shift, int64_t rows)
{
    size_t sectors = (size_t)sets->sector_count + 1;
    memset(parts, 0, sizeof *parts);
    parts->sets = sets;
    parts->bits = SECTOR_SHIFT - shift;
    if (shift < 2 || shift > SECTOR_SHIFT || sets->sector_count >= INT32_MAX >> parts->bits)
        return 0;
    parts->sectors = malloc(sectors * sizeof *parts->sectors);
    parts->arrays = malloc(sectors * sizeof *parts->arrays);
    parts->last = malloc((sectors << parts->bits) * sizeof *parts->last);
    parts->fresh = calloc(sectors << parts->bits, sizeof *parts->fresh);
    parts->ends = malloc((size_t)(rows + 1) * sizeof *parts->ends);
    if (parts->last != NULL)
        memset(parts->last, 0xFF, (sectors << parts->bits) * sizeof *parts->last);
    if (parts->sectors != NULL)
        memset(parts->sectors, 0xFF, sectors * sizeof *parts->sectors);
    return parts->sectors != NULL && parts->arrays != NULL && parts->last != NULL && parts->fresh != NULL && parts->ends != NULL;
}

static void close_parts(Parts *parts)
{
    free(parts->sectors);
    free(parts->arrays);
    free(parts->last);
    free(parts->fresh);
    free(parts->parts);
    free(parts->ends);
}

/* The parts of a row, from their units: sectors follow each other as they do in its list. */
static int list_row(Parts *parts, const ReuseGroups *groups, int64_t row, const int64_t *units, int64_t count)
{
    if (parts->count + count > parts->room) {
        int64_t room = 2 * parts->room + count + 1024;
        int32_t *larger = realloc(parts->parts, (size_t)room * sizeof *larger);
        if (larger == NULL)
            return 0;
        parts->parts = larger;
        parts->room = room;
    }
    int64_t place = parts->sets->firsts[parts->sets->lists[row]] - 1, known = -1;
    for (int64_t rank = 0; rank < count; ++rank) {
        int64_t sector = units[rank] >> parts->bits;
        if (sector != known) {
            int32_t number = parts->sets->dense[++place];
            known = sector;
            if (parts->sectors[number] < 0) {
                parts->sectors[number] = sector;
                parts->arrays[number] = (int32_t)gpa_find_array(groups, (uint64_t)sector << SECTOR_SHIFT, ((uint64_t)sector << SECTOR_SHIFT) + 31);
            }
        }
        parts->parts[parts->count++] = (parts->sets->dense[place] << parts->bits) | (int32_t)(units[rank] & ((1 << parts->bits) - 1));
    }
    return 1;
}

static int64_t find_part_array(const Parts *parts, const ReuseGroups *groups, int64_t part)
{
    int64_t sector = part >> parts->bits, array = parts->arrays[sector];
    if (array != SEVERAL)
        return array;
    uint64_t unit = ((uint64_t)parts->sectors[sector] << parts->bits) | (uint64_t)(part & ((1 << parts->bits) - 1));
    return gpa_find_array(groups, unit << (SECTOR_SHIFT - parts->bits), unit << (SECTOR_SHIFT - parts->bits));
}

/* References to parts, at places from `next` on of a sequence that began at `begin`. */
static int refer_to_parts(Parts *parts, MarkCounts *marks, ReuseGroups *groups, int64_t instruction, int is_erasing, int64_t begin, int64_t next,
                          int64_t end)
{
    if (!is_erasing)
        gpa_change_run(marks, next - begin, end - next, 1);
    for (int64_t place = next; place < end; ++place) {
        int32_t part = parts->parts[place];
        int64_t before = parts->last[part], distance = INFINITE;
        if (before >= begin) {
            distance = gpa_count_between(marks, before - begin, end - 1 - begin) - (end - place);
            gpa_change_run(marks, before - begin, 1, 0);
        }
        parts->last[part] = is_erasing ? -1 : (int32_t)place;
        if (is_erasing)
            continue;
        int64_t group = gpa_find_group(groups, instruction, find_part_array(parts, groups, part));
        if (group < 0)
            return 0;
        gpa_add_distance(groups, group, distance, 1);
        note_use(groups, &parts->fresh[part], group, distance);
    }
    return 1;
}

static int measure_parts(const Sequences *of, Parts *parts, int64_t kept, ReuseGroups *groups, int64_t *found)
{
    MarkCounts marks;
    int64_t last = kept ? parts->ends[kept - 1] : 0;
    int is_well = gpa_open_marks(&marks, last);
    for (int64_t row = 0, end; is_well && row < kept; row = end) {
        int64_t begin = row ? parts->ends[row - 1] : 0, next = begin;
        end = find_end(of, row, kept);
        gpa_clear_marks(&marks, parts->ends[end - 1] - begin);
        for (int64_t one = row; is_well && one < end; next = parts->ends[one++]) {
            int64_t instruction = of->instructions[of->rows[one]];
            int is_erasing = of->erasing != NULL && of->erasing[instruction];
            is_well = refer_to_parts(parts, &marks, groups, instruction, is_erasing, begin, next, parts->ends[one]);
        }
        found[1] += 1;
    }
    gpa_close_marks(&marks);
    found[0] = last;
    return is_well;
}

/* The same for parts of sectors, of 2**shift bytes. */
EXPORT int64_t add_part_reuse(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                              const uint8_t *widths, int64_t shift, const uint32_t *blocks, const uint16_t *warps, const uint32_t *instructions,
                              const int64_t *rows, int64_t count, int64_t chunk, int64_t is_by_warp, const uint8_t *erasing, int64_t most,
                              int64_t has_others, const int32_t *lists, const int64_t *firsts, const int32_t *set_of, const int32_t *dense,
                              const uint8_t *parts_of, const int64_t *set_firsts, const int32_t *lines, const int64_t *line_numbers,
                              int64_t set_count, int64_t line_count, int64_t sector_count, const uint64_t *bases, const uint64_t *ends,
                              const int64_t *numbers, int64_t array_count, int64_t arrays, int64_t *keys, int64_t *bins, int64_t *sums,
                              int64_t room, int64_t *found)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    LineSets sets = {lists, firsts, set_of, dense, parts_of, set_firsts, lines, line_numbers, set_count, line_count, sector_count};
    Sequences of = {blocks, instructions, warps, erasing, rows, is_by_warp != 0};
    ReuseGroups groups;
    Parts parts;
    uint64_t sorted[LANES];
    int64_t units[LANES * (256 / 4 + 2)], row = 0;
    int has_groups = gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, sums, room);
    int is_well = open_parts(&parts, &sets, (int)shift, count) && has_groups;
    found[0] = found[1] = found[2] = 0;
    while (is_well && row < count && parts.count <= most)
        for (int64_t end = row + chunk < count ? row + chunk : count; is_well && row < end; ++row) {
            int lanes = gpa_sort_lanes(&columns, rows[row], sorted);
            is_well = lanes != 0 && list_row(&parts, &groups, rows[row], units, gpa_list_units(sorted, lanes, widths[rows[row]], (int)shift, units));
            parts.ends[row] = parts.count;
        }
    found[2] = row < count;
    is_well = is_well && measure_parts(&of, &parts, found[2] ? cut(blocks, rows, row, has_others != 0) : row, &groups, found);
    close_parts(&parts);
    if (has_groups)
        gpa_close_reuse(&groups);
    return is_well ? groups.groups : FAILED;
}
