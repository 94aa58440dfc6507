/* Places by a number of 64 bits. */
#include "columns.h"
#include "sizes.h"

#define SMALLEST 256
#define PAGE_BITS 3
#define PAGE (1 << PAGE_BITS)

static int allocate(Table *table, int64_t size)
{
    table->keys = malloc(multiply_sizes((size_t)size, sizeof *table->keys));
    table->numbers = malloc(multiply_sizes((size_t)size, sizeof *table->numbers));
    if (table->keys == NULL || table->numbers == NULL) {
        free(table->keys);
        free(table->numbers);
        table->keys = table->numbers = NULL;
        return 0;
    }
    memset(table->numbers, 0xFF, (size_t)size * sizeof *table->numbers);
    table->mask = size - 1;
    return 1;
}

int gpa_open_table(Table *table)
{
    memset(table, 0, sizeof *table);
    return allocate(table, SMALLEST);
}

void gpa_close_table(Table *table)
{
    free(table->keys);
    free(table->numbers);
    free(table->places);
}

void gpa_clear_table(Table *table)
{
    memset(table->numbers, 0xFF, (size_t)(table->mask + 1) * sizeof *table->numbers);
    table->page_count = 0;
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
    while (table->numbers[slot] >= 0 && table->keys[slot] != key)
        slot = (slot + 1) & table->mask;
    return slot;
}

static int grow(Table *table)
{
    Table larger = *table;
    if (!allocate(&larger, 2 * (table->mask + 1)))
        return 0;
    for (int64_t slot = 0; slot <= table->mask; ++slot) {
        if (table->numbers[slot] < 0)
            continue;
        int64_t to = seek(&larger, table->keys[slot]);
        larger.keys[to] = table->keys[slot];
        larger.numbers[to] = table->numbers[slot];
    }
    free(table->keys);
    free(table->numbers);
    *table = larger;
    return 1;
}

/* The number of a new page without places; FAILED without memory. */
static int64_t add_page(Table *table)
{
    if (table->page_count == table->page_room) {
        int64_t room = 2 * table->page_room + SMALLEST / 2;
        int64_t *larger = realloc(table->places, multiply_sizes(multiply_sizes((size_t)room, PAGE), sizeof *larger));
        if (larger == NULL)
            return FAILED;
        table->places = larger;
        table->page_room = room;
    }
    memset(table->places + table->page_count * PAGE, 0xFF, PAGE * sizeof *table->places);
    return table->page_count++;
}

/* The caller sets the place of a new key before it asks for another one. */
int64_t *gpa_find_place(Table *table, int64_t key)
{
    if (2 * (table->page_count + 1) > table->mask + 1 && !grow(table))
        return NULL;
    int64_t slot = seek(table, key >> PAGE_BITS);
    if (table->numbers[slot] < 0) {
        int64_t page = add_page(table);
        if (page < 0)
            return NULL;
        table->keys[slot] = key >> PAGE_BITS;
        table->numbers[slot] = page;
    }
    int64_t *place = &table->places[table->numbers[slot] * PAGE + (key & (PAGE - 1))];
    table->used += *place < 0;
    return place;
}
