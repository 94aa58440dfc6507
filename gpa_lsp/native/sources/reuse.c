/* The reuse of global memory by one piece of a trace, by instruction and array: references, their distances and the sums in one go. */
#include "distances.h"
#include "lanes.h"
#include "reuse.h"

#define BINS 34
#define FINITE_BINS 33
#define FIRST_ARRAY 2
#define OUTSIDE (-1)
#define NOT_COUNTED (-2)

typedef struct {
    int64_t *units;
    int64_t *ends; /* of rows: their units lie before */
    int64_t count, room;
} Listed;

static int reserve(Listed *listed, int64_t more)
{
    if (listed->count + more <= listed->room)
        return 1;
    int64_t room = 2 * listed->room + more;
    int64_t *larger = realloc(listed->units, (size_t)room * sizeof *larger);
    if (larger == NULL)
        return 0;
    listed->units = larger;
    listed->room = room;
    return 1;
}

/* Lists chunks of rows until there are more references than wanted; how many rows. */
static int64_t list_rows(const LaneColumns *columns, const uint8_t *widths, const int64_t *rows, int64_t count, int64_t chunk, int shift,
                         int64_t most, Listed *listed)
{
    uint64_t sorted[LANES];
    int64_t row = 0;
    while (row < count && listed->count <= most)
        for (int64_t end = row + chunk < count ? row + chunk : count; row < end; ++row) {
            uint64_t width = widths[rows[row]];
            int lanes = gpa_sort_lanes(columns, rows[row], sorted);
            if (lanes == 0 || width == 0 || !reserve(listed, lanes * (int64_t)(((width - 1) >> shift) + 2)))
                return FAILED;
            listed->count += gpa_list_units(sorted, lanes, width, shift, listed->units + listed->count);
            listed->ends[row] = listed->count;
        }
    return row;
}

/* The rows that are kept of those that were listed: without the block that is not whole, unless it is the only one. */
static int64_t cut(const uint32_t *blocks, const int64_t *rows, int64_t listed, int has_others)
{
    int64_t begin = 0;
    while (blocks[rows[begin]] != blocks[rows[listed - 1]])
        ++begin;
    return begin || has_others ? begin : listed;
}

int gpa_open_reuse(ReuseGroups *groups, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers, int64_t count, int64_t arrays,
                   int64_t *keys, int64_t *bins, int64_t *sums, int64_t room)
{
    ReuseGroups opened = {bases, ends, numbers, count, arrays, {NULL, NULL, 0, 0}, keys, bins, sums, 0, room};
    *groups = opened;
    memset(bins, 0, (size_t)(room * BINS) * sizeof *bins);
    memset(sums, 0, (size_t)(room * 2) * sizeof *sums);
    return gpa_open_table(&groups->places);
}

void gpa_close_reuse(ReuseGroups *groups)
{
    gpa_close_table(&groups->places);
}

static int64_t find_array(const ReuseGroups *groups, uint64_t address, int64_t *last)
{
    if (*last >= 0 && address >= groups->bases[*last] && address < groups->ends[*last] &&
        (*last + 1 == groups->count || address < groups->bases[*last + 1]))
        return groups->numbers[*last];
    int64_t low = 0, high = groups->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (groups->bases[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= groups->ends[low - 1])
        return OUTSIDE;
    *last = low - 1;
    return groups->numbers[low - 1];
}

static int64_t find_group(ReuseGroups *groups, int64_t key)
{
    int64_t *place = gpa_find_place(&groups->places, key);
    if (place == NULL)
        return FAILED;
    if (*place < 0) {
        *place = groups->groups;
        if (groups->groups == groups->room)
            return FAILED;
        groups->keys[groups->groups++] = key;
    }
    return *place;
}

int gpa_sum_reuse(ReuseGroups *groups, int64_t instruction, const int64_t *units, const int64_t *distances, const uint8_t *is_streaming,
                  int64_t count, int shift, int64_t *last)
{
    int64_t known = -1, group = -1;
    for (int64_t place = 0; place < count; ++place) {
        int64_t distance = distances[place];
        if (distance == NOT_COUNTED)
            continue;
        int64_t array = find_array(groups, (uint64_t)units[place] << shift, last);
        int64_t key = instruction * groups->arrays + array + FIRST_ARRAY;
        if (group < 0 || key != known) {
            known = key;
            group = find_group(groups, key);
            if (group < 0)
                return 0;
        }
        int64_t bin = distance < 0 ? FINITE_BINS : distance == 0 ? 0 : 64 - __builtin_clzll((uint64_t)distance);
        if (distance >= 0 && bin >= FINITE_BINS)
            bin = FINITE_BINS - 1;
        groups->bins[group * BINS + bin] += 1;
        groups->sums[group * 2] += is_streaming[place];
        groups->sums[group * 2 + 1] += distance < 0 ? 0 : distance;
    }
    return 1;
}

typedef struct {
    const uint32_t *blocks, *instructions;
    const uint16_t *warps;
    const uint8_t *erasing; /* by instruction; NULL for none */
    const int64_t *rows;
    int is_by_warp, shift;
} Sequences;

static int is_same(const Sequences *of, int64_t first, int64_t second)
{
    return of->blocks[first] == of->blocks[second] && (!of->is_by_warp || of->warps[first] == of->warps[second]);
}

/* Measures one sequence after the other; how many. */
static int64_t measure(const Sequences *of, const Listed *listed, int64_t kept, ReuseGroups *groups, int64_t *distances, uint8_t *is_streaming,
                       uint8_t *erases)
{
    Table table;
    MarkCounts marks;
    int64_t sequences = 0, last = -1;
    if (!gpa_open_table(&table))
        return FAILED;
    int is_well = gpa_open_marks(&marks, listed->count);
    for (int64_t row = 0, end; is_well && row < kept; row = end) {
        int64_t begin = row ? listed->ends[row - 1] : 0;
        for (end = row + 1; end < kept && is_same(of, of->rows[row], of->rows[end]); ++end)
            ;
        for (int64_t one = row, from = begin; erases != NULL && one < end; from = listed->ends[one++])
            memset(erases + from, of->erasing[of->instructions[of->rows[one]]], (size_t)(listed->ends[one] - from));
        is_well = gpa_measure_group(listed->units, erases, begin, listed->ends[end - 1], &table, &marks, distances, is_streaming);
        for (int64_t one = row, from = begin; is_well && one < end; from = listed->ends[one++])
            is_well = gpa_sum_reuse(groups, of->instructions[of->rows[one]], listed->units + from, distances + from, is_streaming + from,
                                    listed->ends[one] - from, of->shift, &last);
        sequences += 1;
    }
    gpa_close_marks(&marks);
    gpa_close_table(&table);
    return is_well ? sequences : FAILED;
}

/* gpa_lsp.traces.reuse_distance.ReuseAccumulator.add, for rows in order. Found: references, sequences, whether rows were left out. Gives how many groups. */
EXPORT int64_t add_reuse(const uint32_t *blocks, const uint16_t *warps, const uint32_t *instructions, const uint8_t *widths,
                         const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count, const int64_t *rows,
                         int64_t count, int64_t chunk, int64_t shift, int64_t is_by_warp, const uint8_t *erasing, int64_t most,
                         int64_t has_others, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers, int64_t array_count,
                         int64_t arrays, int64_t *keys, int64_t *bins, int64_t *sums, int64_t room, int64_t *found)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    Sequences of = {blocks, instructions, warps, erasing, rows, is_by_warp != 0, (int)shift};
    Listed listed = {NULL, malloc((size_t)(count + 1) * sizeof *listed.ends), 0, 0};
    ReuseGroups groups;
    int64_t *distances = NULL, sequences = FAILED;
    uint8_t *is_streaming = NULL, *erases = NULL;
    if (listed.ends == NULL || !gpa_open_reuse(&groups, bases, ends, numbers, array_count, arrays, keys, bins, sums, room)) {
        free(listed.ends);
        return FAILED;
    }
    int64_t kept = list_rows(&columns, widths, rows, count, chunk, (int)shift, most, &listed);
    if (kept >= 0) {
        found[2] = kept < count;
        if (found[2])
            kept = cut(blocks, rows, kept, has_others != 0);
        listed.count = kept ? listed.ends[kept - 1] : 0;
        distances = malloc((size_t)(listed.count + 1) * sizeof *distances);
        is_streaming = malloc((size_t)(listed.count + 1));
        erases = erasing == NULL ? NULL : malloc((size_t)(listed.count + 1));
        if (distances != NULL && is_streaming != NULL && (erasing == NULL || erases != NULL))
            sequences = measure(&of, &listed, kept, &groups, distances, is_streaming, erases);
        found[0] = listed.count;
        found[1] = sequences;
    }
    free(distances);
    free(is_streaming);
    free(erases);
    free(listed.units);
    free(listed.ends);
    gpa_close_reuse(&groups);
    return sequences < 0 ? FAILED : groups.groups;
}
