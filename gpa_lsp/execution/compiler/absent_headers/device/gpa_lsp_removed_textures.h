/* Texture and surface references, which CUDA 12 removed, for looking at kernels: each becomes a constant that holds an object. */
#ifndef GPA_LSP_REMOVED_TEXTURES
#define GPA_LSP_REMOVED_TEXTURES
template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType> struct gpa_lsp_texture {
    cudaTextureObject_t object;
};
template <class T, int dimensions = 1> struct gpa_lsp_surface {
    cudaSurfaceObject_t object;
};
#include "gpa_lsp_texture_fetches.h"
#define texture __constant__ gpa_lsp_texture
#define surface __constant__ gpa_lsp_surface
#endif
