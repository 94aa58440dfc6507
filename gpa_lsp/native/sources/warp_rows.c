/* Rows of a trace in the orders of their warps. */
#include "columns.h"

#define WARP_BITS 16

typedef struct {
    int64_t key;        /* its block and itself */
    int64_t number;     /* by first appearance */
    int64_t begin, end; /* of its rows, among those of all warps */
} Warp;

typedef struct {
    Table numbers;
    Warp *warps;
    int64_t count, room;
    int32_t *of_row; /* numbers */
} Warps;

/* The number of a warp, a new one where it has none; FAILED without memory. */
static int64_t find_warp(Warps *of, int64_t key)
{
    int64_t *number = gpa_find_place(&of->numbers, key);
    if (number == NULL || *number >= 0)
        return number == NULL ? FAILED : *number;
    if (of->count == of->room) {
        int64_t room = 2 * of->room + 64;
        Warp *larger = realloc(of->warps, (size_t)room * sizeof *larger);
        if (larger == NULL)
            return FAILED;
        of->warps = larger;
        of->room = room;
    }
    Warp found = {key, of->count, 0, 0};
    of->warps[of->count] = found;
    return *number = of->count++;
}

static int count_rows(Warps *of, const uint32_t *blocks, const uint16_t *warps, int64_t count)
{
    int is_well = of->of_row != NULL && count < INT32_MAX;
    for (int64_t row = 0; is_well && row < count; ++row) {
        int64_t warp = find_warp(of, (int64_t)blocks[row] << WARP_BITS | warps[row]);
        is_well = warp >= 0;
        if (is_well) {
            of->of_row[row] = (int32_t)warp;
            of->warps[warp].end += 1;
        }
    }
    return is_well;
}

static int compare(const void *first, const void *second)
{
    int64_t one = ((const Warp *)first)->key, other = ((const Warp *)second)->key;
    return (one > other) - (one < other);
}

/* Rows warp by warp, the warps ascending. */
static void gather_rows(Warps *of, int64_t count, int64_t *next, int64_t *rows, int64_t *turns)
{
    int64_t before = 0;
    qsort(of->warps, (size_t)of->count, sizeof *of->warps, compare);
    for (Warp *warp = of->warps; warp < of->warps + of->count; ++warp) {
        warp->begin = next[warp->number] = before;
        before = warp->end += before;
    }
    for (int64_t row = 0; row < count; ++row)
        rows[next[of->of_row[row]]++] = row;
    for (const Warp *warp = of->warps; warp < of->warps + of->count; ++warp)
        for (int64_t place = warp->begin; place < warp->end; ++place)
            turns[rows[place]] = place - warp->begin;
}

/* The chosen rows of the warps of one block, round robin; how many. */
static int64_t interleave(Warp *warps, int64_t count, const int64_t *rows, const uint8_t *is_chosen, int64_t *found)
{
    int64_t used = 0;
    while (count != 0) {
        int64_t left = 0;
        for (int64_t one = 0; one < count; ++one) {
            Warp warp = warps[one];
            int64_t row = rows[warp.begin++];
            if (is_chosen[row])
                found[used++] = row;
            if (warp.begin < warp.end)
                warps[left++] = warp;
        }
        count = left;
    }
    return used;
}

/* gpa_lsp.traces.references: how many rows of its warp come before each, and the chosen ones warp by warp, and block by block in turns. */
EXPORT int64_t order_warps(const uint32_t *blocks, const uint16_t *warps, const uint8_t *is_chosen, int64_t count, int64_t *turns,
                           int64_t *by_warp, int64_t *by_block)
{
    Warps of = {{NULL, NULL, NULL, 0, 0, 0, 0}, NULL, 0, 0, malloc((size_t)(count + 1) * sizeof *of.of_row)};
    int64_t *rows = malloc((size_t)(count + 1) * sizeof *rows), *next = NULL, used = 0, found = 0;
    int is_well = gpa_open_table(&of.numbers) && rows != NULL && count_rows(&of, blocks, warps, count);
    if (is_well)
        is_well = (next = malloc((size_t)(of.count + 1) * sizeof *next)) != NULL;
    if (is_well) {
        gather_rows(&of, count, next, rows, turns);
        for (int64_t place = 0; place < count; ++place)
            if (is_chosen[rows[place]])
                by_warp[used++] = rows[place];
    }
    for (int64_t first = 0, end; is_well && first < of.count; first = end) {
        for (end = first + 1; end < of.count && of.warps[end].key >> WARP_BITS == of.warps[first].key >> WARP_BITS; ++end)
            ;
        found += interleave(of.warps + first, end - first, rows, is_chosen, by_block + found);
    }
    gpa_close_table(&of.numbers);
    free(of.warps);
    free(of.of_row);
    free(rows);
    free(next);
    return is_well ? used : FAILED;
}
