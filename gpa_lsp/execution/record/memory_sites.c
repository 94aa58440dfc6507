/* Source: CUDAAdvisor, section 3.2.2 and Figures 8 and 9. What malloc and the like gave is known to preloaded/host_blocks.c. */
#define _GNU_SOURCE
#include "memory_sites.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "host_blocks.h"

enum { MOST_COUNTERPARTS = 4, SLOTS = 4096 };

struct site {
    uint64_t base, size;
    struct walk allocated, counterparts[MOST_COUNTERPARTS];
    unsigned int count; /* of counterparts */
    struct site *next;
};
static struct site *device[SLOTS], *pinned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct site **slot_of(uint64_t base) { return &device[(base >> 8) % SLOTS]; }

static struct site *find_site(uint64_t base) {
    struct site *one = *slot_of(base);
    while (one != NULL && one->base != base)
        one = one->next;
    return one;
}

static void drop(struct site **at, uint64_t base) {
    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->base == base) {
            struct site *gone = *at;
            *at = gone->next;
            free(gone);
            return;
        }
}

void forget_memory(uint64_t base) {
    pthread_mutex_lock(&lock);
    drop(slot_of(base), base);
    drop(&pinned, base);
    pthread_mutex_unlock(&lock);
}

void remember_memory(uint64_t base, uint64_t size, int is_pinned) {
    struct site *one = calloc(1, sizeof *one);
    if (one == NULL)
        return;
    one->base = base;
    one->size = size;
    _Unwind_Backtrace(take_frame, &one->allocated);
    forget_memory(base);
    pthread_mutex_lock(&lock);
    struct site **into = is_pinned ? &pinned : slot_of(base);
    one->next = *into;
    *into = one;
    pthread_mutex_unlock(&lock);
}

static struct walk find_counterpart(uint64_t host) {
    for (struct site *one = pinned; one != NULL; one = one->next)
        if (host >= one->base && host - one->base < one->size)
            return one->allocated;
    return gpa_lsp_find_block != NULL ? gpa_lsp_find_block(host) : (struct walk){.count = 0};
}

static int are_equal(const struct walk *one, const struct walk *other) {
    return one->count == other->count && memcmp(one->addresses, other->addresses, one->count * sizeof *one->addresses) == 0;
}

void remember_counterpart(uint64_t base, uint64_t host) {
    pthread_mutex_lock(&lock);
    struct site *one = find_site(base);
    if (one != NULL && one->count < MOST_COUNTERPARTS) {
        struct walk found = find_counterpart(host);
        unsigned int known = 0;
        while (known < one->count && !are_equal(&one->counterparts[known], &found))
            known++;
        if (found.count > 0 && known == one->count)
            one->counterparts[one->count++] = found;
    }
    pthread_mutex_unlock(&lock);
}

static void write_walk(FILE *stream, const struct walk *walk) {
    for (uint32_t number = 0; number < walk->count; number++)
        fprintf(stream, " %llu", (unsigned long long)walk->addresses[number]);
    fprintf(stream, "\n");
}

void write_sites(FILE *stream, uint64_t base) {
    pthread_mutex_lock(&lock);
    struct site *one = find_site(base);
    if (one != NULL) {
        fprintf(stream, "allocated %llu", (unsigned long long)base);
        write_walk(stream, &one->allocated);
    }
    for (unsigned int number = 0; one != NULL && number < one->count; number++) {
        fprintf(stream, "host %llu", (unsigned long long)base);
        write_walk(stream, &one->counterparts[number]);
    }
    pthread_mutex_unlock(&lock);
}

void write_caller(FILE *stream) {
    struct walk walk = {.count = 0};
    _Unwind_Backtrace(take_frame, &walk);
    fprintf(stream, "path");
    write_walk(stream, &walk);
}
