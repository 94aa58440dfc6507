/* cuBLAS without handles: each function calls the one that has one; those that compute are written by library_calls.py. Source: the cuBLAS documentation, appendix on the legacy interface. */
#include <complex.h>

#include <cuComplex.h>
#define cuComplex float complex /* as C has them; they look alike in memory, and as arguments */
#define cuDoubleComplex double complex
#include "cublas.h"
#include "host_library.h"

static cublasHandle_t handle; /* of all threads, like the error */
static cublasStatus_t last_error = CUBLAS_STATUS_SUCCESS;

static void keep(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS)
        last_error = status;
}
/* Letters of either case; others are no value of the type, and refused. */
static cublasOperation_t form_of(char letter) {
    switch (letter | 0x20) {
    case 'n': return CUBLAS_OP_N;
    case 't': return CUBLAS_OP_T;
    case 'c': return CUBLAS_OP_C;
    default: return (cublasOperation_t)-1;
    }
}
static cublasFillMode_t fill_of(char letter) {
    switch (letter | 0x20) {
    case 'l': return CUBLAS_FILL_MODE_LOWER;
    case 'u': return CUBLAS_FILL_MODE_UPPER;
    default: return (cublasFillMode_t)-1;
    }
}
static cublasSideMode_t side_of(char letter) {
    switch (letter | 0x20) {
    case 'l': return CUBLAS_SIDE_LEFT;
    case 'r': return CUBLAS_SIDE_RIGHT;
    default: return (cublasSideMode_t)-1;
    }
}
static cublasDiagType_t diagonal_of(char letter) { return (letter | 0x20) == 'u' ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT; }

PUBLIC cublasStatus_t cublasInit(void) { return handle != NULL ? CUBLAS_STATUS_SUCCESS : cublasCreate_v2(&handle); }
PUBLIC cublasStatus_t cublasShutdown(void) {
    cublasStatus_t status = cublasDestroy_v2(handle);
    handle = NULL;
    return status;
}
PUBLIC cublasStatus_t cublasGetError(void) {
    cublasStatus_t error = last_error;
    last_error = CUBLAS_STATUS_SUCCESS;
    return error;
}
PUBLIC cublasStatus_t cublasGetVersion(int *version) { return cublasGetVersion_v2(handle, version); }
PUBLIC cublasStatus_t cublasAlloc(int n, int bytes, void **pointer) {
    REFUSE_IF(n <= 0 || bytes <= 0 || pointer == NULL, CUBLAS_STATUS_INVALID_VALUE);
    return cudaMalloc(pointer, multiply_sizes((size_t)n, (size_t)bytes)) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
PUBLIC cublasStatus_t cublasFree(void *pointer) {
    return cudaFree(pointer) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR;
}
PUBLIC cublasStatus_t cublasSetKernelStream(cudaStream_t stream) { return cublasSetStream_v2(handle, stream); }

#include "cublas_legacy_functions.h"
