/* A driver without a GPU: it loads what CUDA_INJECTION64_PATH names, as NVIDIA's does, and "runs" launches by telling the made-up CUPTI. */
#define _GNU_SOURCE
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent

#define PUBLIC __attribute__((visibility("default")))

static struct fake_hooks hooks;
static __thread struct fake_context *current;
static uint32_t context_number, module_number, correlation = 1000;
static __thread int is_capturing;
static __thread CUstreamCaptureMode capture_mode;
static int capturing_threads;

PUBLIC void fake_set_hooks(const struct fake_hooks *found) { hooks = *found; }

PUBLIC CUresult cuInit(unsigned int flags) {
    static int is_begun;
    const char *injection = getenv("CUDA_INJECTION64_PATH");
    (void)flags;
    if (is_begun || injection == NULL)
        return CUDA_SUCCESS;
    is_begun = 1;
    void *library = dlopen(injection, RTLD_NOW | RTLD_LOCAL);
    int (*initialize)(void) = library == NULL ? NULL : (int (*)(void))dlsym(library, "InitializeInjection");
    if (initialize == NULL || initialize() != 1)
        fake_complain(library == NULL ? dlerror() : "the injection library has no beginning");
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDriverGetVersion(int *version) {
    *version = 13000;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    (void)device;
    snprintf(name, (size_t)size, "Made-up GPU");
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = (int)fake_setting("major", 8);
    else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = (int)fake_setting("minor", 0);
    else if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = 108;
    else if (attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
        *value = 1410000;
    else if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        *value = 1 << 20;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetCount(int *count) {
    *count = (int)fake_setting("devices", 1);
    return CUDA_SUCCESS;
}

PUBLIC CUresult fake_create_context(CUcontext *context) {
    struct fake_context *made = calloc(1, sizeof *made);
    made->number = ++context_number;
    current = made;
    *context = (CUcontext)made;
    if (hooks.context != NULL)
        hooks.context(made, 1);
    return CUDA_SUCCESS;
}

PUBLIC CUresult fake_destroy_context(CUcontext context) {
    if (hooks.context != NULL)
        hooks.context((struct fake_context *)context, 0);
    current = NULL;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxPushCurrent_v2(CUcontext context) {
    current = (struct fake_context *)context;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    *context = (CUcontext)current;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSynchronize(void) {
    if (capturing_threads > 0 && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        fake_complain("waited where it spoils what another thread captures");
    if (current != NULL)
        current->is_busy = 0;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuStreamSynchronize(CUstream stream) {
    (void)stream;
    return cuCtxSynchronize();
}

PUBLIC CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    (void)stream;
    *status = is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

PUBLIC void fake_capture(int begins) {
    is_capturing = begins;
    __atomic_add_fetch(&capturing_threads, begins ? 1 : -1, __ATOMIC_RELAXED);
}

PUBLIC CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    const Elf64_Ehdr *header = image;
    struct fake_module *made = calloc(1, sizeof *made);
    size_t sections = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
    size_t segments = header->e_phoff + (size_t)header->e_phentsize * header->e_phnum;
    made->number = ++module_number;
    made->size = sections > segments ? sections : segments;
    made->cubin = malloc(made->size);
    memcpy(made->cubin, image, made->size);
    *module = (CUmodule)made;
    if (hooks.module != NULL)
        hooks.module(current, made, 1);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuModuleUnload(CUmodule module) {
    struct fake_module *found = (struct fake_module *)module;
    if (hooks.module != NULL)
        hooks.module(current, found, 0);
    memset(found->cubin, 0, found->size);
    free(found->cubin);
    found->cubin = NULL;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    struct fake_module *found = (struct fake_module *)module;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)found->cubin;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(found->cubin + header->e_shoff);
    for (int at = 0; at < header->e_shnum; at++) {
        if (sections[at].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(found->cubin + sections[at].sh_offset);
        const char *names = found->cubin + sections[sections[at].sh_link].sh_offset;
        for (uint32_t number = 0; number < sections[at].sh_size / sizeof *symbols; number++) {
            if ((symbols[number].st_info & 15) != STT_FUNC || strcmp(names + symbols[number].st_name, name) != 0)
                continue;
            struct fake_function *made = calloc(1, sizeof *made);
            made->module = found;
            made->symbol = number;
            snprintf(made->name, sizeof made->name, "%s", name);
            *function = (CUfunction)made;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

static CUresult run(struct fake_launch *launch) {
    launch->context = current;
    launch->correlation = __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED);
    launch->result = launch->function != NULL && launch->block[0] > 1024 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (hooks.enter != NULL)
        hooks.enter(launch);
    if (launch->result == CUDA_SUCCESS && !is_capturing)
        current->is_busy = 1;
    if (hooks.leave != NULL)
        hooks.leave(launch);
    return launch->result;
}

struct kernel_parameters {
    CUfunction function;
    unsigned int grid[3], block[3], shared_bytes;
    CUstream stream;
    void **arguments, **extra;
};

PUBLIC CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                               unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **arguments,
                               void **extra) {
    struct kernel_parameters parameters = {
        function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, arguments, extra};
    struct fake_launch launch = {.cbid = 307, .parameters = &parameters, .function = (struct fake_function *)function,
                                 .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z},
                                 .shared_bytes = shared_bytes};
    return run(&launch);
}

PUBLIC CUresult cuLaunchKernelEx(const CUlaunchConfig *asked, CUfunction function, void **arguments, void **extra) {
    struct {
        const CUlaunchConfig *asked;
        CUfunction function;
        void **arguments, **extra;
    } parameters = {asked, function, arguments, extra};
    struct fake_launch launch = {.cbid = 652, .parameters = &parameters, .function = (struct fake_function *)function,
                                 .grid = {asked->gridDimX, asked->gridDimY, asked->gridDimZ},
                                 .block = {asked->blockDimX, asked->blockDimY, asked->blockDimZ},
                                 .shared_bytes = asked->sharedMemBytes};
    return run(&launch);
}

PUBLIC CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
    struct {
        CUgraphExec graph;
        CUstream stream;
    } parameters = {graph, stream};
    struct fake_launch launch = {.cbid = 514, .parameters = &parameters, .function = NULL};
    return run(&launch);
}

/* What else launches described launches: a primary context, memory of the host's in place of the GPU's, events, and times out of a file. */

PUBLIC CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    static CUcontext primary;
    (void)device;
    if (primary == NULL)
        fake_create_context(&primary);
    *context = primary;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    (void)device;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSetCurrent(CUcontext context) {
    current = (struct fake_context *)context;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *all_bytes) {
    *free_bytes = *all_bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    *address = (CUdeviceptr)malloc(size);
    return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

PUBLIC CUresult cuMemFree_v2(CUdeviceptr address) {
    free((void *)address);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    memcpy((void *)to, from, size);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    memcpy(to, (const void *)from, size);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t size) {
    memset((void *)address, value, size);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

/* The state of a launch: it ends at once, fails, or never ends, as the first word of the file of times says. */
static const char *find_times(void) {
    static char text[256];
    const char *name = getenv("FAKE_CUDA_TIMES");
    FILE *file = name == NULL ? NULL : fopen(name, "r");
    memset(text, 0, sizeof text);
    if (file != NULL) {
        if (fread(text, 1, sizeof text - 1, file) == 0)
            text[0] = 0;
        fclose(file);
    }
    return text;
}

PUBLIC CUresult cuStreamQuery(CUstream stream) {
    static int is_stuck;
    const char *times = find_times();
    (void)stream;
    if (strncmp(times, "never", 5) == 0 && !is_stuck) {
        fake_complain("a launch that does not end");
        is_stuck = 1;
    }
    if (is_stuck)
        return CUDA_ERROR_NOT_READY;
    if (strncmp(times, "fails", 5) == 0)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    return cuCtxSynchronize();
}

PUBLIC CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    (void)flags;
    *event = (CUevent)malloc(1);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuEventDestroy_v2(CUevent event) {
    free((void *)event);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuEventRecord(CUevent event, CUstream stream) {
    (void)event, (void)stream;
    return CUDA_SUCCESS;
}

/* Nanoseconds out of the file, give or take a hundred. */
PUBLIC CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end) {
    static int turn;
    double time_ns = atof(find_times());
    (void)begin, (void)end;
    *milliseconds = (float)(((time_ns > 0 ? time_ns : 20000.0) + (turn++ % 5 - 2) * 50.0) / 1e6);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_THE_FAKE";
    return CUDA_SUCCESS;
}

/* NVRTC looks for it wherever there is a driver. */
PUBLIC CUresult cuGetExportTable(const void **table, const CUuuid *name) {
    (void)name;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

/* How the bindings of Python find all of it. */
PUBLIC CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
    static const char *const endings[] = {"_v2", ""};
    char full[128];
    (void)version, (void)flags;
    *function = NULL;
    for (int at = 0; at < 2 && *function == NULL; at++) {
        snprintf(full, sizeof full, "%s%s", name, endings[at]);
        *function = dlsym(RTLD_DEFAULT, full);
        if (*function == NULL) {
            void *own = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
            *function = own == NULL ? NULL : dlsym(own, full);
        }
    }
    if (status != NULL)
        *status = *function == NULL ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    return *function == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
