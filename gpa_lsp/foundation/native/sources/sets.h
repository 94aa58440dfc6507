/* Sets of lines that rows of a trace refer to: rows with the same list of sectors share it, and lists with the same lines share a set. */
#ifndef GPA_LSP_SETS_H
#define GPA_LSP_SETS_H

#include "columns.h"

#define SECTOR_BITS 2
#define SECTORS (1 << SECTOR_BITS)
#define LINE_SHIFT 7

/* Lines and sectors have numbers from 0 on, by first appearance. */
typedef struct {
    const int32_t *lists;        /* by row */
    const int64_t *firsts;       /* by list: the place of its first sector */
    const int32_t *sets;         /* by list */
    const int32_t *dense;        /* by place: the number of the sector */
    const uint8_t *masks;        /* by the place of a list and the rank of a line: which of its sectors */
    const int64_t *set_firsts;   /* by set, and the end of the last one */
    const int32_t *lines;        /* of sets, ascending by address */
    const int64_t *line_numbers; /* by number: address over 128 */
    int64_t set_count, line_count, sector_count;
} LineSets;

#endif
