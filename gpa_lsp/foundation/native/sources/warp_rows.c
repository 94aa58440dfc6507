/* Rows of a trace in the orders of their warps. */
#include "columns.h"
#include "sizes.h"

#define WARP_BITS 16

typedef struct {
    int64_t key;        /* its block and itself */
    int64_t number;
    int64_t begin, end; /* of its rows, among those of all warps */
} Warp;

static int compare(const void *first, const void *second)
{
    int64_t one = ((const Warp *)first)->key, other = ((const Warp *)second)->key;
    return (one > other) - (one < other);
}

/* Rows warp by warp, the warps ascending. */
static void gather_rows(Warp *warps, int64_t warp_count, const int32_t *numbers, int64_t count, int64_t *next, int64_t *rows, int64_t *turns)
{
    int64_t before = 0;
    for (int64_t row = 0; row < count; ++row)
        warps[numbers[row]].end += 1;
    qsort(warps, (size_t)warp_count, sizeof *warps, compare);
    for (Warp *warp = warps; warp < warps + warp_count; ++warp) {
        warp->begin = next[warp->number] = before;
        before = warp->end += before;
    }
    for (int64_t row = 0; row < count; ++row)
        rows[next[numbers[row]]++] = row;
    for (const Warp *warp = warps; warp < warps + warp_count; ++warp)
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

/* gpa_lsp.execution.traces.references: how many rows of its warp come before each, and the chosen ones warp by warp, and block by block in turns. Warps are
 * numbered by row, with a key of each as number_warps has them. */
EXPORT int64_t order_warps(const int32_t *numbers, const uint8_t *is_chosen, int64_t count, const int64_t *keys, int64_t warp_count, int64_t *turns,
                           int64_t *by_warp, int64_t *by_block)
{
    Warp *warps = malloc(multiply_sizes((size_t)(warp_count + 1), sizeof *warps));
    int64_t *rows = malloc(multiply_sizes((size_t)(count + 1), sizeof *rows)), *next = malloc(multiply_sizes((size_t)(warp_count + 1), sizeof *next));
    int64_t used = 0, found = 0;
    int is_well = warps != NULL && rows != NULL && next != NULL;
    for (int64_t number = 0; is_well && number < warp_count; ++number)
        warps[number] = (Warp){keys[number], number, 0, 0};
    if (is_well) {
        gather_rows(warps, warp_count, numbers, count, next, rows, turns);
        for (int64_t place = 0; place < count; ++place)
            if (is_chosen[rows[place]])
                by_warp[used++] = rows[place];
    }
    for (int64_t first = 0, end; is_well && first < warp_count; first = end) {
        for (end = first + 1; end < warp_count && warps[end].key >> WARP_BITS == warps[first].key >> WARP_BITS; ++end)
            ;
        found += interleave(warps + first, end - first, rows, is_chosen, by_block + found);
    }
    free(warps);
    free(rows);
    free(next);
    return is_well ? used : FAILED;
}
