/* Arrays, linear memory and rows with a pitch; not the smaller levels of mipmaps. Its callers hold a lock. */
#include "textures.h"

#include "sizes.h"

#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, ARRAY = 0, LINEAR = 2, PITCHED = 3, HOST = 1, OF_ARRAY = 3, LAYERED = 1, CUBE = 4 };

struct texture {
    uint64_t handle;
    resource_description resource;
    texture_description texture;
    int is_surface;
    struct texture *next;
};
static struct texture *textures;

struct shape {
    uint64_t width, height, depth, rows, slices, bytes; /* rows and slices are 1 where there are none; bytes of a texel */
    unsigned int format, channels, flags;
};

static struct texture *find_texture(uint64_t handle) {
    struct texture *one = textures;
    while (one != NULL && one->handle != handle)
        one = one->next;
    return one;
}

void forget_texture(uint64_t handle) {
    for (struct texture **at = &textures; *at != NULL; at = &(*at)->next) {
        struct texture *one = *at;
        if (one->handle == handle) {
            *at = one->next;
            free(one);
            return;
        }
    }
}

void remember_texture(uint64_t handle, const resource_description *resource, const texture_description *texture) {
    forget_texture(handle);
    struct texture *one = calloc(1, sizeof *one);
    if (one == NULL || resource == NULL) {
        free(one);
        return;
    }
    one->handle = handle;
    one->resource = *resource;
    one->is_surface = texture == NULL;
    if (texture != NULL)
        one->texture = *texture;
    one->next = textures;
    textures = one;
}

static uint64_t size_of(unsigned int format) {
    switch (format) {
    case 0x01: case 0x08: return 1;
    case 0x02: case 0x09: case 0x10: return 2;
    case 0x03: case 0x0a: case 0x20: return 4;
    default: return 0;
    }
}

static int find_shape(const struct texture *one, function_finder find, struct shape *out) {
    const resource_description *from = &one->resource;
    memset(out, 0, sizeof *out);
    out->rows = out->slices = 1;
    if (from->kind == ARRAY) {
        int (*ask)(array_description *, uint64_t) = (int (*)(array_description *, uint64_t))find("cuArray3DGetDescriptor_v2");
        array_description array;
        memset(&array, 0, sizeof array);
        if (ask == NULL || ask(&array, from->at) != SUCCESS)
            return 0;
        out->width = array.width, out->height = array.height, out->depth = array.depth;
        out->format = array.format, out->channels = array.channels, out->flags = array.flags;
        out->rows = array.height == 0 ? 1 : array.height;
        out->slices = array.depth == 0 ? 1 : array.depth;
    } else if (from->kind == LINEAR || from->kind == PITCHED) {
        out->format = from->format, out->channels = from->channels;
        out->width = from->width;
        if (from->kind == PITCHED)
            out->height = out->rows = from->height;
    }
    out->bytes = size_of(out->format) * out->channels;
    if (out->bytes == 0)
        return 0;
    if (from->kind == LINEAR)
        out->width /= out->bytes;
    return out->width != 0 && out->rows != 0;
}

static uint64_t measure_shape(const struct shape *shape) {
    return multiply_sizes(multiply_sizes(shape->width, shape->bytes), multiply_sizes(shape->rows, shape->slices));
}

uint64_t measure_texture(uint64_t handle, function_finder find) {
    struct texture *one = find_texture(handle);
    struct shape shape;
    return one != NULL && find_shape(one, find, &shape) ? measure_shape(&shape) : 0;
}

static int read_array(const struct texture *one, const struct shape *shape, function_finder find, char *into) {
    int (*copy)(const copy_description *) = (int (*)(const copy_description *))find("cuMemcpy3D_v2");
    copy_description what;
    memset(&what, 0, sizeof what);
    what.from.type = OF_ARRAY;
    what.from.array = one->resource.at;
    what.into.type = HOST;
    what.into.host = (uint64_t)(uintptr_t)into;
    what.into.pitch = what.width = shape->width * shape->bytes;
    what.into.height = what.height = shape->rows;
    what.depth = shape->slices;
    return copy != NULL && copy(&what) == SUCCESS;
}

static int read_memory(const struct texture *one, const struct shape *shape, function_finder find, char *into) {
    int (*copy)(void *, uint64_t, size_t) = (int (*)(void *, uint64_t, size_t))find("cuMemcpyDtoH_v2");
    uint64_t row = multiply_sizes(shape->width, shape->bytes);
    for (uint64_t number = 0; copy != NULL && number < shape->rows; number++)
        if (copy(into + number * row, one->resource.at + number * one->resource.pitch, row) != SUCCESS)
            return 0;
    return copy != NULL;
}

int write_texture(FILE *stream, uint64_t handle, function_finder find) {
    struct texture *one = find_texture(handle);
    struct shape shape;
    if (one == NULL || !find_shape(one, find, &shape))
        return 0;
    uint64_t size = measure_shape(&shape);
    char *texels = malloc(size);
    if (one->resource.kind == LINEAR)
        one->resource.pitch = 0;
    int is_well = texels != NULL && (one->resource.kind == ARRAY ? read_array(one, &shape, find, texels)
                                                                 : read_memory(one, &shape, find, texels));
    if (is_well) {
        const texture_description *how = &one->texture;
        fprintf(stream, "texture %llu %u %u %llu %llu %llu %d %u %u %u %d %llu\n", (unsigned long long)handle, shape.format,
                shape.channels, (unsigned long long)shape.width, (unsigned long long)shape.height,
                (unsigned long long)shape.depth, (shape.flags & (LAYERED | CUBE)) != 0, how->address[0], how->filter,
                how->flags, one->is_surface, (unsigned long long)size);
        is_well = fwrite(texels, 1, size, stream) == size && fprintf(stream, "\n") == 1;
    }
    free(texels);
    return is_well;
}
