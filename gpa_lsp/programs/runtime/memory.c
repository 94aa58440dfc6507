/* Device memory: one mapping that the emulator has at the same addresses, so that a device pointer is a valid pointer here. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 512u
#define GAP 512u /* between allocations, so that what runs over the end of one is found */
#define PAGE 4096u

static struct allocation *allocations; /* by ascending base */
static uint32_t allocation_count, allocation_room, generation = 1;
static uint64_t allocated_bytes;

static uint64_t round_up(uint64_t size, uint64_t to) { return (size + to - 1) / to * to; }

/* The first gap that is large enough; where it begins in the list goes to *place. */
static uint64_t find_gap(uint64_t size, uint32_t *place) {
    uint64_t at = device.client_base, end = device.arena_base + device.arena_bytes;
    for (uint32_t i = 0; i < allocation_count; i++) {
        if (allocations[i].base >= at && allocations[i].base - at >= size + GAP) {
            *place = i;
            return at;
        }
        at = round_up(allocations[i].base + allocations[i].size + GAP, ALIGNMENT);
    }
    *place = allocation_count;
    return at < end && end - at > size ? at : 0;
}

/* Put it into the list, which has room for it afterwards; 0 where there is no memory. */
static uint64_t insert(struct allocation one, uint32_t place) {
    if (allocation_count == allocation_room) {
        uint32_t room = allocation_room == 0 ? 64 : 2 * allocation_room;
        struct allocation *grown = realloc(allocations, room * sizeof *grown);
        if (grown == NULL)
            return 0;
        allocations = grown;
        allocation_room = room;
    }
    memmove(allocations + place + 1, allocations + place, (allocation_count - place) * sizeof *allocations);
    allocations[place] = one;
    allocation_count++;
    allocated_bytes += one.size;
    generation++;
    return one.base;
}

uint64_t allocate(uint64_t size, enum allocation_kind kind) {
    uint64_t wanted = size == 0 ? 1 : size;
    if (wanted > device.memory_bytes || allocated_bytes + wanted > device.memory_bytes)
        return 0;
    uint32_t place;
    uint64_t base = find_gap(wanted, &place);
    return base == 0 ? 0 : insert((struct allocation){base, wanted, kind}, place);
}

/* The allocation at or below an address; its place in the list, or the count when there is none. */
static uint32_t find_place(uint64_t address) {
    uint32_t low = 0, high = allocation_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (allocations[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? allocation_count : low - 1;
}

/* What was allocated here before is there again, as a graph's memory is with each of its launches; 0 where it could be. */
int allocate_again(uint64_t base, uint64_t size) {
    uint32_t below = find_place(base), place = below == allocation_count ? 0 : below + 1;
    if (below != allocation_count && allocations[below].base == base)
        return allocations[below].size == size ? 0 : -1;
    if (below != allocation_count && allocations[below].base + allocations[below].size + GAP > base)
        return -1;
    if (place < allocation_count && allocations[place].base < base + size + GAP)
        return -1;
    if (allocated_bytes + size > device.memory_bytes)
        return -1;
    return insert((struct allocation){base, size, POOLED}, place) == base ? 0 : -1;
}

/* What a graph does to have memory: it is there from now on, so that its address is known. */
cudaError_t make_allocation(struct work *work, size_t size) {
    uint64_t base = allocate(size, POOLED);
    *work = (struct work){.kind = WORK_ALLOCATE, .to = {(char *)(uintptr_t)base, size, 0}, .width = size == 0 ? 1 : size};
    return base == 0 ? cudaErrorMemoryAllocation : cudaSuccess;
}

int release(uint64_t base) {
    uint32_t place = find_place(base);
    if (place == allocation_count || allocations[place].base != base)
        return -1;
    uint64_t size = allocations[place].size, first = round_up(base, PAGE), last = (base + size) / PAGE * PAGE;
    if (last > first)
        madvise((void *)(uintptr_t)first, last - first, MADV_REMOVE);
    memset((void *)(uintptr_t)base, 0, (size_t)((first < base + size ? first : base + size) - base));
    if (last >= first && last < base + size)
        memset((void *)(uintptr_t)last, 0, (size_t)(base + size - last));
    memmove(allocations + place, allocations + place + 1, (allocation_count - place - 1) * sizeof *allocations);
    allocation_count--;
    allocated_bytes -= size;
    generation++;
    return 0;
}

const struct allocation *find_allocation(uint64_t address) {
    uint32_t place = find_place(address);
    if (place == allocation_count || address - allocations[place].base >= allocations[place].size)
        return NULL;
    return &allocations[place];
}

const struct allocation *list_allocations(uint32_t *count, uint32_t *current) {
    *count = allocation_count;
    *current = generation;
    return allocations;
}

uint64_t count_pooled_bytes(void) {
    uint64_t found = 0;
    for (uint32_t i = 0; i < allocation_count; i++)
        found += allocations[i].kind == POOLED ? allocations[i].size : 0;
    return found;
}

static cudaError_t allocate_for(void **into, size_t size, enum allocation_kind kind) {
    LOCK();
    if (result == cudaSuccess && into == NULL)
        result = cudaErrorInvalidValue;
    if (result == cudaSuccess) {
        uint64_t base = size == 0 ? 0 : allocate(size, kind);
        *into = (void *)(uintptr_t)base;
        result = base == 0 && size != 0 ? cudaErrorMemoryAllocation : cudaSuccess;
    }
    UNLOCK();
}

static cudaError_t release_for(void *pointer) {
    LOCK();
    if (result == cudaSuccess && pointer != NULL && release((uint64_t)(uintptr_t)pointer) != 0)
        result = cudaErrorInvalidValue;
    UNLOCK();
}

PUBLIC cudaError_t cudaMalloc(void **into, size_t size) { return allocate_for(into, size, ON_DEVICE); }
PUBLIC cudaError_t cudaMallocHost(void **into, size_t size) { return allocate_for(into, size, ON_HOST); }
PUBLIC cudaError_t cudaHostAlloc(void **into, size_t size, unsigned int flags) {
    (void)flags;
    return allocate_for(into, size, ON_HOST);
}
PUBLIC cudaError_t cudaMallocManaged(void **into, size_t size, unsigned int flags) {
    (void)flags;
    return allocate_for(into, size, MANAGED);
}
PUBLIC cudaError_t cudaMallocAsync(void **into, size_t size, cudaStream_t stream) {
    if (!is_captured(stream))
        return allocate_for(into, size, POOLED);
    LOCK();
    struct work work;
    if (result == cudaSuccess)
        result = make_allocation(&work, size);
    if (result == cudaSuccess) {
        *into = work.to.base;
        result = capture(&work);
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaFree(void *pointer) { return release_for(pointer); }
PUBLIC cudaError_t cudaFreeHost(void *pointer) { return release_for(pointer); }
PUBLIC cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    if (!is_captured(stream))
        return release_for(pointer);
    struct work work = {.kind = WORK_RELEASE, .to = {pointer, 0, 0}}; /* does nothing: the graph may be launched again */
    return keep_error(capture(&work));
}

PUBLIC cudaError_t cudaMallocPitch(void **into, size_t *pitch, size_t width, size_t height) {
    size_t row = (size_t)round_up(width, ALIGNMENT);
    cudaError_t error = allocate_for(into, row * height, ON_DEVICE);
    if (error == cudaSuccess)
        *pitch = row;
    return error;
}

PUBLIC cudaError_t cudaMalloc3D(struct cudaPitchedPtr *into, struct cudaExtent extent) {
    size_t row = (size_t)round_up(extent.width, ALIGNMENT);
    void *base = NULL;
    cudaError_t error = allocate_for(&base, row * extent.height * extent.depth, ON_DEVICE);
    if (error == cudaSuccess)
        *into = (struct cudaPitchedPtr){.ptr = base, .pitch = row, .xsize = extent.width, .ysize = extent.height};
    return error;
}

PUBLIC cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    LOCK();
    if (result == cudaSuccess) {
        *total = device.memory_bytes;
        *free_bytes = device.memory_bytes - allocated_bytes;
    }
    UNLOCK();
}

/* Memory of the host that was registered: its pages are pages of device memory from then on, so that both see the same bytes. */
struct registered {
    struct registered *next;
    uint64_t host, size, pages; /* where it begins and its bytes; the first of its pages in device memory */
};
static struct registered *registered;

static uint64_t first_page(uint64_t address) { return address / PAGE * PAGE; }
static uint64_t page_bytes(uint64_t address, uint64_t size) { return round_up(address + size, PAGE) - first_page(address); }

static cudaError_t map_pages(uint64_t host, uint64_t size, uint64_t pages) {
    void *from = (void *)(uintptr_t)first_page(host), *to = (void *)(uintptr_t)pages;
    size_t bytes = page_bytes(host, size);
    memcpy(to, from, bytes);
    void *got = mmap(from, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory_file, (off_t)(pages - device.arena_base));
    return got == from ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t unmap_pages(const struct registered *one) {
    void *pages = (void *)(uintptr_t)one->pages, *to = (void *)(uintptr_t)first_page(one->host);
    size_t bytes = page_bytes(one->host, one->size);
    void *got = mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (got != to)
        return cudaErrorMemoryAllocation;
    memcpy(to, pages, bytes);
    return cudaSuccess;
}

PUBLIC cudaError_t cudaHostRegister(void *host, size_t size, unsigned int flags) {
    (void)flags;
    LOCK();
    uint64_t address = (uint64_t)(uintptr_t)host;
    struct registered *one = result == cudaSuccess ? calloc(1, sizeof *one) : NULL;
    if (result == cudaSuccess && (host == NULL || size == 0))
        result = cudaErrorInvalidValue;
    for (struct registered *other = registered; result == cudaSuccess && other != NULL; other = other->next)
        if (first_page(address) < other->host + other->size && first_page(other->host) < address + size)
            result = cudaErrorHostMemoryAlreadyRegistered;
    uint64_t base = result == cudaSuccess ? allocate(page_bytes(address, size) + PAGE, REGISTERED) : 0;
    if (result == cudaSuccess && (base == 0 || one == NULL))
        result = cudaErrorMemoryAllocation;
    if (result == cudaSuccess) {
        *one = (struct registered){registered, address, size, round_up(base, PAGE)};
        result = map_pages(address, size, one->pages);
    }
    if (result == cudaSuccess)
        registered = one;
    else
        free(one);
    UNLOCK();
}
PUBLIC cudaError_t cudaHostUnregister(void *host) {
    LOCK();
    struct registered **place = &registered;
    while (*place != NULL && (*place)->host != (uint64_t)(uintptr_t)host)
        place = &(*place)->next;
    struct registered *found = *place;
    if (result == cudaSuccess)
        result = found == NULL ? cudaErrorHostMemoryNotRegistered : unmap_pages(found);
    if (result == cudaSuccess) {
        release(find_allocation(found->pages)->base);
        *place = found->next;
        free(found);
    }
    UNLOCK();
}

/* Where the device sees memory of the host; 0 where it does not. */
static uint64_t find_on_device(uint64_t host) {
    if (find_allocation(host) != NULL)
        return host;
    for (struct registered *one = registered; one != NULL; one = one->next)
        if (host - one->host < one->size)
            return one->pages + (host - first_page(one->host));
    return 0;
}

int is_on_device(const void *pointer) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    return (address >= device.arena_base && address < device.client_base) || find_on_device(address) != 0;
}

PUBLIC cudaError_t cudaHostGetDevicePointer(void **into, void *host, unsigned int flags) {
    (void)flags;
    LOCK();
    if (result == cudaSuccess) {
        *into = (void *)(uintptr_t)find_on_device((uint64_t)(uintptr_t)host);
        result = *into == NULL ? cudaErrorInvalidValue : cudaSuccess;
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaHostGetFlags(unsigned int *flags, void *host) {
    *flags = 0;
    return find_on_device((uint64_t)(uintptr_t)host) == 0 ? cudaErrorInvalidValue : cudaSuccess;
}

PUBLIC cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *into, const void *pointer) {
    LOCK();
    memset(into, 0, sizeof *into);
    const struct allocation *found = result == cudaSuccess ? find_allocation((uint64_t)(uintptr_t)pointer) : NULL;
    into->device = 0;
    into->hostPointer = (void *)pointer;
    if (found != NULL) {
        into->type = found->kind == MANAGED   ? cudaMemoryTypeManaged
                     : found->kind == ON_HOST ? cudaMemoryTypeHost
                                              : cudaMemoryTypeDevice;
        into->devicePointer = (void *)pointer;
        if (into->type == cudaMemoryTypeDevice)
            into->hostPointer = NULL;
    }
    UNLOCK();
}

/* No range was advised of anything. */
PUBLIC cudaError_t cudaMemRangeGetAttribute(void *into, size_t size, enum cudaMemRangeAttribute attribute, const void *pointer,
                                            size_t count) {
    (void)attribute, (void)pointer, (void)count;
    memset(into, 0, size);
    return cudaSuccess;
}
