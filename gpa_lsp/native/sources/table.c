/* Places by a number of 64 bits. */
#include "columns.h"

#define SMALLEST 1024

static int allocate(Table *table, int64_t size)
{
    table->keys = malloc((size_t)size * sizeof *table->keys);
    table->places = malloc((size_t)size * sizeof *table->places);
    if (table->keys == NULL || table->places == NULL) {
        free(table->keys);
        free(table->places);
        table->keys = table->places = NULL;
        return 0;
    }
    memset(table->places, 0xFF, (size_t)size * sizeof *table->places);
    table->mask = size - 1;
    table->used = 0;
    return 1;
}

int gpa_open_table(Table *table)
{
    return allocate(table, SMALLEST);
}

void gpa_close_table(Table *table)
{
    free(table->keys);
    free(table->places);
}

void gpa_clear_table(Table *table)
{
    memset(table->places, 0xFF, (size_t)(table->mask + 1) * sizeof *table->places);
    table->used = 0;
}

static uint64_t mix(int64_t key)
{
    uint64_t bits = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return bits ^ (bits >> 32);
}

static int64_t seek(const Table *table, int64_t key)
{
    int64_t slot = (int64_t)(mix(key) & (uint64_t)table->mask);
    while (table->places[slot] >= 0 && table->keys[slot] != key)
        slot = (slot + 1) & table->mask;
    return slot;
}

static int grow(Table *table)
{
    Table larger;
    if (!allocate(&larger, 2 * (table->mask + 1)))
        return 0;
    for (int64_t slot = 0; slot <= table->mask; ++slot) {
        if (table->places[slot] < 0)
            continue;
        int64_t to = seek(&larger, table->keys[slot]);
        larger.keys[to] = table->keys[slot];
        larger.places[to] = table->places[slot];
    }
    larger.used = table->used;
    gpa_close_table(table);
    *table = larger;
    return 1;
}

/* The caller sets the place of a new key before it asks for another one. */
int64_t *gpa_find_place(Table *table, int64_t key)
{
    if (2 * (table->used + 1) > table->mask + 1 && !grow(table))
        return NULL;
    int64_t slot = seek(table, key);
    if (table->places[slot] < 0) {
        table->keys[slot] = key;
        table->used += 1;
    }
    return &table->places[slot];
}
