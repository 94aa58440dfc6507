/* Copies and fills. A device pointer is a pointer, so all of them are loops over rows. */
#define _GNU_SOURCE
#include "runtime.h"

#include <string.h>

/* A plane of rows somewhere. */
struct rows {
    char *base;
    size_t pitch, plane; /* from one row to the next, from one plane to the next */
};

static void copy_rows(struct rows to, struct rows from, size_t width, size_t height, size_t depth) {
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++)
            memmove(to.base + z * to.plane + y * to.pitch, from.base + z * from.plane + y * from.pitch, width);
}

static struct rows rows_of(const void *base, size_t pitch) { return (struct rows){(char *)base, pitch, 0}; }

static struct rows rows_of_array(const struct cudaArray *array, size_t x_bytes, size_t y) {
    return (struct rows){locate_in_array(array, x_bytes, y, 0), array->row_bytes, 0};
}

/* A pointer into the arena that belongs to no allocation was freed, or never one: an error, as on a GPU. */
static cudaError_t check(const void *pointer, size_t size) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    if (size == 0)
        return cudaSuccess;
    if (pointer == NULL)
        return cudaErrorInvalidValue;
    if (address < device.client_base || address >= device.arena_base + device.arena_bytes)
        return cudaSuccess;
    const struct allocation *found = find_allocation(address);
    return found != NULL && address + size <= found->base + found->size ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t copy(struct rows to, struct rows from, size_t width, size_t height) {
    LOCK();
    if (width == 0 || height == 0) {
        UNLOCK();
    }
    if (result == cudaSuccess)
        result = check(to.base, (height - 1) * to.pitch + width);
    if (result == cudaSuccess)
        result = check(from.base, (height - 1) * from.pitch + width);
    if (result == cudaSuccess)
        copy_rows(to, from, width, height, 1);
    UNLOCK();
}

static cudaError_t fill(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    LOCK();
    if (result == cudaSuccess && width > 0 && height > 0)
        result = check(pointer, (height - 1) * pitch + width);
    if (result == cudaSuccess)
        for (size_t y = 0; y < height; y++)
            memset((char *)pointer + y * pitch, value, width);
    UNLOCK();
}

PUBLIC cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of(to, size), rows_of(from, size), size, 1);
}
PUBLIC cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy(to, from, size, kind);
}
PUBLIC cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size) {
    (void)to_device, (void)from_device;
    return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}
PUBLIC cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                                       cudaStream_t stream) {
    (void)to_device, (void)from_device, (void)stream;
    return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}
PUBLIC cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                enum cudaMemcpyKind kind) {
    (void)kind;
    if (width > to_pitch || width > from_pitch)
        return keep_error(cudaErrorInvalidPitchValue);
    return copy(rows_of(to, to_pitch), rows_of(from, from_pitch), width, height);
}
PUBLIC cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

PUBLIC cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                       size_t height, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of_array(to, x, y), rows_of(from, pitch), width, height);
}
PUBLIC cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                            size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy2DToArray(to, x, y, from, pitch, width, height, kind);
}
PUBLIC cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                         size_t height, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of(to, pitch), rows_of_array(from, x, y), width, height);
}
PUBLIC cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                              size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy2DFromArray(to, pitch, from, x, y, width, height, kind);
}
PUBLIC cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t size,
                                     enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of_array(to, x, y), rows_of(from, size), size, 1);
}
PUBLIC cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t size,
                                       enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of(to, size), rows_of_array(from, x, y), size, 1);
}

/* One side of a copy of a box: where it begins, and the bytes of one of its elements. */
static struct rows side_of(struct cudaArray *array, struct cudaPos position, struct cudaPitchedPtr pointer, size_t *texel) {
    if (array != NULL) {
        *texel = array->texel_bytes;
        char *base = locate_in_array(array, position.x * array->texel_bytes, position.y, position.z);
        size_t rows = array->extent.height == 0 ? 1 : array->extent.height;
        return (struct rows){base, array->row_bytes, array->row_bytes * rows};
    }
    size_t plane = pointer.pitch * pointer.ysize;
    char *base = (char *)pointer.ptr + position.z * plane + position.y * pointer.pitch + position.x;
    return (struct rows){base, pointer.pitch, plane};
}

PUBLIC cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters) {
    LOCK();
    if (result == cudaSuccess) {
        size_t texel = 1; /* widths count elements where an array takes part, else bytes */
        struct rows to = side_of(parameters->dstArray, parameters->dstPos, parameters->dstPtr, &texel);
        struct rows from = side_of(parameters->srcArray, parameters->srcPos, parameters->srcPtr, &texel);
        struct cudaExtent extent = parameters->extent;
        copy_rows(to, from, extent.width * texel, extent.height, extent.depth);
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy3D(parameters);
}

static cudaError_t copy_symbol(const void *symbol, void *other, size_t size, size_t offset, int is_to_symbol) {
    LOCK();
    uint64_t bytes = 0;
    char *base = result == cudaSuccess ? (char *)(uintptr_t)find_symbol(symbol, &bytes) : NULL;
    if (result == cudaSuccess && base == NULL)
        result = cudaErrorInvalidSymbol;
    if (result == cudaSuccess && (offset > bytes || size > bytes - offset))
        result = cudaErrorInvalidValue;
    if (result == cudaSuccess && is_to_symbol)
        memmove(base + offset, other, size);
    else if (result == cudaSuccess)
        memmove(other, base + offset, size);
    UNLOCK();
}

PUBLIC cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
                                      enum cudaMemcpyKind kind) {
    (void)kind;
    return copy_symbol(symbol, (void *)from, size, offset, 1);
}
PUBLIC cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset,
                                           enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind, (void)stream;
    return copy_symbol(symbol, (void *)from, size, offset, 1);
}
PUBLIC cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy_symbol(symbol, to, size, offset, 0);
}
PUBLIC cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset,
                                             enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind, (void)stream;
    return copy_symbol(symbol, to, size, offset, 0);
}

PUBLIC cudaError_t cudaMemset(void *pointer, int value, size_t size) { return fill(pointer, size, value, size, 1); }
PUBLIC cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream) {
    (void)stream;
    return fill(pointer, size, value, size, 1);
}
PUBLIC cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    return fill(pointer, pitch, value, width, height);
}
PUBLIC cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream) {
    (void)stream;
    return fill(pointer, pitch, value, width, height);
}
PUBLIC cudaError_t cudaMemset3D(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent) {
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z++)
        error = fill((char *)pointer.ptr + z * pointer.pitch * pointer.ysize, pointer.pitch, value, extent.width,
                     extent.height);
    return error;
}
PUBLIC cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent,
                                     cudaStream_t stream) {
    (void)stream;
    return cudaMemset3D(pointer, value, extent);
}

#if CUDART_VERSION >= 13000
PUBLIC cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, struct cudaMemLocation location,
                                        unsigned int flags, cudaStream_t stream) {
    (void)pointer, (void)size, (void)location, (void)flags, (void)stream;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                                 struct cudaMemLocation location) {
    (void)pointer, (void)size, (void)advice, (void)location;
    return cudaSuccess;
}
#else
PUBLIC cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, int to, cudaStream_t stream) {
    (void)pointer, (void)size, (void)to, (void)stream;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice, int to) {
    (void)pointer, (void)size, (void)advice, (void)to;
    return cudaSuccess;
}
#endif
