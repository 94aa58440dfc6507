/* Textures and surfaces that a program makes, and what lies in them. */
#ifndef GPA_LSP_TEXTURES_H
#define GPA_LSP_TEXTURES_H

#include <stdint.h>
#include <stdio.h>

typedef struct { /* CUDA_RESOURCE_DESC, with the members of all kinds that are read */
    unsigned int kind;
    uint64_t at; /* array or address */
    unsigned int format, channels;
    uint64_t width; /* of linear memory: bytes */
    uint64_t height, pitch;
    uint64_t reserved[11];
    unsigned int flags;
} resource_description;

typedef struct { /* CUDA_TEXTURE_DESC */
    unsigned int address[3], filter, flags, anisotropy, mipmap_filter;
    float bias, least, most, border[4];
    int reserved[12];
} texture_description;

typedef struct { /* CUDA_ARRAY3D_DESCRIPTOR */
    uint64_t width, height, depth;
    unsigned int format, channels, flags;
} array_description;

typedef struct { /* one side of a CUDA_MEMCPY3D */
    uint64_t x, y, z, level;
    unsigned int type;
    uint64_t host, device, array, reserved, pitch, height;
} copy_side;

typedef struct { /* CUDA_MEMCPY3D */
    copy_side from, into;
    uint64_t width, height, depth;
} copy_description;

typedef void *(*function_finder)(const char *name);

/* A surface has no description of a texture. */
void remember_texture(uint64_t handle, const resource_description *resource, const texture_description *texture);
void forget_texture(uint64_t handle);

/* Bytes of the texture of a handle; 0 where there is none, or one whose texels cannot be read. */
uint64_t measure_texture(uint64_t handle, function_finder find);

/* Writes it; whether all was read. */
int write_texture(FILE *stream, uint64_t handle, function_finder find);

#endif
