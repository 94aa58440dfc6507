/* A driver that executes nothing: memory of the device is the process's own, behind each other in one array. */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))
enum { MOST = 16 };

static char memory[1 << 16], pinned[1 << 16];
static size_t end, sizes[MOST], count;
static CUdeviceptr bases[MOST];

PUBLIC CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }
PUBLIC CUresult cuMemAlloc(CUdeviceptr *into, size_t size) {
    if (count == MOST || end + size > sizeof memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *into = bases[count] = (CUdeviceptr)(uintptr_t)(memory + end);
    sizes[count++] = size;
    end += size;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuMemFree(CUdeviceptr base) {
    for (size_t number = 0; number < count; number++)
        if (bases[number] == base)
            sizes[number] = 0;
    end -= base + 4096 == (CUdeviceptr)(uintptr_t)(memory + end) ? 4096 : 0; /* the next one may lie there */
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuMemAllocHost(void **into, size_t size) {
    *into = pinned;
    return size > sizeof pinned ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
PUBLIC CUresult cuMemGetAddressRange(CUdeviceptr *into, size_t *size, CUdeviceptr address) {
    for (size_t number = 0; number < count; number++)
        if (address >= bases[number] && address - bases[number] < sizes[number]) {
            *into = bases[number];
            *size = sizes[number];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}
PUBLIC CUresult cuMemcpyHtoD(CUdeviceptr into, const void *from, size_t size) {
    memcpy((void *)(uintptr_t)into, from, size);
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuMemcpyDtoH(void *into, CUdeviceptr from, size_t size) {
    memcpy(into, (const void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuMemcpyDtoHAsync(void *into, CUdeviceptr from, size_t size, CUstream stream) {
    (void)stream;
    return cuMemcpyDtoH(into, from, size);
}
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
