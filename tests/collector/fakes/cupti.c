/* A CUPTI that behaves as NVIDIA's is known to, errors and all, and complains where it is used as it must not be. FAKE_CUDA sets what it does:
 *
 *   version        what cuptiGetVersion says; below 22 records have no correlation and are shorter
 *   enable         the result of cuptiPCSamplingEnable (35: no permission)
 *   subscribed     another profiler was there first
 *   full_at        the drain at which the hardware's buffer is full, and stays so until sampling is enabled again
 *   pcs, reasons   records a launch adds, and reasons of each
 *   shared_names   names are shared by all records; else each has its own
 *   foreign, dropped   samples of a drain that are in no record
 *   period_works   0: no samples where a period was set
 *   inner_first    launches come through the runtime, whose correlation is another
 */
#define _GNU_SOURCE
#include "fake.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_pcsampling.h>
#include <cupti_runtime_cbid.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PUBLIC __attribute__((visibility("default")))
#define REASONS 8
#define MOST_WAITING (1 << 16)
#define OUTER_STEP 500000

static const char *const REASON_NAMES[REASONS] = {
    "smsp__pcsamp_sample_count",          "smsp__pcsamp_samples_data_dropped",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard", "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    "smsp__pcsamp_warps_issue_stalled_selected",        "smsp__pcsamp_warps_issue_stalled_selected_not_issued",
    "smsp__pcsamp_warps_issue_stalled_wait",            "smsp__pcsamp_warps_issue_stalled_wait_not_issued",
};

struct waiting {
    struct fake_function *function;
    uint64_t crc;
    uint32_t correlation, offset, first, last; /* PCs of a launch, as a range of record numbers */
};
struct sampling {
    int is_enabled, is_started, has_control, is_full, has_period;
    int mode;
    uint32_t drains;
    CUpti_PCSamplingData *configured;
    struct waiting waiting[MOST_WAITING];
    uint32_t begin, end;
};

static CUpti_CallbackFunc callback;
static void *callback_data;
static uint8_t is_wanted[4][2048];
static CUpti_ComputeCrcCallbackFunc compute_crc;
static CUpti_BuffersCallbackRequestFunc request_buffer;
static CUpti_BuffersCallbackCompleteFunc complete_buffer;
static int are_kernels_wanted;
static uint8_t *activity;
static size_t activity_bytes, activity_used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t clock_ns = 1000000;

static struct sampling *of(CUcontext context) { return ((struct fake_context *)context)->of_cupti; }

static size_t find_record_bytes(void) {
    static size_t found;
    if (found == 0)
        found = fake_setting("version", 130001) >= 22 ? 64 : 56;
    return found;
}

/* -- callbacks ---------------------------------------------------------------------------------------------------- */

PUBLIC CUptiResult cuptiGetVersion(uint32_t *version) {
    *version = (uint32_t)fake_setting("version", 130001);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc found, void *data) {
    if (callback != NULL || fake_setting("subscribed", 0))
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    callback = found;
    callback_data = data;
    *subscriber = (CUpti_SubscriberHandle)1;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
    (void)subscriber;
    is_wanted[domain][cbid] = (uint8_t)enable;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiGetContextId(CUcontext context, uint32_t *number) {
    *number = ((struct fake_context *)context)->number;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *number) {
    (void)context;
    *number = 0;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRegisterComputeCrcCallback(CUpti_ComputeCrcCallbackFunc found) {
    compute_crc = found;
    return CUPTI_SUCCESS;
}

static void call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    if (callback != NULL && is_wanted[domain][cbid])
        callback(callback_data, domain, cbid, data);
}

static void on_context(struct fake_context *context, int is_created) {
    CUpti_ResourceData resource = {.context = (CUcontext)context};
    if (is_created)
        context->of_cupti = calloc(1, sizeof(struct sampling));
    call(CUPTI_CB_DOMAIN_RESOURCE, is_created ? CUPTI_CBID_RESOURCE_CONTEXT_CREATED : CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, &resource);
}

static void on_module(struct fake_context *context, struct fake_module *module, int is_loaded) {
    CUpti_ModuleResourceData data = {.moduleId = module->number, .cubinSize = module->size, .pCubin = module->cubin};
    CUpti_ResourceData resource = {.context = (CUcontext)context, .resourceDescriptor = &data};
    if (is_loaded && compute_crc != NULL)
        compute_crc(module->cubin, module->size, &module->crc);
    call(CUPTI_CB_DOMAIN_RESOURCE, is_loaded ? CUPTI_CBID_RESOURCE_MODULE_LOADED : CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, &resource);
}

/* -- activity ----------------------------------------------------------------------------------------------------- */

PUBLIC CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed) {
    request_buffer = requested;
    complete_buffer = completed;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    are_kernels_wanted = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    pthread_mutex_lock(&lock);
    uint8_t *buffer = activity;
    size_t used = activity_used, bytes = activity_bytes;
    activity = NULL;
    pthread_mutex_unlock(&lock);
    if (buffer != NULL)
        complete_buffer(NULL, 0, buffer, bytes, used);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, CUpti_Activity **record) {
    uint8_t *next = *record == NULL ? buffer : (uint8_t *)*record + sizeof(CUpti_ActivityKernel9);
    if (next + sizeof(CUpti_ActivityKernel9) > buffer + bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
    (void)context;
    (void)stream;
    *dropped = 0;
    return CUPTI_SUCCESS;
}

static void note_kernel(const struct fake_launch *launch, uint32_t correlation) {
    static size_t most;
    CUpti_ActivityKernel9 kernel;
    if (!are_kernels_wanted)
        return;
    pthread_mutex_lock(&lock);
    if (activity != NULL && activity_used + sizeof kernel > activity_bytes) {
        uint8_t *buffer = activity;
        activity = NULL;
        pthread_mutex_unlock(&lock);
        complete_buffer(NULL, 0, buffer, activity_bytes, activity_used);
        pthread_mutex_lock(&lock);
    }
    if (activity == NULL) {
        request_buffer(&activity, &activity_bytes, &most);
        activity_used = 0;
    }
    memset(&kernel, 0, sizeof kernel);
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.registersPerThread = 32;
    kernel.start = clock_ns;
    kernel.end = clock_ns + (uint64_t)fake_setting("duration", 20000);
    clock_ns = kernel.end + 5000;
    kernel.contextId = launch->context->number;
    kernel.streamId = 7;
    kernel.gridX = (int32_t)(launch->function == NULL ? 3 : launch->grid[0]);
    kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
    kernel.blockX = (int32_t)(launch->function == NULL ? 64 : launch->block[0]);
    kernel.dynamicSharedMemory = (int32_t)launch->shared_bytes;
    kernel.staticSharedMemory = 1024;
    kernel.correlationId = correlation;
    kernel.name = launch->function == NULL ? "of_a_graph" : launch->function->name;
    memcpy(activity + activity_used, &kernel, sizeof kernel);
    activity_used += sizeof kernel;
    pthread_mutex_unlock(&lock);
}

/* -- launches ----------------------------------------------------------------------------------------------------- */

static void tell(struct fake_launch *launch, int site) {
    uint64_t data = 0;
    uint32_t outer = launch->correlation + OUTER_STEP;
    CUpti_CallbackData found = {
        .callbackSite = site ? CUPTI_API_EXIT : CUPTI_API_ENTER, .functionName = "cuLaunchKernel",
        .functionParams = launch->parameters, .functionReturnValue = site ? &launch->result : NULL,
        .symbolName = launch->function == NULL ? NULL : launch->function->name, .context = (CUcontext)launch->context,
        .contextUid = launch->context->number, .correlationData = &data, .correlationId = launch->correlation,
    };
    CUpti_CallbackData around = found;
    around.correlationId = outer;
    int has_runtime = fake_setting("inner_first", 0) != 0;
    if (has_runtime && !site)
        call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &around);
    call(CUPTI_CB_DOMAIN_DRIVER_API, (CUpti_CallbackId)launch->cbid, &found);
    if (has_runtime && site)
        call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &around);
}

static void on_enter(struct fake_launch *launch) { tell(launch, 0); }

static void on_leave(struct fake_launch *launch) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    struct sampling *sampling = launch->context->of_cupti;
    cuStreamIsCapturing(NULL, &status);
    if (launch->result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) {
        uint32_t correlation = launch->correlation + (fake_setting("inner_first", 0) ? OUTER_STEP : 0);
        note_kernel(launch, correlation);
        int runs = sampling != NULL && sampling->is_enabled && (!sampling->has_control || sampling->is_started);
        if (runs && !(sampling->has_period && !fake_setting("period_works", 1)) && launch->function != NULL) {
            pthread_mutex_lock(&lock);
            if (sampling->end - sampling->begin < MOST_WAITING)
                sampling->waiting[sampling->end++ % MOST_WAITING] = (struct waiting){
                    launch->function, launch->function->module->crc,
                    sampling->mode == CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED ? correlation : 0, 0, 0,
                    (uint32_t)fake_setting("pcs", 4)};
            pthread_mutex_unlock(&lock);
        }
    }
    tell(launch, 1);
}

/* -- sampling ----------------------------------------------------------------------------------------------------- */

PUBLIC CUptiResult cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams *asked) {
    long refused = fake_setting("enable", 0);
    if (asked->size < CUpti_PCSamplingEnableParamsSize)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (refused)
        return (CUptiResult)refused;
    struct sampling *sampling = of(asked->ctx);
    if (sampling->is_enabled)
        fake_complain("enabled twice");
    *sampling = (struct sampling){.is_enabled = 1, .drains = sampling->drains, .mode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS};
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams *asked) {
    if (!of(asked->ctx)->is_enabled)
        fake_complain("reasons were asked for before sampling was enabled");
    *asked->numStallReasons = of(asked->ctx)->is_enabled ? REASONS : 0;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams *asked) {
    for (size_t number = 0; number < asked->numStallReasons && number < REASONS; number++) {
        asked->stallReasonIndex[number] = (uint32_t)(number * 3 + 1);
        snprintf(asked->stallReasons[number], CUPTI_STALL_REASON_STRING_SIZE, "%s", REASON_NAMES[number]);
    }
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *asked) {
    struct sampling *sampling = of(asked->ctx);
    for (size_t number = 0; number < asked->numAttributes; number++) {
        CUpti_PCSamplingConfigurationInfo *one = &asked->pPCSamplingConfigurationInfo[number];
        if (one->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
            return CUPTI_ERROR_OUT_OF_MEMORY; /* as 12.0 and 12.1 do */
        if (one->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE)
            sampling->mode = one->attributeData.collectionModeData.collectionMode;
        if (one->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
            sampling->configured = one->attributeData.samplingDataBufferData.samplingDataBuffer;
        if (one->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL)
            sampling->has_control = (int)one->attributeData.enableStartStopControlData.enableStartStopControl;
        if (one->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD)
            sampling->has_period = (int)one->attributeData.samplingPeriodData.samplingPeriod;
        one->attributeStatus = CUPTI_SUCCESS;
    }
    if (sampling->configured == NULL)
        fake_complain("no buffer was configured");
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPCSamplingGetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *asked) {
    struct sampling *sampling = of(asked->ctx);
    asked->pPCSamplingConfigurationInfo->attributeData.samplingPeriodData.samplingPeriod =
        (uint32_t)(sampling->has_period ? sampling->has_period : 11);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPCSamplingStart(CUpti_PCSamplingStartParams *asked) {
    struct sampling *sampling = of(asked->ctx);
    if (((struct fake_context *)asked->ctx)->is_busy)
        fake_complain("started while the GPU is busy");
    if (!sampling->has_control || sampling->is_started)
        return CUPTI_ERROR_INVALID_OPERATION;
    sampling->is_started = 1;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPCSamplingStop(CUpti_PCSamplingStopParams *asked) {
    of(asked->ctx)->is_started = 0;
    return CUPTI_SUCCESS;
}

static char *name_function(struct fake_function *function) {
    static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        struct fake_function *function;
        char *name;
    } shared[256];
    static int are_shared = -1;
    if (are_shared < 0)
        are_shared = (int)fake_setting("shared_names", 0);
    if (!are_shared)
        return strdup(function->name);
    pthread_mutex_lock(&names_lock);
    size_t at = 0;
    while (shared[at].function != NULL && shared[at].function != function)
        at++;
    if (shared[at].function == NULL) {
        shared[at].function = function;
        shared[at].name = strdup(function->name);
    }
    pthread_mutex_unlock(&names_lock);
    return shared[at].name;
}

static void fill(const struct waiting *waiting, char *into) {
    static const uint32_t COUNTS[REASONS] = {0, 0, 6, 4, 3, 0, 2, 1};
    static uint32_t reasons;
    CUpti_PCSamplingPCData record;
    if (reasons == 0)
        reasons = (uint32_t)fake_setting("reasons", REASONS);
    memcpy(&record, into, 56);
    if (record.size != find_record_bytes())
        fake_complain("a record of another size than this version's");
    record.cubinCrc = waiting->crc;
    record.pcOffset = (uint64_t)waiting->first * 16;
    record.functionIndex = waiting->function->symbol;
    record.functionName = name_function(waiting->function);
    size_t room = record.stallReasonCount, count = 0;
    for (uint32_t reason = 0; reason < REASONS && reason < reasons; reason++) {
        uint32_t samples = reason == 0 ? 11 : COUNTS[reason];
        if (samples == 0)
            continue;
        if (count == room) {
            fake_complain("no room for reasons");
            break;
        }
        record.stallReason[count++] = (CUpti_PCSamplingStallReason){reason * 3 + 1, samples};
    }
    record.stallReasonCount = count;
    memcpy(into, &record, 56);
    if (find_record_bytes() == 64)
        memcpy(into + 56, &waiting->correlation, sizeof waiting->correlation);
}

static void hand_out(struct sampling *sampling, CUpti_PCSamplingData *data) {
    size_t count = 0;
    while (sampling->begin != sampling->end && count < data->collectNumPcs) {
        struct waiting *next = &sampling->waiting[sampling->begin % MOST_WAITING];
        if (next->first < next->last) {
            fill(next, (char *)data->pPcData + count++ * find_record_bytes());
            next->first++;
        }
        if (next->first == next->last)
            sampling->begin++;
    }
    data->totalNumPcs = count;
    data->totalSamples = count * 11;
    data->remainingNumPcs = 0;
    for (uint32_t at = sampling->begin; at != sampling->end; at++)
        data->remainingNumPcs += sampling->waiting[at % MOST_WAITING].last - sampling->waiting[at % MOST_WAITING].first;
}

PUBLIC CUptiResult cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams *asked) {
    struct sampling *sampling = of(asked->ctx);
    CUpti_PCSamplingData *data = asked->pcSamplingData;
    if (!sampling->is_enabled)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (data == sampling->configured || data->pPcData == sampling->configured->pPcData)
        fake_complain("data were asked into the buffer that was configured");
    if (data->collectNumPcs > 65536)
        fake_complain("more PCs were asked for than a call can give");
    if (++sampling->drains == (uint32_t)fake_setting("full_at", 0))
        sampling->is_full = 1;
    data->totalNumPcs = data->remainingNumPcs = 0;
    if (sampling->is_full) {
        data->hardwareBufferFull = 1;
        return CUPTI_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    hand_out(sampling, data);
    pthread_mutex_unlock(&lock);
    data->droppedSamples = (uint64_t)fake_setting("dropped", 0);
    data->nonUsrKernelsTotalSamples = (uint64_t)fake_setting("foreign", 0);
    data->totalSamples += data->droppedSamples + data->nonUsrKernelsTotalSamples;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams *asked) {
    struct sampling *sampling = of(asked->ctx);
    if (!sampling->is_enabled)
        return CUPTI_ERROR_INVALID_OPERATION;
    pthread_mutex_lock(&lock);
    if (sampling->configured != NULL && !sampling->is_full)
        hand_out(sampling, sampling->configured);
    sampling->is_enabled = 0;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

__attribute__((constructor)) static void begin(void) {
    static const struct fake_hooks HOOKS = {on_context, on_module, on_enter, on_leave};
    fake_set_hooks(&HOOKS);
}
