/* Pools of memory. All of them take from the same device memory at once, which a GPU does as well when it is asked to wait. */
#define _GNU_SOURCE
#include "runtime.h"

#if CUDART_VERSION >= 11020
#include <stdlib.h>
#include <string.h>

struct CUmemPoolHandle_st {
    uint64_t threshold;
};
static struct CUmemPoolHandle_st default_pool;
static struct CUmemPoolHandle_st *current_pool = &default_pool;

static int is_pool(cudaMemPool_t pool) { return pool == &default_pool || is_handle(POOL, pool); }
static cudaError_t give_pool(cudaMemPool_t *into, cudaMemPool_t pool, int number) {
    REFUSE_IF(into == NULL, keep_error(cudaErrorInvalidValue));
    *into = pool;
    return keep_error(number == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

PUBLIC cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *into, int number) {
    return give_pool(into, &default_pool, number);
}
PUBLIC cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *into, int number) { return give_pool(into, current_pool, number); }
PUBLIC cudaError_t cudaDeviceSetMemPool(int number, cudaMemPool_t pool) {
    REFUSE_IF(!is_pool(pool), keep_error(cudaErrorInvalidValue));
    current_pool = pool;
    return keep_error(number == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
#if CUDART_VERSION >= 13000
PUBLIC cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *into, struct cudaMemLocation *place, enum cudaMemAllocationType type) {
    return cudaDeviceGetDefaultMemPool(into, 0);
}
PUBLIC cudaError_t cudaMemGetMemPool(cudaMemPool_t *into, struct cudaMemLocation *place, enum cudaMemAllocationType type) {
    return cudaDeviceGetMemPool(into, 0);
}
PUBLIC cudaError_t cudaMemSetMemPool(struct cudaMemLocation *place, enum cudaMemAllocationType type, cudaMemPool_t pool) {
    return cudaDeviceSetMemPool(0, pool);
}
#endif
PUBLIC cudaError_t cudaMemPoolCreate(cudaMemPool_t *into, const struct cudaMemPoolProps *properties) {
    REFUSE_IF(into == NULL || properties == NULL, keep_error(cudaErrorInvalidValue));
    *into = make_handle(POOL, sizeof **into);
    return keep_error(*into == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}
PUBLIC cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (!destroy_handle(POOL, pool)) /* the default pool stays */
        return keep_error(cudaErrorInvalidValue);
    if (current_pool == pool)
        current_pool = &default_pool;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    return keep_error(is_pool(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

static int is_wide(enum cudaMemPoolAttr attribute) { return attribute >= cudaMemPoolAttrReleaseThreshold; }

PUBLIC cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    REFUSE_IF(!is_pool(pool) || value == NULL, keep_error(cudaErrorInvalidValue));
    if (attribute == cudaMemPoolAttrReleaseThreshold)
        memcpy(&pool->threshold, value, sizeof pool->threshold);
    return cudaSuccess;
}
PUBLIC cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    LOCK();
    REQUIRE(is_pool(pool) && value != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        uint64_t wide = attribute == cudaMemPoolAttrReleaseThreshold ? pool->threshold : count_pooled_bytes();
        int narrow = 1;
        memcpy(value, is_wide(attribute) ? (const void *)&wide : (const void *)&narrow, is_wide(attribute) ? 8 : 4);
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count) {
    return keep_error(is_pool(pool) ? cudaSuccess : cudaErrorInvalidValue);
}
PUBLIC cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *place) {
    REFUSE_IF(!is_pool(pool) || flags == NULL, keep_error(cudaErrorInvalidValue));
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaMallocFromPoolAsync(void **into, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
    return is_pool(pool) ? cudaMallocAsync(into, size, stream) : keep_error(cudaErrorInvalidValue);
}
#endif
