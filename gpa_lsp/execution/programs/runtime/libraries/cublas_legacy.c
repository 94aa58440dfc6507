/* cuBLAS without handles: each function calls the one that has one. Source: the cuBLAS documentation, appendix on the legacy interface. */
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
    if (n <= 0 || bytes <= 0 || pointer == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    return cudaMalloc(pointer, multiply_sizes((size_t)n, (size_t)bytes)) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
PUBLIC cublasStatus_t cublasFree(void *pointer) {
    return cudaFree(pointer) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR;
}
PUBLIC cublasStatus_t cublasSetKernelStream(cudaStream_t stream) { return cublasSetStream_v2(handle, stream); }

#define EACH(P, Q, N, T, R)                                                                                            \
    PUBLIC int cublasI##Q##amax(int n, const T *x, int incx) {                                                         \
        int found = 0;                                                                                                 \
        keep(cublasI##Q##amax_v2(handle, n, x, incx, &found));                                                         \
        return found;                                                                                                  \
    }                                                                                                                  \
    PUBLIC int cublasI##Q##amin(int n, const T *x, int incx) {                                                         \
        int found = 0;                                                                                                 \
        keep(cublasI##Q##amin_v2(handle, n, x, incx, &found));                                                         \
        return found;                                                                                                  \
    }                                                                                                                  \
    PUBLIC R cublas##N##nrm2(int n, const T *x, int incx) {                                                            \
        R found = 0;                                                                                                   \
        keep(cublas##N##nrm2_v2(handle, n, x, incx, &found));                                                          \
        return found;                                                                                                  \
    }                                                                                                                  \
    PUBLIC R cublas##N##asum(int n, const T *x, int incx) {                                                            \
        R found = 0;                                                                                                   \
        keep(cublas##N##asum_v2(handle, n, x, incx, &found));                                                          \
        return found;                                                                                                  \
    }                                                                                                                  \
    PUBLIC void cublas##P##copy(int n, const T *x, int incx, T *y, int incy) {                                         \
        keep(cublas##P##copy_v2(handle, n, x, incx, y, incy));                                                         \
    }                                                                                                                  \
    PUBLIC void cublas##P##swap(int n, T *x, int incx, T *y, int incy) {                                               \
        keep(cublas##P##swap_v2(handle, n, x, incx, y, incy));                                                         \
    }                                                                                                                  \
    PUBLIC void cublas##P##scal(int n, T alpha, T *x, int incx) { keep(cublas##P##scal_v2(handle, n, &alpha, x, incx)); } \
    PUBLIC void cublas##P##axpy(int n, T alpha, const T *x, int incx, T *y, int incy) {                                \
        keep(cublas##P##axpy_v2(handle, n, &alpha, x, incx, y, incy));                                                 \
    }                                                                                                                  \
    PUBLIC void cublas##P##gemv(char form, int m, int n, T alpha, const T *a, int lda, const T *x, int incx, T beta, T *y, int incy) { \
        keep(cublas##P##gemv_v2(handle, form_of(form), m, n, &alpha, a, lda, x, incx, &beta, y, incy));                \
    }                                                                                                                  \
    PUBLIC void cublas##P##trmv(char fill, char form, char diagonal, int n, const T *a, int lda, T *x, int incx) {     \
        keep(cublas##P##trmv_v2(handle, fill_of(fill), form_of(form), diagonal_of(diagonal), n, a, lda, x, incx));     \
    }                                                                                                                  \
    PUBLIC void cublas##P##trsv(char fill, char form, char diagonal, int n, const T *a, int lda, T *x, int incx) {     \
        keep(cublas##P##trsv_v2(handle, fill_of(fill), form_of(form), diagonal_of(diagonal), n, a, lda, x, incx));     \
    }                                                                                                                  \
    PUBLIC void cublas##P##gemm(char a_form, char b_form, int m, int n, int k, T alpha, const T *a, int lda, const T *b, int ldb, \
                                T beta, T *c, int ldc) {                                                               \
        keep(cublas##P##gemm_v2(handle, form_of(a_form), form_of(b_form), m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc)); \
    }                                                                                                                  \
    PUBLIC void cublas##P##symm(char side, char fill, int m, int n, T alpha, const T *a, int lda, const T *b, int ldb, T beta, T *c, \
                                int ldc) {                                                                             \
        keep(cublas##P##symm_v2(handle, side_of(side), fill_of(fill), m, n, &alpha, a, lda, b, ldb, &beta, c, ldc));   \
    }                                                                                                                  \
    PUBLIC void cublas##P##syrk(char fill, char form, int n, int k, T alpha, const T *a, int lda, T beta, T *c, int ldc) { \
        keep(cublas##P##syrk_v2(handle, fill_of(fill), form_of(form), n, k, &alpha, a, lda, &beta, c, ldc));           \
    }                                                                                                                  \
    PUBLIC void cublas##P##trmm(char side, char fill, char form, char diagonal, int m, int n, T alpha, const T *a, int lda, T *b, \
                                int ldb) {                                                                             \
        keep(cublas##P##trmm_v2(handle, side_of(side), fill_of(fill), form_of(form), diagonal_of(diagonal), m, n, &alpha, a, lda, b, \
                                ldb, b, ldb));                                                                         \
    }                                                                                                                  \
    PUBLIC void cublas##P##trsm(char side, char fill, char form, char diagonal, int m, int n, T alpha, const T *a, int lda, T *b, \
                                int ldb) {                                                                             \
        keep(cublas##P##trsm_v2(handle, side_of(side), fill_of(fill), form_of(form), diagonal_of(diagonal), m, n, &alpha, a, lda, b, \
                                ldb));                                                                                 \
    }
EACH(S, s, S, float, float)
EACH(D, d, D, double, double)
EACH(C, c, Sc, float complex, float)
EACH(Z, z, Dz, double complex, double)

#define PRODUCTS(P, letter, T)                                                                                         \
    PUBLIC T cublas##P##dot##letter(int n, const T *x, int incx, const T *y, int incy) {                               \
        T found = 0;                                                                                                   \
        keep(cublas##P##dot##letter##_v2(handle, n, x, incx, y, incy, &found));                                        \
        return found;                                                                                                  \
    }                                                                                                                  \
    PUBLIC void cublas##P##ger##letter(int m, int n, T alpha, const T *x, int incx, const T *y, int incy, T *a, int lda) { \
        keep(cublas##P##ger##letter##_v2(handle, m, n, &alpha, x, incx, y, incy, a, lda));                             \
    }
PRODUCTS(S, , float)
PRODUCTS(D, , double)
PRODUCTS(C, u, float complex)
PRODUCTS(C, c, float complex)
PRODUCTS(Z, u, double complex)
PRODUCTS(Z, c, double complex)

#define REALS(P, C, T)                                                                                                 \
    PUBLIC void cublas##P##symv(char fill, int n, T alpha, const T *a, int lda, const T *x, int incx, T beta, T *y, int incy) { \
        keep(cublas##P##symv_v2(handle, fill_of(fill), n, &alpha, a, lda, x, incx, &beta, y, incy));                   \
    }                                                                                                                  \
    PUBLIC void cublas##P##rot(int n, T *x, int incx, T *y, int incy, T c, T s) {                                      \
        keep(cublas##P##rot_v2(handle, n, x, incx, y, incy, &c, &s));                                                  \
    }                                                                                                                  \
    PUBLIC void cublas##C##scal(int n, T alpha, T complex *x, int incx) { keep(cublas##C##scal_v2(handle, n, &alpha, x, incx)); }
REALS(S, Cs, float)
REALS(D, Zd, double)
