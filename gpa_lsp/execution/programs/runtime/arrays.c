/* CUDA arrays, and texture and surface objects over them or over linear memory. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

/* What the emulator is told of a texture or surface; gpa_lsp/execution/programs/messages.py reads it. */
struct texture_message {
    uint64_t base, row_bytes, held_base, held_bytes; /* the allocation it lies in */
    uint32_t width, height, depth, channels, channel_bytes, channel_kind;
    uint32_t is_linear_filter, address_mode, is_normalized, reads_normalized, is_surface;
    uint32_t is_layered; /* the depth is a number of layers, of six for each cube */
};

struct object {
    struct cudaResourceDesc resource;
    struct cudaTextureDesc texture;
};

int is_array(const struct cudaArray *array) { return is_handle(ARRAY, array); }

size_t count_rows(const struct cudaArray *array) { return array->extent.height == 0 ? 1 : array->extent.height; }

char *find_in_array(const struct cudaArray *array, size_t x_bytes, size_t y, size_t z) {
    size_t row = add_sizes(multiply_sizes(z, count_rows(array)), y);
    return step_on((void *)(uintptr_t)array->base, add_sizes(multiply_sizes(row, array->row_bytes), x_bytes));
}

/* Bytes of a texel; 0 where it has none that a GPU has. */
static size_t measure_texel(const struct cudaChannelFormatDesc *format) {
    const int bits[] = {format->x, format->y, format->z, format->w};
    size_t sum = 0;
    for (int i = 0; i < 4; i++) {
        if (bits[i] != 0 && bits[i] != 8 && bits[i] != 16 && bits[i] != 32)
            return 0;
        sum += (size_t)bits[i] / 8;
    }
    return format->x == 0 ? 0 : sum;
}

static cudaError_t make_array(cudaArray_t *into, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                              unsigned int flags) {
    LOCK_FOR("cudaMallocArray...");
    REQUIRE(into != NULL && format != NULL && extent.width != 0, cudaErrorInvalidValue);
    REQUIRE(measure_texel(format) != 0, cudaErrorInvalidChannelDescriptor);
    struct cudaArray *array = result == cudaSuccess ? make_handle(ARRAY, sizeof *array) : NULL;
    REQUIRE(array != NULL, cudaErrorMemoryAllocation);
    if (result == cudaSuccess) {
        array->format = *format;
        array->extent = extent;
        array->flags = flags;
        array->texel_bytes = measure_texel(format);
        array->row_bytes = multiply_sizes(array->texel_bytes, extent.width);
        size_t planes = extent.depth == 0 ? 1 : extent.depth;
        array->base = allocate(multiply_sizes(multiply_sizes(array->row_bytes, count_rows(array)), planes), OF_ARRAY);
        if (array->base == 0)
            result = cudaErrorMemoryAllocation;
    }
    if (result == cudaSuccess)
        *into = array;
    else
        destroy_handle(ARRAY, array);
    UNLOCK();
}

PUBLIC cudaError_t cudaMallocArray(cudaArray_t *into, const struct cudaChannelFormatDesc *format, size_t width,
                                   size_t height, unsigned int flags) {
    return make_array(into, format, (struct cudaExtent){width, height, 0}, flags);
}

PUBLIC cudaError_t cudaMalloc3DArray(cudaArray_t *into, const struct cudaChannelFormatDesc *format,
                                     struct cudaExtent extent, unsigned int flags) {
    return make_array(into, format, extent, flags);
}

PUBLIC cudaError_t cudaFreeArray(cudaArray_t array) {
    LOCK();
    REQUIRE(array == NULL || is_array(array), cudaErrorInvalidValue);
    if (result == cudaSuccess && array != NULL) {
        release(array->base);
        destroy_handle(ARRAY, array);
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent, unsigned int *flags,
                                    cudaArray_t array) {
    REFUSE_IF(!is_array(array), keep_error(cudaErrorInvalidResourceHandle));
    if (format != NULL)
        *format = array->format;
    if (extent != NULL)
        *extent = array->extent;
    if (flags != NULL)
        *flags = array->flags;
    return cudaSuccess;
}

PUBLIC cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t array) {
    return format == NULL ? keep_error(cudaErrorInvalidValue) : cudaArrayGetInfo(format, NULL, NULL, (cudaArray_t)array);
}

PUBLIC struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind) {
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}

static void take_format(struct texture_message *message, const struct cudaChannelFormatDesc *format) {
    message->channels = (format->x > 0) + (format->y > 0) + (format->z > 0) + (format->w > 0);
    message->channel_bytes = (uint32_t)format->x / 8;
    message->channel_kind = (uint32_t)format->f;
}

static cudaError_t take_resource(struct texture_message *message, const struct cudaResourceDesc *resource) {
    if (resource->resType == cudaResourceTypeArray) {
        const struct cudaArray *array = resource->res.array.array;
        REFUSE_IF(!is_array(array), cudaErrorInvalidResourceHandle);
        take_format(message, &array->format);
        message->base = array->base;
        message->row_bytes = array->row_bytes;
        message->width = (uint32_t)array->extent.width;
        message->height = (uint32_t)array->extent.height;
        message->depth = (uint32_t)array->extent.depth;
        message->is_layered = (array->flags & (cudaArrayLayered | cudaArrayCubemap)) != 0;
    } else if (resource->resType == cudaResourceTypeLinear) {
        take_format(message, &resource->res.linear.desc);
        message->base = (uint64_t)(uintptr_t)resource->res.linear.devPtr;
        const struct allocation *held = find_allocation(message->base);
        uint64_t most = held == NULL ? 0 : held->base + held->size - message->base; /* sizes default to UINT_MAX */
        message->row_bytes = resource->res.linear.sizeInBytes < most ? resource->res.linear.sizeInBytes : most;
        uint32_t texel = message->channels * message->channel_bytes;
        message->width = texel == 0 ? 0 : (uint32_t)(message->row_bytes / texel);
    } else if (resource->resType == cudaResourceTypePitch2D) {
        REFUSE_IF(resource->res.pitch2D.width > UINT32_MAX || resource->res.pitch2D.height > UINT32_MAX, cudaErrorInvalidValue);
        take_format(message, &resource->res.pitch2D.desc);
        message->base = (uint64_t)(uintptr_t)resource->res.pitch2D.devPtr;
        message->row_bytes = resource->res.pitch2D.pitchInBytes;
        message->width = (uint32_t)resource->res.pitch2D.width;
        message->height = (uint32_t)resource->res.pitch2D.height;
    } else {
        send_note(NOTE_UNSUPPORTED, "a texture of a mipmapped array");
        return cudaErrorNotSupported;
    }
    return cudaSuccess;
}

static cudaError_t make_object(uint64_t *into, const struct cudaResourceDesc *resource,
                               const struct cudaTextureDesc *texture) {
    LOCK_FOR("cudaCreateTextureObject...");
    struct texture_message message = {0};
    REQUIRE(into != NULL && resource != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess)
        result = take_resource(&message, resource);
    const struct allocation *held = result == cudaSuccess ? find_allocation(message.base) : NULL;
    struct object *made = result == cudaSuccess ? calloc(1, sizeof *made) : NULL;
    REQUIRE(made != NULL, cudaErrorMemoryAllocation);
    uint64_t handle = 0;
    if (result == cudaSuccess) {
        message.held_base = held == NULL ? 0 : held->base; /* a variable lies in none */
        message.held_bytes = held == NULL ? 0 : held->size;
        message.is_surface = texture == NULL;
        made->resource = *resource;
        if (texture != NULL) {
            message.is_linear_filter = texture->filterMode == cudaFilterModeLinear;
            message.address_mode = (uint32_t)texture->addressMode[0];
            message.is_normalized = texture->normalizedCoords != 0;
            message.reads_normalized = texture->readMode == cudaReadModeNormalizedFloat;
            made->texture = *texture;
        }
        struct part part = {&message, sizeof message};
        struct reply reply;
        result = ask(REQUEST_TEXTURE, &part, 1, &reply);
        if (result == cudaSuccess && reply.size == sizeof handle)
            memcpy(&handle, reply.bytes, sizeof handle);
        free_reply(&reply);
    }
    REQUIRE(keep_handle(TEXTURE, handle, made), cudaErrorMemoryAllocation);
    if (result == cudaSuccess)
        *into = handle;
    else
        free(made);
    UNLOCK();
}

static struct object *find_object(uint64_t handle) { return find_handle(TEXTURE, handle); }

static cudaError_t drop_object(uint64_t handle) {
    LOCK_FOR("cudaDestroyTextureObject...");
    REQUIRE(handle == 0 || find_object(handle) != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess && handle != 0) {
        struct part part = {&handle, sizeof handle};
        struct reply reply;
        result = ask(REQUEST_DROP_TEXTURE, &part, 1, &reply);
        free_reply(&reply);
        drop_handle(TEXTURE, handle);
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaCreateTextureObject(cudaTextureObject_t *into, const struct cudaResourceDesc *resource,
                                           const struct cudaTextureDesc *texture, const struct cudaResourceViewDesc *view) {
    return texture == NULL ? keep_error(cudaErrorInvalidValue) : make_object((uint64_t *)into, resource, texture);
}
PUBLIC cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) { return drop_object(handle); }

PUBLIC cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *into, cudaTextureObject_t handle) {
    struct object *found = find_object(handle);
    REFUSE_IF(found == NULL || into == NULL, keep_error(cudaErrorInvalidValue));
    *into = found->resource;
    return cudaSuccess;
}

PUBLIC cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *into, cudaTextureObject_t handle) {
    struct object *found = find_object(handle);
    REFUSE_IF(found == NULL || into == NULL, keep_error(cudaErrorInvalidValue));
    *into = found->texture;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *into, cudaSurfaceObject_t handle) {
    return cudaGetTextureObjectResourceDesc(into, handle);
}

PUBLIC cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *into, const struct cudaResourceDesc *resource) {
    return make_object((uint64_t *)into, resource, NULL);
}
PUBLIC cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t handle) { return drop_object(handle); }
