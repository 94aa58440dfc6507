/* CUPTI as it is called here: by functions looked up in the library that the process has, with the layouts that its version has. */
#ifndef GPA_LSP_COLLECTOR_CUPTI_LIBRARY_H
#define GPA_LSP_COLLECTOR_CUPTI_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_pcsampling.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>

#include "rows.h"

#define CUPTI_FUNCTIONS(EACH)                                                                                          \
    EACH(GetVersion, (uint32_t * version))                                                                             \
    EACH(Subscribe, (CUpti_SubscriberHandle * subscriber, CUpti_CallbackFunc callback, void *data))                    \
    EACH(EnableCallback,                                                                                               \
         (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain, CUpti_CallbackId cbid))     \
    EACH(GetContextId, (CUcontext context, uint32_t * number))                                                         \
    EACH(GetDeviceId, (CUcontext context, uint32_t * number))                                                          \
    EACH(ActivityEnable, (CUpti_ActivityKind kind))                                                                    \
    EACH(ActivityFlushAll, (uint32_t flag))                                                                            \
    EACH(ActivityGetNextRecord, (uint8_t * buffer, size_t bytes, CUpti_Activity * *record))                            \
    EACH(ActivityGetNumDroppedRecords, (CUcontext context, uint32_t stream, size_t * dropped))                         \
    EACH(ActivityRegisterCallbacks,                                                                                    \
         (CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed))                    \
    EACH(PCSamplingEnable, (CUpti_PCSamplingEnableParams * parameters))                                                \
    EACH(PCSamplingDisable, (CUpti_PCSamplingDisableParams * parameters))                                              \
    EACH(PCSamplingStart, (CUpti_PCSamplingStartParams * parameters))                                                  \
    EACH(PCSamplingStop, (CUpti_PCSamplingStopParams * parameters))                                                    \
    EACH(PCSamplingGetData, (CUpti_PCSamplingGetDataParams * parameters))                                              \
    EACH(PCSamplingGetNumStallReasons, (CUpti_PCSamplingGetNumStallReasonsParams * parameters))                        \
    EACH(PCSamplingGetStallReasons, (CUpti_PCSamplingGetStallReasonsParams * parameters))                              \
    EACH(PCSamplingSetConfigurationAttribute, (CUpti_PCSamplingConfigurationInfoParams * parameters))                  \
    EACH(PCSamplingGetConfigurationAttribute, (CUpti_PCSamplingConfigurationInfoParams * parameters))                  \
    EACH(RegisterComputeCrcCallback, (CUpti_ComputeCrcCallbackFunc compute))

#define DRIVER_FUNCTIONS(EACH)                                                                                         \
    EACH(CtxSynchronize, "cuCtxSynchronize", (void))                                                                   \
    EACH(CtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))                                                   \
    EACH(CtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context))                                                   \
    EACH(StreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                                  \
    EACH(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (CUstreamCaptureMode * mode))           \
    EACH(StreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, CUstreamCaptureStatus * status))                  \
    EACH(DeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                                   \
    EACH(DeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))                                    \
    EACH(DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, CUdevice_attribute attribute, CUdevice device))      \
    EACH(DriverGetVersion, "cuDriverGetVersion", (int *version))

#define DECLARE_CUPTI(name, parameters) CUptiResult(*name) parameters;
#define DECLARE_DRIVER(name, symbol, parameters) CUresult(*name) parameters;

struct cupti {
    CUPTI_FUNCTIONS(DECLARE_CUPTI)
    uint32_t version;
    size_t pc_bytes; /* of one CUpti_PCSamplingPCData in the library that is loaded */
    int has_correlation;
    char path[4096];
};
struct driver {
    DRIVER_FUNCTIONS(DECLARE_DRIVER)
};

HIDDEN extern struct cupti cupti;
HIDDEN extern struct driver driver;
/* What is missing, or NULL. */
HIDDEN const char *open_cupti(const char *path);

#define VERSION_WITH_CORRELATION 22 /* of CUDA 12.4 */
#define OLD_PC_BYTES 56
#define PC_BYTES 64
#define PC_CORRELATION 56

/* What a record of the activity interface begins with, in every version since CUDA 9. */
struct kernel_activity {
    uint32_t kind;
    uint8_t cache, shared_configuration;
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t start_ns, end_ns, completed_ns;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared_bytes, dynamic_shared_bytes;
    uint32_t local_bytes, local_total_bytes, correlation;
    int64_t grid_number;
    const char *name;
};

#endif
