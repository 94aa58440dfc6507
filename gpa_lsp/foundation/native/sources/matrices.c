/* Products of matrices of small integers or bits, by one warp. */
#include "warps.h"

#define MOST_ELEMENTS_OF_MATRIX 4096

/* gpa_lsp.execution.emulator.compiled.instructions writes it. An element is a place in a register of a lane: 1024 register + 32 lane + bit. */
typedef struct {
    int32_t rows, columns, depth;
    int32_t registers[3], results; /* how many of A, B and C; of D */
    int32_t bits[2], is_signed[2]; /* of A and B */
    int32_t is_clamped, counts_different; /* sums are clamped; ones of exclusive or are summed, not products */
    int32_t elements[];                   /* of A by rows, of B by columns, of C by rows; then which one of C each lane of D's registers has */
} Layout;

static void unpack(const int32_t *elements, int32_t count, const uint32_t *const *registers, int32_t bits, int32_t is_signed, int32_t *values)
{
    int32_t unused = 32 - bits;
    for (int32_t place = 0; place < count; ++place) {
        int32_t element = elements[place];
        uint32_t value = registers[element >> 10][element >> 5 & 31] >> (element & 31) << unused;
        values[place] = is_signed ? (int32_t)value >> unused : (int32_t)(value >> unused);
    }
}

static int64_t combine(const int32_t *row, const int32_t *column, int32_t depth, int32_t counts_different)
{
    int32_t sum = 0;
    if (counts_different)
        for (int32_t step = 0; step < depth; ++step)
            sum += row[step] ^ column[step];
    else
        for (int32_t step = 0; step < depth; ++step)
            sum += row[step] * column[step];
    return sum;
}

static int32_t add(int32_t addend, int64_t product, int32_t is_clamped)
{
    int64_t sum = addend + product;
    return is_clamped ? sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : (int32_t)sum : (int32_t)sum;
}

int32_t gpa_multiply_matrices(const uint8_t *described, const int32_t *places, const uint8_t *frame, const uint8_t *constants, uint32_t *results)
{
    const Layout *layout = (const Layout *)described;
    int32_t sizes[] = {layout->rows * layout->depth, layout->depth * layout->columns, layout->rows * layout->columns};
    const uint32_t *registers[3][MOST_REGISTERS];
    int32_t left[MOST_ELEMENTS_OF_MATRIX], right[MOST_ELEMENTS_OF_MATRIX], sums[MOST_ELEMENTS_OF_MATRIX];
    places += layout->results;
    for (int matrix = 0; matrix < 3; ++matrix)
        for (int32_t number = 0; number < layout->registers[matrix]; ++number)
            registers[matrix][number] = (const uint32_t *)gpa_operand(frame, constants, *places++);
    const int32_t *elements = layout->elements;
    unpack(elements, sizes[0], registers[0], layout->bits[0], layout->is_signed[0], left);
    unpack(elements += sizes[0], sizes[1], registers[1], layout->bits[1], layout->is_signed[1], right);
    unpack(elements += sizes[1], sizes[2], registers[2], 32, 1, sums);
    elements += sizes[2];
    for (int32_t row = 0; row < layout->rows; ++row)
        for (int32_t column = 0; column < layout->columns; ++column) {
            int32_t *sum = sums + row * layout->columns + column;
            const int32_t *one = left + row * layout->depth, *other = right + column * layout->depth;
            *sum = add(*sum, combine(one, other, layout->depth, layout->counts_different), layout->is_clamped);
        }
    for (int32_t place = 0; place < layout->results * LANES; ++place)
        results[place] = (uint32_t)sums[elements[place]];
    return layout->results;
}
