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

/* What a fetch gives: the element, or as many fractions as it has channels. */
template <class T, cudaTextureReadMode mode> struct gpa_lsp_fetched { typedef T type; };
#define GPA_LSP_FETCHED(element, fraction) \
    template <> struct gpa_lsp_fetched<element, cudaReadModeNormalizedFloat> { typedef fraction type; };
#define GPA_LSP_FETCHED_4(element, vector) \
    GPA_LSP_FETCHED(vector##1, float1) GPA_LSP_FETCHED(vector##2, float2) GPA_LSP_FETCHED(vector##4, float4) GPA_LSP_FETCHED(element, float)
GPA_LSP_FETCHED_4(unsigned char, uchar)
GPA_LSP_FETCHED_4(signed char, char)
GPA_LSP_FETCHED_4(unsigned short, ushort)
GPA_LSP_FETCHED_4(short, short)
GPA_LSP_FETCHED(char, float)

#define GPA_LSP_FETCH(name, dimensions, parameters, arguments)                                                         \
    template <class T, cudaTextureReadMode mode>                                                                       \
    static __device__ __forceinline__ typename gpa_lsp_fetched<T, mode>::type name parameters {                        \
        return name<typename gpa_lsp_fetched<T, mode>::type> arguments;                                                \
    }
#define GPA_LSP_REFERENCE(dimensions) const gpa_lsp_texture<T, dimensions, mode> &texture_
GPA_LSP_FETCH(tex1Dfetch, 1, (GPA_LSP_REFERENCE(1), int x), (texture_.object, x))
GPA_LSP_FETCH(tex1D, 1, (GPA_LSP_REFERENCE(1), float x), (texture_.object, x))
GPA_LSP_FETCH(tex2D, 2, (GPA_LSP_REFERENCE(2), float x, float y), (texture_.object, x, y))
GPA_LSP_FETCH(tex3D, 3, (GPA_LSP_REFERENCE(3), float x, float y, float z), (texture_.object, x, y, z))
GPA_LSP_FETCH(tex1DLayered, 0xf1, (GPA_LSP_REFERENCE(0xf1), float x, int layer), (texture_.object, x, layer))
GPA_LSP_FETCH(tex2DLayered, 0xf2, (GPA_LSP_REFERENCE(0xf2), float x, float y, int layer), (texture_.object, x, y, layer))

#define GPA_LSP_SURFACE(dimensions, places, values)                                                                    \
    template <class T, class S>                                                                                        \
    static __device__ __forceinline__ void surf##dimensions##Dread(T *into, const gpa_lsp_surface<S, dimensions> &surface_, places, \
                                                                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
        surf##dimensions##Dread(into, surface_.object, values, mode);                                                  \
    }                                                                                                                  \
    template <class T, class S>                                                                                        \
    static __device__ __forceinline__ T surf##dimensions##Dread(const gpa_lsp_surface<S, dimensions> &surface_, places, \
                                                                cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
        return surf##dimensions##Dread<T>(surface_.object, values, mode);                                              \
    }                                                                                                                  \
    template <class T, class S>                                                                                        \
    static __device__ __forceinline__ void surf##dimensions##Dwrite(T value, const gpa_lsp_surface<S, dimensions> &surface_, places, \
                                                                    cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
        surf##dimensions##Dwrite(value, surface_.object, values, mode);                                                \
    }
#define GPA_LSP_AND ,
GPA_LSP_SURFACE(1, int x, x)
GPA_LSP_SURFACE(2, int x GPA_LSP_AND int y, x GPA_LSP_AND y)
GPA_LSP_SURFACE(3, int x GPA_LSP_AND int y GPA_LSP_AND int z, x GPA_LSP_AND y GPA_LSP_AND z)

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
