/* Sectors of rows of a trace: of each access by itself, or all of them together. */
#include "lanes.h"

#define SECTOR_SHIFT 5

/* gpa_lsp.volumes.miscounts: sectors of each row, summed. */
EXPORT int64_t sum_sectors(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count, const uint8_t *widths,
                           const int64_t *rows, int64_t count)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    uint64_t sorted[LANES];
    int64_t units[LANES * (256 / 32 + 2)], sum = 0;
    for (int64_t row = 0; row < count; ++row) {
        uint64_t width = widths[rows[row]] ? widths[rows[row]] : 1;
        int lanes = gpa_sort_lanes(&columns, rows[row], sorted);
        if (lanes == 0)
            return FAILED;
        sum += gpa_list_units(sorted, lanes, width, SECTOR_SHIFT, units);
    }
    return sum;
}

#define RECENT 4096

/* Sectors that were noted not long ago are not looked up. */
static int note(Table *table, int64_t *recent, int64_t sector)
{
    if (recent[sector & (RECENT - 1)] == sector)
        return 1;
    recent[sector & (RECENT - 1)] = sector;
    int64_t *place = gpa_find_place(table, sector);
    if (place == NULL)
        return 0;
    *place = 0;
    return 1;
}

/* gpa_lsp.volumes.miscounts: distinct sectors that the first and last bytes of all lanes lie in. */
EXPORT int64_t count_sectors_together(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                                      const uint8_t *widths, const int64_t *rows, int64_t count)
{
    Table table;
    int is_well = gpa_open_table(&table);
    int64_t known = -1, recent[RECENT];
    memset(recent, 0xFF, sizeof recent);
    if (!is_well)
        return FAILED;
    for (int64_t row = 0; is_well && row < count; ++row) {
        int64_t lanes = __builtin_popcount(masks[rows[row]]), width = widths[rows[row]] ? widths[rows[row]] : 1;
        uint64_t start = first[rows[row]];
        is_well = start <= (uint64_t)address_count && (uint64_t)address_count - start >= (uint64_t)lanes;
        for (int64_t lane = 0; is_well && lane < lanes; ++lane) {
            int64_t begin = (int64_t)addresses[start + (uint64_t)lane], sector = begin >> SECTOR_SHIFT, last = (begin + width - 1) >> SECTOR_SHIFT;
            if (sector != known)
                is_well = note(&table, recent, sector);
            if (last != sector)
                is_well = is_well && note(&table, recent, last);
            known = last;
        }
    }
    int64_t found = table.used;
    gpa_close_table(&table);
    return is_well ? found : FAILED;
}
