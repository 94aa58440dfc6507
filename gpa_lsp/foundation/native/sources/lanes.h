/* The lanes of warp accesses, one row at a time. */
#ifndef GPA_LSP_LANES_H
#define GPA_LSP_LANES_H

#include "columns.h"

/* Columns of the accesses of a trace. */
typedef struct {
    const uint32_t *masks;
    const uint64_t *first;
    const uint64_t *addresses;
    int64_t address_count;
} LaneColumns;

/* The addresses of a row's lanes, ascending; how many, 0 where the row does not lead anywhere. */
int gpa_sort_lanes(const LaneColumns *columns, int64_t row, uint64_t *sorted);
/* The units of 2**shift bytes that lanes of one width touch, each once; how many. Room: (width - 1 >> shift) + 2 for each lane. */
int64_t gpa_list_units(const uint64_t *sorted, int lanes, uint64_t width, int shift, int64_t *units);

/* Lines, sectors, used bytes and distinct addresses of lanes of one width. */
typedef struct {
    int64_t lines, sectors, used, distinct;
} Touched;
Touched gpa_measure_lanes(const uint64_t *sorted, int64_t lanes, uint64_t width);
/* gpa_lsp.execution.traces.segments: in which pattern lanes lie, in their order, and their stride. */
int64_t gpa_find_pattern(const uint64_t *addresses, const int64_t *lanes, int64_t active, int64_t width, int64_t *stride);
/* Passes of a request to shared memory that goes in so many parts, each lane so many words; kinds: 0 load, 1 store, 2 and 3 atomic. */
int gpa_are_parts(int64_t words, int64_t parts);
void gpa_count_wavefronts(const uint64_t *addresses, const uint8_t *active, int kind, int words, int parts, int64_t *taken, int64_t *ideal);

#endif
