/* Lists of sectors of rows, equal ones once, and the sets of lines they make up. */
#include "sets.h"
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

typedef struct {
    Table numbers; /* of lines */
    Lists sets;
    int64_t *found;   /* lines of all sets */
    int32_t *lines;   /* their numbers */
    int32_t *sectors; /* by number of a line, and place in it; -1: none yet */
    int64_t *line_numbers;
    int64_t sector_count, line_count;
} Numbering;

/* Lists the lines of a list of sectors behind those of the sets, and says which sectors of each there are. How many. */
static int64_t take_apart(Numbering *of, const int64_t *units, int64_t size, uint8_t *masks)
{
    int64_t *lines = of->found + of->sets.used, count = 0;
    for (int64_t place = 0; place < size; ++place) {
        int64_t line = units[place] >> SECTOR_BITS;
        if (count == 0 || lines[count - 1] != line) {
            lines[count] = line;
            masks[count++] = 0;
        }
        masks[count - 1] |= (uint8_t)(1 << (units[place] & (SECTORS - 1)));
    }
    return count;
}

/* Gives the lines of a new set their numbers; 0 without memory. */
static int number_lines(Numbering *of, int64_t begin, int64_t end)
{
    for (int64_t place = begin; place < end; ++place) {
        int64_t *known = gpa_find_place(&of->numbers, of->found[place]);
        if (known == NULL)
            return 0;
        if (*known < 0) {
            *known = of->line_count++;
            of->line_numbers[*known] = of->found[place];
            memset(&of->sectors[*known * SECTORS], 0xFF, SECTORS * sizeof *of->sectors);
        }
        of->lines[place] = (int32_t)*known;
    }
    return 1;
}

/* Gives the sectors of a list, which follow the lines of its set, their numbers. */
static void number_sectors(Numbering *of, const int64_t *units, int64_t size, int64_t set, int32_t *dense)
{
    int64_t rank = of->sets.firsts[set];
    for (int64_t place = 0; place < size; ++place) {
        rank += place && units[place] >> SECTOR_BITS != units[place - 1] >> SECTOR_BITS;
        int32_t *known = &of->sectors[(int64_t)of->lines[rank] * SECTORS + (units[place] & (SECTORS - 1))];
        if (*known < 0)
            *known = (int32_t)of->sector_count++;
        dense[place] = *known;
    }
}

/* gpa_lsp.execution.traces.piece_rows: the columns of LineSets for lists of sectors, ascending. Found: sets, lines and sectors. */
EXPORT int64_t number_line_sets(const int64_t *starts, const int64_t *sizes, int64_t count, const int64_t *units, int64_t unit_count,
                                int32_t *sets, int32_t *dense, uint8_t *masks, int64_t *set_firsts, int32_t *lines, int64_t *line_numbers,
                                int64_t *found)
{
    Numbering of;
    memset(&of, 0, sizeof of);
    of.lines = lines;
    of.line_numbers = line_numbers;
    of.found = malloc(multiply_sizes((size_t)(unit_count + 1), sizeof *of.found));
    of.sectors = malloc(multiply_sizes(multiply_sizes((size_t)(unit_count + 1), SECTORS), sizeof *of.sectors));
    int is_well = gpa_open_table(&of.numbers) && of.found != NULL && of.sectors != NULL && unit_count < INT32_MAX &&
                  open_lists(&of.sets, of.found, unit_count + 1);
    for (int64_t list = 0; is_well && list < count; ++list) {
        int64_t start = starts[list], size = sizes[list], known = of.sets.count, set;
        is_well = start >= 0 && size > 0 && start <= unit_count - size && of.sets.used <= unit_count - size &&
                  (set = find_list(&of.sets, of.found + of.sets.used, take_apart(&of, units + start, size, masks + start))) >= 0 &&
                  (set < known || number_lines(&of, of.sets.firsts[set], of.sets.used));
        if (is_well) {
            number_sectors(&of, units + start, size, set, dense + start);
            sets[list] = (int32_t)set;
            set_firsts[set] = of.sets.firsts[set];
        }
    }
    set_firsts[of.sets.count] = of.sets.used;
    found[0] = of.sets.count;
    found[1] = of.line_count;
    found[2] = of.sector_count;
    close_lists(&of.sets);
    gpa_close_table(&of.numbers);
    free(of.found);
    free(of.sectors);
    return is_well ? 0 : FAILED;
}

/* gpa_lsp.execution.traces.piece_rows: distinct sectors of all rows of some instructions together; FAILED without memory. */
EXPORT int64_t count_sectors(const uint32_t *instructions, int64_t count, const uint8_t *is_counted, int64_t instruction_count,
                             int64_t list_count, const int32_t *lists, const int64_t *firsts, const int32_t *set_of, const int32_t *dense, const uint8_t *masks, const int64_t *set_firsts, const int32_t *lines,
                             const int64_t *line_numbers, int64_t set_count, int64_t line_count, int64_t sector_count)
{
    uint8_t *is_seen = calloc((size_t)list_count + 1, 1), *touched = calloc((size_t)line_count + 1, 1);
    int64_t found = is_seen == NULL || touched == NULL ? FAILED : 0;
    (void)dense, (void)line_numbers, (void)set_count, (void)sector_count;
    for (int64_t row = 0; found >= 0 && row < count; ++row) {
        int64_t list = lists[row];
        if (list < 0 || instructions[row] >= instruction_count || !is_counted[instructions[row]] || is_seen[list])
            continue;
        is_seen[list] = 1;
        const uint8_t *mask = masks + firsts[list];
        for (int64_t at = set_firsts[set_of[list]]; at < set_firsts[set_of[list] + 1]; ++at, ++mask) {
            found += __builtin_popcount(*mask & ~touched[lines[at]]);
            touched[lines[at]] |= *mask;
        }
    }
    free(is_seen);
    free(touched);
    return found;
}
