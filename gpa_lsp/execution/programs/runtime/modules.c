/* Code the program was built with: its fat binaries, functions and variables, and launches of them. */
#define _GNU_SOURCE
#include "images.h"
#include "runtime.h"

#include <stdio.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_LINKED 2 /* version of the wrapper of a program that was linked from relocatable device code */
#define MOST_CONFIGURATIONS 64

struct wrapper {
    uint32_t magic, version;
    const void *binary, *prelinked;
};

struct module {
    struct module *next;
    const struct wrapper *wrapper; /* NULL where an image was loaded */
    uint32_t id; /* 0 until the code was sent */
};

struct function {
    struct function *next;
    struct module *module;
    const void *host;
    char *name;
    uint32_t id, parameter_count; /* id 0 until it was asked for */
    uint32_t *parameters;         /* offset and size of each */
    uint32_t parameter_bytes;
    int32_t attributes[6]; /* registers, static shared, local, constant bytes, most threads, PTX version */
    int32_t most_dynamic_shared;
    uint32_t has_large_clusters; /* of more blocks than are portable */
    cudaError_t error; /* why it has no id */
};

struct variable {
    struct variable *next;
    struct module *module;
    const void *host;
    void **managed;
    char *name;
    uint64_t size, address;
};

struct configuration {
    dim3 grid, block;
    size_t shared;
    void *stream;
};

static struct module *modules;
static struct function *functions;
static struct variable *variables;
static __thread struct configuration configurations[MOST_CONFIGURATIONS];
static __thread int configuration_count;

static cudaError_t send_image(struct module *module, const void *image, size_t size, uint32_t is_linked) {
    struct part parts[2] = {{&is_linked, sizeof is_linked}, {image, size}};
    struct reply reply;
    cudaError_t error = ask(REQUEST_MODULE, parts, 2, &reply);
    if (error == cudaSuccess && reply.size == sizeof module->id)
        memcpy(&module->id, reply.bytes, sizeof module->id);
    free_reply(&reply);
    return error;
}

/* Of a program that was linked from relocatable device code, the parts it was linked from, one behind the other. */
static cudaError_t send_parts(struct module *module, const struct fatbin *const *parts) {
    size_t size = 0;
    for (size_t i = 0; parts[i] != NULL; i++)
        size = add_sizes(size, measure_fatbin(parts[i]));
    char *joined = malloc(add_sizes(size, 1)), *end = joined;
    REFUSE_IF(joined == NULL, cudaErrorMemoryAllocation);
    for (size_t i = 0; parts[i] != NULL; i++) {
        memcpy(end, parts[i], measure_fatbin(parts[i]));
        end += measure_fatbin(parts[i]);
    }
    cudaError_t error = send_image(module, joined, size, 1);
    free(joined);
    return error;
}

static cudaError_t send_wrapped(struct module *module, const struct wrapper *wrapper) {
    const struct fatbin *fatbin = wrapper->binary;
    REFUSE_IF(wrapper->magic != FATBIN_WRAPPER_MAGIC || fatbin == NULL || fatbin->magic != FATBIN_MAGIC, cudaErrorInvalidKernelImage);
    if (wrapper->version == WRAPPER_LINKED && wrapper->prelinked != NULL)
        return send_parts(module, wrapper->prelinked);
    return send_image(module, fatbin, measure_fatbin(fatbin), 0);
}

static cudaError_t send_module(struct module *module) {
    return module->id != 0 ? cudaSuccess : send_wrapped(module, module->wrapper);
}

/* An image as the driver takes it: a fat binary with or without its wrapper, machine code, or the text of PTX. */
static cudaError_t load_image(const void *image, struct module **into) {
    LOCK();
    REQUIRE(image != NULL && into != NULL && is_mapped(image, 1), cudaErrorInvalidValue);
    struct module *module = result == cudaSuccess ? make_handle(MODULE, sizeof *module) : NULL;
    REQUIRE(module != NULL, cudaErrorMemoryAllocation);
    if (result == cudaSuccess) {
        uint32_t magic = 0;
        if (is_mapped(image, sizeof(struct wrapper)))
            memcpy(&magic, image, sizeof magic);
        size_t size = magic == FATBIN_WRAPPER_MAGIC ? 0 : measure_image(image);
        if (magic == FATBIN_WRAPPER_MAGIC)
            result = send_wrapped(module, image);
        else
            result = size == 0 ? cudaErrorInvalidKernelImage : send_image(module, image, size, 0);
    }
    if (result == cudaSuccess)
        *into = module;
    else
        destroy_handle(MODULE, module);
    UNLOCK();
}

PUBLIC void **__cudaRegisterFatBinary(void *wrapper) {
    struct module *module = calloc(1, sizeof *module);
    if (module == NULL)
        abort();
    module->wrapper = wrapper;
    pthread_mutex_lock(&runtime_lock);
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&runtime_lock);
    return (void **)module;
}

PUBLIC void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

PUBLIC void __cudaUnregisterFatBinary(void **handle) { (void)handle; /* the process ends, and with it what we know of it */ }

static struct function *add_function(struct module *module, const void *host, const char *name) {
    struct function *function = make_handle(FUNCTION, sizeof *function);
    if (function == NULL)
        abort();
    function->module = module;
    function->host = host;
    function->name = strdup(name);
    pthread_mutex_lock(&runtime_lock);
    function->next = functions;
    functions = function;
    pthread_mutex_unlock(&runtime_lock);
    return function;
}

PUBLIC void __cudaRegisterFunction(void **handle, const char *host, char *device_function, const char *name, int limit,
                                   uint3 *thread, uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp) {
    add_function((struct module *)handle, host, name);
}

static struct variable *add_variable(void **handle, const void *host, const char *name, size_t size) {
    struct variable *variable = calloc(1, sizeof *variable);
    if (variable == NULL)
        abort();
    variable->module = (struct module *)handle;
    variable->host = host;
    variable->name = strdup(name);
    variable->size = size;
    pthread_mutex_lock(&runtime_lock);
    variable->next = variables;
    variables = variable;
    pthread_mutex_unlock(&runtime_lock);
    return variable;
}

PUBLIC void __cudaRegisterVar(void **handle, char *host, char *device_address, const char *name, int is_extern, size_t size,
                              int is_constant, int is_global) {
    add_variable(handle, host, name, size);
}

PUBLIC void __cudaRegisterManagedVar(void **handle, void **host, char *device_address, const char *name, int is_extern,
                                     size_t size, int is_constant, int is_global) {
    add_variable(handle, host, name, size)->managed = host;
}

static cudaError_t place_variable(struct variable *variable) {
    if (variable->address != 0)
        return cudaSuccess;
    cudaError_t error = send_module(variable->module);
    if (error != cudaSuccess)
        return error;
    struct part parts[2] = {{&variable->module->id, sizeof(uint32_t)}, {variable->name, strlen(variable->name)}};
    struct reply reply;
    error = ask(REQUEST_VARIABLE, parts, 2, &reply);
    uint64_t place[2];
    if (error == cudaSuccess && reply.size == sizeof place) {
        memcpy(place, reply.bytes, sizeof place);
        variable->address = place[0];
        variable->size = place[1];
    }
    free_reply(&reply);
    return error;
}

/* Called before the first statement that touches managed memory: its variables get the addresses the device has. */
PUBLIC char __cudaInitModule(void **handle) {
    LOCK();
    for (struct variable *one = variables; one != NULL && result == cudaSuccess; one = one->next)
        if (one->managed != NULL && one->module == (struct module *)handle && place_variable(one) == cudaSuccess) {
            *one->managed = (void *)(uintptr_t)one->address;
            show_to_host(one->address, one->size);
        }
    pthread_mutex_unlock(&runtime_lock);
    return 1;
}

/* Up to CUDA 4 the name of a symbol did as well; programs of that time still write it. */
static uint64_t find_symbol_by_name(const char *name, uint64_t *size) {
    if (!is_mapped(name, 1))
        return 0;
    for (struct variable *one = variables; one != NULL; one = one->next)
        if (strcmp(one->name, name) == 0 && place_variable(one) == cudaSuccess) {
            *size = one->size;
            return one->address;
        }
    return 0;
}

uint64_t find_symbol(const void *symbol, uint64_t *size) {
    for (struct variable *one = variables; one != NULL; one = one->next)
        if ((symbol != NULL && one->host == symbol) ||
            (one->managed != NULL && ((void *)one->managed == symbol || (symbol != NULL && *one->managed == symbol)))) {
            if (place_variable(one) != cudaSuccess)
                return 0;
            *size = one->size;
            return one->address;
        }
    return find_symbol_by_name(symbol, size);
}

PUBLIC cudaError_t cudaGetSymbolAddress(void **into, const void *symbol) {
    LOCK();
    uint64_t size;
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        *into = (void *)(uintptr_t)find_symbol(symbol, &size);
        result = *into == NULL ? cudaErrorInvalidSymbol : cudaSuccess;
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaGetSymbolSize(size_t *into, const void *symbol) {
    LOCK();
    uint64_t size = 0;
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess) {
        result = find_symbol(symbol, &size) == 0 ? cudaErrorInvalidSymbol : cudaSuccess;
        *into = size;
    }
    UNLOCK();
}

static struct function *find_function(const void *host) {
    for (struct function *one = functions; one != NULL; one = one->next)
        if (host != NULL && (one->host == host || ((const void *)one == host && is_handle(FUNCTION, one))))
            return one;
    return NULL;
}

/* What the emulator knows of a function: its number, its attributes, and where its parameters lie. */
static cudaError_t describe_function(struct function *function) {
    if (function->id != 0 || function->error != cudaSuccess)
        return function->error;
    cudaError_t error = send_module(function->module);
    if (error != cudaSuccess)
        return function->error = error;
    struct part parts[2] = {{&function->module->id, sizeof(uint32_t)}, {function->name, strlen(function->name)}};
    struct reply reply;
    error = ask(REQUEST_FUNCTION, parts, 2, &reply);
    uint32_t head[2];
    size_t fixed = sizeof head + sizeof function->attributes;
    if (error == cudaSuccess && reply.size >= fixed) {
        memcpy(head, reply.bytes, sizeof head);
        memcpy(function->attributes, reply.bytes + sizeof head, sizeof function->attributes);
        size_t rest = reply.size - fixed;
        function->parameters = malloc(rest + 1);
        if (function->parameters == NULL || rest != head[1] * 2 * sizeof(uint32_t))
            error = cudaErrorMemoryAllocation;
        else {
            memcpy(function->parameters, reply.bytes + fixed, rest);
            function->id = head[0];
            function->parameter_count = head[1];
            for (uint32_t i = 0; i < head[1]; i++) {
                uint32_t end = function->parameters[2 * i] + function->parameters[2 * i + 1];
                if (end > function->parameter_bytes)
                    function->parameter_bytes = end;
            }
        }
    }
    free_reply(&reply);
    return function->error = error;
}

PUBLIC unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
    if (configuration_count == MOST_CONFIGURATIONS)
        return 1;
    configurations[configuration_count++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

PUBLIC cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    REFUSE_IF(configuration_count == 0, cudaErrorMissingConfiguration);
    struct configuration *top = &configurations[--configuration_count];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(void **)stream = top->stream;
    return cudaSuccess;
}

/* Errors of a kernel at work, behind which a GPU does nothing more for the process. */
static int is_fatal(cudaError_t error) {
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return 1;
    default: return 0;
    }
}

static cudaError_t send_launch(struct function *function, dim3 grid, dim3 block, const char *parameters, size_t shared,
                               struct manner manner) {
    uint32_t count, is_whole, generation;
    const struct allocation *list = list_changes(&count, &is_whole, &generation);
    dim3 cluster = manner.cluster;
    uint32_t head[17] = {function->id, grid.x, grid.y, grid.z, block.x, block.y, block.z, (uint32_t)shared, manner.is_cooperative,
                         cluster.x, cluster.y, cluster.z, function->has_large_clusters, generation, count, is_whole, function->parameter_bytes};
    struct part parts[3] = {
        {head, sizeof head}, {list, multiply_sizes(count, sizeof *list)}, {parameters, function->parameter_bytes}};
    struct reply reply;
    fflush(stdout); /* what the program printed before stands before what the kernel prints */
    cudaError_t error = ask(REQUEST_LAUNCH, parts, 3, &reply);
    forget_changes();
    if (reply.bytes != NULL && reply.size > 0) {
        fwrite(reply.bytes, 1, reply.size, stdout);
        fflush(stdout);
    }
    free_reply(&reply);
    if (!is_fatal(error))
        return error;
    set_fatal_error(error); /* which later calls tell: a launch does not wait for the kernel */
    return cudaSuccess;
}

/* Dynamic shared memory that a launch may ask for: what every kernel may, or what the program has asked for more than that. */
static size_t find_most_shared(const struct function *function) {
    int32_t usual = device.shared_per_block - function->attributes[1];
    usual = usual < 0 ? 0 : usual;
    return (size_t)(function->most_dynamic_shared > usual ? function->most_dynamic_shared : usual);
}

/* The parameters come one by one, or packed as the kernel has them. */
static cudaError_t make_work(struct work *work, struct function *function, dim3 grid, dim3 block, void **arguments,
                             const void *packed, size_t packed_bytes, size_t shared, struct manner manner) {
    cudaError_t error = describe_function(function);
    if (error == cudaSuccess && shared > find_most_shared(function))
        error = cudaErrorInvalidValue;
    int is_packed = packed != NULL && is_mapped(packed, packed_bytes);
    for (uint32_t i = 0; error == cudaSuccess && !is_packed && i < function->parameter_count; i++)
        if (arguments == NULL || arguments[i] == NULL)
            error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    *work = (struct work){.kind = WORK_LAUNCH, .function = function, .grid = grid, .block = block, .shared = shared,
                          .parameter_bytes = function->parameter_bytes, .manner = manner};
    work->parameters = calloc(1, function->parameter_bytes + 1u);
    REFUSE_IF(work->parameters == NULL, cudaErrorMemoryAllocation);
    if (is_packed)
        memcpy(work->parameters, packed, packed_bytes < function->parameter_bytes ? packed_bytes : function->parameter_bytes);
    else
        for (uint32_t i = 0; i < function->parameter_count; i++)
            memcpy(work->parameters + function->parameters[2 * i], arguments[i], function->parameters[2 * i + 1]);
    return cudaSuccess;
}

void **describe_launch(const struct work *work, struct cudaKernelNodeParams *into) {
    void **arguments = calloc(work->function->parameter_count + 1u, sizeof *arguments);
    *into = (struct cudaKernelNodeParams){.func = (void *)work->function->host, .gridDim = work->grid, .blockDim = work->block,
                                          .sharedMemBytes = (unsigned int)work->shared, .kernelParams = arguments};
    for (uint32_t i = 0; arguments != NULL && i < work->function->parameter_count; i++)
        arguments[i] = work->parameters + work->function->parameters[2 * i];
    return arguments;
}

cudaError_t do_launch(const struct work *work) {
    note_event(EVENT_LAUNCH, NULL, NULL, 0, 0);
    return send_launch(work->function, work->grid, work->block, work->parameters, work->shared, work->manner);
}

static cudaError_t launch_function(struct function *function, dim3 grid, dim3 block, void **arguments, const void *packed,
                                   size_t packed_bytes, size_t shared, struct manner manner, cudaStream_t stream) {
    struct work work;
    cudaError_t error =
        make_work(&work, function, grid, block, arguments, packed, packed_bytes, shared, manner);
    if (error != cudaSuccess)
        return error;
    if (is_captured(stream))
        return capture(&work);
    error = do_launch(&work);
    free(work.parameters);
    return error;
}

cudaError_t make_launch(struct work *work, const struct cudaKernelNodeParams *asked) {
    LOCK_FOR("cudaGraphAddKernelNode");
    REQUIRE(asked != NULL, cudaErrorInvalidValue);
    struct function *function = result == cudaSuccess ? find_function(asked->func) : NULL;
    REQUIRE(function != NULL, cudaErrorInvalidDeviceFunction);
    if (result == cudaSuccess)
        result = make_work(work, function, asked->gridDim, asked->blockDim, asked->kernelParams, NULL, 0, asked->sharedMemBytes,
                           (struct manner){0});
    UNLOCK();
}

static cudaError_t launch(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, struct manner manner,
                          cudaStream_t stream) {
    struct function *function = find_function(host);
    REFUSE_IF(function == NULL, cudaErrorInvalidDeviceFunction);
    return launch_function(function, grid, block, arguments, NULL, 0, shared, manner, stream);
}

PUBLIC cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream) {
    LOCK();
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess)
        result = launch(host, grid, block, arguments, shared, (struct manner){0}, stream);
    UNLOCK();
}

PUBLIC cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                                               cudaStream_t stream) {
    LOCK();
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess)
        result = launch(host, grid, block, arguments, shared, (struct manner){.is_cooperative = 1}, stream);
    UNLOCK();
}

#if CUDART_VERSION >= 11080
PUBLIC cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host, void **arguments) {
    LOCK();
    struct manner manner = {0};
    REQUIRE(config != NULL && (config->numAttrs == 0 || config->attrs != NULL), cudaErrorInvalidValue);
    for (unsigned i = 0; result == cudaSuccess && i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            manner.is_cooperative = config->attrs[i].val.cooperative != 0;
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            manner.cluster = (dim3){config->attrs[i].val.clusterDim.x, config->attrs[i].val.clusterDim.y, config->attrs[i].val.clusterDim.z};
    }
    REQUIRE(is_stream(config->stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess)
        result = launch(host, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, manner, config->stream);
    UNLOCK();
}
#endif

/* CUDA 12 launches by handle: ours is the entry of the function itself. */
PUBLIC cudaError_t __cudaGetKernel(void **kernel, const void *host) {
    REFUSE_IF(kernel == NULL, cudaErrorInvalidValue);
    *kernel = find_function(host);
    return *kernel == NULL ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}

PUBLIC cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                      cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

PUBLIC cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *into, const void *host) {
    LOCK();
    struct function *function = find_function(host);
    REQUIRE(into != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess)
        result = function == NULL ? cudaErrorInvalidDeviceFunction : describe_function(function);
    if (result == cudaSuccess) {
        memset(into, 0, sizeof *into);
        into->numRegs = function->attributes[0];
        into->sharedSizeBytes = (size_t)function->attributes[1];
        into->localSizeBytes = (size_t)function->attributes[2];
        into->constSizeBytes = (size_t)function->attributes[3];
        into->maxThreadsPerBlock = function->attributes[4];
        into->ptxVersion = into->binaryVersion = function->attributes[5];
        into->maxDynamicSharedSizeBytes = function->most_dynamic_shared != 0
                                              ? function->most_dynamic_shared
                                              : device.shared_per_block - function->attributes[1];
    }
    UNLOCK();
}

#define LARGE_CLUSTERS 14 /* cudaFuncAttributeNonPortableClusterSizeAllowed, since CUDA 11.8 */
PUBLIC cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value) {
    LOCK();
    struct function *function = find_function(host);
    if (result == cudaSuccess && function == NULL)
        result = cudaErrorInvalidDeviceFunction;
    if (result == cudaSuccess && attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value > device.shared_per_block_optin)
            result = cudaErrorInvalidValue;
        else
            function->most_dynamic_shared = value;
    }
    if (result == cudaSuccess && (int)attribute == LARGE_CLUSTERS)
        function->has_large_clusters = value != 0;
    UNLOCK();
}

PUBLIC cudaError_t cudaFuncGetName(const char **into, const void *host) {
    struct function *function = find_function(host);
    REFUSE_IF(into == NULL, keep_error(cudaErrorInvalidValue));
    *into = function == NULL ? NULL : function->name;
    return keep_error(function == NULL ? cudaErrorInvalidDeviceFunction : cudaSuccess);
}

PUBLIC cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config) { return cudaSuccess; }

PUBLIC cudaError_t cudaFuncSetSharedMemConfig(const void *host, enum cudaSharedMemConfig config) { return cudaSuccess; }

PUBLIC cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int block_threads,
                                                                          size_t shared, unsigned int flags) {
    LOCK();
    struct function *function = find_function(host);
    REQUIRE(blocks != NULL && block_threads > 0 && shared <= UINT32_MAX, cudaErrorInvalidValue);
    if (result == cudaSuccess)
        result = function == NULL ? cudaErrorInvalidDeviceFunction : describe_function(function);
    if (result == cudaSuccess) {
        uint32_t question[3] = {function->id, (uint32_t)block_threads, (uint32_t)shared};
        struct part part = {question, sizeof question};
        struct reply reply;
        result = ask(REQUEST_OCCUPANCY, &part, 1, &reply);
        if (result == cudaSuccess && reply.size == sizeof *blocks)
            memcpy(blocks, reply.bytes, sizeof *blocks);
        free_reply(&reply);
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int block_threads,
                                                                 size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, block_threads, shared, 0);
}

PUBLIC cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *into, const void *host, int blocks, int block_threads) {
    REFUSE_IF(into == NULL, keep_error(cudaErrorInvalidValue));
    *into = blocks > 0 ? (size_t)(device.shared_per_sm / blocks) : 0;
    return cudaSuccess;
}

#if CUDART_VERSION >= 11080
/* So many as multiprocessors hold blocks for; the size of a cluster is asked for and no more. */
PUBLIC cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *host, const cudaLaunchConfig_t *config) {
    size_t blocks_per_cluster = 1;
    int blocks = 0;
    REFUSE_IF(clusters == NULL || config == NULL || (config->numAttrs != 0 && config->attrs == NULL), keep_error(cudaErrorInvalidValue));
    for (unsigned int i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            blocks_per_cluster = multiply_sizes(multiply_sizes(config->attrs[i].val.clusterDim.x, config->attrs[i].val.clusterDim.y),
                                                config->attrs[i].val.clusterDim.z);
    size_t wanted = multiply_sizes(multiply_sizes(config->blockDim.x, config->blockDim.y), config->blockDim.z);
    int threads = wanted > INT32_MAX ? -1 : (int)wanted;
    cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, host, threads, config->dynamicSmemBytes);
    *clusters = (int)((size_t)(blocks * device.sm_count) / (blocks_per_cluster == 0 ? 1 : blocks_per_cluster));
    return error;
}
#endif

static cudaError_t find_function_by_name(struct module *module, const char *name, struct function **into) {
    LOCK();
    *into = NULL;
    REQUIRE(is_handle(MODULE, module), cudaErrorInvalidResourceHandle);
    REQUIRE(name != NULL, cudaErrorInvalidValue);
    for (struct function *one = functions; result == cudaSuccess && one != NULL && *into == NULL; one = one->next)
        if (one->module == module && strcmp(one->name, name) == 0)
            *into = one;
    if (result == cudaSuccess && *into == NULL)
        *into = add_function(module, NULL, name);
    if (result == cudaSuccess)
        result = describe_function(*into);
    UNLOCK();
}

static cudaError_t find_variable_by_name(struct module *module, const char *name, uint64_t *address, uint64_t *size) {
    LOCK();
    struct variable *found = NULL;
    REQUIRE(is_handle(MODULE, module), cudaErrorInvalidResourceHandle);
    REQUIRE(name != NULL, cudaErrorInvalidValue);
    for (struct variable *one = variables; result == cudaSuccess && one != NULL && found == NULL; one = one->next)
        if (one->module == module && strcmp(one->name, name) == 0)
            found = one;
    if (result == cudaSuccess) {
        if (found == NULL)
            found = add_variable((void **)module, NULL, name, 0);
        result = place_variable(found);
        *address = found->address;
        *size = found->size;
    }
    UNLOCK();
}

static cudaError_t find_parameter(struct function *function, size_t number, size_t *offset, size_t *size) {
    LOCK();
    REQUIRE(is_handle(FUNCTION, function), cudaErrorInvalidResourceHandle);
    REQUIRE(offset != NULL, cudaErrorInvalidValue);
    if (result == cudaSuccess)
        result = describe_function(function);
    if (result == cudaSuccess && number >= function->parameter_count) {
        pthread_mutex_unlock(&runtime_lock);
        return cudaErrorInvalidValue; /* how callers find out how many there are */
    }
    if (result == cudaSuccess) {
        *offset = function->parameters[2 * number];
        if (size != NULL)
            *size = function->parameters[2 * number + 1];
    }
    UNLOCK();
}

#if CUDART_VERSION >= 12040
PUBLIC cudaError_t cudaFuncGetParamInfo(const void *host, size_t number, size_t *offset, size_t *size) {
    struct function *function = find_function(host);
    return function == NULL ? keep_error(cudaErrorInvalidDeviceFunction) : find_parameter(function, number, offset, size);
}
#endif
#if CUDART_VERSION >= 11000
/* A function's handle is its entry here, which the driver library knows as well. */
PUBLIC cudaError_t cudaGetFuncBySymbol(cudaFunction_t *into, const void *host) {
    REFUSE_IF(into == NULL, keep_error(cudaErrorInvalidValue));
    *into = (cudaFunction_t)find_function(host);
    return keep_error(*into == NULL ? cudaErrorInvalidDeviceFunction : cudaSuccess);
}
#endif
#if CUDART_VERSION >= 11030
static cudaError_t find_entry(const char *name, void **into, int *status) {
    void *(*find)(const char *, void **, int, uint64_t) = (void *(*)(const char *, void **, int, uint64_t))(uintptr_t)dlsym(RTLD_DEFAULT, "cuGetProcAddress");
    REFUSE_IF(name == NULL || into == NULL, keep_error(cudaErrorInvalidValue));
    *into = NULL;
    if (find != NULL)
        find(name, into, CUDART_VERSION, 0);
    if (status != NULL)
        *status = *into == NULL ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
    return keep_error(*into == NULL && status == NULL ? cudaErrorSymbolNotFound : cudaSuccess);
}
#if CUDART_VERSION >= 12000
PUBLIC cudaError_t cudaGetDriverEntryPoint(const char *name, void **into, unsigned long long flags,
                                           enum cudaDriverEntryPointQueryResult *status) {
    return find_entry(name, into, (int *)status);
}
#endif
#if CUDART_VERSION >= 12050
PUBLIC cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **into, unsigned int version,
                                                    unsigned long long flags, enum cudaDriverEntryPointQueryResult *status) {
    return find_entry(name, into, (int *)status);
}
#endif
#endif

/* Its handle and those of its functions are no more; what is known of its launches is told at the end. */
static cudaError_t unload(struct module *module) {
    LOCK();
    REQUIRE(take_out_handle(MODULE, (uint64_t)(uintptr_t)module) != NULL, cudaErrorInvalidResourceHandle);
    for (struct function *one = functions; result == cudaSuccess && one != NULL; one = one->next)
        if (one->module == module)
            take_out_handle(FUNCTION, (uint64_t)(uintptr_t)one);
    UNLOCK();
}

static const char *name_function(struct function *function) { return is_handle(FUNCTION, function) ? function->name : NULL; }

static cudaError_t launch_locked(struct function *function, dim3 grid, dim3 block, void **arguments, const void *packed,
                                 size_t packed_bytes, size_t shared, struct manner manner, cudaStream_t stream) {
    LOCK_FOR("cuLaunchKernel");
    REQUIRE(is_handle(FUNCTION, function) && is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess)
        result = launch_function(function, grid, block, arguments, packed, packed_bytes, shared, manner, stream);
    UNLOCK();
}

/* A library is about to read or write memory there, nobody knows how much of it. */
static void *locate_for_library(const void *pointer) {
    pthread_mutex_lock(&runtime_lock);
    note_event(EVENT_LOCATE, pointer, NULL, 0, 0);
    pthread_mutex_unlock(&runtime_lock);
    return locate(pointer);
}

static cudaError_t find_range(uint64_t address, uint64_t *base, uint64_t *size, int *is_host) {
    LOCK();
    const struct allocation *found = result == cudaSuccess ? find_allocation(address) : NULL;
    if (found == NULL) {
        pthread_mutex_unlock(&runtime_lock);
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    *base = found->base;
    *size = found->size;
    *is_host = found->kind == ON_HOST || found->kind == MANAGED;
    UNLOCK();
}

PUBLIC const struct parts_of_runtime gpa_lsp_runtime = {
    load_image, find_function_by_name, find_variable_by_name, find_parameter, name_function, unload, launch_locked, find_range, send_note, is_writable, is_reachable,
    locate_for_library, fill, make_handle, is_handle, destroy_handle, compute, &has_context,
};
