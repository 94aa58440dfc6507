/* cuBLAS as it was before it had handles: arguments by value, forms as letters, and errors that cublasGetError gives. Names and order of arguments are those of
   the cuBLAS documentation, appendix on the legacy interface; see cublas_api.h. */
#ifndef CUBLAS_H_
#define CUBLAS_H_
#ifdef CUBLAS_V2_H_
#error "cublas.h and cublas_v2.h cannot both be included"
#endif
#include "cublas_api.h"
#ifdef __cplusplus
extern "C" {
#endif

#define cublasStatus cublasStatus_t
cublasStatus_t cublasInit(void);
cublasStatus_t cublasShutdown(void);
cublasStatus_t cublasGetError(void);
cublasStatus_t cublasGetVersion(int *version);
cublasStatus_t cublasAlloc(int n, int bytes, void **pointer);
cublasStatus_t cublasFree(void *pointer);
cublasStatus_t cublasSetKernelStream(cudaStream_t stream);

/* P: the letter in the name, Q: in that of one whose result is an index, N: of one whose result is real; T and R: the types. */
#define GPA_LSP_CUBLAS_LEGACY(P, Q, N, T, R)                                                                           \
    int cublasI##Q##amax(int n, const T *x, int incx);                                                                 \
    int cublasI##Q##amin(int n, const T *x, int incx);                                                                 \
    R cublas##N##nrm2(int n, const T *x, int incx);                                                                    \
    R cublas##N##asum(int n, const T *x, int incx);                                                                    \
    void cublas##P##copy(int n, const T *x, int incx, T *y, int incy);                                                 \
    void cublas##P##swap(int n, T *x, int incx, T *y, int incy);                                                       \
    void cublas##P##scal(int n, T alpha, T *x, int incx);                                                              \
    void cublas##P##axpy(int n, T alpha, const T *x, int incx, T *y, int incy);                                        \
    void cublas##P##gemv(char form, int m, int n, T alpha, const T *a, int lda, const T *x, int incx, T beta, T *y,    \
                         int incy);                                                                                    \
    void cublas##P##trmv(char fill, char form, char diagonal, int n, const T *a, int lda, T *x, int incx);             \
    void cublas##P##trsv(char fill, char form, char diagonal, int n, const T *a, int lda, T *x, int incx);             \
    void cublas##P##gemm(char a_form, char b_form, int m, int n, int k, T alpha, const T *a, int lda, const T *b,      \
                         int ldb, T beta, T *c, int ldc);                                                              \
    void cublas##P##symm(char side, char fill, int m, int n, T alpha, const T *a, int lda, const T *b, int ldb,        \
                         T beta, T *c, int ldc);                                                                       \
    void cublas##P##syrk(char fill, char form, int n, int k, T alpha, const T *a, int lda, T beta, T *c, int ldc);     \
    void cublas##P##trmm(char side, char fill, char form, char diagonal, int m, int n, T alpha, const T *a, int lda,   \
                         T *b, int ldb);                                                                               \
    void cublas##P##trsm(char side, char fill, char form, char diagonal, int m, int n, T alpha, const T *a, int lda,   \
                         T *b, int ldb);
GPA_LSP_CUBLAS_LEGACY(S, s, S, float, float)
GPA_LSP_CUBLAS_LEGACY(D, d, D, double, double)
GPA_LSP_CUBLAS_LEGACY(C, c, Sc, cuComplex, float)
GPA_LSP_CUBLAS_LEGACY(Z, z, Dz, cuDoubleComplex, double)
#define GPA_LSP_CUBLAS_LEGACY_PRODUCTS(P, letter, T)                                                                   \
    T cublas##P##dot##letter(int n, const T *x, int incx, const T *y, int incy);                                       \
    void cublas##P##ger##letter(int m, int n, T alpha, const T *x, int incx, const T *y, int incy, T *a, int lda);
GPA_LSP_CUBLAS_LEGACY_PRODUCTS(S, , float)
GPA_LSP_CUBLAS_LEGACY_PRODUCTS(D, , double)
GPA_LSP_CUBLAS_LEGACY_PRODUCTS(C, u, cuComplex)
GPA_LSP_CUBLAS_LEGACY_PRODUCTS(C, c, cuComplex)
GPA_LSP_CUBLAS_LEGACY_PRODUCTS(Z, u, cuDoubleComplex)
GPA_LSP_CUBLAS_LEGACY_PRODUCTS(Z, c, cuDoubleComplex)
void cublasSsymv(char fill, int n, float alpha, const float *a, int lda, const float *x, int incx, float beta, float *y, int incy);
void cublasDsymv(char fill, int n, double alpha, const double *a, int lda, const double *x, int incx, double beta, double *y,
                 int incy);
void cublasSrot(int n, float *x, int incx, float *y, int incy, float c, float s);
void cublasDrot(int n, double *x, int incx, double *y, int incy, double c, double s);
void cublasCsscal(int n, float alpha, cuComplex *x, int incx);
void cublasZdscal(int n, double alpha, cuDoubleComplex *x, int incx);

#ifdef __cplusplus
}
#endif
#endif
