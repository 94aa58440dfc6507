/* Rows of columns: their order, their number by a key, and sums. */
#include "columns.h"
#include "sizes.h"

#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

/* One more key of a stable sort, of so many bits, from the least significant on: order becomes that of the keys, equal ones as they were. */
static void refine_order(const uint64_t *keys, int bits, int64_t count, int64_t *order, int64_t *room)
{
    int64_t *from = order, *to = room;
    for (int shift = 0; shift < bits; shift += DIGIT_BITS) {
        int64_t starts[DIGITS + 1] = {0};
        for (int64_t row = 0; row < count; ++row)
            starts[((keys[row] >> shift) & (DIGITS - 1)) + 1] += 1;
        for (int digit = 0; digit < DIGITS; ++digit)
            starts[digit + 1] += starts[digit];
        for (int64_t place = 0; place < count; ++place) {
            int64_t row = from[place];
            to[starts[(keys[row] >> shift) & (DIGITS - 1)]++] = row;
        }
        int64_t *turned = from;
        from = to;
        to = turned;
    }
    if (from != order)
        memcpy(order, from, (size_t)count * sizeof *order);
}

/* The bits of the span of a column, and where it begins. */
static int find_span(const int64_t *column, int64_t count, int64_t *lowest)
{
    int64_t low = column[0], high = column[0];
    for (int64_t row = 1; row < count; ++row) {
        low = column[row] < low ? column[row] : low;
        high = column[row] > high ? column[row] : high;
    }
    *lowest = low;
    return high == low ? 0 : 64 - __builtin_clzll((uint64_t)high - (uint64_t)low);
}

/* gpa_lsp.execution.traces.references: rows by columns that lie one behind the other, the first one first. Columns are put together as long as 64 bits hold them. */
EXPORT int64_t order_rows(const int64_t *columns, int64_t width, int64_t count, int64_t *order)
{
    uint64_t *keys = malloc(multiply_sizes((size_t)(count + 1), sizeof *keys));
    int64_t *room = malloc(multiply_sizes((size_t)(count + 1), sizeof *room));
    int is_well = keys != NULL && room != NULL;
    for (int64_t row = 0; row < count; ++row)
        order[row] = row;
    for (int64_t left = width; is_well && count != 0 && left > 0;) {
        int bits = 0;
        memset(keys, 0, (size_t)count * sizeof *keys);
        for (; left > 0; --left) {
            int64_t lowest;
            const int64_t *column = columns + (left - 1) * count;
            int more = find_span(column, count, &lowest);
            if (bits + more > 64)
                break;
            for (int64_t row = 0; more != 0 && row < count; ++row)
                keys[row] |= ((uint64_t)column[row] - (uint64_t)lowest) << bits;
            bits += more;
        }
        refine_order(keys, bits, count, order, room);
    }
    free(keys);
    free(room);
    return is_well ? 0 : FAILED;
}

/* For each row how many rows of the same key come before it. */
EXPORT int64_t number_by_key(const int64_t *keys, int64_t count, int64_t *numbers)
{
    Table table;
    if (!gpa_open_table(&table))
        return FAILED;
    for (int64_t row = 0; row < count; ++row) {
        int64_t *known = gpa_find_place(&table, keys[row]);
        if (known == NULL) {
            gpa_close_table(&table);
            return FAILED;
        }
        *known += 1;
        numbers[row] = *known;
    }
    gpa_close_table(&table);
    return 0;
}

/* int64[groups, width] sums of int64[n, width] columns by place. */
EXPORT int64_t sum_columns(const int64_t *places, const int64_t *columns, int64_t count, int64_t width, int64_t groups, int64_t *sums)
{
    memset(sums, 0, (size_t)(groups * width) * sizeof *sums);
    for (int64_t row = 0; row < count; ++row) {
        if (places[row] < 0 || places[row] >= groups)
            return FAILED;
        for (int64_t column = 0; column < width; ++column)
            sums[places[row] * width + column] += columns[row * width + column];
    }
    return 0;
}

static int count_bits(const int64_t *column, int64_t count)
{
    int64_t every = 0;
    for (int64_t row = 0; row < count; ++row)
        every |= column[row];
    return every == 0 ? 0 : 64 - __builtin_clzll((uint64_t)every);
}

/* gpa_lsp.execution.traces.references.number_warps: keys are blocks, then warps of 16 bits. Gives how many there are. */
EXPORT int64_t number_warps(const uint32_t *blocks, const uint16_t *warps, int64_t count, int32_t *numbers, int64_t *keys)
{
    Table table;
    int64_t found = 0;
    if (count >= INT32_MAX || !gpa_open_table(&table))
        return FAILED;
    for (int64_t row = 0; row < count; ++row) {
        int64_t key = (int64_t)blocks[row] << 16 | warps[row], *number = gpa_find_place(&table, key);
        if (number == NULL) {
            gpa_close_table(&table);
            return FAILED;
        }
        if (*number < 0) {
            keys[found] = key;
            *number = found++;
        }
        numbers[row] = (int32_t)*number;
    }
    gpa_close_table(&table);
    return found;
}

/* gpa_lsp.execution.traces.references.order_turns */
EXPORT int64_t order_turns(const int32_t *warps, const int64_t *turns, int64_t count, const int64_t *groups, const int64_t *ranks,
                           int64_t warp_count, int64_t *order)
{
    int rank_bits = count_bits(ranks, warp_count), turn_bits = rank_bits + count_bits(turns, count);
    int bits = turn_bits + count_bits(groups, warp_count);
    uint64_t *keys = malloc(multiply_sizes((size_t)(count + 1), sizeof *keys));
    int64_t *room = malloc(multiply_sizes((size_t)(count + 1), sizeof *room));
    int is_well = keys != NULL && room != NULL && turn_bits < 64 && bits <= 64;
    for (int64_t row = 0; is_well && row < count; ++row) {
        int64_t warp = warps[row];
        is_well = warp >= 0 && warp < warp_count;
        if (!is_well)
            break;
        keys[row] = (uint64_t)groups[warp] << turn_bits | (uint64_t)turns[row] << rank_bits | (uint64_t)ranks[warp];
        order[row] = row;
    }
    if (is_well)
        refine_order(keys, bits, count, order, room);
    free(keys);
    free(room);
    return is_well ? 0 : FAILED;
}
