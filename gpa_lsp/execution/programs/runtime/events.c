/* What happens to memory, and where the host was then: return addresses, which gpa_lsp makes lines of.

   Source: CUDAAdvisor, Figures 8 and 9. */
#define _GNU_SOURCE
#include "host_blocks.h"
#include "runtime.h"

#define MOST_PATHS (1u << 14) /* half as many are told apart */

/* FNV-1a; source: Fowler, Noll and Vo, draft-eastlake-fnv. */
static uint64_t hash_walk(const struct walk *walk) {
    const uint8_t *bytes = (const uint8_t *)walk->addresses;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < walk->count * sizeof *walk->addresses; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash == 0 ? 1 : hash;
}

/* The number of a path, which gpa_lsp is told when it is new; 0 once MOST_PATHS / 2 paths have numbers. */
static uint32_t number_walk(const struct walk *walk) {
    static uint64_t known[MOST_PATHS];
    static uint32_t numbers[MOST_PATHS], count;
    uint64_t hash = hash_walk(walk);
    uint32_t slot = (uint32_t)hash % MOST_PATHS;
    while (known[slot] != 0 && known[slot] != hash)
        slot = (slot + 1) % MOST_PATHS;
    if (known[slot] != 0 || count == MOST_PATHS / 2)
        return numbers[slot];
    known[slot] = hash;
    uint32_t number = numbers[slot] = ++count;
    struct part parts[] = {{&number, sizeof number}, {walk->addresses, walk->count * sizeof *walk->addresses}};
    struct reply reply;
    ask(REQUEST_PATH, parts, 2, &reply);
    free_reply(&reply);
    return number;
}

/* The number of the calling thread's path. */
uint32_t find_path(void) {
    struct walk walk = {.count = 0};
    _Unwind_Backtrace(take_frame, &walk);
    return number_walk(&walk);
}

/* The path that allocated the block of the host that is copied to or from; 0 where it is not known, or none. */
static uint32_t find_host_path(enum event_kind kind, const void *to, const void *from) {
    struct walk walk = {.count = 0};
    if (kind == EVENT_COPY && gpa_lsp_find_block != NULL)
        walk = gpa_lsp_find_block((uintptr_t)(is_on_device(to) ? from : to));
    return walk.count == 0 ? 0 : number_walk(&walk);
}

void note_event(enum event_kind kind, const void *to, const void *from, uint64_t size, int is_gapped) {
    if (events == NULL || connect_once() != cudaSuccess)
        return;
    uint32_t path = find_path(), host_path = find_host_path(kind, to, from);
    if (events->count >= MOST_EVENTS) {
        struct reply reply;
        ask(REQUEST_EVENTS, NULL, 0, &reply);
        free_reply(&reply);
    }
    if (events->count >= MOST_EVENTS)
        return;
    events->listed[events->count] = (struct event){
        .kind = kind, .path = path, .to = (uintptr_t)to, .from = (uintptr_t)from, .size = size, .is_gapped = is_gapped != 0,
        .host_path = host_path};
    events->count++;
}
