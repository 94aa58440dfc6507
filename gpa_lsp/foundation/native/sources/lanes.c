/* The lanes of warp accesses: their addresses as rows of 32, the units they touch, their patterns, and what banks make of them. */
#include "lanes.h"

/* gpa_lsp.execution.traces.lane_addresses.gather_lanes */
EXPORT int64_t gather_lanes(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                            const int64_t *rows, int64_t count, uint64_t *found, int64_t *lanes, int64_t *counts)
{
    for (int64_t row = 0; row < count; ++row) {
        uint32_t mask = masks[rows[row]];
        uint64_t start = first[rows[row]];
        int active = __builtin_popcount(mask), column = 0;
        if (active == 0 || start > (uint64_t)address_count || (uint64_t)address_count - start < (uint64_t)active)
            return FAILED;
        uint64_t *to = found + row * LANES;
        int64_t *lane = lanes + row * LANES;
        counts[row] = active;
        for (; mask != 0; mask &= mask - 1, ++column) {
            to[column] = addresses[start + (uint64_t)column];
            lane[column] = __builtin_ctz(mask);
        }
        for (; column < LANES; ++column) {
            to[column] = to[active - 1];
            lane[column] = lane[active - 1];
        }
    }
    return 0;
}

/* gpa_lsp.execution.volumes.lane_rows: the addresses of all lanes of some rows, row by row. */
EXPORT int64_t join_addresses(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count, const int64_t *rows,
                              int64_t count, int64_t *found, int64_t room)
{
    int64_t used = 0;
    for (int64_t row = 0; row < count; ++row) {
        int64_t active = __builtin_popcount(masks[rows[row]]);
        uint64_t start = first[rows[row]];
        if (start > (uint64_t)address_count || (uint64_t)address_count - start < (uint64_t)active || room - used < active)
            return FAILED;
        memcpy(found + used, addresses + start, (size_t)active * sizeof *found);
        used += active;
    }
    return used;
}

/* gpa_lsp.execution.traces.lane_addresses.spread_lanes */
EXPORT int64_t spread_lanes(const uint64_t *packed, const int64_t *lanes, const int64_t *counts, int64_t count,
                            uint64_t *addresses, uint8_t *active)
{
    memset(addresses, 0, (size_t)count * LANES * sizeof *addresses);
    memset(active, 0, (size_t)count * LANES);
    for (int64_t row = 0; row < count; ++row)
        for (int64_t column = 0; column < counts[row]; ++column) {
            int64_t lane = lanes[row * LANES + column];
            if (lane < 0 || lane >= LANES)
                return FAILED;
            addresses[row * LANES + lane] = packed[row * LANES + column];
            active[row * LANES + lane] = 1;
        }
    return 0;
}

static int has_falls(const uint64_t *row, int64_t columns)
{
    int falls = 0;
    for (int64_t column = 1; column < columns; ++column)
        falls |= row[column] < row[column - 1];
    return falls;
}

static void sort_row(uint64_t *row, int64_t columns)
{
    for (int64_t column = 1; column < columns; ++column) {
        uint64_t value = row[column];
        int64_t place = column;
        for (; place > 0 && row[place - 1] > value; --place)
            row[place] = row[place - 1];
        row[place] = value;
    }
}

int gpa_sort_lanes(const LaneColumns *columns, int64_t row, uint64_t *sorted)
{
    int active = __builtin_popcount(columns->masks[row]);
    uint64_t start = columns->first[row];
    if (active == 0 || start > (uint64_t)columns->address_count || (uint64_t)columns->address_count - start < (uint64_t)active)
        return 0;
    memcpy(sorted, columns->addresses + start, (size_t)active * sizeof *sorted);
    if (has_falls(sorted, active))
        sort_row(sorted, active);
    return active;
}

int64_t gpa_list_units(const uint64_t *sorted, int lanes, uint64_t width, int shift, int64_t *units)
{
    int64_t found = 0, before = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        int64_t unit = (int64_t)(sorted[lane] >> shift), last = (int64_t)((sorted[lane] + (width - 1)) >> shift);
        if (lane && before > unit - 1)
            unit = before + 1;
        for (; unit <= last; ++unit)
            units[found++] = unit;
        before = last;
    }
    return found;
}

/* gpa_lsp.execution.traces.segments: sorts the rows that are not, in place; says whether there were any. */
EXPORT int64_t sort_rows(uint64_t *values, int64_t count, int64_t columns)
{
    int64_t sorted = 0;
    for (int64_t row = 0; row < count; ++row)
        if (has_falls(values + row * columns, columns)) {
            sort_row(values + row * columns, columns);
            sorted = 1;
        }
    return sorted;
}

static int64_t count_new(const uint64_t *starts, int64_t columns, uint64_t width, int shift)
{
    int64_t before = 0, sum = 0;
    for (int64_t column = 0; column < columns; ++column) {
        int64_t first = (int64_t)(starts[column] >> shift), last = (int64_t)((starts[column] + (width - 1)) >> shift);
        int64_t known = column && before > first - 1 ? before : first - 1;
        sum += last - known;
        before = last;
    }
    return sum;
}

Touched gpa_measure_lanes(const uint64_t *sorted, int64_t lanes, uint64_t width)
{
    Touched touched = {count_new(sorted, lanes, width, 7), count_new(sorted, lanes, width, 5), (int64_t)width, 1};
    for (int64_t lane = 1; lane < lanes; ++lane) {
        uint64_t gap = sorted[lane] - sorted[lane - 1];
        touched.used += (int64_t)(gap < width ? gap : width);
        touched.distinct += gap != 0;
    }
    return touched;
}

/* gpa_lsp.execution.traces.segments.measure_intervals: lines, sectors, used bytes and distinct addresses of each row, four columns. */
EXPORT int64_t measure_intervals(const uint64_t *starts, const uint64_t *widths, int64_t count, int64_t columns, int64_t *lines,
                                 int64_t *sectors, int64_t *used, int64_t *distinct)
{
    for (int64_t row = 0; row < count; ++row) {
        Touched touched = gpa_measure_lanes(starts + row * columns, columns, widths[row]);
        lines[row] = touched.lines;
        sectors[row] = touched.sectors;
        used[row] = touched.used;
        distinct[row] = touched.distinct;
    }
    return 0;
}

/* gpa_lsp.execution.traces.segments.list_segments; gives how many there are, of which no more than the room are written. */
EXPORT int64_t list_segments(const uint64_t *starts, const uint64_t *widths, int64_t count, int64_t columns, int64_t shift,
                             int64_t room, int64_t *rows, int64_t *segments)
{
    int64_t found = 0;
    for (int64_t row = 0; row < count; ++row) {
        int64_t before = 0;
        for (int64_t column = 0; column < columns; ++column) {
            uint64_t start = starts[row * columns + column];
            int64_t first = (int64_t)(start >> shift), last = (int64_t)((start + (widths[row] - 1)) >> shift);
            if (column && before > first - 1)
                first = before + 1;
            for (int64_t segment = first; segment <= last; ++segment, ++found)
                if (found < room) {
                    rows[found] = row;
                    segments[found] = segment;
                }
            before = last;
        }
    }
    return found;
}

static int64_t divide_down(int64_t value, int64_t by)
{
    int64_t quotient = value / by;
    return quotient - (value % by != 0 && (value < 0) != (by < 0));
}

int64_t gpa_find_pattern(const uint64_t *addresses, const int64_t *lanes, int64_t active, int64_t width, int64_t *found)
{
    int64_t many = active > 1 ? active - 1 : 1, equal = 0, side = 0;
    int64_t first = active > 1 ? (int64_t)(addresses[1] - addresses[0]) : 0, gap = active > 1 ? lanes[1] - lanes[0] : 1;
    int64_t stride = divide_down(first, gap > 1 ? gap : 1);
    for (int64_t column = 1; column < active; ++column) {
        uint64_t distance = addresses[column] - addresses[column - 1];
        equal += distance == (uint64_t)stride * (uint64_t)(lanes[column] - lanes[column - 1]);
        side += distance == (uint64_t)width;
    }
    int beside = side == many;
    stride = beside ? width : active == 2 ? first : stride;
    int is_all = equal == many || beside || active == 2, is_most = 2 * equal >= many;
    int64_t pattern = active == 1                    ? 0
                      : is_all && stride == 0        ? 1
                      : is_all && stride == width    ? 2
                      : is_all                       ? 3
                      : is_most && stride == width   ? 4
                      : is_most && stride == 0       ? 5
                      : is_most                      ? 6
                                                     : 7;
    *found = pattern == 2 || pattern == 3 || pattern == 4 || pattern == 6 ? stride : 0;
    return pattern;
}

/* gpa_lsp.execution.traces.segments.find_patterns */
EXPORT int64_t find_patterns(const uint64_t *addresses, const int64_t *lanes, const int64_t *counts, const uint8_t *widths,
                             int64_t count, int64_t *patterns, int64_t *strides)
{
    for (int64_t row = 0; row < count; ++row)
        patterns[row] = gpa_find_pattern(addresses + row * LANES, lanes + row * LANES, counts[row], widths[row], &strides[row]);
    return 0;
}

#define BANKS 32
#define MOST_WORDS 64

/* Passes of the lanes of one part: the most different words of one bank, of atomics the most lanes. */
static int64_t find_degree(const uint64_t *addresses, const uint8_t *active, int lanes, int words, int adds_up)
{
    int64_t known[BANKS][LANES > MOST_WORDS ? LANES : MOST_WORDS];
    int used[BANKS] = {0}, most = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        if (!active[lane])
            continue;
        for (int step = 0; step < words; ++step) {
            int64_t word = (int64_t)(addresses[lane] >> 2) + step;
            int bank = (int)(word % BANKS), place = 0;
            if (!adds_up)
                while (place < used[bank] && known[bank][place] != word)
                    ++place;
            else
                place = used[bank];
            if (place == used[bank]) {
                known[bank][used[bank]++] = word;
                most = used[bank] > most ? used[bank] : most;
            }
        }
    }
    return most;
}

static void serve(const uint64_t *addresses, const uint8_t *active, int adds_up, int words, int parts, int64_t *taken, int64_t *ideal)
{
    int lanes = LANES / parts;
    *taken = *ideal = 0;
    for (int part = 0; part < parts; ++part) {
        int64_t degree = find_degree(addresses + part * lanes, active + part * lanes, lanes, words, adds_up);
        *taken += degree;
        *ideal += degree > 0;
    }
}

static int is_paired(const uint64_t *addresses, const uint8_t *active, int step)
{
    for (int lane = 0; lane < LANES; ++lane)
        if (active[lane] && active[lane ^ step] && addresses[lane] != addresses[lane ^ step])
            return 0;
    return 1;
}

int gpa_are_parts(int64_t words, int64_t parts)
{
    return words >= 1 && words <= MOST_WORDS && parts >= 1 && parts <= LANES && LANES / parts * words <= MOST_WORDS;
}

void gpa_count_wavefronts(const uint64_t *addresses, const uint8_t *active, int kind, int words, int parts, int64_t *taken, int64_t *ideal)
{
    int adds_up = kind >= 2;
    serve(addresses, active, adds_up, words, parts, taken, ideal);
    if ((words != 2 && words != 4) || kind != 0 || (!is_paired(addresses, active, 1) && !is_paired(addresses, active, 2)))
        return;
    int64_t joined, joined_ideal;
    serve(addresses, active, adds_up, words, parts / 2, &joined, &joined_ideal);
    if (joined < *taken) {
        *taken = joined;
        *ideal = joined_ideal;
    }
}

/* gpa_lsp.code.symbolic_accesses.wavefronts.count_wavefronts; kinds: 0 load, 1 store, 2 and 3 atomic. */
EXPORT int64_t count_wavefronts(const uint64_t *addresses, const uint8_t *active, const int8_t *kinds, int64_t count, int64_t words,
                                int64_t parts, int64_t *taken, int64_t *ideal)
{
    if (!gpa_are_parts(words, parts))
        return FAILED;
    for (int64_t row = 0; row < count; ++row)
        gpa_count_wavefronts(addresses + row * LANES, active + row * LANES, kinds[row], (int)words, (int)parts, &taken[row], &ideal[row]);
    return 0;
}
