/* CUDA arrays, and texture and surface objects over them or over linear memory. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#define MOST_OBJECTS 4096

/* What the emulator is told of a texture or surface; gpa_lsp/programs/messages.py reads it. */
struct texture_message {
    uint64_t base, row_bytes, held_base, held_bytes; /* the allocation it lies in */
    uint32_t width, height, depth, channels, channel_bytes, channel_kind;
    uint32_t is_linear_filter, address_mode, is_normalized, reads_normalized, is_surface;
    uint32_t is_layered; /* the depth is a number of layers, of six for each cube */
};

struct object {
    uint64_t handle;
    struct cudaResourceDesc resource;
    struct cudaTextureDesc texture;
};
static struct object objects[MOST_OBJECTS];

char *locate_in_array(const struct cudaArray *array, size_t x_bytes, size_t y, size_t z) {
    size_t rows = array->extent.height == 0 ? 1 : array->extent.height;
    return (char *)(uintptr_t)(array->base + (z * rows + y) * array->row_bytes + x_bytes);
}

static cudaError_t make_array(cudaArray_t *into, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                              unsigned int flags) {
    LOCK();
    struct cudaArray *array = result == cudaSuccess ? calloc(1, sizeof *array) : NULL;
    if (result == cudaSuccess && array == NULL)
        result = cudaErrorMemoryAllocation;
    if (result == cudaSuccess) {
        array->format = *format;
        array->extent = extent;
        array->flags = flags;
        array->texel_bytes = (size_t)(format->x + format->y + format->z + format->w) / 8;
        array->row_bytes = array->texel_bytes * extent.width;
        size_t rows = (extent.height == 0 ? 1 : extent.height) * (extent.depth == 0 ? 1 : extent.depth);
        array->base = allocate(array->row_bytes * rows, 0);
        if (array->base == 0)
            result = cudaErrorMemoryAllocation;
    }
    if (result == cudaSuccess)
        *into = array;
    else
        free(array);
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
    if (result == cudaSuccess && array != NULL) {
        release(array->base);
        free(array);
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent, unsigned int *flags,
                                    cudaArray_t array) {
    if (format != NULL)
        *format = array->format;
    if (extent != NULL)
        *extent = array->extent;
    if (flags != NULL)
        *flags = array->flags;
    return cudaSuccess;
}

PUBLIC cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t array) {
    *format = array->format;
    return cudaSuccess;
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
    LOCK();
    struct texture_message message = {0};
    if (result == cudaSuccess)
        result = take_resource(&message, resource);
    const struct allocation *held = find_allocation(message.base);
    if (held != NULL) {
        message.held_base = held->base;
        message.held_bytes = held->size;
    }
    message.is_surface = texture == NULL;
    if (texture != NULL) {
        message.is_linear_filter = texture->filterMode == cudaFilterModeLinear;
        message.address_mode = (uint32_t)texture->addressMode[0];
        message.is_normalized = texture->normalizedCoords != 0;
        message.reads_normalized = texture->readMode == cudaReadModeNormalizedFloat;
    }
    struct object *place = NULL;
    for (int i = 0; i < MOST_OBJECTS && place == NULL; i++)
        if (objects[i].handle == 0)
            place = &objects[i];
    if (result == cudaSuccess && place == NULL)
        result = cudaErrorMemoryAllocation;
    if (result == cudaSuccess) {
        struct part part = {&message, sizeof message};
        struct reply reply;
        result = ask(REQUEST_TEXTURE, &part, 1, &reply);
        if (result == cudaSuccess && reply.size == sizeof *into) {
            memcpy(into, reply.bytes, sizeof *into);
            place->handle = *into;
            place->resource = *resource;
            if (texture != NULL)
                place->texture = *texture;
        }
        free_reply(&reply);
    }
    UNLOCK();
}

static struct object *find_object(uint64_t handle) {
    for (int i = 0; i < MOST_OBJECTS; i++)
        if (handle != 0 && objects[i].handle == handle)
            return &objects[i];
    return NULL;
}

static cudaError_t drop_object(uint64_t handle) {
    LOCK();
    struct object *found = find_object(handle);
    if (result == cudaSuccess && found != NULL) {
        struct part part = {&handle, sizeof handle};
        struct reply reply;
        result = ask(REQUEST_DROP_TEXTURE, &part, 1, &reply);
        free_reply(&reply);
        found->handle = 0;
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaCreateTextureObject(cudaTextureObject_t *into, const struct cudaResourceDesc *resource,
                                           const struct cudaTextureDesc *texture, const struct cudaResourceViewDesc *view) {
    (void)view;
    uint64_t handle = 0;
    cudaError_t error = make_object(&handle, resource, texture);
    *into = handle;
    return error;
}
PUBLIC cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) { return drop_object(handle); }

PUBLIC cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *into, cudaTextureObject_t handle) {
    struct object *found = find_object(handle);
    if (found != NULL)
        *into = found->resource;
    return found == NULL ? cudaErrorInvalidValue : cudaSuccess;
}

PUBLIC cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *into, cudaTextureObject_t handle) {
    struct object *found = find_object(handle);
    if (found != NULL)
        *into = found->texture;
    return found == NULL ? cudaErrorInvalidValue : cudaSuccess;
}
PUBLIC cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *into, cudaSurfaceObject_t handle) {
    return cudaGetTextureObjectResourceDesc(into, handle);
}

PUBLIC cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *into, const struct cudaResourceDesc *resource) {
    uint64_t handle = 0;
    cudaError_t error = make_object(&handle, resource, NULL);
    *into = handle;
    return error;
}
PUBLIC cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t handle) { return drop_object(handle); }
