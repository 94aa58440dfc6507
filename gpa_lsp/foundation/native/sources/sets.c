/* Lists of units of rows, equal ones once. */
#include "columns.h"
#include "lanes.h"
#include "sizes.h"

#define SMALLEST 1024

/* Lists of units one behind the other, found by their content. */
typedef struct {
    int64_t *units;
    int64_t used, room; /* of units */
    int64_t *firsts, *sizes;
    uint64_t *hashes;
    int32_t *slots; /* numbers of lists; -1: free */
    int64_t mask, count, list_room;
} Lists;

static int open_lists(Lists *lists, int64_t *units, int64_t room)
{
    memset(lists, 0, sizeof *lists);
    lists->units = units;
    lists->room = room;
    lists->mask = SMALLEST - 1;
    lists->slots = malloc(multiply_sizes(SMALLEST, sizeof *lists->slots));
    if (lists->slots != NULL)
        memset(lists->slots, 0xFF, SMALLEST * sizeof *lists->slots);
    return lists->slots != NULL;
}

static void close_lists(Lists *lists)
{
    free(lists->slots);
    free(lists->firsts);
    free(lists->sizes);
    free(lists->hashes);
}

/* Room for one list more. */
static int reserve(Lists *lists)
{
    if (lists->count == lists->list_room) {
        int64_t room = 2 * lists->list_room + SMALLEST / 2;
        int64_t *firsts = realloc(lists->firsts, multiply_sizes((size_t)room, sizeof *firsts));
        lists->firsts = firsts == NULL ? lists->firsts : firsts;
        int64_t *sizes = realloc(lists->sizes, multiply_sizes((size_t)room, sizeof *sizes));
        lists->sizes = sizes == NULL ? lists->sizes : sizes;
        uint64_t *hashes = realloc(lists->hashes, multiply_sizes((size_t)room, sizeof *hashes));
        lists->hashes = hashes == NULL ? lists->hashes : hashes;
        if (firsts == NULL || sizes == NULL || hashes == NULL)
            return 0;
        lists->list_room = room;
    }
    if (2 * (lists->count + 1) <= lists->mask + 1)
        return 1;
    int64_t size = 2 * (lists->mask + 1);
    int32_t *slots = malloc(multiply_sizes((size_t)size, sizeof *slots));
    if (slots == NULL)
        return 0;
    memset(slots, 0xFF, (size_t)size * sizeof *slots);
    for (int64_t list = 0; list < lists->count; ++list) {
        int64_t slot = (int64_t)(lists->hashes[list] & (uint64_t)(size - 1));
        while (slots[slot] >= 0)
            slot = (slot + 1) & (size - 1);
        slots[slot] = (int32_t)list;
    }
    free(lists->slots);
    lists->slots = slots;
    lists->mask = size - 1;
    return 1;
}

static uint64_t hash(const int64_t *units, int64_t size)
{
    uint64_t sums[4] = {1, 2, 3, 4};
    for (int64_t place = 0; place < size; ++place)
        sums[place & 3] = (sums[place & 3] ^ (uint64_t)units[place]) * UINT64_C(0x9E3779B97F4A7C15);
    uint64_t sum = 0;
    for (int part = 0; part < 4; ++part)
        sum = (sum ^ (sums[part] >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
    return sum ^ (sum >> 32);
}

/* The number of a list, which is kept where it is new; FAILED without room or memory. */
static int64_t find_list(Lists *lists, const int64_t *units, int64_t size)
{
    uint64_t wanted = hash(units, size);
    int64_t slot = (int64_t)(wanted & (uint64_t)lists->mask);
    for (int64_t list; (list = lists->slots[slot]) >= 0; slot = (slot + 1) & lists->mask)
        if (lists->hashes[list] == wanted && lists->sizes[list] == size &&
            memcmp(lists->units + lists->firsts[list], units, (size_t)size * sizeof *units) == 0)
            return list;
    int64_t before = lists->mask;
    if (lists->used + size > lists->room || lists->count >= INT32_MAX - 1 || !reserve(lists))
        return FAILED;
    if (lists->mask != before)
        for (slot = (int64_t)(wanted & (uint64_t)lists->mask); lists->slots[slot] >= 0; slot = (slot + 1) & lists->mask)
            ;
    memmove(lists->units + lists->used, units, (size_t)size * sizeof *units);
    lists->firsts[lists->count] = lists->used;
    lists->sizes[lists->count] = size;
    lists->hashes[lists->count] = wanted;
    lists->slots[slot] = (int32_t)lists->count;
    lists->used += size;
    return lists->count++;
}

/* gpa_lsp.execution.traces.piece_rows: the list of units of each row, and how many each list has; rows with equal units have the same. Gives the units of all. */
EXPORT int64_t list_equal_units(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                                const uint8_t *widths, const int64_t *rows, int64_t count, int64_t shift, int64_t *numbers, int64_t *sizes,
                                int64_t *units, int64_t room)
{
    LaneColumns columns = {masks, first, addresses, address_count};
    uint64_t sorted[LANES];
    int64_t found[LANES * (256 / 4 + 2)];
    Lists lists;
    int is_well = shift >= 2 && open_lists(&lists, units, room);
    if (!is_well)
        return FAILED;
    for (int64_t row = 0; is_well && row < count; ++row) {
        int lanes = gpa_sort_lanes(&columns, rows[row], sorted);
        is_well = lanes != 0 && widths[rows[row]] != 0;
        if (!is_well)
            break;
        int64_t list = find_list(&lists, found, gpa_list_units(sorted, lanes, widths[rows[row]], (int)shift, found));
        is_well = list >= 0;
        if (is_well) {
            numbers[row] = list;
            sizes[list] = lists.sizes[list];
        }
    }
    close_lists(&lists);
    return is_well ? lists.used : FAILED;
}
