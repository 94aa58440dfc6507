/* Modules, libraries, functions and launches; linking of a single piece. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct module *module_of(void *handle) { return (struct module *)handle; }
static struct function *function_of(void *handle) { return (struct function *)handle; }

static char *read_file(const char *path) {
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return NULL;
    char *content = NULL;
    size_t size = 0, room = 0;
    do {
        if (size + 1 >= room) {
            room = room == 0 ? 1 << 16 : multiply_sizes(2, room);
            char *grown = realloc(content, room);
            if (grown == NULL)
                break;
            content = grown;
        }
        size += fread(content + size, 1, room - size - 1, stream);
    } while (!feof(stream) && !ferror(stream));
    fclose(stream);
    if (content != NULL)
        content[size] = 0;
    return content;
}

static CUresult load(void *into, const void *image) {
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    struct module *module = NULL;
    cudaError_t error = gpa_lsp_runtime.load_image(image, &module);
    if (error == cudaSuccess)
        memcpy(into, &module, sizeof module);
    CALL(error);
}
static CUresult load_file(void *into, const char *path) {
    char *image = path == NULL ? NULL : read_file(path);
    CUresult error = image == NULL ? CUDA_ERROR_FILE_NOT_FOUND : load(into, image);
    free(image);
    return error;
}

PUBLIC CUresult cuModuleLoad(CUmodule *into, const char *path) { return load_file(into, path); }
PUBLIC CUresult cuModuleLoadData(CUmodule *into, const void *image) { return load(into, image); }
PUBLIC CUresult cuModuleLoadDataEx(CUmodule *into, const void *image, unsigned int count, CUjit_option *options,
                                   void **values) {
    return load(into, image);
}
PUBLIC CUresult cuModuleLoadFatBinary(CUmodule *into, const void *image) { return load(into, image); }
PUBLIC CUresult cuModuleUnload(CUmodule module) {
    CALL(gpa_lsp_runtime.unload(module_of(module)));
}

static CUresult find_function(void *into, void *module, const char *name) {
    struct function *function = NULL;
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    cudaError_t error = gpa_lsp_runtime.find_function(module_of(module), name, &function);
    if (error == cudaSuccess)
        memcpy(into, &function, sizeof function);
    CALL(error);
}
static CUresult find_global(CUdeviceptr *into, size_t *size, void *module, const char *name) {
    uint64_t found[2];
    cudaError_t error = gpa_lsp_runtime.find_variable(module_of(module), name, &found[0], &found[1]);
    if (error == cudaSuccess && into != NULL)
        *into = found[0];
    if (error == cudaSuccess && size != NULL)
        *size = found[1];
    CALL(error);
}
PUBLIC CUresult cuModuleGetFunction(CUfunction *into, CUmodule module, const char *name) {
    return find_function(into, module, name);
}
PUBLIC CUresult cuModuleGetGlobal(CUdeviceptr *into, size_t *size, CUmodule module, const char *name) {
    return find_global(into, size, module, name);
}

#if CUDA_VERSION >= 12000
PUBLIC CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    REFUSE_IF(mode == NULL, CUDA_ERROR_INVALID_VALUE);
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuLibraryLoadData(CUlibrary *into, const void *image, CUjit_option *options, void **values,
                                  unsigned int count, CUlibraryOption *library_options, void **library_values,
                                  unsigned int library_count) {
    return load(into, image);
}
PUBLIC CUresult cuLibraryLoadFromFile(CUlibrary *into, const char *path, CUjit_option *options, void **values,
                                      unsigned int count, CUlibraryOption *library_options, void **library_values,
                                      unsigned int library_count) {
    return load_file(into, path);
}
PUBLIC CUresult cuLibraryUnload(CUlibrary library) { return cuModuleUnload((CUmodule)library); }
PUBLIC CUresult cuLibraryGetKernel(CUkernel *into, CUlibrary library, const char *name) {
    return find_function(into, library, name);
}
PUBLIC CUresult cuLibraryGetModule(CUmodule *into, CUlibrary library) {
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    REFUSE_IF(!gpa_lsp_runtime.is_handle(MODULE, library), CUDA_ERROR_INVALID_HANDLE);
    *into = (CUmodule)library;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuLibraryGetGlobal(CUdeviceptr *into, size_t *size, CUlibrary library, const char *name) {
    return find_global(into, size, library, name);
}
PUBLIC CUresult cuLibraryGetManaged(CUdeviceptr *into, size_t *size, CUlibrary library, const char *name) {
    return find_global(into, size, library, name);
}
PUBLIC CUresult cuKernelGetFunction(CUfunction *into, CUkernel kernel) {
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    REFUSE_IF(!gpa_lsp_runtime.is_handle(FUNCTION, kernel), CUDA_ERROR_INVALID_HANDLE);
    *into = (CUfunction)kernel;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuKernelGetAttribute(int *into, CUfunction_attribute attribute, CUkernel kernel, CUdevice number) {
    return cuFuncGetAttribute(into, attribute, (CUfunction)kernel);
}
PUBLIC CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice number) {
    return cuFuncSetAttribute((CUfunction)kernel, attribute, value);
}
PUBLIC CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice number) { return CUDA_SUCCESS; }
#endif
#if CUDA_VERSION >= 12040
PUBLIC CUresult cuFuncGetName(const char **into, CUfunction function) {
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    *into = gpa_lsp_runtime.name_function(function_of(function));
    return *into == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}
PUBLIC CUresult cuKernelGetName(const char **into, CUkernel kernel) { return cuFuncGetName(into, (CUfunction)kernel); }
PUBLIC CUresult cuFuncGetParamInfo(CUfunction function, size_t number, size_t *offset, size_t *size) {
    CALL(gpa_lsp_runtime.find_parameter(function_of(function), number, offset, size));
}
PUBLIC CUresult cuKernelGetParamInfo(CUkernel kernel, size_t number, size_t *offset, size_t *size) {
    return cuFuncGetParamInfo((CUfunction)kernel, number, offset, size);
}
PUBLIC CUresult cuFuncLoad(CUfunction function) {
    return gpa_lsp_runtime.is_handle(FUNCTION, function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
PUBLIC CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
    REFUSE_IF(state == NULL, CUDA_ERROR_INVALID_VALUE);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return cuFuncLoad(function);
}
#endif

PUBLIC CUresult cuFuncGetAttribute(int *into, CUfunction_attribute attribute, CUfunction function) {
    struct cudaFuncAttributes found;
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    cudaError_t error = cudaFuncGetAttributes(&found, function);
    *into = 0;
    switch (error == cudaSuccess ? attribute : CU_FUNC_ATTRIBUTE_MAX) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *into = found.maxThreadsPerBlock; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *into = (int)found.sharedSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *into = (int)found.constSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *into = (int)found.localSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *into = found.numRegs; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *into = found.ptxVersion; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *into = found.binaryVersion; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *into = found.maxDynamicSharedSizeBytes; break;
    default: break;
    }
    CALL(error);
}
PUBLIC CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    CALL(cudaFuncSetAttribute(function, (enum cudaFuncAttribute)attribute, value));
}
PUBLIC CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) { return CUDA_SUCCESS; }
PUBLIC CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) { return CUDA_SUCCESS; }

static CUresult launch(CUfunction function, dim3 grid, dim3 block, size_t shared, CUstream stream, void **arguments, void **extra,
                       struct manner manner) {
    const void *packed = NULL;
    size_t packed_bytes = 0;
    for (void **one = extra; one != NULL && *one != CU_LAUNCH_PARAM_END; one += 2) {
        if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER)
            packed = one[1];
        else if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE && one[1] != NULL)
            packed_bytes = *(size_t *)one[1];
    }
    CALL(gpa_lsp_runtime.launch(function_of(function), grid, block, arguments, packed, packed_bytes, shared, manner, stream));
}
#undef cuLaunchKernel
PUBLIC CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z, unsigned int block_x,
                               unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream,
                               void **arguments, void **extra) {
    return launch(function, (dim3){x, y, z}, (dim3){block_x, block_y, block_z}, shared, stream, arguments, extra, (struct manner){0});
}
#undef cuLaunchCooperativeKernel
PUBLIC CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z,
                                          unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                          unsigned int shared, CUstream stream, void **arguments) {
    return launch(function, (dim3){x, y, z}, (dim3){block_x, block_y, block_z}, shared, stream, arguments, NULL,
                  (struct manner){.is_cooperative = 1});
}
#if CUDA_VERSION >= 11080
#undef cuLaunchKernelEx
PUBLIC CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra) {
    struct manner manner = {0};
    REFUSE_IF(config == NULL || (config->numAttrs != 0 && config->attrs == NULL), CUDA_ERROR_INVALID_VALUE);
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *one = &config->attrs[i];
        if (one->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            manner.is_cooperative = one->value.cooperative != 0;
        if (one->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            manner.cluster = (dim3){one->value.clusterDim.x, one->value.clusterDim.y, one->value.clusterDim.z};
    }
    return launch(function, (dim3){config->gridDimX, config->gridDimY, config->gridDimZ},
                  (dim3){config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes, config->hStream, arguments,
                  extra, manner);
}
#endif

PUBLIC CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *into, CUfunction function, int threads, size_t shared) {
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(into, function, threads, shared));
}
PUBLIC CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *into, CUfunction function, int threads,
                                                                     size_t shared, unsigned int flags) {
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(into, function, threads, shared));
}
PUBLIC CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of,
                                                 size_t shared, int limit) {
    int best = 0, sms = 0;
    REFUSE_IF(grid == NULL || block == NULL, CUDA_ERROR_INVALID_VALUE);
    CUresult error = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    *block = *grid = 0;
    for (int threads = limit > 0 && limit < 1024 ? limit : 1024; error == CUDA_SUCCESS && threads > 0; threads -= 32) {
        int blocks = 0;
        error = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads,
                                                            shared_of == NULL ? shared : shared_of(threads));
        if (blocks * threads > best) {
            best = blocks * threads;
            *block = threads;
            *grid = blocks * sms;
        }
    }
    return error;
}

/* Linking: one piece of PTX goes through as it is. */
struct CUlinkState_st {
    char *image;
    size_t size;
    int pieces;
};
static int is_link(CUlinkState state) { return gpa_lsp_runtime.is_handle(LINK, state); }
PUBLIC CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values, CUlinkState *into) {
    REFUSE_IF(into == NULL, CUDA_ERROR_INVALID_VALUE);
    *into = gpa_lsp_runtime.make_handle(LINK, sizeof **into);
    return *into == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
PUBLIC CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                              unsigned int count, CUjit_option *options, void **values) {
    REFUSE_IF(!is_link(state), CUDA_ERROR_INVALID_HANDLE);
    REFUSE_IF(data == NULL, CUDA_ERROR_INVALID_VALUE);
    if (type != CU_JIT_INPUT_PTX || state->pieces++ > 0)
        return refuse_call("linking of more than one piece of PTX");
    state->image = calloc(1, add_sizes(size, 1));
    REFUSE_IF(state->image == NULL, CUDA_ERROR_OUT_OF_MEMORY);
    memcpy(state->image, data, size);
    state->size = strlen(state->image) + 1;
    return CUDA_SUCCESS;
}
PUBLIC CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                              CUjit_option *options, void **values) {
    char *content = type == CU_JIT_INPUT_PTX && path != NULL ? read_file(path) : NULL;
    if (content == NULL)
        return type == CU_JIT_INPUT_PTX ? CUDA_ERROR_FILE_NOT_FOUND : refuse_call("linking of a file that is no PTX");
    CUresult error = cuLinkAddData(state, type, content, strlen(content), path, count, options, values);
    free(content);
    return error;
}
PUBLIC CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) {
    REFUSE_IF(!is_link(state), CUDA_ERROR_INVALID_HANDLE);
    REFUSE_IF(image == NULL || size == NULL, CUDA_ERROR_INVALID_VALUE);
    *image = state->image;
    *size = state->size;
    return state->image == NULL ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
PUBLIC CUresult cuLinkDestroy(CUlinkState state) {
    REFUSE_IF(!is_link(state), CUDA_ERROR_INVALID_HANDLE);
    free(state->image);
    gpa_lsp_runtime.destroy_handle(LINK, state);
    return CUDA_SUCCESS;
}
