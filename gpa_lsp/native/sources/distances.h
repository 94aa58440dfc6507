/* Reuse distances of one sequence after the other. */
#ifndef GPA_LSP_DISTANCES_H
#define GPA_LSP_DISTANCES_H

#include "columns.h"

/* Marks of the last loads of units, 64 to a word, and the sums of words as a binary indexed tree. */
typedef struct {
    uint64_t *bits;
    int64_t *tree; /* from 1 on */
    int64_t words;
    int64_t marked;
} MarkCounts;

/* For sequences of so many references at most; 0 without memory. Closed in either case. */
int gpa_open_marks(MarkCounts *marks, int64_t count);
void gpa_close_marks(MarkCounts *marks);
/* The distances of the references from begin to end, a sequence of their own; erases may be NULL. 0 without memory. */
int gpa_measure_group(const int64_t *units, const uint8_t *erases, int64_t begin, int64_t end, Table *table, MarkCounts *marks,
                      int64_t *distance, uint8_t *is_streaming);

#endif
