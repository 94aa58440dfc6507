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
#ifdef __cplusplus
}
#endif
#endif
