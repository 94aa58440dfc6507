/* What each warp-level access touches, straight from the columns of a trace. */
#include "lanes.h"

#define SECTOR_SHIFT 5

/* gpa_lsp.execution.traces.request_kinds: seven columns of each row. */
EXPORT int64_t measure_requests(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                                const uint8_t *widths, const int64_t *rows, int64_t count, int64_t *counts, int64_t *lines, int64_t *sectors,
                                int64_t *used, int64_t *distinct, int64_t *patterns, int64_t *strides)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    uint64_t sorted[LANES];
    int64_t lanes[LANES];
    for (int64_t row = 0; row < count; ++row) {
        int64_t from = rows[row], width = widths[from];
        int active = gpa_sort_lanes(&columns, from, sorted), lane = 0;
        if (active == 0 || width == 0)
            return FAILED;
        for (uint32_t mask = masks[from]; mask; mask &= mask - 1)
            lanes[lane++] = __builtin_ctz(mask);
        Touched touched = gpa_measure_lanes(sorted, active, (uint64_t)width);
        counts[row] = active;
        lines[row] = touched.lines;
        sectors[row] = touched.sectors;
        used[row] = touched.used;
        distinct[row] = touched.distinct;
        patterns[row] = gpa_find_pattern(addresses + first[from], lanes, active, width, &strides[row]);
    }
    return 0;
}

/* Marks the sectors that rows touch of one array; those outside of it are passed over. */
EXPORT int64_t mark_sectors(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count, const uint8_t *widths,
                            const int64_t *rows, int64_t count, int64_t first_sector, int64_t sector_count, uint8_t *marks)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    uint64_t sorted[LANES];
    int64_t units[LANES * (256 / 32 + 2)];
    for (int64_t row = 0; row < count; ++row) {
        int lanes = gpa_sort_lanes(&columns, rows[row], sorted);
        if (lanes == 0 || widths[rows[row]] == 0)
            return FAILED;
        int64_t found = gpa_list_units(sorted, lanes, widths[rows[row]], SECTOR_SHIFT, units);
        for (int64_t place = 0; place < found; ++place)
            if (units[place] >= first_sector && units[place] - first_sector < sector_count)
                marks[units[place] - first_sector] = 1;
    }
    return 0;
}

/* gpa_lsp.execution.traces.references.list_references for rows that are not local: units of each row, of whole chunks until there are more than
   wanted. Gives how many rows. */
EXPORT int64_t count_units(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count, const uint8_t *widths,
                           const int64_t *rows, int64_t count, int64_t chunk, int64_t shift, int64_t most, int64_t *sizes)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    uint64_t sorted[LANES];
    int64_t units[LANES * (256 / 4 + 2)], row = 0, found = 0;
    if (shift < 2)
        return FAILED;
    while (row < count && found <= most)
        for (int64_t end = row + chunk < count ? row + chunk : count; row < end; ++row) {
            int lanes = gpa_sort_lanes(&columns, rows[row], sorted);
            if (lanes == 0 || widths[rows[row]] == 0)
                return FAILED;
            sizes[row] = gpa_list_units(sorted, lanes, widths[rows[row]], (int)shift, units);
            found += sizes[row];
        }
    return row;
}

/* The units of rows that were counted. */
EXPORT int64_t list_units(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count, const uint8_t *widths,
                          const int64_t *rows, int64_t count, int64_t shift, int64_t *units)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    uint64_t sorted[LANES];
    int64_t found = 0;
    for (int64_t row = 0; row < count; ++row) {
        int lanes = gpa_sort_lanes(&columns, rows[row], sorted);
        found += gpa_list_units(sorted, lanes, widths[rows[row]], (int)shift, units + found);
    }
    return found;
}

/* The addresses of a row's lanes in their order, filled up with the last to 32; how many lanes, 0 where it leads nowhere. */
static int read_lanes(const LaneColumns *columns, int64_t row, uint64_t *found)
{
    int active = __builtin_popcount(columns->masks[row]);
    uint64_t start = columns->first[row];
    if (active == 0 || start > (uint64_t)columns->address_count || (uint64_t)columns->address_count - start < (uint64_t)active)
        return 0;
    memcpy(found, columns->addresses + start, (size_t)active * sizeof *found);
    for (int lane = active; lane < LANES; ++lane)
        found[lane] = found[active - 1];
    return active;
}

/* gpa_lsp.execution.traces.bank_conflicts: lanes of each row, passes and passes without conflicts. Kinds, words and parts are by row. */
EXPORT int64_t measure_banks(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count, const uint8_t *widths,
                             const int64_t *rows, int64_t count, const int8_t *kinds, const int64_t *words, const int64_t *parts, int64_t *lanes,
                             int64_t *taken, int64_t *ideal)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    uint64_t packed[LANES], spread[LANES] = {0};
    uint8_t active[LANES];
    (void)widths;
    for (int64_t row = 0; row < count; ++row) {
        if (!gpa_are_parts(words[row], parts[row]) || (lanes[row] = read_lanes(&columns, rows[row], packed)) == 0)
            return FAILED;
        uint32_t mask = masks[rows[row]];
        for (int lane = 0, place = 0; lane < LANES; ++lane) {
            active[lane] = mask >> lane & 1;
            spread[lane] = active[lane] ? packed[place++] : 0;
        }
        gpa_count_wavefronts(spread, active, kinds[row], (int)words[row], (int)parts[row], &taken[row], &ideal[row]);
    }
    return 0;
}
