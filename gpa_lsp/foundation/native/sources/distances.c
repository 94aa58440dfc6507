/* Reuse distances, and which reference to a unit came before. */
#include "distances.h"
#include "sizes.h"

/* gpa_lsp.execution.traces.reuse_distance.find_previous */
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

#define FAN_BITS 4
#define FAN (1 << FAN_BITS)

static void change(MarkCounts *marks, int64_t place, int32_t by)
{
    int64_t word = place >> 6;
    marks->bits[word] ^= UINT64_C(1) << (place & 63);
    for (int level = 0; level < marks->levels; ++level) {
        word >>= FAN_BITS;
        marks->sums[level][word] += by;
    }
}

void gpa_change_run(MarkCounts *marks, int64_t place, int64_t count, int is_set)
{
    for (int64_t left = count; left > 0;) {
        int64_t word = place >> 6, part = 64 - (place & 63) < left ? 64 - (place & 63) : left;
        uint64_t bits = (part == 64 ? ~UINT64_C(0) : (UINT64_C(1) << part) - 1) << (place & 63);
        marks->bits[word] ^= bits;
        for (int level = 0; level < marks->levels; ++level) {
            word >>= FAN_BITS;
            marks->sums[level][word] += (int32_t)(is_set ? part : -part);
        }
        place += part;
        left -= part;
    }
}

int64_t gpa_count_between(const MarkCounts *marks, int64_t place, int64_t last)
{
    int64_t word = place >> 6, end = last >> 6;
    int64_t sum = __builtin_popcountll(marks->bits[word] >> (place & 63) >> 1);
    int64_t stop = end < (word | (FAN - 1)) ? end : word | (FAN - 1);
    while (++word <= stop)
        sum += __builtin_popcountll(marks->bits[word]);
    for (int level = 0; stop < end; ++level) {
        word = stop >> FAN_BITS;
        end >>= FAN_BITS;
        stop = end < (word | (FAN - 1)) || level + 1 == marks->levels ? end : word | (FAN - 1);
        while (++word <= stop)
            sum += marks->sums[level][word];
    }
    return sum;
}

/* Room for the sums of so many words; how many levels there are. */
static int lay_out(MarkCounts *marks, int64_t words, int64_t *needed)
{
    int levels = 0;
    *needed = 0;
    while (words > FAN && levels < MARK_LEVELS) {
        words = (words + FAN - 1) >> FAN_BITS;
        if (marks->room != NULL)
            marks->sums[levels] = marks->room + *needed;
        *needed += words;
        ++levels;
    }
    return levels;
}

int gpa_open_marks(MarkCounts *marks, int64_t count)
{
    int64_t words = (count + 63) / 64 + 1, needed;
    memset(marks, 0, sizeof *marks);
    if (count >= INT32_MAX)
        return 0;
    lay_out(marks, words, &needed);
    marks->bits = malloc(multiply_sizes((size_t)words, sizeof *marks->bits));
    marks->room = malloc(multiply_sizes((size_t)(needed + 1), sizeof *marks->room));
    return marks->bits != NULL && marks->room != NULL;
}

void gpa_close_marks(MarkCounts *marks)
{
    free(marks->bits);
    free(marks->room);
}

void gpa_clear_marks(MarkCounts *marks, int64_t count)
{
    int64_t needed;
    marks->words = (count + 63) >> 6;
    marks->levels = lay_out(marks, marks->words, &needed);
    memset(marks->bits, 0, (size_t)marks->words * sizeof *marks->bits);
    memset(marks->room, 0, (size_t)needed * sizeof *marks->room);
}

int gpa_measure_group(const int64_t *units, const uint8_t *erases, int64_t begin, int64_t end, Table *table, MarkCounts *marks,
                      int64_t *distance, uint8_t *is_streaming)
{
    if (table->used > 512 && table->used > 2 * (end - begin))
        gpa_clear_table(table);
    gpa_clear_marks(marks, end - begin);
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
            distance[place] = gpa_count_between(marks, before - begin, place - begin);
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

/* gpa_lsp.execution.traces.reuse_distance.measure_distances; erases may be NULL. */
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
