/* What the sources of the core share. Arrays come from numpy: contiguous, of the types written here, and of the lengths that go with them. */
#ifndef GPA_LSP_COLUMNS_H
#define GPA_LSP_COLUMNS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define LANES 32
#define FAILED (-1)

/* Places by a number of 64 bits. Numbers that follow each other share a page, which is a line of a cache: warps that walk rows or columns come
 * back to it. Pages are found by open addressing, which grows with what it holds. */
typedef struct {
    int64_t *keys;    /* of pages */
    int64_t *numbers; /* of pages; -1: free */
    int64_t *places;  /* by page; -1: none */
    int64_t mask;
    int64_t page_count, page_room;
    int64_t used;
} Table;

int gpa_open_table(Table *table);
void gpa_close_table(Table *table);
void gpa_clear_table(Table *table);
/* Where the place of a key is kept, -1 in it where the key is new; NULL without memory. */
int64_t *gpa_find_place(Table *table, int64_t key);

#endif
