/* Start, errors, entry points, devices and contexts. There is one device, and one context, which is always there. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define MOST_CONTEXTS 64
#define NAME_BYTES 256

struct CUctx_st {
    int flags;
};
static struct CUctx_st primary;
static __thread CUcontext contexts[MOST_CONTEXTS];
static __thread int context_count;
static int is_retained;

CUresult translate(cudaError_t error) {
    switch (error) {
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidConfiguration: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidPitchValue: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidChannelDescriptor: return CUDA_ERROR_INVALID_VALUE;
    default: return (CUresult)error; /* those that can come here have the same number */
    }
}

int refuse_call(const char *name) {
    gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

PUBLIC CUresult cuInit(unsigned int flags) {
    int count;
    CALL(cudaGetDeviceCount(&count));
}
/* A number that is the same for all. */
static CUresult give(void *into, const void *value, size_t bytes) {
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    memcpy(into, value, bytes);
    return CUDA_SUCCESS;
}
#define GIVE(into, value) return give(into, &(__typeof__(*(into))){value}, sizeof *(into))

PUBLIC CUresult cuDriverGetVersion(int *version) { GIVE(version, CUDA_VERSION); }

PUBLIC CUresult cuGetErrorName(CUresult error, const char **name) {
    static const struct {
        CUresult error;
        const char *name;
    } names[] = {
        {CUDA_SUCCESS, "CUDA_SUCCESS"},
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
        {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
        {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND"},
        {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
        {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT"},
        {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
        {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
        {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
        {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
        {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
        {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
        {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
        {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
        {(CUresult)912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"}, /* since CUDA 11.8 */
    };
    REFUSE_IF(name == NULL, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error) {
            *name = names[i].name;
            return CUDA_SUCCESS;
        }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
PUBLIC CUresult cuGetErrorString(CUresult error, const char **words) {
    REFUSE_IF(words == NULL, CUDA_ERROR_INVALID_VALUE);
    *words = error == CUDA_ERROR_NOT_FOUND ? "named symbol not found" : cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}

static void *library;

/* The newest form of a function that is here; callers of older forms differ in nothing that matters to us. */
static void *find_entry(const char *name) {
    static const char *const forms[] = {"_v4", "_v3", "_v2", ""};
    extern const char __start_refusals[] HIDDEN, __stop_refusals[] HIDDEN; /* of the section, by the linker */
    char full[NAME_BYTES];
    Dl_info self;
    if (strcmp(name, "cuGetExportTable") == 0) { /* only a runtime of NVIDIA's asks for it here */
        gpa_lsp_runtime.send_note(NOTE_OWN_RUNTIME, "");
        return NULL;
    }
    if (library == NULL && dladdr((void *)find_entry, &self) != 0)
        library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; library != NULL && i < sizeof forms / sizeof *forms; i++) {
        snprintf(full, sizeof full, "%s%s", name, forms[i]);
        void *found = dlsym(library, full);
        Dl_info place;
        if ((const char *)found >= __start_refusals && (const char *)found < __stop_refusals)
            continue; /* as if it were not there: who asks for it can do without */
        if (found != NULL && dladdr(found, &place) != 0 && dladdr((void *)find_entry, &self) != 0 &&
            place.dli_fbase == self.dli_fbase)
            return found;
    }
    return NULL;
}

/* NVRTC takes a table for granted where this is missing, and goes without one where there is none. */
PUBLIC CUresult cuGetExportTable(const void **table, const CUuuid *name) { return CUDA_ERROR_NOT_FOUND; }

#undef cuGetProcAddress
PUBLIC CUresult cuGetProcAddress(const char *name, void **into, int version, cuuint64_t flags) {
    REFUSE_IF(name == NULL || into == NULL, CUDA_ERROR_INVALID_VALUE);
    *into = find_entry(name);
    return *into == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
PUBLIC CUresult cuGetProcAddress_v2(const char *name, void **into, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *found) {
    CUresult error = cuGetProcAddress(name, into, version, flags);
    if (error != CUDA_ERROR_INVALID_VALUE && strcmp(name, "cuGetProcAddress") == 0) { /* asked for by this form, it is this form */
        *into = (void *)cuGetProcAddress_v2;
        error = CUDA_SUCCESS;
    }
    if (found != NULL)
        *found = error == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return error;
}

PUBLIC CUresult cuDeviceGetCount(int *count) { CALL(cudaGetDeviceCount(count)); }
PUBLIC CUresult cuDeviceGet(CUdevice *into, int number) {
    REFUSE_IF(number != 0, CUDA_ERROR_INVALID_DEVICE);
    GIVE(into, 0);
}
PUBLIC CUresult cuDeviceGetName(char *into, int size, CUdevice number) {
    struct cudaDeviceProp found;
    REFUSE_IF(into == NULL || size <= 0, CUDA_ERROR_INVALID_VALUE);
    cudaError_t error = cudaGetDeviceProperties(&found, number);
    if (error == cudaSuccess)
        snprintf(into, (size_t)size, "%s", found.name);
    CALL(error);
}
PUBLIC CUresult cuDeviceTotalMem(size_t *into, CUdevice number) {
    REFUSE_IF(number != 0, CUDA_ERROR_INVALID_DEVICE);
    size_t free_bytes;
    CALL(cudaMemGetInfo(&free_bytes, into));
}
PUBLIC CUresult cuDeviceGetAttribute(int *into, CUdevice_attribute attribute, CUdevice number) {
    CALL(cudaDeviceGetAttribute(into, (enum cudaDeviceAttr)attribute, number)); /* they have the same numbers */
}
PUBLIC CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice number) {
    CUresult error = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, number);
    return error != CUDA_SUCCESS ? error
                                 : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, number);
}
PUBLIC CUresult cuDeviceGetUuid(CUuuid *into, CUdevice number) { GIVE(into, {"gpa-lsp"}); }
PUBLIC CUresult cuDeviceGetPCIBusId(char *into, int size, CUdevice number) {
    CALL(cudaDeviceGetPCIBusId(into, size, number));
}
PUBLIC CUresult cuDeviceCanAccessPeer(int *into, CUdevice number, CUdevice peer) { GIVE(into, 0); }

PUBLIC CUresult cuDevicePrimaryCtxRetain(CUcontext *into, CUdevice number) {
    REFUSE_IF(number != 0, CUDA_ERROR_INVALID_DEVICE);
    int count;
    is_retained = 1;
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    *into = &primary;
    CALL(cudaGetDeviceCount(&count)); /* connects */
}
PUBLIC CUresult cuDevicePrimaryCtxRelease(CUdevice number) { return CUDA_SUCCESS; }
PUBLIC CUresult cuDevicePrimaryCtxReset(CUdevice number) {
    REFUSE_IF(number != 0, CUDA_ERROR_INVALID_DEVICE);
    CALL(cudaDeviceReset());
}
PUBLIC CUresult cuDevicePrimaryCtxSetFlags(CUdevice number, unsigned int flags) {
    primary.flags = (int)flags;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuDevicePrimaryCtxGetState(CUdevice number, unsigned int *flags, int *is_active) {
    REFUSE_IF(flags == NULL || is_active == NULL, CUDA_ERROR_INVALID_VALUE);
    *flags = (unsigned int)primary.flags;
    *is_active = is_retained;
    return CUDA_SUCCESS;
}

static int is_context(CUcontext context) { return context == NULL || context == &primary; }
PUBLIC CUresult cuCtxSetCurrent(CUcontext context) {
    REFUSE_IF(!is_context(context), CUDA_ERROR_INVALID_CONTEXT);
    if (context_count == 0)
        context_count = context != NULL;
    else if (context == NULL)
        context_count--;
    if (context_count > 0 && context != NULL)
        contexts[context_count - 1] = context;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuCtxPushCurrent(CUcontext context) {
    REFUSE_IF(!is_context(context), CUDA_ERROR_INVALID_CONTEXT);
    REFUSE_IF(context_count == MOST_CONTEXTS, CUDA_ERROR_INVALID_VALUE);
    contexts[context_count++] = context;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuCtxPopCurrent(CUcontext *into) {
    REFUSE_IF(context_count == 0, CUDA_ERROR_INVALID_CONTEXT);
    context_count--;
    if (into != NULL)
        *into = contexts[context_count];
    return CUDA_SUCCESS;
}
static CUcontext find_current(void) {
    return context_count > 0 ? contexts[context_count - 1] : *gpa_lsp_runtime.has_context ? &primary : NULL;
}
PUBLIC CUresult cuCtxGetCurrent(CUcontext *into) {
    GIVE(into, find_current());
}
static CUresult create_context(CUcontext *into) {
    CUresult error = cuDevicePrimaryCtxRetain(into, 0);
    return error != CUDA_SUCCESS ? error : cuCtxPushCurrent(&primary);
}
PUBLIC CUresult cuCtxCreate_v2(CUcontext *into, unsigned int flags, CUdevice number) { return create_context(into); }
#if CUDA_VERSION >= 12050
PUBLIC CUresult cuCtxCreate_v4(CUcontext *into, CUctxCreateParams *parameters, unsigned int flags, CUdevice number) {
    return create_context(into);
}
#endif
PUBLIC CUresult cuCtxDestroy(CUcontext context) {
    REFUSE_IF(context != &primary, CUDA_ERROR_INVALID_CONTEXT);
    if (context_count > 0 && contexts[context_count - 1] == context)
        context_count--;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuCtxGetDevice(CUdevice *into) {
    REFUSE_IF(find_current() == NULL, CUDA_ERROR_INVALID_CONTEXT);
    GIVE(into, 0);
}
PUBLIC CUresult cuCtxGetFlags(unsigned int *flags) { GIVE(flags, (unsigned int)primary.flags); }
PUBLIC CUresult cuCtxGetId(CUcontext context, unsigned long long *into) { GIVE(into, 1); }
PUBLIC CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *into) { GIVE(into, CUDA_VERSION); }
#undef cuCtxSynchronize
PUBLIC CUresult cuCtxSynchronize(void) { CALL(cudaDeviceSynchronize()); }
PUBLIC CUresult cuCtxSetLimit(CUlimit limit, size_t value) { CALL(cudaDeviceSetLimit((enum cudaLimit)limit, value)); }
PUBLIC CUresult cuCtxGetLimit(size_t *into, CUlimit limit) { CALL(cudaDeviceGetLimit(into, (enum cudaLimit)limit)); }
PUBLIC CUresult cuCtxSetCacheConfig(CUfunc_cache config) { return CUDA_SUCCESS; }
PUBLIC CUresult cuCtxGetCacheConfig(CUfunc_cache *config) { GIVE(config, CU_FUNC_CACHE_PREFER_NONE); }
PUBLIC CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CALL(cudaDeviceGetStreamPriorityRange(least, greatest));
}
PUBLIC CUresult cuProfilerStart(void) { return CUDA_SUCCESS; }
PUBLIC CUresult cuProfilerStop(void) { return CUDA_SUCCESS; }
