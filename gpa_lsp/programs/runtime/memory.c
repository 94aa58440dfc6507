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

uint64_t allocate(uint64_t size, int is_host) {
    uint64_t wanted = size == 0 ? 1 : size;
    if (wanted > device.memory_bytes || allocated_bytes + wanted > device.memory_bytes)
        return 0;
    if (allocation_count == allocation_room) {
        uint32_t room = allocation_room == 0 ? 64 : 2 * allocation_room;
        struct allocation *grown = realloc(allocations, room * sizeof *grown);
        if (grown == NULL)
            return 0;
        allocations = grown;
        allocation_room = room;
    }
    uint32_t place;
    uint64_t base = find_gap(wanted, &place);
    if (base == 0)
        return 0;
    memmove(allocations + place + 1, allocations + place, (allocation_count - place) * sizeof *allocations);
    allocations[place] = (struct allocation){base, wanted, is_host};
    allocation_count++;
    allocated_bytes += wanted;
    generation++;
    return base;
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

uint64_t count_allocated_bytes(void) { return allocated_bytes; }

static cudaError_t allocate_for(void **into, size_t size, int is_host) {
    LOCK();
    if (result == cudaSuccess && into == NULL)
        result = cudaErrorInvalidValue;
    if (result == cudaSuccess) {
        uint64_t base = size == 0 ? 0 : allocate(size, is_host);
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

PUBLIC cudaError_t cudaMalloc(void **into, size_t size) { return allocate_for(into, size, 0); }
PUBLIC cudaError_t cudaMallocHost(void **into, size_t size) { return allocate_for(into, size, 1); }
PUBLIC cudaError_t cudaHostAlloc(void **into, size_t size, unsigned int flags) {
    (void)flags;
    return allocate_for(into, size, 1);
}
PUBLIC cudaError_t cudaMallocManaged(void **into, size_t size, unsigned int flags) {
    (void)flags;
    return allocate_for(into, size, 1);
}
PUBLIC cudaError_t cudaMallocAsync(void **into, size_t size, cudaStream_t stream) {
    (void)stream;
    return allocate_for(into, size, 0);
}
PUBLIC cudaError_t cudaFree(void *pointer) { return release_for(pointer); }
PUBLIC cudaError_t cudaFreeHost(void *pointer) { return release_for(pointer); }
PUBLIC cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    (void)stream;
    return release_for(pointer);
}

PUBLIC cudaError_t cudaMallocPitch(void **into, size_t *pitch, size_t width, size_t height) {
    size_t row = (size_t)round_up(width, ALIGNMENT);
    cudaError_t error = allocate_for(into, row * height, 0);
    if (error == cudaSuccess)
        *pitch = row;
    return error;
}

PUBLIC cudaError_t cudaMalloc3D(struct cudaPitchedPtr *into, struct cudaExtent extent) {
    size_t row = (size_t)round_up(extent.width, ALIGNMENT);
    void *base = NULL;
    cudaError_t error = allocate_for(&base, row * extent.height * extent.depth, 0);
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

PUBLIC cudaError_t cudaHostGetDevicePointer(void **into, void *host, unsigned int flags) {
    (void)flags;
    LOCK();
    if (result == cudaSuccess) {
        int is_known = find_allocation((uint64_t)(uintptr_t)host) != NULL;
        *into = is_known ? host : NULL;
        if (!is_known) {
            send_note(NOTE_UNSUPPORTED, "cudaHostGetDevicePointer of memory that was registered, not allocated");
            result = cudaErrorInvalidValue;
        }
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaHostGetFlags(unsigned int *flags, void *host) {
    *flags = 0;
    return find_allocation((uint64_t)(uintptr_t)host) == NULL ? cudaErrorInvalidValue : cudaSuccess;
}

PUBLIC cudaError_t cudaHostRegister(void *host, size_t size, unsigned int flags) {
    (void)host, (void)size, (void)flags; /* copies from and to it work as they do from anywhere */
    return cudaSuccess;
}
PUBLIC cudaError_t cudaHostUnregister(void *host) {
    (void)host;
    return cudaSuccess;
}

PUBLIC cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *into, const void *pointer) {
    LOCK();
    memset(into, 0, sizeof *into);
    const struct allocation *found = result == cudaSuccess ? find_allocation((uint64_t)(uintptr_t)pointer) : NULL;
    into->device = 0;
    into->hostPointer = (void *)pointer;
    if (found != NULL) {
        into->type = found->is_host ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
        into->devicePointer = (void *)pointer;
        if (!found->is_host)
            into->hostPointer = NULL;
    }
    UNLOCK();
}
