/* Before CUDA's own header of this name, while gpa-lsp rebuilds a program. */
#include_next <cuda.h>
#if defined(__cplusplus) && CUDA_VERSION >= 13000 && !defined(GPA_LSP_OLD_CONTEXTS)
#define GPA_LSP_OLD_CONTEXTS
static inline CUresult cuCtxCreate(CUcontext *into, unsigned int flags, CUdevice device) {
    return cuCtxCreate(into, nullptr, flags, device);
}
#endif
