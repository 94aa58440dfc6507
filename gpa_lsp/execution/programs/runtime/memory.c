/* Device memory: one mapping that the emulator has at the same addresses, so that a device pointer is a valid pointer here. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 512u
#define GAP 512u /* between allocations, so that what runs over the end of one is found */
#define PAGE 4096u
#define MOST_ALLOCATIONS (1u << 20) /* a GPU has no room for more of them either */
#define FEW_CHANGES 1024u

/* An allocation in a tree by address that finds the first gap which is large enough. Source: Seidel and Aragon, Randomized search trees (1996). */
struct node {
    struct node *left, *right;
    struct allocation held;
    uint64_t gap, largest; /* free bytes behind it; most behind one of the nodes below, and itself */
    uint32_t rank;
};
/* A part of device memory. Its first node holds nothing: it stands for what is in front of it. */
struct heap {
    struct node *root;
    uint64_t end;
};
static struct heap heaps[2]; /* what only the device sees; what the host sees as well */
static uint32_t allocation_count, generation = 1;
static uint64_t allocated_bytes;
static struct allocation *changes; /* since the last launch: what was allocated, and with a size of 0 what was released */
static uint32_t change_count, change_room, is_all_changed;

static uint64_t round_up(uint64_t size, uint64_t to) { return round_up_size(size, to); }

static void measure_gaps(struct node *node) {
    node->largest = node->gap;
    if (node->left != NULL && node->left->largest > node->largest)
        node->largest = node->left->largest;
    if (node->right != NULL && node->right->largest > node->largest)
        node->largest = node->right->largest;
}

/* All below an address to the left. */
static void split(struct node *node, uint64_t base, struct node **left, struct node **right) {
    if (node == NULL) {
        *left = *right = NULL;
    } else if (node->held.base < base) {
        split(node->right, base, &node->right, right);
        *left = node;
        measure_gaps(node);
    } else {
        split(node->left, base, left, &node->left);
        *right = node;
        measure_gaps(node);
    }
}

static struct node *join(struct node *left, struct node *right) {
    if (left == NULL || right == NULL)
        return left == NULL ? right : left;
    if (left->rank > right->rank) {
        left->right = join(left->right, right);
        measure_gaps(left);
        return left;
    }
    right->left = join(left, right->left);
    measure_gaps(right);
    return right;
}

/* Where the next allocation can begin. */
static uint64_t find_end(const struct allocation *one) {
    return one->size == 0 ? one->base + ALIGNMENT : round_up(one->base + one->size + GAP, ALIGNMENT);
}

/* The last node at or below an address; there is one as soon as there is a heap. */
static struct node *find_below(const struct heap *heap, uint64_t address) {
    struct node *found = NULL;
    for (struct node *node = heap->root; node != NULL;)
        if (node->held.base <= address) {
            found = node;
            node = node->right;
        } else
            node = node->left;
    return found;
}

static struct node *find_first_gap(struct node *node, uint64_t size) {
    while (node != NULL && node->largest >= size)
        if (node->left != NULL && node->left->largest >= size)
            node = node->left;
        else if (node->gap >= size)
            return node;
        else
            node = node->right;
    return NULL;
}

static void set_gap(struct heap *heap, struct node *of, uint64_t gap) {
    struct node *left, *rest, *right;
    split(heap->root, of->held.base, &left, &rest);
    split(rest, of->held.base + 1, &rest, &right);
    of->gap = gap;
    measure_gaps(of);
    heap->root = join(join(left, rest), right);
}

static struct node *make_node(struct allocation one, uint64_t gap) {
    static uint32_t rank = 2463534242u; /* xorshift; source: Marsaglia, Xorshift RNGs (2003) */
    struct node *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    rank ^= rank << 13;
    rank ^= rank >> 17;
    rank ^= rank << 5;
    made->rank = rank;
    made->held = one;
    made->gap = made->largest = gap;
    return made;
}

static struct heap *find_heap(uint64_t address) {
    int is_seen = address >= device.host_base;
    struct heap *heap = &heaps[is_seen];
    if (heap->root == NULL && device.arena_bytes != 0) {
        uint64_t base = is_seen ? device.host_base : device.client_base;
        heap->end = is_seen ? device.arena_base + device.arena_bytes : device.host_base;
        heap->root = make_node((struct allocation){base - ALIGNMENT, 0, 0}, heap->end - base);
    }
    return heap;
}

static void note_change(struct allocation one) {
    generation++;
    if (is_all_changed)
        return;
    if (change_count == change_room) {
        uint32_t room = change_room == 0 ? 64 : 2 * change_room;
        struct allocation *grown = room > allocation_count + FEW_CHANGES ? NULL : realloc(changes, room * sizeof *grown);
        if (grown == NULL) { /* all there is takes less room */
            is_all_changed = 1;
            return;
        }
        changes = grown;
        change_room = room;
    }
    changes[change_count++] = one;
}

/* Puts an allocation into a gap; 0 where there is no memory. */
static uint64_t insert(struct heap *heap, struct node *below, struct allocation one) {
    uint64_t end = below->gap + find_end(&below->held), next = find_end(&one);
    struct node *made = make_node(one, next < end ? end - next : 0), *left, *right;
    if (made == NULL)
        return 0;
    set_gap(heap, below, one.base - find_end(&below->held));
    split(heap->root, one.base, &left, &right);
    heap->root = join(join(left, made), right);
    allocation_count++;
    allocated_bytes += one.size;
    note_change(one);
    return one.base;
}

static int has_room(uint64_t size) {
    return size <= device.memory_bytes && allocated_bytes <= device.memory_bytes - size && allocation_count < MOST_ALLOCATIONS;
}

uint64_t allocate(uint64_t size, enum allocation_kind kind) {
    uint64_t wanted = size == 0 ? 1 : size;
    if (!has_room(wanted))
        return 0;
    struct heap *heap = find_heap(kind == ON_HOST || kind == MANAGED ? device.host_base : device.client_base);
    struct node *below = find_first_gap(heap->root, wanted + GAP);
    return below == NULL ? 0 : insert(heap, below, (struct allocation){find_end(&below->held), wanted, kind});
}

/* What was allocated here before is there again, as a graph's memory is with each of its launches; 0 where it could be. */
int allocate_again(uint64_t base, uint64_t size) {
    struct heap *heap = find_heap(base);
    struct node *below = find_below(heap, base);
    if (below == NULL || (below->held.size != 0 && below->held.base == base))
        return below != NULL && below->held.size == size ? 0 : -1;
    uint64_t first = find_end(&below->held);
    if (base < first || !is_part(base - first, add_sizes(size, GAP), below->gap) || !has_room(size))
        return -1;
    return insert(heap, below, (struct allocation){base, size, POOLED}) == base ? 0 : -1;
}

/* What a graph does to have memory: it is there from now on, so that its address is known. */
cudaError_t make_allocation(struct work *work, size_t size) {
    uint64_t base = allocate(size, POOLED);
    *work = (struct work){.kind = WORK_ALLOCATE, .to = {(char *)(uintptr_t)base, size, 0}, .width = size == 0 ? 1 : size};
    return base == 0 ? cudaErrorMemoryAllocation : cudaSuccess;
}

/* Zeros from then on, as memory that was never touched. */
static void clear(uint64_t base, uint64_t size) {
    uint64_t first = round_up(base, PAGE), last = (base + size) / PAGE * PAGE;
    if (last > first && madvise(locate((void *)(uintptr_t)first), last - first, MADV_REMOVE) == 0) {
        memset(locate((void *)(uintptr_t)base), 0, first - base);
        memset(locate((void *)(uintptr_t)last), 0, base + size - last);
    } else
        memset(locate((void *)(uintptr_t)base), 0, size);
}

int release(uint64_t base) {
    struct heap *heap = find_heap(base);
    struct node *found = find_below(heap, base), *left, *right;
    if (found == NULL || found->held.base != base || found->held.size == 0)
        return -1;
    note_event(EVENT_RELEASE, (void *)(uintptr_t)base, NULL, found->held.size, 0);
    clear(base, found->held.size);
    split(heap->root, base, &left, &found);
    split(found, base + 1, &found, &right);
    heap->root = left;
    struct node *below = find_below(heap, base);
    set_gap(heap, below, find_end(&found->held) + found->gap - find_end(&below->held));
    heap->root = join(heap->root, right);
    allocation_count--;
    allocated_bytes -= found->held.size;
    note_change((struct allocation){base, 0, found->held.kind});
    free(found);
    return 0;
}

const struct allocation *find_allocation(uint64_t address) {
    struct node *found = find_below(find_heap(address), address);
    return found == NULL || address - found->held.base >= found->held.size ? NULL : &found->held;
}

static void list_below(const struct node *node, struct allocation *into, uint32_t *count) {
    if (node == NULL)
        return;
    list_below(node->left, into, count);
    if (node->held.size != 0)
        into[(*count)++] = node->held;
    list_below(node->right, into, count);
}

/* What was allocated and released since the last launch, or all there is. */
const struct allocation *list_changes(uint32_t *count, uint32_t *is_whole, uint32_t *current) {
    if (is_all_changed) {
        struct allocation *all = realloc(changes, (allocation_count + 1u) * sizeof *all);
        change_count = 0;
        if (all != NULL) {
            changes = all;
            change_room = allocation_count + 1u;
            for (int i = 0; i < 2; i++)
                list_below(heaps[i].root, all, &change_count);
        }
    }
    *count = change_count;
    *is_whole = is_all_changed;
    *current = generation;
    return changes;
}

void forget_changes(void) { change_count = is_all_changed = 0; }

static uint64_t count_pooled_below(const struct node *node) {
    if (node == NULL)
        return 0;
    uint64_t own = node->held.kind == POOLED ? node->held.size : 0;
    return own + count_pooled_below(node->left) + count_pooled_below(node->right);
}
uint64_t count_pooled_bytes(void) { return count_pooled_below(heaps[0].root); }

static cudaError_t allocate_for(void **into, size_t size, enum allocation_kind kind) {
    LOCK_FOR("cudaMalloc...");
    has_context = 1;
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        uint64_t base = size == 0 ? 0 : allocate(size, kind);
        *into = (void *)(uintptr_t)base;
        result = base == 0 && size != 0 ? cudaErrorMemoryAllocation : cudaSuccess;
        if (base != 0)
            note_event(EVENT_ALLOCATE, *into, (void *)(uintptr_t)kind, size, 0);
    }
    UNLOCK();
}

/* What cudaFree gives back is not what cudaFreeHost does. */
static cudaError_t release_for(void *pointer, int is_host) {
    LOCK_FOR("cudaFree...");
    has_context = 1;
    uint64_t base = (uint64_t)(uintptr_t)pointer;
    const struct allocation *found = result == cudaSuccess && pointer != NULL ? find_allocation(base) : NULL;
    REQUIRE(pointer == NULL || (found != NULL && found->base == base && (found->kind == ON_HOST) == is_host), cudaErrorInvalidValue);
    REQUIRE(found == NULL || (found->kind != REGISTERED && found->kind != OF_ARRAY), cudaErrorInvalidValue);
    if (result == cudaSuccess && found != NULL)
        release(base);
    UNLOCK();
}

PUBLIC cudaError_t cudaMalloc(void **into, size_t size) { return allocate_for(into, size, ON_DEVICE); }
PUBLIC cudaError_t cudaMallocHost(void **into, size_t size) { return allocate_for(into, size, ON_HOST); }
PUBLIC cudaError_t cudaHostAlloc(void **into, size_t size, unsigned int flags) {
    REFUSE_IF((flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)) != 0, keep_error(cudaErrorInvalidValue));
    return allocate_for(into, size, ON_HOST);
}
PUBLIC cudaError_t cudaMallocManaged(void **into, size_t size, unsigned int flags) {
    REFUSE_IF((flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) || size == 0, keep_error(cudaErrorInvalidValue));
    return allocate_for(into, size, MANAGED);
}
PUBLIC cudaError_t cudaMallocAsync(void **into, size_t size, cudaStream_t stream) {
    if (is_stream(stream) && !is_captured(stream))
        return allocate_for(into, size, POOLED);
    LOCK();
    struct work work;
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess)
        result = make_allocation(&work, size);
    if (result == cudaSuccess) {
        *into = work.to.base;
        result = capture(&work);
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaFree(void *pointer) { return release_for(pointer, 0); }
PUBLIC cudaError_t cudaFreeHost(void *pointer) { return release_for(pointer, 1); }
PUBLIC cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    REFUSE_IF(!is_stream(stream), keep_error(cudaErrorInvalidResourceHandle));
    if (!is_captured(stream))
        return release_for(pointer, 0);
    struct work work = {.kind = WORK_RELEASE, .to = {pointer, 0, 0}}; /* does nothing: the graph may be launched again */
    return keep_error(capture(&work));
}

PUBLIC cudaError_t cudaMallocPitch(void **into, size_t *pitch, size_t width, size_t height) {
    REFUSE_IF(pitch == NULL, keep_error(cudaErrorInvalidValue));
    size_t row = round_up_size(width, ALIGNMENT);
    cudaError_t error = allocate_for(into, multiply_sizes(row, height), PITCHED);
    if (error == cudaSuccess)
        *pitch = row;
    return error;
}

PUBLIC cudaError_t cudaMalloc3D(struct cudaPitchedPtr *into, struct cudaExtent extent) {
    REFUSE_IF(into == NULL, keep_error(cudaErrorInvalidValue));
    size_t row = round_up_size(extent.width, ALIGNMENT);
    void *base = NULL;
    cudaError_t error = allocate_for(&base, multiply_sizes(multiply_sizes(row, extent.height), extent.depth), PITCHED);
    if (error == cudaSuccess)
        *into = (struct cudaPitchedPtr){.ptr = base, .pitch = row, .xsize = extent.width, .ysize = extent.height};
    return error;
}

PUBLIC cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    LOCK();
    REQUIRE(free_bytes != NULL && total != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        *total = device.memory_bytes;
        *free_bytes = device.memory_bytes - allocated_bytes;
    }
    UNLOCK();
}

void show_to_host(uint64_t base, uint64_t size) {
    uint64_t first = base / PAGE * PAGE;
    mprotect((void *)(uintptr_t)first, round_up(base + size, PAGE) - first, PROT_READ | PROT_WRITE);
}

/* Memory of the host that was registered: its pages are pages of device memory from then on, so that both see the same bytes. */
struct registered {
    struct registered *next;
    uint64_t host, size, pages; /* where it begins and its bytes; the first of its pages in device memory */
};
static struct registered *registered;

static uint64_t first_page(uint64_t address) { return address / PAGE * PAGE; }
static uint64_t page_bytes(uint64_t address, uint64_t size) {
    uint64_t last = round_up(add_sizes(address, size), PAGE);
    return last == SIZE_MAX ? SIZE_MAX : last - first_page(address);
}

static cudaError_t map_pages(uint64_t host, uint64_t size, uint64_t pages) {
    void *from = (void *)(uintptr_t)first_page(host);
    size_t bytes = page_bytes(host, size);
    memcpy(locate((void *)(uintptr_t)pages), from, bytes);
    void *got = mmap(from, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory_file, (off_t)(pages - device.arena_base));
    return got == from ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t unmap_pages(const struct registered *one) {
    void *pages = locate((void *)(uintptr_t)one->pages), *to = (void *)(uintptr_t)first_page(one->host);
    size_t bytes = page_bytes(one->host, one->size);
    void *got = mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REFUSE_IF(got != to, cudaErrorMemoryAllocation);
    memcpy(to, pages, bytes);
    return cudaSuccess;
}

PUBLIC cudaError_t cudaHostRegister(void *host, size_t size, unsigned int flags) {
    LOCK();
    uint64_t address = (uint64_t)(uintptr_t)host, bytes = page_bytes(address, size);
    REQUIRE(host != NULL && size != 0 && is_writable(host, size) && locate(host) == host, cudaErrorInvalidValue);
    for (struct registered *other = registered; result == cudaSuccess && other != NULL; other = other->next)
        if (first_page(address) < other->host + other->size && first_page(other->host) < address + size)
            result = cudaErrorHostMemoryAlreadyRegistered;
    struct registered *one = result == cudaSuccess ? calloc(1, sizeof *one) : NULL;
    uint64_t base = one != NULL ? allocate(add_sizes(bytes, PAGE), REGISTERED) : 0;
    REQUIRE(base != 0, cudaErrorMemoryAllocation);
    if (result == cudaSuccess) {
        *one = (struct registered){registered, address, size, round_up(base, PAGE)};
        result = map_pages(address, size, one->pages);
    }
    if (result == cudaSuccess)
        registered = one;
    else {
        if (base != 0)
            release(base);
        free(one);
    }
    UNLOCK();
}

static cudaError_t unregister(struct registered **place) {
    struct registered *found = *place;
    cudaError_t error = unmap_pages(found);
    if (error != cudaSuccess)
        return error;
    release(find_allocation(found->pages)->base);
    *place = found->next;
    free(found);
    return cudaSuccess;
}
PUBLIC cudaError_t cudaHostUnregister(void *host) {
    LOCK();
    struct registered **place = &registered;
    while (*place != NULL && (*place)->host != (uint64_t)(uintptr_t)host)
        place = &(*place)->next;
    if (result == cudaSuccess)
        result = *place == NULL ? cudaErrorHostMemoryNotRegistered : unregister(place);
    UNLOCK();
}

/* All of it, as a reset of the device does. */
void release_all(void) {
    while (registered != NULL && unregister(&registered) == cudaSuccess)
        ;
    for (int i = 0; i < 2; i++)
        for (struct node *last; (last = find_below(&heaps[i], heaps[i].end)) != NULL && last->held.size != 0;)
            release(last->held.base);
}

static const struct registered *find_registered(uint64_t host, size_t size) {
    struct registered *one = registered;
    while (one != NULL && (host < one->host || !is_part(host - one->host, size, one->size)))
        one = one->next;
    return one;
}

/* Where the device sees memory of the host; 0 where it does not. */
uint64_t find_on_device(uint64_t host) {
    const struct registered *one = find_registered(host, 1);
    return find_allocation(host) != NULL ? host : one == NULL ? 0 : one->pages + (host - first_page(one->host));
}

int is_reachable(const void *pointer, size_t size) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    const struct allocation *found = find_allocation(address);
    if (address >= device.arena_base && address < device.client_base) /* variables of modules */
        return is_part(address - device.arena_base, size, device.client_base - device.arena_base);
    return found == NULL ? find_registered(address, size) != NULL : is_part(address - found->base, size, found->size);
}

int is_on_device(const void *pointer) { return is_reachable(pointer, 1); }

PUBLIC cudaError_t cudaHostGetDevicePointer(void **into, void *host, unsigned int flags) {
    LOCK();
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        *into = (void *)(uintptr_t)find_on_device((uint64_t)(uintptr_t)host);
        result = *into == NULL ? cudaErrorInvalidValue : cudaSuccess;
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaHostGetFlags(unsigned int *flags, void *host) {
    LOCK();
    REQUIRE(flags != NULL && find_on_device((uint64_t)(uintptr_t)host) != 0, cudaErrorInvalidValue);
    if (result == cudaSuccess)
        *flags = 0;
    UNLOCK();
}

PUBLIC cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *into, const void *pointer) {
    LOCK();
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        const struct allocation *found = find_allocation((uint64_t)(uintptr_t)pointer);
        memset(into, 0, sizeof *into);
        into->hostPointer = (void *)pointer;
        if (found != NULL) {
            into->type = found->kind == MANAGED   ? cudaMemoryTypeManaged
                         : found->kind == ON_HOST ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeDevice;
            into->devicePointer = (void *)pointer;
            if (into->type == cudaMemoryTypeDevice)
                into->hostPointer = NULL;
        }
    }
    UNLOCK();
}

/* No range was advised of anything. */
PUBLIC cudaError_t cudaMemRangeGetAttribute(void *into, size_t size, enum cudaMemRangeAttribute attribute, const void *pointer,
                                            size_t count) {
    REFUSE_IF(!is_writable(into, size), keep_error(cudaErrorInvalidValue));
    memset(into, 0, size);
    return cudaSuccess;
}
