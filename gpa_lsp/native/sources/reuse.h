/* Sums of reuse distances by instruction and array. */
#ifndef GPA_LSP_REUSE_H
#define GPA_LSP_REUSE_H

#include "columns.h"

/* Arrays by address, ascending, and their numbers; a key is an instruction times `arrays` and the number of an array. */
typedef struct {
    const uint64_t *bases, *ends;
    const int64_t *numbers;
    int64_t count, arrays;
    Table places; /* of keys */
    int64_t *keys, *bins, *sums; /* sums: streaming references, and distances that are finite */
    int64_t groups, room;
} ReuseGroups;

int gpa_open_reuse(ReuseGroups *groups, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers, int64_t count, int64_t arrays,
                   int64_t *keys, int64_t *bins, int64_t *sums, int64_t room);
void gpa_close_reuse(ReuseGroups *groups);
/* References of one instruction; last: the place of the array met last, -1 for none. 0 where there is no room or memory. */
int gpa_sum_reuse(ReuseGroups *groups, int64_t instruction, const int64_t *units, const int64_t *distances, const uint8_t *is_streaming,
                  int64_t count, int shift, int64_t *last);

#endif
