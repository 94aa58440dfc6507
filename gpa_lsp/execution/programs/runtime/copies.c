/* Copies and fills. A device pointer is a pointer, so all of them are loops over rows. */
#define _GNU_SOURCE
#include "runtime.h"

#include <string.h>

#define LARGEST_PITCH 0x7fffffffu /* cudaDeviceProp.memPitch */

static struct rows rows_of(const void *base, size_t pitch) { return (struct rows){(char *)base, pitch, 0}; }

/* A pointer into the arena that belongs to no allocation was freed, or never one; and the host has no memory where nothing is mapped. */
static cudaError_t check(const void *pointer, size_t size, int is_written) {
    uint64_t address = (uint64_t)(uintptr_t)pointer, end = device.arena_base + device.arena_bytes;
    REFUSE_IF(pointer == NULL || size > SIZE_MAX - address, cudaErrorInvalidValue);
    if (address >= end || address + size <= device.arena_base)
        return (is_written ? is_writable(pointer, size) : is_mapped(pointer, size)) ? cudaSuccess : cudaErrorInvalidValue;
    return is_reachable(pointer, size) ? cudaSuccess : cudaErrorInvalidValue;
}

/* Bytes from the first to the last one of a box. */
static size_t measure(const struct rows *rows, const struct work *work) {
    return measure_box(work->width, rows->pitch, work->height, rows->plane, work->depth);
}

/* Rows do not overlap, so that there are no more of them than bytes in the memory that holds them all. */
static cudaError_t check_rows(const struct rows *rows, const struct work *work, int is_written) {
    if ((work->height > 1 && rows->pitch < work->width) ||
        (work->depth > 1 && rows->plane < add_sizes(multiply_sizes(work->height - 1, rows->pitch), work->width)))
        return cudaErrorInvalidPitchValue;
    return check(rows->base, measure(rows, work), is_written);
}

static void note_rows(enum event_kind kind, const struct work *work) {
    size_t to_bytes = measure(&work->to, work), from_bytes = kind == EVENT_COPY ? measure(&work->from, work) : 0;
    size_t most = to_bytes > from_bytes ? to_bytes : from_bytes;
    note_event(kind, work->to.base, work->from.base, most, most > multiply_sizes(multiply_sizes(work->width, work->height), work->depth));
}

static cudaError_t do_copy(const struct work *work) {
    if (work->width == 0 || work->height == 0 || work->depth == 0)
        return cudaSuccess;
    cudaError_t error = check_rows(&work->to, work, 1);
    if (error == cudaSuccess)
        error = check_rows(&work->from, work, 0);
    if ((work->is_to_device && !is_on_device(work->to.base)) || (work->is_from_device && !is_on_device(work->from.base)))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        note_rows(EVENT_COPY, work);
    char *to = locate(work->to.base);
    const char *from = locate(work->from.base);
    for (size_t z = 0; error == cudaSuccess && z < work->depth; z++)
        for (size_t y = 0; y < work->height; y++)
            memmove(to + z * work->to.plane + y * work->to.pitch, from + z * work->from.plane + y * work->from.pitch, work->width);
    return error;
}

static cudaError_t do_fill(const struct work *work) {
    uint32_t element = work->element_bytes;
    REFUSE_IF((element != 1 && element != 2 && element != 4) || (uintptr_t)work->to.base % element != 0, cudaErrorInvalidValue);
    if (work->width == 0 || work->height == 0 || work->depth == 0)
        return cudaSuccess;
    REFUSE_IF(check_rows(&work->to, work, 1) != cudaSuccess || !is_on_device(work->to.base), cudaErrorInvalidValue);
    note_rows(EVENT_FILL, work);
    char *to = locate(work->to.base);
    for (size_t z = 0; z < work->depth; z++)
        for (size_t y = 0; y < work->height; y++) {
            char *row = to + z * work->to.plane + y * work->to.pitch;
            if (element == 1)
                memset(row, (int)work->value, work->width);
            else
                for (size_t x = 0; x < work->width; x += element)
                    memcpy(row + x, &work->value, element);
        }
    return cudaSuccess;
}

cudaError_t do_work(const struct work *work) {
    switch (work->kind) {
    case WORK_LAUNCH: return do_launch(work);
    case WORK_COPY: return do_copy(work);
    case WORK_FILL: return do_fill(work);
    case WORK_HOST: work->call(work->data); return cudaSuccess;
    case WORK_GRAPH: return run_graph(work->child);
    case WORK_ALLOCATE:
        return allocate_again((uint64_t)(uintptr_t)work->to.base, work->width) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
    default: return cudaSuccess;
    }
}

/* At once, or when the graph is launched that the stream is captured for. */
static cudaError_t do_in(cudaStream_t stream, const struct work *work) {
    LOCK_FOR(work->kind == WORK_FILL ? "cudaMemset..." : "cudaMemcpy...");
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess)
        result = is_captured(stream) ? capture(work) : do_work(work);
    UNLOCK();
}

cudaError_t fill(void *pointer, size_t pitch, uint32_t value, uint32_t element_bytes, size_t width, size_t height,
                        cudaStream_t stream) {
    struct work work = {.kind = WORK_FILL, .to = {pointer, pitch, 0}, .value = value, .element_bytes = element_bytes,
                        .width = multiply_sizes(width, element_bytes), .height = height, .depth = 1};
    return do_in(stream, &work);
}

cudaError_t make_copy(struct work *work, void *to, const void *from, size_t size) {
    *work = (struct work){.kind = WORK_COPY, .to = rows_of(to, size), .from = rows_of(from, size), .width = size, .height = 1, .depth = 1};
    return cudaSuccess;
}

/* Between pointers, of which some are said to be the device's. */
static cudaError_t copy_kind(cudaStream_t stream, struct rows to, struct rows from, size_t width, size_t height, enum cudaMemcpyKind kind) {
    REFUSE_IF((unsigned int)kind > cudaMemcpyDefault, keep_error(cudaErrorInvalidMemcpyDirection));
    struct work work = {.kind = WORK_COPY, .to = to, .from = from, .width = width, .height = height, .depth = 1,
                        .is_to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
                        .is_from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice};
    return do_in(stream, &work);
}

PUBLIC cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_kind(stream, rows_of(to, size), rows_of(from, size), size, 1, kind);
}
PUBLIC cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, size, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                                       cudaStream_t stream) {
    REFUSE_IF(to_device != 0 || from_device != 0, keep_error(cudaErrorInvalidDevice));
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream);
}
PUBLIC cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size) {
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, size, NULL);
}
PUBLIC cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    if (width > to_pitch || width > from_pitch || to_pitch > LARGEST_PITCH || from_pitch > LARGEST_PITCH)
        return keep_error(cudaErrorInvalidPitchValue);
    return copy_kind(stream, rows_of(to, to_pitch), rows_of(from, from_pitch), width, height, kind);
}
PUBLIC cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                enum cudaMemcpyKind kind) {
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

/* One side of a copy: rows somewhere, or a place in an array. */
struct side {
    int is_array;
    cudaArray_const_t array;
    size_t x_bytes, y;
    struct rows rows;
};
static struct side in_array(cudaArray_const_t array, size_t x_bytes, size_t y) {
    return (struct side){.is_array = 1, .array = array, .x_bytes = x_bytes, .y = y};
}
static struct side in_memory(const void *base, size_t pitch) { return (struct side){.rows = rows_of(base, pitch)}; }

/* Of an array a box is copied, or with no height as many bytes as there are, row after row. */
static cudaError_t find_rows(struct side *side, size_t width, size_t height) {
    if (!side->is_array)
        return height > 0 && (width > side->rows.pitch || side->rows.pitch > LARGEST_PITCH) ? cudaErrorInvalidPitchValue : cudaSuccess;
    REFUSE_IF(!is_array(side->array), cudaErrorInvalidResourceHandle);
    size_t row_bytes = side->array->row_bytes, rows = count_rows(side->array);
    REFUSE_IF(!is_part(side->x_bytes, height > 0 ? width : 0, row_bytes) || !is_part(side->y, height, rows), cudaErrorInvalidValue);
    side->rows = (struct rows){find_in_array(side->array, side->x_bytes, side->y, 0), row_bytes, 0};
    return cudaSuccess;
}
static cudaError_t copy_sides(struct side to, struct side from, size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    LOCK_FOR("cudaMemcpy...");
    if (result == cudaSuccess)
        result = find_rows(&to, width, height);
    if (result == cudaSuccess)
        result = find_rows(&from, width, height);
    REQUIRE((unsigned int)kind <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
    struct work work = {.kind = WORK_COPY, .to = to.rows, .from = from.rows, .width = width, .height = height == 0 ? 1 : height, .depth = 1};
    if (result == cudaSuccess)
        result = do_in(stream, &work);
    UNLOCK();
}
/* A box without rows is nothing. */
static cudaError_t copy_box(struct side to, struct side from, size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_sides(to, from, height == 0 ? 0 : width, height == 0 ? 1 : height, kind, stream);
}

PUBLIC cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                            size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_box(in_array(to, x, y), in_memory(from, pitch), width, height, kind, stream);
}
PUBLIC cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                       size_t height, enum cudaMemcpyKind kind) {
    return cudaMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                              size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_box(in_memory(to, pitch), in_array(from, x, y), width, height, kind, stream);
}
PUBLIC cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                         size_t height, enum cudaMemcpyKind kind) {
    return cudaMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t size,
                                          enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_sides(in_array(to, x, y), in_memory(from, size), size, 0, kind, stream);
}
PUBLIC cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t size,
                                     enum cudaMemcpyKind kind) {
    return cudaMemcpyToArrayAsync(to, x, y, from, size, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t size,
                                            enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_sides(in_memory(to, size), in_array(from, x, y), size, 0, kind, stream);
}
PUBLIC cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t size,
                                       enum cudaMemcpyKind kind) {
    return cudaMemcpyFromArrayAsync(to, from, x, y, size, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                            size_t from_y, size_t width, size_t height, enum cudaMemcpyKind kind) {
    return copy_box(in_array(to, to_x, to_y), in_array(from, from_x, from_y), width, height, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                          size_t from_y, size_t size, enum cudaMemcpyKind kind) {
    return copy_sides(in_array(to, to_x, to_y), in_array(from, from_x, from_y), size, 0, kind, NULL);
}

/* One side of a copy of a box, and the bytes of one of its elements where it is an array. */
static cudaError_t find_box(struct cudaArray *array, struct cudaPos position, struct cudaPitchedPtr pointer, struct rows *rows,
                            size_t *texel) {
    if (array == NULL) {
        size_t plane = multiply_sizes(pointer.pitch, pointer.ysize);
        size_t offset = measure_box(position.x, pointer.pitch, add_sizes(position.y, 1), plane, add_sizes(position.z, 1));
        *rows = (struct rows){step_on(pointer.ptr, offset), pointer.pitch, plane};
        return pointer.ptr == NULL ? cudaErrorInvalidValue : pointer.pitch > LARGEST_PITCH ? cudaErrorInvalidPitchValue : cudaSuccess;
    }
    REFUSE_IF(!is_array(array), cudaErrorInvalidResourceHandle);
    *texel = array->texel_bytes;
    char *base = find_in_array(array, multiply_sizes(position.x, array->texel_bytes), position.y, position.z);
    *rows = (struct rows){base, array->row_bytes, multiply_sizes(array->row_bytes, count_rows(array))};
    return cudaSuccess;
}
static int holds_box(const struct cudaArray *array, struct cudaPos position, struct cudaExtent extent) {
    size_t planes = array == NULL || array->extent.depth == 0 ? 1 : array->extent.depth;
    return array == NULL || (is_part(position.x, extent.width, array->extent.width) &&
                             is_part(position.y, extent.height, count_rows(array)) && is_part(position.z, extent.depth, planes));
}

cudaError_t make_box_copy(struct work *work, const struct cudaMemcpy3DParms *parameters) {
    size_t texel = 1; /* widths count elements where an array takes part, else bytes */
    LOCK();
    REQUIRE(parameters != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        *work = (struct work){.kind = WORK_COPY, .height = parameters->extent.height, .depth = parameters->extent.depth};
        result = find_box(parameters->dstArray, parameters->dstPos, parameters->dstPtr, &work->to, &texel);
    }
    if (result == cudaSuccess)
        result = find_box(parameters->srcArray, parameters->srcPos, parameters->srcPtr, &work->from, &texel);
    REQUIRE(holds_box(parameters->dstArray, parameters->dstPos, parameters->extent) &&
                holds_box(parameters->srcArray, parameters->srcPos, parameters->extent),
            cudaErrorInvalidValue);
    REQUIRE((unsigned int)parameters->kind <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
    if (result == cudaSuccess)
        work->width = multiply_sizes(parameters->extent.width, texel);
    UNLOCK();
}

PUBLIC cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream) {
    struct work work;
    cudaError_t error = make_box_copy(&work, parameters);
    return error == cudaSuccess ? do_in(stream, &work) : error;
}
PUBLIC cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters) { return cudaMemcpy3DAsync(parameters, NULL); }

PUBLIC cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *peers, cudaStream_t stream) {
    REFUSE_IF(peers == NULL, keep_error(cudaErrorInvalidValue));
    REFUSE_IF(peers->srcDevice != 0 || peers->dstDevice != 0, keep_error(cudaErrorInvalidDevice));
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
    if (result == cudaSuccess && !is_part(offset, size, bytes))
        result = cudaErrorInvalidValue;
    if (result == cudaSuccess)
        result = is_to_symbol ? make_copy(work, base + offset, other, size) : make_copy(work, other, base + offset, size);
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
    return copy_symbol(symbol, (void *)from, size, offset, 1, stream);
}
PUBLIC cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
                                      enum cudaMemcpyKind kind) {
    return cudaMemcpyToSymbolAsync(symbol, from, size, offset, kind, NULL);
}
PUBLIC cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset,
                                             enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_symbol(symbol, to, size, offset, 0, stream);
}
PUBLIC cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind) {
    return cudaMemcpyFromSymbolAsync(to, symbol, size, offset, kind, NULL);
}

PUBLIC cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream) {
    return fill(pointer, size, (uint32_t)value, 1, size, 1, stream);
}
PUBLIC cudaError_t cudaMemset(void *pointer, int value, size_t size) { return cudaMemsetAsync(pointer, value, size, NULL); }
PUBLIC cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream) {
    return fill(pointer, pitch, (uint32_t)value, 1, width, height, stream);
}
PUBLIC cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(pointer, pitch, value, width, height, NULL);
}
PUBLIC cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent,
                                     cudaStream_t stream) {
    struct work work = {
        .kind = WORK_FILL, .to = {pointer.ptr, pointer.pitch, multiply_sizes(pointer.pitch, pointer.ysize)}, .value = (uint32_t)value,
        .element_bytes = 1, .width = extent.width, .height = extent.height, .depth = extent.depth};
    return do_in(stream, &work);
}
PUBLIC cudaError_t cudaMemset3D(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent) {
    return cudaMemset3DAsync(pointer, value, extent, NULL);
}

#if CUDART_VERSION >= 13000
PUBLIC cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, struct cudaMemLocation location,
                                        unsigned int flags, cudaStream_t stream) {
    return cudaSuccess;
}
PUBLIC cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                                 struct cudaMemLocation location) {
    return cudaSuccess;
}
#else
PUBLIC cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, int to, cudaStream_t stream) {
    return cudaSuccess;
}
PUBLIC cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice, int to) {
    return cudaSuccess;
}
#endif
