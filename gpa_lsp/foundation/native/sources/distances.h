/* Reuse distances of one sequence after the other. */
#ifndef GPA_LSP_DISTANCES_H
#define GPA_LSP_DISTANCES_H

#include "columns.h"

#define MARK_LEVELS 8

/* Marks of the last loads of units, 64 to a word, and the sums of 16 words, of 16 such sums, and so on. */
typedef struct {
    uint64_t *bits;
    int32_t *sums[MARK_LEVELS];
    int32_t *room;
    int64_t words;
    int levels; /* of sums */
} MarkCounts;

/* For sequences of so many references at most; 0 without memory. Closed in either case. */
int gpa_open_marks(MarkCounts *marks, int64_t count);
void gpa_close_marks(MarkCounts *marks);
/* No marks, for so many places. */
void gpa_clear_marks(MarkCounts *marks, int64_t count);
/* Sets marks that are not set from a place on, or takes those away that are. */
void gpa_change_run(MarkCounts *marks, int64_t place, int64_t count, int is_set);
/* Marks behind a place, of which none lies behind the last one: as few steps as they are near to each other. */
int64_t gpa_count_between(const MarkCounts *marks, int64_t place, int64_t last);
/* The distances of the references from begin to end, a sequence of their own; erases may be NULL. 0 without memory. */
int gpa_measure_group(const int64_t *units, const uint8_t *erases, int64_t begin, int64_t end, Table *table, MarkCounts *marks,
                      int64_t *distance, uint8_t *is_streaming);

#endif
