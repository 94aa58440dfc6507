/* A driver that executes nothing: memory is the process's own, and an array is a description with a pointer to its texels. */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

struct array {
    CUDA_ARRAY3D_DESCRIPTOR description;
    const char *texels;
};
static CUdeviceptr base;
static size_t bytes;

/* Somebody captures a graph, and this thread may wait and copy only where it says that it does not care. */
static int is_capturing, is_spoiled;
static __thread CUstreamCaptureMode capture_mode;

static void spoil(void) { is_spoiled |= is_capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED; }

PUBLIC void fake_capture(int begins) { is_capturing = begins; }
PUBLIC int fake_is_spoiled(void) { return is_spoiled; }
PUBLIC CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuCtxSynchronize(void) {
    spoil();
    return CUDA_SUCCESS;
}

/* Linking gives back what it was given first. */
static const void *linked;

PUBLIC CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                              unsigned int count, CUjit_option *options, void **values) {
    (void)state, (void)type, (void)size, (void)name, (void)count, (void)options, (void)values;
    linked = linked == NULL ? data : linked;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) {
    (void)state;
    *image = (void *)(uintptr_t)linked;
    *size = strlen(linked) + 1;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuLinkDestroy(CUlinkState state) {
    (void)state;
    linked = NULL;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemAlloc(CUdeviceptr *into, size_t size) {
    static char memory[1 << 16];
    base = (CUdeviceptr)(uintptr_t)memory;
    bytes = size;
    *into = base;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuMemGetAddressRange(CUdeviceptr *into, size_t *size, CUdeviceptr address) {
    if (address < base || address >= base + bytes)
        return CUDA_ERROR_NOT_FOUND;
    *into = base;
    *size = bytes;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuMemcpyDtoH(void *into, CUdeviceptr from, size_t size) {
    spoil();
    memcpy(into, (const void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *into, CUarray array) {
    *into = ((const struct array *)array)->description;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuMemcpy3D(const CUDA_MEMCPY3D *copy) {
    if (copy->srcMemoryType != CU_MEMORYTYPE_ARRAY || copy->dstMemoryType != CU_MEMORYTYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(copy->dstHost, ((const struct array *)copy->srcArray)->texels, copy->WidthInBytes * copy->Height * copy->Depth);
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuTexObjectCreate(CUtexObject *into, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                                  const CUDA_RESOURCE_VIEW_DESC *view) {
    static CUtexObject next = 1;
    (void)resource, (void)texture, (void)view;
    *into = next++;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuSurfObjectCreate(CUsurfObject *into, const CUDA_RESOURCE_DESC *resource) {
    return cuTexObjectCreate(into, resource, NULL, NULL);
}
PUBLIC CUresult cuTexObjectDestroy(CUtexObject handle) { return handle == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
PUBLIC CUresult cuModuleLoadData(CUmodule *into, const void *image) {
    *into = (CUmodule)image;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuModuleGetFunction(CUfunction *into, CUmodule module, const char *name) {
    *into = (CUfunction)((const char *)module + 1);
    return name[0] == 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
PUBLIC CUresult cuFuncGetParamInfo(CUfunction function, size_t number, size_t *offset, size_t *size) {
    (void)function;
    *offset = 8 * number;
    *size = 8;
    return number < 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
PUBLIC CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z, unsigned int block_x,
                               unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream,
                               void **arguments, void **extra) {
    (void)function, (void)x, (void)y, (void)z, (void)block_x, (void)block_y, (void)block_z, (void)shared;
    (void)stream, (void)arguments, (void)extra;
    return CUDA_SUCCESS;
}
