/* In place of cuBLAS's header where it is not installed: what gpa_lsp computes on the CPU. Names, values and order of arguments are those of the
   cuBLAS documentation. Column-major; for what a function computes see gpa_lsp/programs/runtime/libraries/cublas.c. */
#ifndef GPA_LSP_CUBLAS_V2_H
#define GPA_LSP_CUBLAS_V2_H
#include <cuComplex.h>
#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <cuda_fp16.h>
extern "C" {
#endif

#define CUBLASWINAPI
#define CUBLAS_VER_MAJOR (CUDART_VERSION / 1000)
#define CUBLAS_VER_MINOR (CUDART_VERSION / 10 % 100)
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION (CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100)

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2,
    CUBLAS_OP_HERMITAN = 2,
    CUBLAS_OP_CONJG = 3
} cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
typedef enum {
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_ALGO1 = 1,
    CUBLAS_GEMM_ALGO2 = 2,
    CUBLAS_GEMM_ALGO3 = 3,
    CUBLAS_GEMM_ALGO4 = 4,
    CUBLAS_GEMM_ALGO5 = 5,
    CUBLAS_GEMM_ALGO6 = 6,
    CUBLAS_GEMM_ALGO7 = 7,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
    CUBLAS_GEMM_ALGO15_TENSOR_OP = 115
} cublasGemmAlgo_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum cudaDataType_t cublasDataType_t;
typedef struct cublasContext *cublasHandle_t;

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version);
cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value);
size_t cublasGetCudartVersion(void);
const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t *mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);

cublasStatus_t cublasSetVector(int n, int bytes, const void *from, int from_step, void *to, int to_step);
cublasStatus_t cublasGetVector(int n, int bytes, const void *from, int from_step, void *to, int to_step);
cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void *from, int from_rows, void *to, int to_rows);
cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void *from, int from_rows, void *to, int to_rows);
cublasStatus_t cublasSetVectorAsync(int n, int bytes, const void *from, int from_step, void *to, int to_step,
                                    cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int bytes, const void *from, int from_step, void *to, int to_step,
                                    cudaStream_t stream);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int bytes, const void *from, int from_rows, void *to,
                                    int to_rows, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int bytes, const void *from, int from_rows, void *to,
                                    int to_rows, cudaStream_t stream);

/* The same for each type: P is the letter in the name, T the type of elements, R the real one; Q is the letters where the result is real. */
#define GPA_LSP_CUBLAS_EACH(P, Q, T, R)                                                                                \
    cublasStatus_t cublasI##Q##amax_v2(cublasHandle_t, int n, const T *x, int incx, int *result);                      \
    cublasStatus_t cublasI##Q##amin_v2(cublasHandle_t, int n, const T *x, int incx, int *result);                      \
    cublasStatus_t cublas##P##copy_v2(cublasHandle_t, int n, const T *x, int incx, T *y, int incy);                    \
    cublasStatus_t cublas##P##swap_v2(cublasHandle_t, int n, T *x, int incx, T *y, int incy);                          \
    cublasStatus_t cublas##P##scal_v2(cublasHandle_t, int n, const T *alpha, T *x, int incx);                          \
    cublasStatus_t cublas##P##axpy_v2(cublasHandle_t, int n, const T *alpha, const T *x, int incx, T *y, int incy);    \
    cublasStatus_t cublas##P##gemv_v2(cublasHandle_t, cublasOperation_t, int m, int n, const T *alpha, const T *a,     \
                                      int lda, const T *x, int incx, const T *beta, T *y, int incy);                   \
    cublasStatus_t cublas##P##symv_v2(cublasHandle_t, cublasFillMode_t, int n, const T *alpha, const T *a, int lda,    \
                                      const T *x, int incx, const T *beta, T *y, int incy);                            \
    cublasStatus_t cublas##P##trmv_v2(cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int n,    \
                                      const T *a, int lda, T *x, int incx);                                            \
    cublasStatus_t cublas##P##trsv_v2(cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int n,    \
                                      const T *a, int lda, T *x, int incx);                                            \
    cublasStatus_t cublas##P##gemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,       \
                                      const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c,   \
                                      int ldc);                                                                        \
    cublasStatus_t cublas##P##gemmBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,   \
                                          const T *alpha, const T *const a[], int lda, const T *const b[], int ldb,    \
                                          const T *beta, T *const c[], int ldc, int count);                            \
    cublasStatus_t cublas##P##gemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,   \
                                                 int k, const T *alpha, const T *a, int lda, long long a_step,         \
                                                 const T *b, int ldb, long long b_step, const T *beta, T *c, int ldc,  \
                                                 long long c_step, int count);                                         \
    cublasStatus_t cublas##P##symm_v2(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int m, int n,                \
                                      const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c,   \
                                      int ldc);                                                                        \
    cublasStatus_t cublas##P##syrk_v2(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int n, int k,               \
                                      const T *alpha, const T *a, int lda, const T *beta, T *c, int ldc);              \
    cublasStatus_t cublas##P##trmm_v2(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,           \
                                      cublasDiagType_t, int m, int n, const T *alpha, const T *a, int lda,             \
                                      const T *b, int ldb, T *c, int ldc);                                             \
    cublasStatus_t cublas##P##trsm_v2(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,           \
                                      cublasDiagType_t, int m, int n, const T *alpha, const T *a, int lda, T *b,       \
                                      int ldb);                                                                        \
    cublasStatus_t cublas##P##geam(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, const T *alpha, \
                                   const T *a, int lda, const T *beta, const T *b, int ldb, T *c, int ldc);            \
    cublasStatus_t cublas##P##dgmm(cublasHandle_t, cublasSideMode_t, int m, int n, const T *a, int lda, const T *x,    \
                                   int incx, T *c, int ldc);
GPA_LSP_CUBLAS_EACH(S, s, float, float)
GPA_LSP_CUBLAS_EACH(D, d, double, double)
GPA_LSP_CUBLAS_EACH(C, c, cuComplex, float)
GPA_LSP_CUBLAS_EACH(Z, z, cuDoubleComplex, double)

#define GPA_LSP_CUBLAS_NORMS(name, T, R)                                                                               \
    cublasStatus_t cublas##name##nrm2_v2(cublasHandle_t, int n, const T *x, int incx, R *result);                      \
    cublasStatus_t cublas##name##asum_v2(cublasHandle_t, int n, const T *x, int incx, R *result);
GPA_LSP_CUBLAS_NORMS(S, float, float)
GPA_LSP_CUBLAS_NORMS(D, double, double)
GPA_LSP_CUBLAS_NORMS(Sc, cuComplex, float)
GPA_LSP_CUBLAS_NORMS(Dz, cuDoubleComplex, double)

/* The two forms of complex numbers, with and without the conjugate, have a letter more. */
#define GPA_LSP_CUBLAS_PRODUCTS(P, letter, T)                                                                          \
    cublasStatus_t cublas##P##dot##letter##_v2(cublasHandle_t, int n, const T *x, int incx, const T *y, int incy,      \
                                               T *result);                                                             \
    cublasStatus_t cublas##P##ger##letter##_v2(cublasHandle_t, int m, int n, const T *alpha, const T *x, int incx,     \
                                               const T *y, int incy, T *a, int lda);
GPA_LSP_CUBLAS_PRODUCTS(S, , float)
GPA_LSP_CUBLAS_PRODUCTS(D, , double)
GPA_LSP_CUBLAS_PRODUCTS(C, u, cuComplex)
GPA_LSP_CUBLAS_PRODUCTS(C, c, cuComplex)
GPA_LSP_CUBLAS_PRODUCTS(Z, u, cuDoubleComplex)
GPA_LSP_CUBLAS_PRODUCTS(Z, c, cuDoubleComplex)

cublasStatus_t cublasSrot_v2(cublasHandle_t, int n, float *x, int incx, float *y, int incy, const float *c, const float *s);
cublasStatus_t cublasDrot_v2(cublasHandle_t, int n, double *x, int incx, double *y, int incy, const double *c,
                             const double *s);
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
                            cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type, int lda,
                                          long long a_step, const void *b, cudaDataType b_type, int ldb,
                                          long long b_step, const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_step, int count, cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasSgemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                             const float *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                             cudaDataType b_type, int ldb, const float *beta, void *c, cudaDataType c_type, int ldc);
#ifdef __cplusplus
cublasStatus_t cublasHgemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                           const __half *alpha, const __half *a, int lda, const __half *b, int ldb, const __half *beta,
                           __half *c, int ldc);
cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                                         const __half *alpha, const __half *a, int lda, long long a_step,
                                         const __half *b, int ldb, long long b_step, const __half *beta, __half *c,
                                         int ldc, long long c_step, int count);
}

/* As it was before CUDA 11. */
static inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form,
                                          int m, int n, int k, const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, const void *b, cudaDataType b_type, int ldb, const void *beta,
                                          void *c, cudaDataType c_type, int ldc, cudaDataType computing,
                                          cublasGemmAlgo_t algorithm) {
    cublasComputeType_t type = CUBLAS_COMPUTE_32F;
    if (computing == CUDA_R_16F) type = CUBLAS_COMPUTE_16F;
    if (computing == CUDA_R_64F || computing == CUDA_C_64F) type = CUBLAS_COMPUTE_64F;
    if (computing == CUDA_R_32I) type = CUBLAS_COMPUTE_32I;
    return cublasGemmEx(handle, a_form, b_form, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,
                        type, algorithm);
}
#endif

#define cublasScopy cublasScopy_v2
#define cublasDcopy cublasDcopy_v2
#define cublasCcopy cublasCcopy_v2
#define cublasZcopy cublasZcopy_v2
#define cublasSswap cublasSswap_v2
#define cublasDswap cublasDswap_v2
#define cublasCswap cublasCswap_v2
#define cublasZswap cublasZswap_v2
#define cublasSscal cublasSscal_v2
#define cublasDscal cublasDscal_v2
#define cublasCscal cublasCscal_v2
#define cublasZscal cublasZscal_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasDaxpy cublasDaxpy_v2
#define cublasCaxpy cublasCaxpy_v2
#define cublasZaxpy cublasZaxpy_v2
#define cublasSgemv cublasSgemv_v2
#define cublasDgemv cublasDgemv_v2
#define cublasCgemv cublasCgemv_v2
#define cublasZgemv cublasZgemv_v2
#define cublasSsymv cublasSsymv_v2
#define cublasDsymv cublasDsymv_v2
#define cublasCsymv cublasCsymv_v2
#define cublasZsymv cublasZsymv_v2
#define cublasStrmv cublasStrmv_v2
#define cublasDtrmv cublasDtrmv_v2
#define cublasCtrmv cublasCtrmv_v2
#define cublasZtrmv cublasZtrmv_v2
#define cublasStrsv cublasStrsv_v2
#define cublasDtrsv cublasDtrsv_v2
#define cublasCtrsv cublasCtrsv_v2
#define cublasZtrsv cublasZtrsv_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2
#define cublasCgemm cublasCgemm_v2
#define cublasZgemm cublasZgemm_v2
#define cublasSsymm cublasSsymm_v2
#define cublasDsymm cublasDsymm_v2
#define cublasCsymm cublasCsymm_v2
#define cublasZsymm cublasZsymm_v2
#define cublasSsyrk cublasSsyrk_v2
#define cublasDsyrk cublasDsyrk_v2
#define cublasCsyrk cublasCsyrk_v2
#define cublasZsyrk cublasZsyrk_v2
#define cublasStrmm cublasStrmm_v2
#define cublasDtrmm cublasDtrmm_v2
#define cublasCtrmm cublasCtrmm_v2
#define cublasZtrmm cublasZtrmm_v2
#define cublasStrsm cublasStrsm_v2
#define cublasDtrsm cublasDtrsm_v2
#define cublasCtrsm cublasCtrsm_v2
#define cublasZtrsm cublasZtrsm_v2
#define cublasIsamax cublasIsamax_v2
#define cublasIsamin cublasIsamin_v2
#define cublasIdamax cublasIdamax_v2
#define cublasIdamin cublasIdamin_v2
#define cublasIcamax cublasIcamax_v2
#define cublasIcamin cublasIcamin_v2
#define cublasIzamax cublasIzamax_v2
#define cublasIzamin cublasIzamin_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasSasum cublasSasum_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasDasum cublasDasum_v2
#define cublasScnrm2 cublasScnrm2_v2
#define cublasScasum cublasScasum_v2
#define cublasDznrm2 cublasDznrm2_v2
#define cublasDzasum cublasDzasum_v2
#define cublasSdot cublasSdot_v2
#define cublasSger cublasSger_v2
#define cublasDdot cublasDdot_v2
#define cublasDger cublasDger_v2
#define cublasCdotu cublasCdotu_v2
#define cublasCgeru cublasCgeru_v2
#define cublasCdotc cublasCdotc_v2
#define cublasCgerc cublasCgerc_v2
#define cublasZdotu cublasZdotu_v2
#define cublasZgeru cublasZgeru_v2
#define cublasZdotc cublasZdotc_v2
#define cublasZgerc cublasZgerc_v2
#define cublasSrot cublasSrot_v2
#define cublasDrot cublasDrot_v2
#endif
