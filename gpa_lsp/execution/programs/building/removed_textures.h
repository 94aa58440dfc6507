/* Texture and surface references, which CUDA 12 removed: each becomes a managed variable that holds an object. Included before sources that declare some. */
#if defined(__CUDACC_VER_MAJOR__) && !defined(GPA_LSP_REMOVED_TEXTURES) && __CUDACC_VER_MAJOR__ >= 12
#define GPA_LSP_REMOVED_TEXTURES
#include <cuda_runtime.h>
#include <climits>
#include <cstring>

struct textureReference {
    int normalized;
    enum cudaTextureFilterMode filterMode;
    enum cudaTextureAddressMode addressMode[3];
    struct cudaChannelFormatDesc channelDesc;
    int sRGB;
    unsigned int maxAnisotropy;
    enum cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    cudaTextureObject_t object;
    constexpr textureReference(int is_normalized, cudaTextureFilterMode filter, cudaTextureAddressMode address)
        : normalized(is_normalized), filterMode(filter), addressMode{address, address, address}, channelDesc{}, sRGB(0),
          maxAnisotropy(0), mipmapFilterMode(filter), mipmapLevelBias(0), minMipmapLevelClamp(0), maxMipmapLevelClamp(0),
          object(0) {}
};
struct surfaceReference {
    struct cudaChannelFormatDesc channelDesc;
    cudaSurfaceObject_t object;
};

template <class T, int dimensions = 1, enum cudaTextureReadMode mode = cudaReadModeElementType>
struct gpa_lsp_texture : textureReference {
    static constexpr cudaTextureReadMode read_mode = mode;
    explicit constexpr gpa_lsp_texture(int is_normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
                                       cudaTextureAddressMode address = cudaAddressModeClamp)
        : textureReference(is_normalized, filter, address) {}
};
template <class T, int dimensions = 1> struct gpa_lsp_surface : surfaceReference {};

#include "gpa_lsp_texture_fetches.h"

static inline cudaError_t gpa_lsp_bind(const textureReference &reference, const cudaResourceDesc &resource, cudaTextureReadMode mode) {
    textureReference &changed = const_cast<textureReference &>(reference);
    cudaTextureDesc how;
    std::memset(&how, 0, sizeof how);
    for (int axis = 0; axis < 3; axis++)
        how.addressMode[axis] = reference.addressMode[axis];
    how.filterMode = reference.filterMode;
    how.normalizedCoords = reference.normalized;
    how.readMode = mode;
    if (changed.object != 0)
        cudaDestroyTextureObject(changed.object);
    changed.object = 0;
    return cudaCreateTextureObject(&changed.object, &resource, &how, 0);
}

template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTexture(size_t *offset, const gpa_lsp_texture<T, d, mode> &reference, const void *base,
                                          const cudaChannelFormatDesc &format, size_t size = UINT_MAX) {
    cudaResourceDesc resource;
    std::memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<void *>(base);
    resource.res.linear.desc = format;
    resource.res.linear.sizeInBytes = size;
    if (offset != 0)
        *offset = 0;
    return gpa_lsp_bind(reference, resource, mode);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTexture(size_t *offset, const gpa_lsp_texture<T, d, mode> &reference, const void *base,
                                          size_t size = UINT_MAX) {
    return cudaBindTexture(offset, reference, base, cudaCreateChannelDesc<T>(), size);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTexture(size_t *offset, const gpa_lsp_texture<T, d, mode> *reference, const void *base,
                                          const cudaChannelFormatDesc *format, size_t size = UINT_MAX) {
    return cudaBindTexture(offset, *reference, base, *format, size);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTexture2D(size_t *offset, const gpa_lsp_texture<T, d, mode> &reference, const void *base,
                                            const cudaChannelFormatDesc &format, size_t width, size_t height, size_t pitch) {
    cudaResourceDesc resource;
    std::memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = const_cast<void *>(base);
    resource.res.pitch2D.desc = format;
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    if (offset != 0)
        *offset = 0;
    return gpa_lsp_bind(reference, resource, mode);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTexture2D(size_t *offset, const gpa_lsp_texture<T, d, mode> &reference, const void *base,
                                            size_t width, size_t height, size_t pitch) {
    return cudaBindTexture2D(offset, reference, base, cudaCreateChannelDesc<T>(), width, height, pitch);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTexture2D(size_t *offset, const gpa_lsp_texture<T, d, mode> *reference, const void *base,
                                            const cudaChannelFormatDesc *format, size_t width, size_t height, size_t pitch) {
    return cudaBindTexture2D(offset, *reference, base, *format, width, height, pitch);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTextureToArray(const gpa_lsp_texture<T, d, mode> &reference, cudaArray_const_t array) {
    cudaResourceDesc resource;
    std::memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = const_cast<cudaArray_t>(array);
    return gpa_lsp_bind(reference, resource, mode);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTextureToArray(const gpa_lsp_texture<T, d, mode> &reference, cudaArray_const_t array,
                                                 const cudaChannelFormatDesc &) {
    return cudaBindTextureToArray(reference, array);
}
template <class T, int d, cudaTextureReadMode mode>
static inline cudaError_t cudaBindTextureToArray(const gpa_lsp_texture<T, d, mode> *reference, cudaArray_const_t array,
                                                 const cudaChannelFormatDesc *) {
    return cudaBindTextureToArray(*reference, array);
}
static inline cudaError_t cudaUnbindTexture(const textureReference &reference) {
    textureReference &changed = const_cast<textureReference &>(reference);
    cudaError_t error = changed.object == 0 ? cudaSuccess : cudaDestroyTextureObject(changed.object);
    changed.object = 0;
    return error;
}
static inline cudaError_t cudaUnbindTexture(const textureReference *reference) { return cudaUnbindTexture(*reference); }
static inline cudaError_t cudaGetTextureAlignmentOffset(size_t *offset, const textureReference &) {
    *offset = 0;
    return cudaSuccess;
}
template <class T, int d>
static inline cudaError_t cudaBindSurfaceToArray(const gpa_lsp_surface<T, d> &reference, cudaArray_const_t array) {
    cudaResourceDesc resource;
    std::memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = const_cast<cudaArray_t>(array);
    return cudaCreateSurfaceObject(&const_cast<gpa_lsp_surface<T, d> &>(reference).object, &resource);
}
template <class T, int d>
static inline cudaError_t cudaBindSurfaceToArray(const gpa_lsp_surface<T, d> &reference, cudaArray_const_t array,
                                                 const cudaChannelFormatDesc &) {
    return cudaBindSurfaceToArray(reference, array);
}

#define texture __managed__ gpa_lsp_texture
#define surface __managed__ gpa_lsp_surface
#endif
