/* What the CUDA driver loads into a process that is measured (CUDA_INJECTION64_PATH): it listens to CUPTI and writes rows.
 *
 * Nothing here ends or delays the application beyond what sampling itself costs: what fails is written down, and the rest goes on. One lock is held
 * around every call of CUPTI that does work, since its activity and sampling interfaces may wait for each other; a callback never waits for it long.
 */
#define _GNU_SOURCE
#include "call_path.h"
#include "sampling.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_CONTEXTS 64
#define ACTIVITY_BYTES (256 << 10)
#define ACTIVITY_ALIGNMENT 8
#define PATIENCE_MS 2000
#define LAST_PATIENCE_S 5

enum launch_flag { FLAG_GRAPH = 1, FLAG_SAMPLED = 2 };

struct launch_row {
    uint32_t correlation, outer, context, path, flags, kernel;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes, thread;
    uint64_t time_ns;
};
struct kernel_row {
    uint32_t correlation, device, context, stream, kernel, registers;
    int32_t grid[3], block[3];
    int32_t static_shared_bytes, dynamic_shared_bytes;
    uint32_t local_bytes, unused;
    uint64_t start_ns, end_ns;
};
struct module_row {
    uint64_t hash, size;
    uint32_t number, unused;
};

static pthread_mutex_t cupti_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake_up = PTHREAD_COND_INITIALIZER;
static pthread_t visitor;
static int has_visitor, is_ending;
static int is_off = 1;
static struct sampled contexts[MOST_CONTEXTS];
static int context_count;
static struct table modules = {.bound = 1 << 20};
static CUpti_SubscriberHandle subscriber;
static __thread uint32_t own_thread;
static __thread uint32_t outer_correlation; /* of the runtime's call that this thread is in */

static uint64_t read_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct timespec find_deadline(uint32_t milliseconds) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    found.tv_sec += milliseconds / 1000;
    found.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (found.tv_nsec >= 1000000000) {
        found.tv_sec++;
        found.tv_nsec -= 1000000000;
    }
    return found;
}

/* In a callback: whoever holds the lock may be in CUPTI and wait for the lock that CUPTI holds around this callback. */
static int lock_in_callback(const char *where) {
    struct timespec deadline = find_deadline(PATIENCE_MS);
    int error = pthread_mutex_timedlock(&cupti_lock, &deadline);
    if (error != 0)
        write_trouble(TROUBLE_LATE, error, where);
    return error == 0;
}

static struct sampled *find_context(CUcontext context) {
    for (int at = 0; at < __atomic_load_n(&context_count, __ATOMIC_ACQUIRE); at++)
        if (contexts[at].context == context)
            return &contexts[at];
    return NULL;
}

/* That of a context that is gone, or a new one; NULL where as many are alive as are sampled. */
static struct sampled *find_free_slot(void) {
    static int is_told;
    for (int at = 0; at < MOST_CONTEXTS; at++)
        if (at == context_count || contexts[at].context == NULL)
            return &contexts[at];
    if (!is_told)
        write_trouble(TROUBLE_DRAIN, MOST_CONTEXTS, "contexts");
    is_told = 1;
    return NULL;
}

/* -- times of kernels --------------------------------------------------------------------------------------------- */

static void give_activity_buffer(uint8_t **buffer, size_t *bytes, size_t *most_records) {
    *buffer = aligned_alloc(ACTIVITY_ALIGNMENT, ACTIVITY_BYTES);
    *bytes = *buffer == NULL ? 0 : ACTIVITY_BYTES;
    *most_records = 0;
}

static void take_activity_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes) {
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    while (valid_bytes != 0 && !is_off && cupti.ActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
        struct kernel_activity one;
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL)
            continue;
        memcpy(&one, record, sizeof one);
        struct kernel_row row = {
            one.correlation, one.device, one.context, one.stream, intern_text(one.name), one.registers,
            {one.grid[0], one.grid[1], one.grid[2]}, {one.block[0], one.block[1], one.block[2]},
            one.static_shared_bytes, one.dynamic_shared_bytes, one.local_bytes, 0, one.start_ns, one.end_ns,
        };
        write_record(RECORD_KERNEL, &row, sizeof row, NULL, 0, NULL, 0);
    }
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped != 0)
        write_trouble(TROUBLE_ACTIVITY, (int32_t)dropped, "dropped");
    free(buffer);
}

/* -- modules ------------------------------------------------------------------------------------------------------ */

static void compute_hash(const void *cubin, size_t size, uint64_t *hash) { *hash = hash_bytes(cubin, size); }

static void take_module(const CUpti_ModuleResourceData *module) {
    static pthread_mutex_t module_lock = PTHREAD_MUTEX_INITIALIZER;
    int is_new;
    if (module == NULL || module->pCubin == NULL || module->cubinSize == 0)
        return;
    struct module_row row = {hash_bytes(module->pCubin, module->cubinSize), module->cubinSize, module->moduleId, 0};
    pthread_mutex_lock(&module_lock);
    if (find_slot(&modules, row.hash, &is_new) != NULL && is_new) {
        write_image(row.hash, module->pCubin, module->cubinSize);
        write_record(RECORD_MODULE, &row, sizeof row, NULL, 0, NULL, 0);
    }
    pthread_mutex_unlock(&module_lock);
}

/* -- contexts ----------------------------------------------------------------------------------------------------- */

static void begin_context(CUcontext context) {
    if (!lock_in_callback("context"))
        return;
    struct sampled *sampled = find_context(context) == NULL ? find_free_slot() : NULL;
    if (sampled != NULL) {
        CUpti_PCSamplingData rest = sampled->rest; /* its buffer is for the next */
        memset(sampled, 0, sizeof *sampled);
        sampled->rest = rest;
        sampled->context = context;
        cupti.GetContextId(context, &sampled->number);
        begin_sampling(sampled);
        if (sampled == &contexts[context_count])
            __atomic_store_n(&context_count, context_count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&cupti_lock);
}

static void end_context(CUcontext context) {
    struct sampled *sampled = find_context(context);
    if (sampled == NULL)
        return;
    if (!lock_in_callback("context")) {
        sampled->context = NULL; /* nobody may come back to it, at the end of the process least of all */
        return;
    }
    end_sampling(sampled);
    cupti.ActivityFlushAll(0);
    sampled->context = NULL; /* its address may be another's next */
    pthread_mutex_unlock(&cupti_lock);
    flush_rows();
}

static void end_module(CUcontext context) {
    struct sampled *sampled = find_context(context);
    if (sampled == NULL || sampled->mode != MODE_CONTINUOUS || !lock_in_callback("module"))
        return;
    drain(sampled, 0); /* what is loaded next may get its addresses */
    pthread_mutex_unlock(&cupti_lock);
}

/* -- launches ----------------------------------------------------------------------------------------------------- */

struct shape {
    unsigned int grid[3], block[3], shared_bytes;
    CUstream stream;
};

/* As the driver's functions declare their parameters; the header with these structures is not in every release's package. */
struct launch_parameters {
    CUfunction function;
    unsigned int grid[3], block[3], shared_bytes;
    CUstream stream;
};
struct extended_launch_parameters {
    const CUlaunchConfig *configuration;
    CUfunction function;
};
struct graph_launch_parameters {
    CUgraphExec graph;
    CUstream stream;
};

static int is_graph(CUpti_CallbackId cbid) {
    return cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

static int is_per_thread(CUpti_CallbackId cbid) {
    return cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz || cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz ||
           cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz || cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

static struct shape read_shape(CUpti_CallbackId cbid, const void *parameters) {
    struct shape shape;
    memset(&shape, 0, sizeof shape);
    if (parameters == NULL)
        return shape;
    if (is_graph(cbid)) {
        shape.stream = ((const struct graph_launch_parameters *)parameters)->stream;
    } else if (cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx || cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) {
        const CUlaunchConfig *asked = ((const struct extended_launch_parameters *)parameters)->configuration;
        if (asked != NULL)
            shape = (struct shape){{asked->gridDimX, asked->gridDimY, asked->gridDimZ},
                                   {asked->blockDimX, asked->blockDimY, asked->blockDimZ},
                                   asked->sharedMemBytes, asked->hStream};
    } else {
        const struct launch_parameters *asked = parameters;
        memcpy(shape.grid, asked->grid, sizeof shape.grid);
        memcpy(shape.block, asked->block, sizeof shape.block);
        shape.shared_bytes = asked->shared_bytes;
        shape.stream = asked->stream;
    }
    if (shape.stream == NULL && is_per_thread(cbid))
        shape.stream = CU_STREAM_PER_THREAD;
    return shape;
}

/* Waiting must not spoil a graph that another thread is capturing meanwhile. */
static int wait_for(CUstream stream, int is_whole_context) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    driver.ThreadExchangeStreamCaptureMode(&mode);
    CUresult result = is_whole_context ? driver.CtxSynchronize() : driver.StreamSynchronize(stream);
    driver.ThreadExchangeStreamCaptureMode(&mode);
    return result == CUDA_SUCCESS;
}

static int is_capturing(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver.StreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void enter_launch(CUpti_CallbackId cbid, const CUpti_CallbackData *call) {
    struct sampled *sampled = find_context(call->context);
    if (sampled == NULL || sampled->mode == MODE_TIMING)
        return;
    uint64_t now = read_clock();
    if ((!sampled->must_restart && !is_turn_due(sampled, now)) || is_capturing(read_shape(cbid, call->functionParams).stream))
        return;
    if (!lock_in_callback("launch"))
        return;
    int is_idle = wait_for(NULL, 1); /* sampling begins on an idle GPU, or later */
    if (is_idle && sampled->must_restart)
        restart_sampling(sampled);
    if (is_idle && is_turn_due(sampled, read_clock()))
        take_turn(sampled, read_clock());
    pthread_mutex_unlock(&cupti_lock);
}

static void leave_launch(CUpti_CallbackId cbid, const CUpti_CallbackData *call) {
    if (call->functionReturnValue != NULL && *(const CUresult *)call->functionReturnValue != CUDA_SUCCESS)
        return;
    struct sampled *sampled = find_context(call->context);
    struct shape shape = read_shape(cbid, call->functionParams);
    if (is_capturing(shape.stream))
        return; /* nothing runs yet */
    if (own_thread == 0)
        own_thread = (uint32_t)gettid();
    struct launch_row row = {
        .correlation = call->correlationId, .outer = outer_correlation, .context = call->contextUid, .path = find_path(),
        .kernel = is_graph(cbid) ? 0 : intern_text(call->symbolName), .shared_bytes = shape.shared_bytes,
        .thread = own_thread, .time_ns = read_clock(),
        .flags = (is_graph(cbid) ? FLAG_GRAPH : 0u) | (sampled != NULL && sampled->is_started ? FLAG_SAMPLED : 0u),
    };
    memcpy(row.grid, shape.grid, sizeof row.grid);
    memcpy(row.block, shape.block, sizeof row.block);
    write_record(RECORD_LAUNCH, &row, sizeof row, NULL, 0, NULL, 0);
    if (sampled == NULL || sampled->mode != MODE_SERIALIZED || !lock_in_callback("launch"))
        return;
    wait_for(shape.stream, 0); /* the kernel has ended: its samples are there, and belong to it */
    drain(sampled, row.correlation);
    if (sampled->must_restart)
        restart_sampling(sampled);
    pthread_mutex_unlock(&cupti_lock);
    flush_rows();
}

static const CUpti_CallbackId DRIVER_LAUNCHES[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
};
static const CUpti_CallbackId RUNTIME_LAUNCHES[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000,
};
static const CUpti_CallbackId RESOURCES[] = {
    CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_MODULE_LOADED,
    CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
};

static void listen_to_resource(CUpti_CallbackId cbid, const CUpti_ResourceData *resource) {
    if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
        begin_context(resource->context);
    else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING)
        end_context(resource->context);
    else if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED)
        take_module(resource->resourceDescriptor);
    else if (cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        end_module(resource->context);
}

static void CUPTIAPI listen(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *found) {
    if (__atomic_load_n(&is_off, __ATOMIC_RELAXED) || found == NULL)
        return;
    int error = errno; /* the application's */
    const CUpti_CallbackData *call = found;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        listen_to_resource(cbid, found);
    } else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        outer_correlation = call->callbackSite == CUPTI_API_ENTER ? call->correlationId : 0;
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        if (call->callbackSite == CUPTI_API_ENTER)
            enter_launch(cbid, call);
        else
            leave_launch(cbid, call);
    }
    errno = error;
}

/* -- the thread that visits --------------------------------------------------------------------------------------- */

static void visit_contexts(void) {
    if (pthread_mutex_trylock(&cupti_lock) != 0)
        return; /* a launch is at it */
    for (int at = 0; at < context_count; at++)
        if (contexts[at].context != NULL && contexts[at].mode == MODE_CONTINUOUS && contexts[at].is_started)
            drain(&contexts[at], 0);
    cupti.ActivityFlushAll(0);
    pthread_mutex_unlock(&cupti_lock);
    flush_rows();
}

static void *visit(void *data) {
    pthread_mutex_lock(&wait_lock);
    while (!is_ending) {
        struct timespec deadline = find_deadline(settings.interval_ms);
        if (pthread_cond_timedwait(&wake_up, &wait_lock, &deadline) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&wait_lock);
        visit_contexts();
        pthread_mutex_lock(&wait_lock);
    }
    pthread_mutex_unlock(&wait_lock);
    return NULL;
}

static void start_visitor(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the application's threads */
    has_visitor = pthread_create(&visitor, NULL, visit, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* -- beginning and end -------------------------------------------------------------------------------------------- */

static void end_collection(void) {
    if (is_off)
        return;
    pthread_mutex_lock(&wait_lock);
    is_ending = 1;
    pthread_cond_signal(&wake_up);
    pthread_mutex_unlock(&wait_lock);
    struct timespec deadline = find_deadline(LAST_PATIENCE_S * 1000);
    if (has_visitor)
        pthread_timedjoin_np(visitor, NULL, &deadline);
    if (lock_in_callback("end")) {
        for (int at = 0; at < context_count; at++) {
            CUcontext before;
            if (contexts[at].context == NULL || driver.CtxPushCurrent(contexts[at].context) != CUDA_SUCCESS)
                continue;
            driver.CtxSynchronize();
            end_sampling(&contexts[at]);
            driver.CtxPopCurrent(&before);
        }
        cupti.ActivityFlushAll(1);
        pthread_mutex_unlock(&cupti_lock);
    }
    __atomic_store_n(&is_off, 1, __ATOMIC_RELAXED);
    write_record(RECORD_END, NULL, 0, NULL, 0, NULL, 0);
    close_rows();
}

static void leave_to_parent(void) {
    is_off = 1; /* CUDA does not work in a child of a process that uses it; one that runs another program starts over */
    abandon_rows();
}

static uint64_t read_number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text == NULL || *text == 0 ? otherwise : strtoull(text, NULL, 10);
}

static void read_settings(void) {
    const char *mode = getenv("GPA_LSP_COLLECTOR_MODE");
    if (mode != NULL && strcmp(mode, "continuous") == 0)
        settings.mode = MODE_CONTINUOUS;
    else if (mode != NULL && strcmp(mode, "timing") == 0)
        settings.mode = MODE_TIMING;
    settings.duty_percent = (int)read_number("GPA_LSP_COLLECTOR_DUTY_PERCENT", 100);
    settings.period = (uint32_t)read_number("GPA_LSP_COLLECTOR_PERIOD", 0);
    settings.interval_ms = (uint32_t)read_number("GPA_LSP_COLLECTOR_INTERVAL_MS", 100);
    settings.cycle_ms = (uint32_t)read_number("GPA_LSP_COLLECTOR_CYCLE_MS", 1000);
}

static void write_process(void) {
    struct {
        uint32_t process, api_version;
        uint64_t unix_ns;
        int32_t driver_version;
        uint32_t mode;
    } row = {(uint32_t)getpid(), cupti.version, 0, 0, settings.mode};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    row.unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (driver.DriverGetVersion != NULL)
        driver.DriverGetVersion(&row.driver_version);
    write_record(RECORD_PROCESS, &row, sizeof row, cupti.path, strlen(cupti.path), NULL, 0);
}

static void subscribe(void) {
    CUptiResult result = cupti.Subscribe(&subscriber, listen, NULL);
    if (result != CUPTI_SUCCESS) {
        write_trouble(TROUBLE_SUBSCRIBER, (int32_t)result, "cuptiSubscribe");
        close_rows();
        return;
    }
    cupti.RegisterComputeCrcCallback(compute_hash);
    result = cupti.ActivityRegisterCallbacks(give_activity_buffer, take_activity_buffer);
    if (result == CUPTI_SUCCESS)
        result = cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (result != CUPTI_SUCCESS)
        write_trouble(TROUBLE_ACTIVITY, (int32_t)result, "cuptiActivityEnable");
    is_off = 0;
    for (size_t at = 0; at < sizeof RESOURCES / sizeof *RESOURCES; at++)
        cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, RESOURCES[at]);
    for (size_t at = 0; at < sizeof DRIVER_LAUNCHES / sizeof *DRIVER_LAUNCHES; at++)
        cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_LAUNCHES[at]);
    for (size_t at = 0; at < sizeof RUNTIME_LAUNCHES / sizeof *RUNTIME_LAUNCHES; at++)
        cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, RUNTIME_LAUNCHES[at]);
    pthread_atfork(NULL, NULL, leave_to_parent);
    atexit(end_collection);
    start_visitor();
}

PUBLIC int InitializeInjection(void) {
    static int is_begun;
    const char *folder = getenv("GPA_LSP_COLLECTOR_FOLDER");
    if (is_begun || folder == NULL || *folder == 0)
        return 1;
    is_begun = 1;
    read_settings();
    if (open_rows(folder, read_number("GPA_LSP_COLLECTOR_LIMIT_BYTES", (uint64_t)4 << 30)) != 0)
        return 1;
    const char *missing = open_cupti(getenv("GPA_LSP_COLLECTOR_CUPTI"));
    write_process();
    if (missing != NULL) {
        write_trouble(TROUBLE_NO_CUPTI, 0, missing);
        close_rows();
        return 1;
    }
    subscribe();
    flush_rows();
    return 1;
}
