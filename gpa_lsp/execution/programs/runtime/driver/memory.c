/* Memory: a device pointer is a pointer. */
#define _GNU_SOURCE
#include "driver.h"

#define POINTER(address) ((void *)(uintptr_t)(address))

PUBLIC CUresult cuMemAlloc(CUdeviceptr *into, size_t size) {
    REFUSE_IF(size == 0, CUDA_ERROR_INVALID_VALUE);
    CALL(cudaMalloc((void **)into, size));
}
PUBLIC CUresult cuMemAllocAsync(CUdeviceptr *into, size_t size, CUstream stream) {
    CALL(cudaMallocAsync((void **)into, size, stream));
}
PUBLIC CUresult cuMemAllocManaged(CUdeviceptr *into, size_t size, unsigned int flags) {
    CALL(cudaMallocManaged((void **)into, size, flags));
}
PUBLIC CUresult cuMemAllocPitch(CUdeviceptr *into, size_t *pitch, size_t width, size_t height, unsigned int element) {
    REFUSE_IF((element != 4 && element != 8 && element != 16) || width == 0 || height == 0, CUDA_ERROR_INVALID_VALUE);
    CALL(cudaMallocPitch((void **)into, pitch, width, height));
}
PUBLIC CUresult cuMemFree(CUdeviceptr address) { CALL(cudaFree(POINTER(address))); }
PUBLIC CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) { CALL(cudaFreeAsync(POINTER(address), stream)); }
PUBLIC CUresult cuMemHostAlloc(void **into, size_t size, unsigned int flags) {
    REFUSE_IF(size == 0, CUDA_ERROR_INVALID_VALUE);
    CALL(cudaHostAlloc(into, size, flags));
}
PUBLIC CUresult cuMemAllocHost(void **into, size_t size) { return cuMemHostAlloc(into, size, 0); }
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
    REFUSE_IF(error == cudaErrorInvalidValue, CUDA_ERROR_NOT_FOUND);
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
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return cuDevicePrimaryCtxRetain(into, 0);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned int *)into = CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)into = address; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        REFUSE_IF(!is_host, CUDA_ERROR_INVALID_VALUE);
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
    REFUSE_IF(count > 0 && (attributes == NULL || into == NULL), CUDA_ERROR_INVALID_VALUE);
    for (unsigned int i = 0; i < count; i++) {
        static const size_t most = sizeof(void *);
        REFUSE_IF(into[i] == NULL, CUDA_ERROR_INVALID_VALUE);
        if (cuPointerGetAttribute(into[i], attributes[i], address) != CUDA_SUCCESS)
            memset(into[i], 0, attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                                       attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
                                   ? sizeof(int)
                                   : most);
    }
    return CUDA_SUCCESS;
}

#define COPY(name, to_type, from_type, kind)                                                                           \
    PUBLIC CUresult name##Async_v2(to_type to, from_type from, size_t size, CUstream stream) {                         \
        CALL(cudaMemcpyAsync(POINTER(to), POINTER(from), size, kind, stream));                                         \
    }                                                                                                                  \
    PUBLIC CUresult name##_v2(to_type to, from_type from, size_t size) { return name##Async_v2(to, from, size, NULL); }
COPY(cuMemcpyHtoD, CUdeviceptr, const void *, cudaMemcpyHostToDevice)
COPY(cuMemcpyDtoH, void *, CUdeviceptr, cudaMemcpyDeviceToHost)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, cudaMemcpyDeviceToDevice)
#undef cuMemcpy
#undef cuMemcpyAsync
PUBLIC CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CALL(cudaMemcpyAsync(POINTER(to), POINTER(from), size, cudaMemcpyDefault, stream));
}
PUBLIC CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) { return cuMemcpyAsync(to, from, size, NULL); }

#define FILL(bits, type)                                                                                               \
    PUBLIC CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,    \
                                             CUstream stream) {                                                        \
        CALL(gpa_lsp_runtime.fill(POINTER(to), pitch, value, sizeof value, width, height, stream));                    \
    }                                                                                                                  \
    PUBLIC CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) {    \
        return cuMemsetD2D##bits##Async(to, pitch, value, width, height, NULL);                                        \
    }                                                                                                                  \
    PUBLIC CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {                \
        return cuMemsetD2D##bits##Async(to, 0, value, count, 1, stream);                                               \
    }                                                                                                                  \
    PUBLIC CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                                   \
        return cuMemsetD##bits##Async(to, value, count, NULL);                                                         \
    }
#undef cuMemsetD8Async
#undef cuMemsetD16Async
#undef cuMemsetD32Async
#undef cuMemsetD2D8Async
#undef cuMemsetD2D16Async
#undef cuMemsetD2D32Async
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)
