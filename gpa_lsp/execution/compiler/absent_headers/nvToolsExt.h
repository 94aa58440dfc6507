/* In place of the ranges of NVIDIA's tools as CUDA 12 and older had them: those that CUDA brings now need no library. */
#ifndef GPA_LSP_NV_TOOLS_EXT_H
#define GPA_LSP_NV_TOOLS_EXT_H
#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
static inline int nvtxRangePushA(const char *name) { return name == 0; }
static inline int nvtxRangePop(void) { return 0; }
static inline void nvtxMarkA(const char *name) { (void)name; }
#define nvtxRangePush nvtxRangePushA
#define nvtxMark nvtxMarkA
#endif
#endif
