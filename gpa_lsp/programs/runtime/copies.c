/* Copies and fills. A device pointer is a pointer, so all of them are loops over rows. */
#define _GNU_SOURCE
#include "graphs.h"

#include <string.h>

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

static cudaError_t do_copy(const struct work *work) {
    if (work->width == 0 || work->height == 0 || work->depth == 0)
        return cudaSuccess;
    size_t to_bytes = (work->depth - 1) * work->to.plane + (work->height - 1) * work->to.pitch + work->width;
    size_t from_bytes = (work->depth - 1) * work->from.plane + (work->height - 1) * work->from.pitch + work->width;
    cudaError_t error = check(work->to.base, to_bytes);
    if (error == cudaSuccess)
        error = check(work->from.base, from_bytes);
    if ((work->is_to_device && !is_on_device(work->to.base)) || (work->is_from_device && !is_on_device(work->from.base)))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        copy_rows(work->to, work->from, work->width, work->height, work->depth);
    return error;
}

static cudaError_t do_fill(const struct work *work) {
    if (work->width == 0 || work->height == 0)
        return cudaSuccess;
    cudaError_t error = check(work->to.base, (work->height - 1) * work->to.pitch + work->width);
    if (!is_on_device(work->to.base))
        error = cudaErrorInvalidValue;
    for (size_t y = 0; error == cudaSuccess && y < work->height; y++) {
        char *row = work->to.base + y * work->to.pitch;
        if (work->element_bytes <= 1)
            memset(row, (int)work->value, work->width);
        else
            for (size_t x = 0; x < work->width; x += work->element_bytes)
                memcpy(row + x, &work->value, work->element_bytes);
    }
    return error;
}

cudaError_t do_work(const struct work *work) {
    switch (work->kind) {
    case WORK_LAUNCH: return do_launch(work);
    case WORK_COPY: return do_copy(work);
    case WORK_FILL: return do_fill(work);
    case WORK_HOST: work->call(work->data); return cudaSuccess;
    case WORK_ALLOCATE:
        return allocate_again((uint64_t)(uintptr_t)work->to.base, work->width) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
    default: return cudaSuccess;
    }
}

/* At once, or when the graph is launched that the stream is captured for. */
static cudaError_t do_in(cudaStream_t stream, const struct work *work) {
    LOCK();
    if (result == cudaSuccess)
        result = is_captured(stream) ? capture(work) : do_work(work);
    UNLOCK();
}

static cudaError_t copy_in(cudaStream_t stream, struct rows to, struct rows from, size_t width, size_t height) {
    struct work work = {.kind = WORK_COPY, .to = to, .from = from, .width = width, .height = height, .depth = 1};
    return do_in(stream, &work);
}

static cudaError_t copy(struct rows to, struct rows from, size_t width, size_t height) {
    return copy_in(NULL, to, from, width, height);
}

static cudaError_t fill(void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
    struct work work = {
        .kind = WORK_FILL, .to = {pointer, pitch, 0}, .value = (uint32_t)value, .width = width, .height = height};
    return do_in(stream, &work);
}

/* Between pointers, of which some are said to be the device's. */
static cudaError_t copy_kind(cudaStream_t stream, struct rows to, struct rows from, size_t width, size_t height, enum cudaMemcpyKind kind) {
    if ((unsigned int)kind > cudaMemcpyDefault)
        return keep_error(cudaErrorInvalidMemcpyDirection);
    struct work work = {.kind = WORK_COPY, .to = to, .from = from, .width = width, .height = height, .depth = 1,
                        .is_to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
                        .is_from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice};
    return do_in(stream, &work);
}

PUBLIC cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    return copy_kind(NULL, rows_of(to, size), rows_of(from, size), size, 1, kind);
}
PUBLIC cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_kind(stream, rows_of(to, size), rows_of(from, size), size, 1, kind);
}
PUBLIC cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size) {
    (void)to_device, (void)from_device;
    return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}
PUBLIC cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                                       cudaStream_t stream) {
    (void)to_device, (void)from_device;
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream);
}
PUBLIC cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                enum cudaMemcpyKind kind) {
    if (width > to_pitch || width > from_pitch)
        return keep_error(cudaErrorInvalidPitchValue);
    return copy_kind(NULL, rows_of(to, to_pitch), rows_of(from, from_pitch), width, height, kind);
}
PUBLIC cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    if (width > to_pitch || width > from_pitch)
        return keep_error(cudaErrorInvalidPitchValue);
    return copy_kind(stream, rows_of(to, to_pitch), rows_of(from, from_pitch), width, height, kind);
}

PUBLIC cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                       size_t height, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of_array(to, x, y), rows_of(from, pitch), width, height);
}
PUBLIC cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                            size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return copy_in(stream, rows_of_array(to, x, y), rows_of(from, pitch), width, height);
}
PUBLIC cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                         size_t height, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of(to, pitch), rows_of_array(from, x, y), width, height);
}
PUBLIC cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                              size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return copy_in(stream, rows_of(to, pitch), rows_of_array(from, x, y), width, height);
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

PUBLIC cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t size,
                                          enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return copy_in(stream, rows_of_array(to, x, y), rows_of(from, size), size, 1);
}
PUBLIC cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t size,
                                            enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return copy_in(stream, rows_of(to, size), rows_of_array(from, x, y), size, 1);
}
PUBLIC cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                            size_t from_y, size_t width, size_t height, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of_array(to, to_x, to_y), rows_of_array(from, from_x, from_y), width, height);
}
PUBLIC cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                          size_t from_y, size_t size, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(rows_of_array(to, to_x, to_y), rows_of_array(from, from_x, from_y), size, 1);
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

struct work make_box_copy(const struct cudaMemcpy3DParms *parameters) {
    size_t texel = 1; /* widths count elements where an array takes part, else bytes */
    struct cudaExtent extent = parameters->extent;
    struct work work = {.kind = WORK_COPY, .height = extent.height, .depth = extent.depth};
    work.to = side_of(parameters->dstArray, parameters->dstPos, parameters->dstPtr, &texel);
    work.from = side_of(parameters->srcArray, parameters->srcPos, parameters->srcPtr, &texel);
    work.width = extent.width * texel;
    return work;
}

PUBLIC cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream) {
    struct work work = make_box_copy(parameters);
    return do_in(stream, &work);
}
PUBLIC cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters) { return cudaMemcpy3DAsync(parameters, NULL); }

PUBLIC cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *peers, cudaStream_t stream) {
    struct cudaMemcpy3DParms parameters = {
        .srcArray = peers->srcArray, .srcPos = peers->srcPos, .srcPtr = peers->srcPtr, .dstArray = peers->dstArray,
        .dstPos = peers->dstPos, .dstPtr = peers->dstPtr, .extent = peers->extent, .kind = cudaMemcpyDefault};
    return cudaMemcpy3DAsync(&parameters, stream);
}
PUBLIC cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *peers) { return cudaMemcpy3DPeerAsync(peers, NULL); }

cudaError_t make_symbol_copy(struct work *work, const void *symbol, void *other, size_t size, size_t offset, int is_to_symbol) {
    LOCK();
    uint64_t bytes = 0;
    char *base = result == cudaSuccess ? (char *)(uintptr_t)find_symbol(symbol, &bytes) : NULL;
    if (result == cudaSuccess && base == NULL)
        result = cudaErrorInvalidSymbol;
    if (result == cudaSuccess && (offset > bytes || size > bytes - offset))
        result = cudaErrorInvalidValue;
    if (result == cudaSuccess)
        *work = is_to_symbol ? make_copy(base + offset, other, size) : make_copy(other, base + offset, size);
    UNLOCK();
}

static cudaError_t copy_symbol(const void *symbol, void *other, size_t size, size_t offset, int is_to_symbol,
                               cudaStream_t stream) {
    struct work work;
    cudaError_t error = make_symbol_copy(&work, symbol, other, size, offset, is_to_symbol);
    return error != cudaSuccess ? error : do_in(stream, &work);
}

PUBLIC cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset,
                                           enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return copy_symbol(symbol, (void *)from, size, offset, 1, stream);
}
PUBLIC cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
                                      enum cudaMemcpyKind kind) {
    return cudaMemcpyToSymbolAsync(symbol, from, size, offset, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset,
                                             enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return copy_symbol(symbol, to, size, offset, 0, stream);
}
PUBLIC cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind) {
    return cudaMemcpyFromSymbolAsync(to, symbol, size, offset, kind, NULL);
}

PUBLIC cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream) {
    return fill(pointer, size, value, size, 1, stream);
}
PUBLIC cudaError_t cudaMemset(void *pointer, int value, size_t size) { return cudaMemsetAsync(pointer, value, size, NULL); }
PUBLIC cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream) {
    return fill(pointer, pitch, value, width, height, stream);
}
PUBLIC cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(pointer, pitch, value, width, height, NULL);
}
PUBLIC cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent,
                                     cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z++)
        error = fill((char *)pointer.ptr + z * pointer.pitch * pointer.ysize, pointer.pitch, value, extent.width,
                     extent.height, stream);
    return error;
}
PUBLIC cudaError_t cudaMemset3D(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent) {
    return cudaMemset3DAsync(pointer, value, extent, NULL);
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
