/* Finds the CUPTI that this process has already, and never loads a second. */
#define _GNU_SOURCE
#include "cupti_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* The layouts that are taken for granted below and in Python, held against the headers this is compiled with. */
#define SAME(type, member, place) _Static_assert(offsetof(type, member) == (place), #type "." #member)
_Static_assert(sizeof(CUpti_PCSamplingData) == 80, "CUpti_PCSamplingData");
_Static_assert(sizeof(CUpti_PCSamplingStallReason) == 8, "CUpti_PCSamplingStallReason");
_Static_assert(sizeof(CUpti_PCSamplingConfigurationInfo) == 32, "CUpti_PCSamplingConfigurationInfo");
_Static_assert(CUpti_PCSamplingConfigurationInfoParamsSize == 40, "CUpti_PCSamplingConfigurationInfoParams");
_Static_assert(CUpti_PCSamplingGetDataParamsSize == 32, "CUpti_PCSamplingGetDataParams");
_Static_assert(CUpti_PCSamplingGetStallReasonsParamsSize == 48, "CUpti_PCSamplingGetStallReasonsParams");
SAME(CUpti_PCSamplingPCData, cubinCrc, 8);
SAME(CUpti_PCSamplingPCData, pcOffset, 16);
SAME(CUpti_PCSamplingPCData, functionIndex, 24);
SAME(CUpti_PCSamplingPCData, functionName, 32);
SAME(CUpti_PCSamplingPCData, stallReasonCount, 40);
SAME(CUpti_PCSamplingPCData, stallReason, 48);
#if CUPTI_API_VERSION >= VERSION_WITH_CORRELATION
SAME(CUpti_PCSamplingPCData, correlationId, PC_CORRELATION);
_Static_assert(sizeof(CUpti_PCSamplingPCData) == PC_BYTES, "CUpti_PCSamplingPCData");
#else
_Static_assert(sizeof(CUpti_PCSamplingPCData) == OLD_PC_BYTES, "CUpti_PCSamplingPCData");
#endif
SAME(CUpti_CallbackData, correlationId, 64);
SAME(CUpti_ModuleResourceData, pCubin, 16);
#define SAME_KERNEL(member, ours)                                                                                      \
    _Static_assert(offsetof(CUpti_ActivityKernel9, member) == offsetof(struct kernel_activity, ours), #member)
SAME_KERNEL(registersPerThread, registers);
SAME_KERNEL(start, start_ns);
SAME_KERNEL(end, end_ns);
SAME_KERNEL(deviceId, device);
SAME_KERNEL(contextId, context);
SAME_KERNEL(streamId, stream);
SAME_KERNEL(gridX, grid);
SAME_KERNEL(blockX, block);
SAME_KERNEL(staticSharedMemory, static_shared_bytes);
SAME_KERNEL(dynamicSharedMemory, dynamic_shared_bytes);
SAME_KERNEL(localMemoryPerThread, local_bytes);
SAME_KERNEL(correlationId, correlation);
SAME_KERNEL(name, name);

struct cupti cupti;
struct driver driver;

static int find_loaded(struct dl_phdr_info *info, size_t size, void *data) {
    const char *name = info->dlpi_name == NULL ? "" : info->dlpi_name;
    const char *last = strrchr(name, '/');
    if (strncmp(last == NULL ? name : last + 1, "libcupti.so", 11) != 0)
        return 0;
    snprintf(data, sizeof cupti.path, "%s", name);
    return 1;
}

const char *open_cupti(const char *path) {
    static char missing[64];
    void *library = NULL;
    if (dl_iterate_phdr(find_loaded, cupti.path))
        library = dlopen(cupti.path, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL && path != NULL && *path != 0) {
        snprintf(cupti.path, sizeof cupti.path, "%s", path);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL)
        return "libcupti.so";
#define LOOK_UP_CUPTI(name, parameters)                                                                                \
    *(void **)&cupti.name = dlsym(library, "cupti" #name);                                                             \
    if (cupti.name == NULL) {                                                                                          \
        snprintf(missing, sizeof missing, "cupti%s", #name);                                                           \
        return missing;                                                                                                \
    }
    CUPTI_FUNCTIONS(LOOK_UP_CUPTI)
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
#define LOOK_UP_DRIVER(name, symbol, parameters)                                                                       \
    *(void **)&driver.name = dlsym(libcuda == NULL ? RTLD_DEFAULT : libcuda, symbol);                                  \
    if (driver.name == NULL)                                                                                           \
        return symbol;
    DRIVER_FUNCTIONS(LOOK_UP_DRIVER)
    if (cupti.GetVersion(&cupti.version) != CUPTI_SUCCESS)
        return "cuptiGetVersion";
    cupti.has_correlation = cupti.version >= VERSION_WITH_CORRELATION;
    cupti.pc_bytes = cupti.has_correlation ? PC_BYTES : OLD_PC_BYTES;
    return NULL;
}
