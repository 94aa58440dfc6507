/* Warp accesses that repeat one before while nobody of their block came in between. */
#include "columns.h"
#include "sizes.h"

#define OUTSIDE (-1)
#define FOUND 4

enum { LOAD, STORE };
enum { LOADS, REPEATED_LOADS, STORES, OVERWRITTEN_STORES };

/* Rows of an array that store, and rows that read. */
typedef struct {
    int64_t writes, reads;
} Traffic;

/* By block and array; what may be in any array is told apart. */
typedef struct {
    Table places;
    Traffic *traffic;
    int64_t count, room;
    int has_unknown;
} Traffics;

/* The traffic of a key so far; NULL without memory. */
static Traffic *find_traffic(Traffics *of, int64_t key)
{
    int64_t *place = gpa_find_place(&of->places, key);
    if (place == NULL)
        return NULL;
    if (*place < 0) {
        if (of->count == of->room) {
            int64_t room = 2 * of->room + 64;
            Traffic *larger = realloc(of->traffic, multiply_sizes((size_t)room, sizeof *larger));
            if (larger == NULL)
                return NULL;
            of->traffic = larger;
            of->room = room;
        }
        memset(&of->traffic[of->count], 0, sizeof *of->traffic);
        *place = of->count++;
    }
    return &of->traffic[*place];
}

/* What could have touched the array of a row so far; then the row itself is counted. 0 without memory. */
static int pass(Traffics *of, int64_t block, int64_t array, int64_t arrays, int kind, Traffic *before)
{
    Traffic *own = find_traffic(of, block * arrays + array);
    if (own == NULL)
        return 0;
    *before = *own;
    own->writes += kind != LOAD;
    own->reads += kind != STORE;
    of->has_unknown |= array == OUTSIDE;
    if (of->has_unknown && array != OUTSIDE) {
        Traffic *unknown = find_traffic(of, block * arrays + OUTSIDE);
        if (unknown == NULL)
            return 0;
        before->writes += unknown->writes;
        before->reads += unknown->reads;
    }
    return 1;
}

typedef struct {
    const uint32_t *blocks;
    const uint16_t *warps;
    const int64_t *requests; /* by row: equal accesses have one number */
    const int64_t *rows;
    int32_t *slots; /* the place of the last row of each warp and request; -1: free */
    int64_t mask;
} LastRows;

static int32_t *find_last(const LastRows *of, int64_t row)
{
    uint64_t sum = ((uint64_t)of->blocks[row] << 16 | of->warps[row]) * UINT64_C(0x9E3779B97F4A7C15);
    sum = (sum ^ (sum >> 29) ^ (uint64_t)of->requests[row]) * UINT64_C(0xBF58476D1CE4E5B9);
    int64_t slot = (int64_t)((sum ^ (sum >> 32)) & (uint64_t)of->mask);
    for (int64_t place; (place = of->slots[slot]) >= 0; slot = (slot + 1) & of->mask) {
        int64_t known = of->rows[place];
        if (of->requests[known] == of->requests[row] && of->warps[known] == of->warps[row] && of->blocks[known] == of->blocks[row])
            break;
    }
    return &of->slots[slot];
}

/* gpa_lsp.execution.traces.values: some rows in the order of the trace. Arrays are by row; kinds (0 load, 1 store, others both) and whether they must reach
 * memory each time by instruction. Found, by instruction: loads, those repeated, stores, those overwritten. */
EXPORT int64_t count_repeats(const uint32_t *blocks, const uint16_t *warps, const uint32_t *instructions, const int64_t *requests,
                             const int64_t *arrays, int64_t array_count, const uint8_t *kinds, const uint8_t *is_fresh, const int64_t *rows,
                             int64_t count, int64_t *found)
{
    LastRows last = {blocks, warps, requests, rows, NULL, 1};
    Traffics traffics = {{NULL, NULL, NULL, 0, 0, 0, 0}, NULL, 0, 0, 0};
    while (last.mask < 2 * count)
        last.mask *= 2;
    last.slots = malloc(multiply_sizes((size_t)last.mask, sizeof *last.slots));
    Traffic *seen = malloc(multiply_sizes((size_t)(count + 1), sizeof *seen));
    int is_well = gpa_open_table(&traffics.places) && last.slots != NULL && seen != NULL && count < INT32_MAX;
    if (last.slots != NULL)
        memset(last.slots, 0xFF, (size_t)last.mask * sizeof *last.slots);
    last.mask -= 1;
    for (int64_t place = 0; is_well && place < count; ++place) {
        int64_t row = rows[place], instruction = instructions[row];
        int kind = kinds[instruction];
        int32_t *slot = find_last(&last, row);
        int64_t before = *slot, earlier = before < 0 ? instruction : instructions[rows[before]];
        *slot = (int32_t)place;
        is_well = pass(&traffics, blocks[row], arrays[place], array_count, kind, &seen[place]);
        found[instruction * FOUND + LOADS] += kind == LOAD;
        found[instruction * FOUND + STORES] += kind == STORE;
        if (!is_well || before < 0 || arrays[place] == OUTSIDE || kinds[earlier] != kind || is_fresh[instruction] || is_fresh[earlier])
            continue;
        if (kind == LOAD && seen[place].writes == seen[before].writes)
            found[instruction * FOUND + REPEATED_LOADS] += 1;
        if (kind == STORE && seen[place].reads == seen[before].reads)
            found[earlier * FOUND + OVERWRITTEN_STORES] += 1;
    }
    gpa_close_table(&traffics.places);
    free(traffics.traffic);
    free(last.slots);
    free(seen);
    return is_well ? 0 : FAILED;
}
