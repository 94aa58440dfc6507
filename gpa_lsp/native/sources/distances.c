/* Reuse distances, and which reference to a unit came before. */
#include "distances.h"

/* gpa_lsp.traces.distance_counting.find_previous */
EXPORT int64_t find_previous(const int64_t *units, const int64_t *groups, int64_t count, int64_t *previous)
{
    Table table;
    if (!gpa_open_table(&table))
        return FAILED;
    for (int64_t place = 0; place < count; ++place) {
        int64_t *last = gpa_find_place(&table, units[place]);
        if (last == NULL) {
            gpa_close_table(&table);
            return FAILED;
        }
        previous[place] = *last >= 0 && groups[*last] == groups[place] ? *last : -1;
        *last = place;
    }
    gpa_close_table(&table);
    return 0;
}


static void change(MarkCounts *marks, int64_t place, int64_t by)
{
    marks->bits[place >> 6] ^= UINT64_C(1) << (place & 63);
    marks->marked += by;
    for (int64_t node = (place >> 6) + 1; node <= marks->words; node += node & -node)
        marks->tree[node] += by;
}

/* Marks at a place and before it. */
static int64_t count_up_to(const MarkCounts *marks, int64_t place)
{
    int64_t sum = __builtin_popcountll(marks->bits[place >> 6] & (~UINT64_C(0) >> (63 - (place & 63))));
    for (int64_t node = place >> 6; node > 0; node -= node & -node)
        sum += marks->tree[node];
    return sum;
}

int gpa_open_marks(MarkCounts *marks, int64_t count)
{
    size_t words = (size_t)(count + 63) / 64 + 1;
    marks->bits = malloc(words * sizeof *marks->bits);
    marks->tree = malloc((words + 1) * sizeof *marks->tree);
    return marks->bits != NULL && marks->tree != NULL;
}

void gpa_close_marks(MarkCounts *marks)
{
    free(marks->bits);
    free(marks->tree);
}

int gpa_measure_group(const int64_t *units, const uint8_t *erases, int64_t begin, int64_t end, Table *table, MarkCounts *marks,
                      int64_t *distance, uint8_t *is_streaming)
{
    if (table->used > 512 && table->used > 2 * (end - begin))
        gpa_clear_table(table);
    marks->words = (end - begin + 63) >> 6;
    marks->marked = 0;
    memset(marks->bits, 0, (size_t)marks->words * sizeof *marks->bits);
    memset(marks->tree, 0, (size_t)(marks->words + 1) * sizeof *marks->tree);
    for (int64_t place = begin; place < end; ++place) {
        int64_t *last = gpa_find_place(table, units[place]);
        if (last == NULL)
            return 0;
        int64_t before = *last;
        int is_erasing = erases != NULL && erases[place];
        int is_reused = before >= begin && !(erases != NULL && erases[before]);
        if (is_erasing) {
            distance[place] = -2;
            is_streaming[place] = 0;
        } else if (is_reused) {
            distance[place] = marks->marked - count_up_to(marks, before - begin);
            is_streaming[place] = 0;
            is_streaming[before] = 0;
        } else {
            distance[place] = -1;
            is_streaming[place] = 1;
        }
        if (is_reused)
            change(marks, before - begin, -1);
        if (!is_erasing)
            change(marks, place - begin, 1);
        *last = place;
    }
    return 1;
}

/* gpa_lsp.traces.distance_counting.measure_distances; erases may be NULL. */
EXPORT int64_t measure_distances(const int64_t *units, const int64_t *groups, const uint8_t *erases, int64_t count,
                                 int64_t *distance, uint8_t *is_streaming)
{
    Table table;
    MarkCounts marks;
    if (!gpa_open_table(&table))
        return FAILED;
    int is_well = gpa_open_marks(&marks, count);
    for (int64_t begin = 0, end; is_well && begin < count; begin = end) {
        for (end = begin + 1; end < count && groups[end] == groups[begin]; ++end)
            ;
        is_well = gpa_measure_group(units, erases, begin, end, &table, &marks, distance, is_streaming);
    }
    gpa_close_marks(&marks);
    gpa_close_table(&table);
    return is_well ? 0 : FAILED;
}
