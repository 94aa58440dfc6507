/* Where the program allocated its own memory: preloaded, it stands before the allocator and remembers who asked for large blocks.

   A program that brings its own malloc keeps it, and nothing is known of its blocks then. Source: CUDAAdvisor, section 3.1 and Figure 9. */
#define _GNU_SOURCE
#include "host_blocks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define REMEMBER(base, size) remember(base, size, __builtin_return_address(0))
#define PUBLIC __attribute__((visibility("default")))
#define LEAST_BYTES 1024 /* of a block that is remembered */
#define MOST_WALKS 65536 /* after which only the caller itself is looked at: a walk takes microseconds */
#define SETS 2048
#define WAYS 4 /* blocks whose addresses have the same hash; of more, the smallest is forgotten */

struct block {
    _Atomic uintptr_t base; /* 0 where there is none */
    size_t size;
    struct walk callers;
};
static struct block blocks[SETS][WAYS];
static atomic_flag lock = ATOMIC_FLAG_INIT;
static atomic_uint walks;
static __thread int is_busy __attribute__((tls_model("initial-exec"))); /* what is asked for by ourselves */

static void *(*next_malloc)(size_t), *(*next_calloc)(size_t, size_t), *(*next_realloc)(void *, size_t);
static void *(*next_aligned)(size_t, size_t), (*next_free)(void *);
static int (*next_posix)(void **, size_t, size_t);

/* For what dlsym itself allocates, and is never given back. */
static _Alignas(16) char early[16384];
static atomic_size_t early_bytes;

static void *take_early(size_t size) {
    size_t start = atomic_fetch_add(&early_bytes, (size + 15) & ~(size_t)15);
    return size <= sizeof early && start <= sizeof early - size ? early + start : NULL;
}

static int is_early(const void *pointer) { return (const char *)pointer >= early && (const char *)pointer < early + sizeof early; }

/* Whether the allocator behind this one is known; not yet while it is being looked for. */
static int find_next(void) {
    if (__builtin_expect(next_free != NULL, 1))
        return 1;
    if (is_busy)
        return 0;
    is_busy = 1;
    next_malloc = dlsym(RTLD_NEXT, "malloc");
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc");
    next_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    next_posix = dlsym(RTLD_NEXT, "posix_memalign");
    atomic_thread_fence(memory_order_seq_cst);
    next_free = dlsym(RTLD_NEXT, "free");
    is_busy = 0;
    return 1;
}

static void take_lock(void) {
    while (atomic_flag_test_and_set(&lock))
        sched_yield();
}

static void drop_lock(void) { atomic_flag_clear(&lock); }

__attribute__((constructor)) static void follow_forks(void) { pthread_atfork(NULL, NULL, drop_lock); }

static struct block *find_set(const void *base) {
    return blocks[((uintptr_t)base >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 53];
}

static void *remember(void *base, size_t size, void *caller) {
    if (base == NULL || size < LEAST_BYTES || is_busy)
        return base;
    struct block found = {.base = (uintptr_t)base, .size = size};
    is_busy = 1;
    int error = errno;
    if (atomic_load(&walks) < MOST_WALKS) {
        atomic_fetch_add(&walks, 1);
        _Unwind_Backtrace(take_frame, &found.callers);
    } else
        found.callers = (struct walk){.addresses = {(uintptr_t)caller}, .count = 1};
    take_lock();
    struct block *set = find_set(base), *place = set;
    for (int way = 0; way < WAYS && place->base != 0; way++)
        if (set[way].base == 0 || set[way].size < place->size)
            place = &set[way];
    *place = found;
    drop_lock();
    errno = error;
    is_busy = 0;
    return base;
}

static void forget(const void *base) {
    struct block *set = find_set(base);
    for (int way = 0; base != NULL && way < WAYS; way++) {
        uintptr_t is = (uintptr_t)base;
        atomic_compare_exchange_strong(&set[way].base, &is, 0);
    }
}

PUBLIC void *malloc(size_t size) { return find_next() ? REMEMBER(next_malloc(size), size) : take_early(size); }

PUBLIC void *calloc(size_t count, size_t size) {
    return find_next() ? REMEMBER(next_calloc(count, size), count * size) : take_early(count * size);
}

PUBLIC void *realloc(void *old, size_t size) {
    if (!find_next() || is_early(old)) {
        void *moved = malloc(size);
        size_t most = old == NULL ? 0 : (size_t)(early + sizeof early - (char *)old);
        return moved == NULL || old == NULL ? moved : memmove(moved, old, size < most ? size : most);
    }
    forget(old);
    return REMEMBER(next_realloc(old, size), size);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size) {
    return find_next() ? REMEMBER(next_aligned(alignment, size), size) : NULL;
}

PUBLIC int posix_memalign(void **into, size_t alignment, size_t size) {
    int error = find_next() ? next_posix(into, alignment, size) : ENOMEM;
    if (error == 0)
        REMEMBER(*into, size);
    return error;
}

PUBLIC void free(void *base) {
    if (base == NULL || is_early(base) || !find_next())
        return;
    forget(base);
    next_free(base);
}

static struct walk find_callers(const struct block *one, const struct block *end, uint64_t address) {
    for (; one < end; one++)
        if (one->base != 0 && one->base <= address && address - one->base < one->size)
            return one->callers;
    return (struct walk){.count = 0};
}

PUBLIC struct walk gpa_lsp_find_block(uint64_t address) {
    take_lock();
    const struct block *set = find_set((const void *)(uintptr_t)address); /* most copies begin where a block does */
    struct walk found = find_callers(set, set + WAYS, address);
    if (found.count == 0)
        found = find_callers(blocks[0], blocks[SETS], address);
    drop_lock();
    return found;
}
