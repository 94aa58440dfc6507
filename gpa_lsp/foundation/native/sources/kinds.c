/* Which warp accesses of a trace are alike: of one shape, and of one kind. */
#include "lanes.h"
#include "sizes.h"

#define LINE_BITS 7
#define SECTOR_BYTES 32

/* A shape is known by the first row that has it: its lanes, width and space, and the distances of its addresses. */
typedef struct {
    LaneColumns columns;
    const uint8_t *widths, *spaces;
    int64_t *rows;    /* by shape */
    uint64_t *hashes; /* by shape */
    int32_t *slots;   /* numbers of shapes; -1: free */
    int64_t mask, count;
} Shapes;

static int open_shapes(Shapes *shapes, int64_t rows)
{
    shapes->mask = 1;
    while (shapes->mask < 2 * rows)
        shapes->mask *= 2;
    shapes->slots = malloc(multiply_sizes((size_t)shapes->mask, sizeof *shapes->slots));
    shapes->hashes = malloc(multiply_sizes((size_t)(rows + 1), sizeof *shapes->hashes));
    if (shapes->slots != NULL)
        memset(shapes->slots, 0xFF, (size_t)shapes->mask * sizeof *shapes->slots);
    shapes->mask -= 1;
    return shapes->slots != NULL && shapes->hashes != NULL && rows < INT32_MAX;
}

static int is_alike(const Shapes *shapes, int64_t row, int64_t other)
{
    const LaneColumns *of = &shapes->columns;
    if (of->masks[row] != of->masks[other] || shapes->widths[row] != shapes->widths[other] || shapes->spaces[row] != shapes->spaces[other])
        return 0;
    const uint64_t *address = of->addresses + of->first[row], *known = of->addresses + of->first[other];
    uint64_t apart = address[0] - known[0], differs = 0;
    for (int lane = 0, lanes = __builtin_popcount(of->masks[row]); lane < lanes; ++lane)
        differs |= (address[lane] - known[lane]) ^ apart;
    return differs == 0;
}

static uint64_t hash(const Shapes *shapes, int64_t row)
{
    const uint64_t *address = shapes->columns.addresses + shapes->columns.first[row];
    uint64_t sum = (uint64_t)shapes->columns.masks[row] << 16 | (uint64_t)shapes->widths[row] << 8 | shapes->spaces[row];
    uint64_t factor = UINT64_C(0x9E3779B97F4A7C15), apart = 0;
    for (int lane = 1, lanes = __builtin_popcount(shapes->columns.masks[row]); lane < lanes; ++lane)
        apart += (address[lane] - address[0]) * (factor + 2 * (uint64_t)lane);
    sum = (sum ^ apart ^ apart >> 29) * factor;
    return sum ^ (sum >> 32);
}

/* The shape of a row, a new one where there is none like it. */
static int64_t find_shape(Shapes *shapes, int64_t row)
{
    uint64_t wanted = hash(shapes, row);
    int64_t slot = (int64_t)(wanted & (uint64_t)shapes->mask);
    for (int64_t shape; (shape = shapes->slots[slot]) >= 0; slot = (slot + 1) & shapes->mask)
        if (shapes->hashes[shape] == wanted && is_alike(shapes, row, shapes->rows[shape]))
            return shape;
    shapes->slots[slot] = (int32_t)shapes->count;
    shapes->hashes[shapes->count] = wanted;
    shapes->rows[shapes->count] = row;
    return shapes->count++;
}

/* How far the lowest and the highest address of a shape lie from its first one. */
static void find_reach(const LaneColumns *of, int64_t row, int64_t *below, int64_t *above)
{
    const uint64_t *address = of->addresses + of->first[row];
    *below = *above = 0;
    for (int lane = 1, lanes = __builtin_popcount(of->masks[row]); lane < lanes; ++lane) {
        int64_t distance = (int64_t)(address[lane] - address[0]);
        *below = distance < *below ? distance : *below;
        *above = distance > *above ? distance : *above;
    }
}

/* What is known of kinds, by number: the first row, how many rows, and the lowest and highest address of all. */
typedef struct {
    Table numbers;
    int64_t *rows, *counts;
    uint64_t *lowest, *highest;
    int64_t count;
} Kinds;

/* What the last row of an instruction had. */
typedef struct {
    int64_t key, kind;
    int64_t shape; /* -1: there was none */
} Last;

static int64_t find_kind(Kinds *kinds, int64_t key, int64_t row, uint64_t lowest, uint64_t highest)
{
    int64_t *kind = gpa_find_place(&kinds->numbers, key);
    if (kind == NULL)
        return FAILED;
    if (*kind < 0) {
        *kind = kinds->count++;
        kinds->rows[*kind] = row;
        kinds->counts[*kind] = 0;
        kinds->lowest[*kind] = lowest;
        kinds->highest[*kind] = highest;
    }
    return *kind;
}

static void add_to_kind(Kinds *kinds, int64_t kind, uint64_t lowest, uint64_t highest)
{
    kinds->counts[kind] += 1;
    kinds->lowest[kind] = lowest < kinds->lowest[kind] ? lowest : kinds->lowest[kind];
    kinds->highest[kind] = highest > kinds->highest[kind] ? highest : kinds->highest[kind];
}

/* gpa_lsp.execution.traces.request_kinds: shape, first address and kind of each row; of each shape its first row and reach; of each kind what Kinds says.
 * Rows of an instruction are mostly of the shape that its last row had. Found: shapes and kinds. */
EXPORT int64_t number_requests(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, int64_t address_count,
                               const uint8_t *widths, const uint8_t *spaces, const uint32_t *instructions, int64_t count,
                               int64_t instruction_count, int32_t *shape_of, uint64_t *bases, int32_t *kind_of, int64_t *shape_rows,
                               int64_t *below, int64_t *above, int64_t *kind_rows, int64_t *kind_counts, uint64_t *lowest, uint64_t *highest,
                               int64_t *found)
{
    Shapes shapes = {{masks, first, addresses, address_count}, widths, spaces, shape_rows, NULL, NULL, 0, 0};
    Kinds kinds = {{NULL, NULL, NULL, 0, 0, 0, 0}, kind_rows, kind_counts, lowest, highest, 0};
    Last *lasts = malloc(multiply_sizes((size_t)(instruction_count + 1), sizeof *lasts)); /* by instruction */
    int is_well = gpa_open_table(&kinds.numbers) && open_shapes(&shapes, count) && lasts != NULL;
    if (lasts != NULL)
        memset(lasts, 0xFF, (size_t)(instruction_count + 1) * sizeof *lasts);
    for (int64_t row = 0; is_well && row < count; ++row) {
        int64_t instruction = instructions[row], lanes = __builtin_popcount(masks[row]), known = shapes.count;
        is_well = instruction < instruction_count && lanes != 0 && first[row] <= (uint64_t)address_count &&
                  (uint64_t)address_count - first[row] >= (uint64_t)lanes;
        if (!is_well)
            break;
        Last *last = &lasts[instruction];
        int64_t shape = last->shape;
        if (shape < 0 || !is_alike(&shapes, row, shape_rows[shape]))
            shape = find_shape(&shapes, row);
        if (shape == known)
            find_reach(&shapes.columns, row, &below[shape], &above[shape]);
        uint64_t base = addresses[first[row]], low = base + (uint64_t)below[shape], high = base + (uint64_t)above[shape];
        int64_t key = (instruction << 32 | shape) << LINE_BITS | (int64_t)(base & ((1 << LINE_BITS) - 1));
        int64_t kind = last->key == key ? last->kind : find_kind(&kinds, key, row, low, high);
        is_well = kind >= 0;
        if (is_well)
            add_to_kind(&kinds, kind, low, high);
        last->key = key;
        last->kind = kind;
        last->shape = shape;
        shape_of[row] = (int32_t)shape;
        bases[row] = base;
        kind_of[row] = (int32_t)kind;
    }
    found[0] = shapes.count;
    found[1] = kinds.count;
    gpa_close_table(&kinds.numbers);
    free(shapes.slots);
    free(shapes.hashes);
    free(lasts);
    return is_well ? 0 : FAILED;
}

/* Where in its sector a row of a shape begins so that a lane passes the end of one there, but would not a byte before: a bit of each place. */
static uint32_t find_passing(const LaneColumns *of, int64_t row, uint64_t width)
{
    const uint64_t *address = of->addresses + of->first[row];
    uint32_t places = 1;
    for (int lane = 0, lanes = __builtin_popcount(of->masks[row]); lane < lanes; ++lane) {
        uint64_t distance = address[lane] - address[0];
        places |= UINT32_C(1) << ((0 - distance) & (SECTOR_BYTES - 1)) | UINT32_C(1) << ((1 - distance - width) & (SECTOR_BYTES - 1));
    }
    return places;
}

/* gpa_lsp.execution.traces.piece_rows: for each row the lowest base from which its shape touches the same sectors. Shapes and bases are by row. */
EXPORT int64_t lower_bases(const uint32_t *masks, const uint64_t *first, const uint64_t *addresses, const uint8_t *widths,
                           const int64_t *shape_rows, int64_t shape_count, const int32_t *shapes, const uint64_t *bases, int64_t count,
                           uint64_t *lowered)
{
    LaneColumns columns = {masks, first, addresses, 0};
    uint32_t *passing = malloc(multiply_sizes((size_t)(shape_count + 1), sizeof *passing));
    if (passing == NULL)
        return FAILED;
    for (int64_t shape = 0; shape < shape_count; ++shape)
        passing[shape] = find_passing(&columns, shape_rows[shape], widths[shape_rows[shape]]);
    for (int64_t row = 0; row < count; ++row) {
        uint32_t place = (uint32_t)bases[row] & (SECTOR_BYTES - 1), before = passing[shapes[row]] & (UINT32_MAX >> (SECTOR_BYTES - 1 - place));
        lowered[row] = bases[row] - place + (uint64_t)(31 - __builtin_clz(before));
    }
    free(passing);
    return 0;
}
