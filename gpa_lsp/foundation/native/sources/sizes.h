/* Sums and products of sizes that cannot wrap. What is too large is SIZE_MAX, which no memory holds and no allocation gives, so that the check of the
   result refuses it. Every C library of ours computes sizes, counts and offsets that come from outside with these. */
#ifndef GPA_LSP_SIZES_H
#define GPA_LSP_SIZES_H

#include <stddef.h>
#include <stdint.h>

static inline size_t add_sizes(size_t one, size_t other) {
    size_t sum;
    return __builtin_add_overflow(one, other, &sum) ? SIZE_MAX : sum;
}

static inline size_t multiply_sizes(size_t one, size_t other) {
    size_t product;
    return __builtin_mul_overflow(one, other, &product) ? SIZE_MAX : product;
}

static inline size_t round_up_size(size_t size, size_t to) {
    size_t sum = add_sizes(size, to - 1);
    return sum == SIZE_MAX ? SIZE_MAX : sum / to * to;
}

/* Bytes from the first to the last of some rows in some planes, all of which have at least one. */
static inline size_t measure_box(size_t width, size_t pitch, size_t height, size_t plane, size_t depth) {
    return add_sizes(multiply_sizes(depth - 1, plane), add_sizes(multiply_sizes(height - 1, pitch), width));
}

/* Whether a part lies in a whole. */
static inline int is_part(size_t offset, size_t size, size_t whole) { return offset <= whole && size <= whole - offset; }

/* An address some bytes further; that of the last byte there is, where it would lie beyond. */
static inline char *step_on(const void *base, size_t offset) { return (char *)add_sizes((uintptr_t)base, offset); }

#endif
