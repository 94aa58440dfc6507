/* Fetches through texture and surface references, which CUDA 12 removed, by the objects they hold: for whoever declares gpa_lsp_texture and gpa_lsp_surface. */
#ifndef GPA_LSP_TEXTURE_FETCHES_H
#define GPA_LSP_TEXTURE_FETCHES_H
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
#endif
