/* The device, streams and events. Everything happens at once and in order, which a GPU is free to do as well. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct CUevent_st {
    struct timespec time;
    int is_recorded;
    uint32_t capture; /* that it was recorded in */
};

static unsigned int device_flags;

PUBLIC cudaError_t cudaGetDeviceCount(int *count) {
    LOCK();
    if (count == NULL)
        result = cudaErrorInvalidValue;
    else
        *count = result == cudaSuccess;
    UNLOCK();
}
/* A number that is the same for all: of the device, its flags, its rules. */
static cudaError_t give(void *into, const void *value, size_t bytes) {
    REFUSE_IF(into == NULL, keep_error(cudaErrorInvalidValue));
    memcpy(into, value, bytes);
    return cudaSuccess;
}
#define GIVE(into, value) return give(into, &(__typeof__(*(into))){value}, sizeof *(into))

PUBLIC cudaError_t cudaGetDevice(int *number) {
    LOCK();
    REQUIRE(number != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess)
        *number = 0;
    UNLOCK();
}
int has_context;
PUBLIC cudaError_t cudaSetDevice(int number) {
    LOCK();
    has_context = 1;
    if (result == cudaSuccess && number != 0)
        result = cudaErrorInvalidDevice;
    UNLOCK();
}
PUBLIC cudaError_t cudaInitDevice(int number, unsigned int options, unsigned int flags) {
    return cudaSetDevice(number);
}
PUBLIC cudaError_t cudaSetValidDevices(int *devices, int count) { return cudaSuccess; }
PUBLIC cudaError_t cudaChooseDevice(int *number, const struct cudaDeviceProp *wanted) { return cudaGetDevice(number); }
PUBLIC cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    device_flags = flags;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGetDeviceFlags(unsigned int *flags) { GIVE(flags, device_flags); }

#if CUDART_VERSION >= 13000
/* Members that CUDA 13 has removed, for programs that gpa-lsp has rebuilt with them (building/headers): in what is reserved, where there is room. */
static void describe_removed(struct cudaDeviceProp *into) {
    int removed[] = {device.clock_khz, device.memory_clock_khz, 1, 0, cudaComputeModeDefault, 2, 0, 131072};
    char *place = (char *)&into->hostNumaMultinodeIpcSupported + sizeof into->hostNumaMultinodeIpcSupported;
    if (place + sizeof removed <= (char *)(into + 1))
        memcpy(place, removed, sizeof removed);
}
#endif

/* Source: CUDA C++ programming guide, technical specifications per compute capability; the same since 6.0 but for a few. */
static void describe_textures(struct cudaDeviceProp *into) {
    static const int wide = 131072, high = 65536, layered = 32768, deep = 16384;
    into->maxTexture1D = into->maxTexture2D[0] = wide;
    into->maxTexture2D[1] = into->maxTexture2DLinear[1] = high;
    into->maxTexture2DLinear[0] = wide;
    into->maxTexture2DLinear[2] = 2097120;
    into->maxTexture1DMipmap = into->maxTexture2DMipmap[0] = into->maxTexture2DMipmap[1] = layered;
    into->maxTexture2DGather[0] = into->maxTexture2DGather[1] = layered;
    into->maxTexture3D[0] = into->maxTexture3D[1] = into->maxTexture3D[2] = deep;
    into->maxTexture3DAlt[0] = into->maxTexture3DAlt[1] = deep / 2;
    into->maxTexture3DAlt[2] = 2 * deep;
    into->maxTextureCubemap = into->maxTextureCubemapLayered[0] = layered;
    into->maxTextureCubemapLayered[1] = into->maxSurfaceCubemapLayered[1] = 2046;
    into->maxTexture1DLayered[0] = into->maxTexture2DLayered[0] = into->maxTexture2DLayered[1] = layered;
    into->maxTexture1DLayered[1] = into->maxTexture2DLayered[2] = 2048;
    into->maxSurface1D = into->maxSurface1DLayered[0] = into->maxSurfaceCubemap = into->maxSurfaceCubemapLayered[0] = layered;
    into->maxSurface2D[0] = wide;
    into->maxSurface2D[1] = high;
    into->maxSurface3D[0] = into->maxSurface3D[1] = into->maxSurface3D[2] = deep;
    into->maxSurface2DLayered[0] = into->maxSurface2DLayered[1] = layered;
    into->maxSurface1DLayered[1] = into->maxSurface2DLayered[2] = 2048;
}

static void describe_device(struct cudaDeviceProp *into) {
    memset(into, 0, sizeof *into);
    snprintf(into->name, sizeof into->name, "%s", device.name);
    into->totalGlobalMem = device.memory_bytes;
    into->sharedMemPerBlock = (size_t)device.shared_per_block;
    into->sharedMemPerBlockOptin = (size_t)device.shared_per_block_optin;
    into->sharedMemPerMultiprocessor = (size_t)device.shared_per_sm;
    into->reservedSharedMemPerBlock = device.major >= 8 ? 1024 : 0;
    into->regsPerBlock = device.registers_per_sm;
    into->regsPerMultiprocessor = device.registers_per_sm;
    into->warpSize = 32;
    into->memPitch = 0x7fffffff;
    into->maxThreadsPerBlock = 1024;
    into->maxThreadsPerMultiProcessor = device.threads_per_sm;
    into->maxBlocksPerMultiProcessor = device.blocks_per_sm;
    into->maxThreadsDim[0] = into->maxThreadsDim[1] = 1024;
    into->maxThreadsDim[2] = 64;
    into->maxGridSize[0] = 0x7fffffff;
    into->maxGridSize[1] = into->maxGridSize[2] = 65535;
    into->totalConstMem = 65536;
    into->major = device.major;
    into->minor = device.minor;
    into->textureAlignment = 512;
    into->texturePitchAlignment = 32;
    into->surfaceAlignment = 512;
    into->multiProcessorCount = device.sm_count;
    into->canMapHostMemory = 1;
    into->concurrentKernels = 1;
    into->unifiedAddressing = 1;
    into->managedMemory = 1;
    into->concurrentManagedAccess = 1;
    into->pageableMemoryAccess = 0;
    into->cooperativeLaunch = 1;
    into->asyncEngineCount = 1;
    into->memoryBusWidth = device.bus_bits;
    into->l2CacheSize = device.l2_bytes;
    into->globalL1CacheSupported = into->localL1CacheSupported = 1;
    into->streamPrioritiesSupported = 1;
    describe_textures(into);
    into->persistingL2CacheMaxSize = device.major >= 8 ? device.l2_bytes / 4 * 3 : 0; /* as an A100 has it */
    into->accessPolicyMaxWindowSize = device.major >= 8 ? 134213632 : 0;
    into->computePreemptionSupported = 1;
    into->canUseHostPointerForRegisteredMem = 1;
#if CUDART_VERSION >= 11080
    into->clusterLaunch = device.major >= 9;
#endif
#if CUDART_VERSION >= 12000
    into->hostRegisterSupported = 1;
    into->memoryPoolsSupported = 1;
    into->unifiedFunctionPointers = 0;
#endif
#if CUDART_VERSION < 13000
    into->clockRate = device.clock_khz;
    into->memoryClockRate = device.memory_clock_khz;
    into->deviceOverlap = 1;
    into->computeMode = cudaComputeModeDefault;
#else
    describe_removed(into);
#endif
}

#undef cudaGetDeviceProperties
PUBLIC cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *into, int number) {
    LOCK();
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    REQUIRE(number == 0, cudaErrorInvalidDevice);
    if (result == cudaSuccess)
        describe_device(into);
    UNLOCK();
}
PUBLIC cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *into, int number) {
    return cudaGetDeviceProperties(into, number);
}

/* Attributes that are members of the properties as well: 0 for those that are not, and for all that a GPU may lack. */
static int find_property(enum cudaDeviceAttr attribute) {
    struct cudaDeviceProp found;
    describe_device(&found);
    switch (attribute) {
#define PROPERTY(name, member) case cudaDevAttr##name: return (int)found.member;
    PROPERTY(MaxThreadsPerBlock, maxThreadsPerBlock) PROPERTY(MaxBlockDimX, maxThreadsDim[0])
    PROPERTY(MaxBlockDimY, maxThreadsDim[1]) PROPERTY(MaxBlockDimZ, maxThreadsDim[2])
    PROPERTY(MaxGridDimX, maxGridSize[0]) PROPERTY(MaxGridDimY, maxGridSize[1]) PROPERTY(MaxGridDimZ, maxGridSize[2])
    PROPERTY(MaxSharedMemoryPerBlock, sharedMemPerBlock) PROPERTY(MaxSharedMemoryPerBlockOptin, sharedMemPerBlockOptin)
    PROPERTY(MaxSharedMemoryPerMultiprocessor, sharedMemPerMultiprocessor)
    PROPERTY(ReservedSharedMemoryPerBlock, reservedSharedMemPerBlock) PROPERTY(TotalConstantMemory, totalConstMem)
    PROPERTY(WarpSize, warpSize) PROPERTY(MaxPitch, memPitch) PROPERTY(MaxRegistersPerBlock, regsPerBlock)
    PROPERTY(MaxRegistersPerMultiprocessor, regsPerMultiprocessor) PROPERTY(GlobalMemoryBusWidth, memoryBusWidth)
    PROPERTY(L2CacheSize, l2CacheSize) PROPERTY(MultiProcessorCount, multiProcessorCount)
    PROPERTY(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor)
    PROPERTY(MaxBlocksPerMultiprocessor, maxBlocksPerMultiProcessor) PROPERTY(ComputeCapabilityMajor, major)
    PROPERTY(ComputeCapabilityMinor, minor) PROPERTY(TextureAlignment, textureAlignment)
    PROPERTY(TexturePitchAlignment, texturePitchAlignment) PROPERTY(SurfaceAlignment, surfaceAlignment)
    PROPERTY(AsyncEngineCount, asyncEngineCount) PROPERTY(CanMapHostMemory, canMapHostMemory)
    PROPERTY(ConcurrentKernels, concurrentKernels) PROPERTY(UnifiedAddressing, unifiedAddressing)
    PROPERTY(ManagedMemory, managedMemory) PROPERTY(ConcurrentManagedAccess, concurrentManagedAccess)
    PROPERTY(CooperativeLaunch, cooperativeLaunch) PROPERTY(GlobalL1CacheSupported, globalL1CacheSupported)
    PROPERTY(LocalL1CacheSupported, localL1CacheSupported)
    PROPERTY(StreamPrioritiesSupported, streamPrioritiesSupported) PROPERTY(MaxTexture1DWidth, maxTexture1D)
    PROPERTY(MaxTexture2DWidth, maxTexture2D[0]) PROPERTY(MaxTexture2DHeight, maxTexture2D[1])
    PROPERTY(MaxTexture3DWidth, maxTexture3D[0]) PROPERTY(MaxTexture3DHeight, maxTexture3D[1])
    PROPERTY(MaxTexture3DDepth, maxTexture3D[2]) PROPERTY(MaxTexture2DLayeredWidth, maxTexture2DLayered[0])
    PROPERTY(MaxTexture2DLayeredHeight, maxTexture2DLayered[1])
    PROPERTY(MaxTexture2DLayeredLayers, maxTexture2DLayered[2]) PROPERTY(MaxTexture2DLinearWidth, maxTexture2DLinear[0])
    PROPERTY(MaxTexture2DLinearHeight, maxTexture2DLinear[1]) PROPERTY(MaxTexture2DLinearPitch, maxTexture2DLinear[2])
    PROPERTY(MaxTextureCubemapWidth, maxTextureCubemap) PROPERTY(MaxSurface1DWidth, maxSurface1D)
    PROPERTY(MaxSurface2DWidth, maxSurface2D[0]) PROPERTY(MaxSurface2DHeight, maxSurface2D[1])
    PROPERTY(ComputePreemptionSupported, computePreemptionSupported)
    PROPERTY(CanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem)
#if CUDART_VERSION >= 11000
    PROPERTY(MaxPersistingL2CacheSize, persistingL2CacheMaxSize) PROPERTY(MaxAccessPolicyWindowSize, accessPolicyMaxWindowSize)
#endif
#if CUDART_VERSION >= 11080
    PROPERTY(ClusterLaunch, clusterLaunch)
#endif
    case cudaDevAttrClockRate: return device.clock_khz; /* no members since CUDA 13, as the next one */
    case cudaDevAttrMemoryClockRate: return device.memory_clock_khz;
    case cudaDevAttrMaxTexture1DLinearWidth: return 1 << 28;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return 2;
#if CUDART_VERSION >= 11020
    case cudaDevAttrMemoryPoolsSupported:
#endif
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrHostRegisterSupported: return 1;
    default: return 0;
    }
}

PUBLIC cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int number) {
    LOCK();
    REQUIRE(value != NULL, cudaErrorInvalidValue);
    REQUIRE(number == 0, cudaErrorInvalidDevice);
    if (value != NULL)
        *value = result == cudaSuccess ? find_property(attribute) : 0;
    UNLOCK();
}

PUBLIC cudaError_t cudaDeviceSynchronize(void) {
    LOCK();
    if (result == cudaSuccess && has_strict_capture())
        result = refuse_capture();
    UNLOCK();
}
PUBLIC cudaError_t cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
/* What the program has made on the device is gone; its code and variables stay as they are. */
PUBLIC cudaError_t cudaDeviceReset(void) {
    static const enum handle_kind made[] = {STREAM, EVENT, ARRAY, TEXTURE, POOL};
    LOCK();
    for (size_t i = 0; result == cudaSuccess && i < sizeof made / sizeof *made; i++)
        drop_handles(made[i]);
    if (result == cudaSuccess)
        release_all();
    UNLOCK();
}
PUBLIC cudaError_t cudaThreadExit(void) { return cudaDeviceReset(); }

#define MOST_LIMITS 16
static size_t limits[MOST_LIMITS] = {
    [cudaLimitStackSize] = 1024, [cudaLimitPrintfFifoSize] = 1u << 20, [cudaLimitMallocHeapSize] = 8u << 20,
    [cudaLimitDevRuntimeSyncDepth] = 2, [cudaLimitDevRuntimePendingLaunchCount] = 2048, [cudaLimitMaxL2FetchGranularity] = 64,
};
PUBLIC cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
    REFUSE_IF((unsigned int)limit >= MOST_LIMITS, keep_error(cudaErrorUnsupportedLimit));
    limits[limit] = value; /* which programs ask for; it limits nothing here */
    return cudaSuccess;
}
PUBLIC cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
    REFUSE_IF((unsigned int)limit >= MOST_LIMITS, keep_error(cudaErrorUnsupportedLimit));
    GIVE(value, limits[limit]);
}
PUBLIC cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) { return cudaSuccess; }
PUBLIC cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config) { GIVE(config, cudaFuncCachePreferNone); }
PUBLIC cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) { return cudaSuccess; }
PUBLIC cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaDeviceCanAccessPeer(int *can, int number, int peer) { GIVE(can, 0); }
PUBLIC cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    return keep_error(cudaErrorPeerAccessUnsupported);
}
PUBLIC cudaError_t cudaDeviceDisablePeerAccess(int peer) { return keep_error(cudaErrorPeerAccessNotEnabled); }
#if CUDART_VERSION >= 11010
PUBLIC cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *most, const struct cudaChannelFormatDesc *format, int number) {
    REFUSE_IF(number != 0, keep_error(cudaErrorInvalidDevice));
    GIVE(most, 1u << 28);
}
#endif
PUBLIC cudaError_t cudaDeviceGetPCIBusId(char *into, int size, int number) {
    REFUSE_IF(into == NULL || size <= 0, keep_error(cudaErrorInvalidValue));
    REFUSE_IF(number != 0, keep_error(cudaErrorInvalidDevice));
    snprintf(into, (size_t)size, "0000:00:00.0");
    return cudaSuccess;
}
PUBLIC cudaError_t cudaDeviceGetByPCIBusId(int *number, const char *name) { GIVE(number, 0); }
PUBLIC cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from, int to) {
    GIVE(value, 0);
}
PUBLIC cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config) {
    GIVE(config, cudaSharedMemBankSizeFourByte);
}
PUBLIC cudaError_t cudaDriverGetVersion(int *version) { GIVE(version, CUDART_VERSION); }
PUBLIC cudaError_t cudaRuntimeGetVersion(int *version) { GIVE(version, CUDART_VERSION); }
PUBLIC cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
PUBLIC cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

/* Those that are always there: none, the legacy one, and the thread's own. */
static int is_built_in(cudaStream_t stream) { return (uintptr_t)stream <= 2; }
int is_stream(cudaStream_t stream) { return is_built_in(stream) || is_handle(STREAM, stream); }

PUBLIC cudaError_t cudaStreamCreateWithPriority(cudaStream_t *into, unsigned int flags, int priority) {
    LOCK();
    REQUIRE(into != NULL && flags <= cudaStreamNonBlocking, cudaErrorInvalidValue);
    struct CUstream_st *stream = result == cudaSuccess ? make_handle(STREAM, sizeof *stream) : NULL;
    REQUIRE(stream != NULL, cudaErrorMemoryAllocation);
    if (result == cudaSuccess) {
        stream->flags = flags;
        stream->priority = priority;
        *into = stream;
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaStreamCreateWithFlags(cudaStream_t *into, unsigned int flags) {
    return cudaStreamCreateWithPriority(into, flags, 0);
}
PUBLIC cudaError_t cudaStreamCreate(cudaStream_t *into) { return cudaStreamCreateWithPriority(into, 0, 0); }
PUBLIC cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    leave_capture(stream);
    return keep_error(destroy_handle(STREAM, stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
PUBLIC cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    LOCK();
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess && is_captured(stream))
        result = refuse_capture();
    UNLOCK();
}
PUBLIC cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
PUBLIC cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    REFUSE_IF(!is_stream(stream) || !is_handle(EVENT, event), keep_error(cudaErrorInvalidResourceHandle));
    if (!is_built_in(stream) && event->capture != 0 && !is_captured(stream))
        stream->capture = event->capture; /* a stream that waits for a captured one is captured with it */
    return cudaSuccess;
}
#define GIVE_OF_STREAM(stream, into, value)                                                                            \
    if (!is_stream(stream))                                                                                            \
        return keep_error(cudaErrorInvalidResourceHandle);                                                             \
    GIVE(into, value)
PUBLIC cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags) {
    GIVE_OF_STREAM(stream, flags, is_built_in(stream) ? 0 : stream->flags);
}
PUBLIC cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
    GIVE_OF_STREAM(stream, id, (uintptr_t)stream); /* unique as long as the stream is there */
}
PUBLIC cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *number) { GIVE_OF_STREAM(stream, number, 0); }
PUBLIC cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    GIVE_OF_STREAM(stream, priority, is_built_in(stream) ? 0 : stream->priority);
}
#if CUDART_VERSION >= 11080
/* Attributes are hints; none was given. */
PUBLIC cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue *into) {
    GIVE_OF_STREAM(stream, into, 0);
}
PUBLIC cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                                   cudaLaunchAttributeValue *into) {
    REFUSE_IF(!is_handle(NODE, node), keep_error(cudaErrorInvalidValue));
    GIVE(into, 0);
}
#endif
PUBLIC cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t size, unsigned int flags) {
    return cudaSuccess;
}
PUBLIC cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void *data, unsigned int flags) {
    REFUSE_IF(!is_stream(stream), keep_error(cudaErrorInvalidResourceHandle));
    REFUSE_IF(call == NULL, keep_error(cudaErrorInvalidValue));
    if (is_captured(stream))
        return keep_error(refuse_capture());
    call(stream, cudaSuccess, data);
    return cudaSuccess;
}
PUBLIC cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *data) {
    struct work work = {.kind = WORK_HOST, .call = call, .data = data};
    REFUSE_IF(!is_stream(stream), keep_error(cudaErrorInvalidResourceHandle));
    REFUSE_IF(call == NULL, keep_error(cudaErrorInvalidValue));
    return keep_error(is_captured(stream) ? capture(&work) : do_work(&work));
}

PUBLIC cudaError_t cudaEventCreateWithFlags(cudaEvent_t *into, unsigned int flags) {
    REFUSE_IF(into == NULL, keep_error(cudaErrorInvalidValue));
    *into = make_handle(EVENT, sizeof **into);
    return keep_error(*into == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}
#undef cudaEventCreate
PUBLIC cudaError_t cudaEventCreate(cudaEvent_t *into) { return cudaEventCreateWithFlags(into, 0); }
PUBLIC cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return keep_error(destroy_handle(EVENT, event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
PUBLIC cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    LOCK();
    REQUIRE(is_handle(EVENT, event) && is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess) {
        event->capture = is_captured(stream) ? stream->capture : 0;
        clock_gettime(CLOCK_MONOTONIC, &event->time);
        event->is_recorded = 1;
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
    return cudaEventRecord(event, stream);
}
PUBLIC cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    LOCK();
    REQUIRE(is_handle(EVENT, event), cudaErrorInvalidResourceHandle);
    REQUIRE(!is_under_capture(event->capture), cudaErrorCapturedEvent);
    UNLOCK();
}
PUBLIC cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
PUBLIC cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    REFUSE_IF(milliseconds == NULL, keep_error(cudaErrorInvalidValue));
    if (!is_handle(EVENT, start) || !is_handle(EVENT, end) || !start->is_recorded || !end->is_recorded)
        return keep_error(cudaErrorInvalidResourceHandle);
    static int is_said;
    if (!is_said)
        send_note(NOTE_EVENT_TIME, "");
    is_said = 1;
    *milliseconds = (float)((double)(end->time.tv_sec - start->time.tv_sec) * 1e3 +
                            (double)(end->time.tv_nsec - start->time.tv_nsec) * 1e-6);
    return cudaSuccess;
}
PUBLIC cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return cudaEventElapsedTime(milliseconds, start, end);
}

struct error_name {
    cudaError_t error;
    const char *name, *words;
};
#define ERROR(name, words) {name, #name, words}
static const struct error_name error_names[] = {
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInitializationError, "initialization error"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    ERROR(cudaErrorAssert, "device-side assert triggered"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    ERROR(cudaErrorInvalidPc, "invalid program counter"),
    ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    ERROR(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    ERROR(cudaErrorInvalidTexture, "invalid texture reference"),
    ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ERROR(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    ERROR(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    ERROR(cudaErrorFileNotFound, "file not found"),
    ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    ERROR(cudaErrorInvalidSource, "device kernel image is invalid"),
    ERROR(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ERROR(cudaErrorStreamCaptureUnmatched, "the capture was not initiated in this stream"),
    ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(cudaErrorGraphExecUpdateFailure, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"),
    ERROR(cudaErrorUnknown, "unknown error"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    {912, "cudaErrorInvalidClusterSize", "a kernel launch error has occurred due to cluster misconfiguration"}, /* since CUDA 11.8 */
};

static const struct error_name *find_error(cudaError_t error) {
    for (size_t i = 0; i < sizeof error_names / sizeof *error_names; i++)
        if (error_names[i].error == error)
            return &error_names[i];
    return NULL;
}
PUBLIC const char *cudaGetErrorName(cudaError_t error) {
    const struct error_name *found = find_error(error);
    return found == NULL ? "unrecognized error code" : found->name;
}
PUBLIC const char *cudaGetErrorString(cudaError_t error) {
    const struct error_name *found = find_error(error);
    return found == NULL ? "unrecognized error code" : found->words;
}
