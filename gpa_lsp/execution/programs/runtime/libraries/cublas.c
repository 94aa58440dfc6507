/* cuBLAS: handles, copies, and functions that gpa_lsp computes with numpy, in place, before they return. */
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include <cuComplex.h>
#define cuComplex float complex /* as C has them; they look alike in memory */
#define cuDoubleComplex double complex
#include "cublas_v2.h"
#include "host_library.h"

int refuse_call(const char *name) {
    gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, name);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

struct cublasContext {
    cudaStream_t stream;
    cublasPointerMode_t pointers;
    cublasAtomicsMode_t atomics;
    cublasMath_t math;
};

static int is_cublas(cublasHandle_t handle) { return gpa_lsp_runtime.is_handle(CUBLAS, handle); }

/* The arguments behind kinds are those that it has letters for; see compute in runtime.h. */
static cublasStatus_t ask_for(cublasHandle_t handle, const char *function, size_t scalar_bytes, const char *kinds, ...) {
    REFUSE_IF(!is_cublas(handle), CUBLAS_STATUS_NOT_INITIALIZED);
    switch (begin_work(function, handle->stream)) {
    case READY: break;
    case IS_CAPTURED: return CUBLAS_STATUS_NOT_SUPPORTED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    va_list given;
    va_start(given, kinds);
    int status = gpa_lsp_runtime.compute(function, scalar_bytes, handle->pointers == CUBLAS_POINTER_MODE_DEVICE, kinds, given);
    va_end(given);
    return status < 0 ? CUBLAS_STATUS_EXECUTION_FAILED : (cublasStatus_t)status;
}

/* Of alpha and beta, whose type follows from what is computed in. */
static size_t scale_bytes(cublasComputeType_t computing, cudaDataType c_type) {
    switch (computing) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC: return 2;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: return c_type == CUDA_C_64F ? 16 : 8;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC: return 4;
    default: return c_type == CUDA_C_32F ? 8 : 4;
    }
}
#include "cublas_functions.h" /* written by library_calls.py */

/* --- Handles --- */
PUBLIC cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    REFUSE_IF(handle == NULL, CUBLAS_STATUS_INVALID_VALUE);
    REFUSE_IF(cudaFree(NULL) != cudaSuccess, CUBLAS_STATUS_NOT_INITIALIZED);
    *handle = gpa_lsp_runtime.make_handle(CUBLAS, sizeof **handle);
    return *handle == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    return gpa_lsp_runtime.destroy_handle(CUBLAS, handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
PUBLIC cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    REFUSE_IF(version == NULL, CUBLAS_STATUS_INVALID_VALUE);
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
    REFUSE_IF(value == NULL || type < MAJOR_VERSION || type > PATCH_LEVEL, CUBLAS_STATUS_INVALID_VALUE);
    *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }

static const struct {
    cublasStatus_t status;
    const char *name, *words;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "it was done"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "there is no handle"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "there is not enough memory"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an argument is invalid"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the GPU cannot do this"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "memory cannot be copied"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "it failed"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an error inside"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "this is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "there is no licence"},
};
PUBLIC const char *cublasGetStatusName(cublasStatus_t status) {
    for (size_t one = 0; one < sizeof statuses / sizeof *statuses; one++)
        if (statuses[one].status == status)
            return statuses[one].name;
    return "unknown status";
}
PUBLIC const char *cublasGetStatusString(cublasStatus_t status) {
    for (size_t one = 0; one < sizeof statuses / sizeof *statuses; one++)
        if (statuses[one].status == status)
            return statuses[one].words;
    return "unknown status";
}

#define PROPERTY(Name, field, type)                                                                                    \
    PUBLIC cublasStatus_t cublasSet##Name(cublasHandle_t handle, type value) {                                         \
        if (!is_cublas(handle))                                                                                        \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        handle->field = value;                                                                                         \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublasGet##Name(cublasHandle_t handle, type *value) {                                        \
        if (!is_cublas(handle))                                                                                        \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        REFUSE_IF(value == NULL, CUBLAS_STATUS_INVALID_VALUE);                                                         \
        *value = handle->field;                                                                                        \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
PROPERTY(Stream_v2, stream, cudaStream_t)
PROPERTY(PointerMode_v2, pointers, cublasPointerMode_t)
PROPERTY(AtomicsMode, atomics, cublasAtomicsMode_t)
PROPERTY(MathMode, math, cublasMath_t)
PUBLIC cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes) {
    return !is_cublas(handle) ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

/* --- Copies between the host and the device --- */
static cublasStatus_t copy_matrix(int rows, int columns, int bytes, const void *from, int from_rows, void *to, int to_rows,
                                  enum cudaMemcpyKind kind, cudaStream_t stream, int is_waited_for) {
    if (rows <= 0 || columns <= 0)
        return CUBLAS_STATUS_SUCCESS;
    REFUSE_IF(bytes <= 0 || from_rows < rows || to_rows < rows, CUBLAS_STATUS_INVALID_VALUE);
    size_t size = (size_t)bytes;
    cudaError_t error = cudaMemcpy2DAsync(to, to_rows * size, from, from_rows * size, rows * size, columns, kind, stream);
    if (error == cudaSuccess && is_waited_for)
        error = cudaStreamSynchronize(stream);
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}
#define COPIES(Name, kind)                                                                                             \
    PUBLIC cublasStatus_t cublas##Name##Vector(int n, int bytes, const void *from, int from_step, void *to, int to_step) { \
        return copy_matrix(1, n, bytes, from, from_step, to, to_step, kind, NULL, 1);                                  \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublas##Name##VectorAsync(int n, int bytes, const void *from, int from_step, void *to, int to_step, \
                                                    cudaStream_t stream) {                                             \
        return copy_matrix(1, n, bytes, from, from_step, to, to_step, kind, stream, 0);                                \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublas##Name##Matrix(int rows, int columns, int bytes, const void *from, int from_rows, void *to, \
                                               int to_rows) {                                                          \
        return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, kind, NULL, 1);                         \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublas##Name##MatrixAsync(int rows, int columns, int bytes, const void *from, int from_rows, void *to, \
                                                    int to_rows, cudaStream_t stream) {                                \
        return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, kind, stream, 0);                       \
    }
COPIES(Set, cudaMemcpyHostToDevice)
COPIES(Get, cudaMemcpyDeviceToHost)
