/* Memory: a device pointer is a pointer. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>

#define POINTER(address) ((void *)(uintptr_t)(address))

PUBLIC CUresult cuMemAlloc(CUdeviceptr *into, size_t size) {
    if (size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CALL(cudaMalloc((void **)into, size));
}
PUBLIC CUresult cuMemAllocAsync(CUdeviceptr *into, size_t size, CUstream stream) {
    CALL(cudaMallocAsync((void **)into, size, stream));
}
PUBLIC CUresult cuMemAllocManaged(CUdeviceptr *into, size_t size, unsigned int flags) {
    CALL(cudaMallocManaged((void **)into, size, flags));
}
PUBLIC CUresult cuMemAllocPitch(CUdeviceptr *into, size_t *pitch, size_t width, size_t height, unsigned int element) {
    (void)element;
    CALL(cudaMallocPitch((void **)into, pitch, width, height));
}
PUBLIC CUresult cuMemFree(CUdeviceptr address) { CALL(cudaFree(POINTER(address))); }
PUBLIC CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) { CALL(cudaFreeAsync(POINTER(address), stream)); }
PUBLIC CUresult cuMemAllocHost(void **into, size_t size) { CALL(cudaMallocHost(into, size)); }
PUBLIC CUresult cuMemHostAlloc(void **into, size_t size, unsigned int flags) { CALL(cudaHostAlloc(into, size, flags)); }
PUBLIC CUresult cuMemFreeHost(void *pointer) { CALL(cudaFreeHost(pointer)); }
PUBLIC CUresult cuMemHostGetDevicePointer(CUdeviceptr *into, void *host, unsigned int flags) {
    CALL(cudaHostGetDevicePointer((void **)into, host, flags));
}
PUBLIC CUresult cuMemHostGetFlags(unsigned int *flags, void *host) { CALL(cudaHostGetFlags(flags, host)); }
PUBLIC CUresult cuMemHostRegister(void *host, size_t size, unsigned int flags) {
    CALL(cudaHostRegister(host, size, flags));
}
PUBLIC CUresult cuMemHostUnregister(void *host) { CALL(cudaHostUnregister(host)); }
PUBLIC CUresult cuMemGetInfo(size_t *free_bytes, size_t *total) { CALL(cudaMemGetInfo(free_bytes, total)); }

PUBLIC CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
    uint64_t found[2];
    int is_host;
    cudaError_t error = gpa_lsp_runtime.find_range(address, &found[0], &found[1], &is_host);
    if (error == cudaErrorInvalidValue)
        return CUDA_ERROR_NOT_FOUND;
    if (error == cudaSuccess && base != NULL)
        *base = found[0];
    if (error == cudaSuccess && size != NULL)
        *size = found[1];
    CALL(error);
}

PUBLIC CUresult cuPointerGetAttribute(void *into, CUpointer_attribute attribute, CUdeviceptr address) {
    uint64_t base, size;
    int is_host;
    cudaError_t error = gpa_lsp_runtime.find_range(address, &base, &size, &is_host);
    if (error != cudaSuccess)
        CALL(error);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return cuDevicePrimaryCtxRetain(into, 0);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned int *)into = CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)into = address; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)into = POINTER(address);
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(int *)into = 1; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)into = base; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(int *)into = is_host; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)into = 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)into = base; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)into = size; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(int *)into = 1; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **into,
                                       CUdeviceptr address) {
    for (unsigned int i = 0; i < count; i++) {
        static const size_t most = sizeof(void *);
        if (cuPointerGetAttribute(into[i], attributes[i], address) != CUDA_SUCCESS)
            memset(into[i], 0, attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                                       attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
                                   ? sizeof(int)
                                   : most);
    }
    return CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    CALL(cudaMemcpy(POINTER(to), POINTER(from), size, cudaMemcpyDefault));
}
#define COPY(name, to_type, from_type)                                                                                 \
    PUBLIC CUresult name##_v2(to_type to, from_type from, size_t size) {                                               \
        return copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, size);                                   \
    }                                                                                                                  \
    PUBLIC CUresult name##Async_v2(to_type to, from_type from, size_t size, CUstream stream) {                         \
        (void)stream;                                                                                                  \
        return copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, size);                                   \
    }
COPY(cuMemcpyHtoD, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH, void *, CUdeviceptr)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr)
#undef cuMemcpy
#undef cuMemcpyAsync
PUBLIC CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) { return copy(to, from, size); }
PUBLIC CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    (void)stream;
    return copy(to, from, size);
}

static CUresult fill(CUdeviceptr to, uint32_t value, size_t width, size_t count) {
    if (width == 1)
        CALL(cudaMemset(POINTER(to), (int)value, count));
    cudaError_t error = count == 0 ? cudaSuccess : cudaMemset(POINTER(to), 0, count * width); /* which checks the place */
    for (size_t i = 0; error == cudaSuccess && i < count; i++)
        memcpy((char *)POINTER(to) + i * width, &value, width);
    CALL(error);
}
#define FILL(name, type)                                                                                               \
    PUBLIC CUresult name##_v2(CUdeviceptr to, type value, size_t count) {                                              \
        return fill(to, (uint32_t)value, sizeof value, count);                                                         \
    }                                                                                                                  \
    PUBLIC CUresult name##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {                           \
        (void)stream;                                                                                                  \
        return fill(to, (uint32_t)value, sizeof value, count);                                                         \
    }
#undef cuMemsetD8Async
#undef cuMemsetD16Async
#undef cuMemsetD32Async
FILL(cuMemsetD8, unsigned char)
FILL(cuMemsetD16, unsigned short)
FILL(cuMemsetD32, unsigned int)
