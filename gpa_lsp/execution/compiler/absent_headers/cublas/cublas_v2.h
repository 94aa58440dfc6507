/* The functions that take a handle, under the names that they have without the suffix that the library has; see cublas_api.h. */
#ifndef CUBLAS_V2_H_
#define CUBLAS_V2_H_
#ifdef CUBLAS_H_
#error "cublas.h and cublas_v2.h cannot both be included"
#endif
#include "cublas_api.h"

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#endif
