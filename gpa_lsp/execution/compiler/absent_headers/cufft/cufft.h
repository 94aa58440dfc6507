/* In place of cuFFT's header where it is not installed: what gpa_lsp computes on the CPU. Names, values and order of arguments are those of the cuFFT
   documentation. */
#ifndef GPA_LSP_CUFFT_H
#define GPA_LSP_CUFFT_H
#define _CUFFT_H_ /* helpers of samples ask for it, and so for CURAND_H_ and CUBLAS_API_H_ */
#include <cuComplex.h>
#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

#define CUFFTAPI
#define CUFFT_VER_MAJOR (CUDART_VERSION / 1000 - 1)
#define CUFFT_VER_MINOR 0
#define CUFFT_VER_PATCH 0
#define CUFFT_VERSION (CUFFT_VER_MAJOR * 1000 + CUFFT_VER_MINOR * 100 + CUFFT_VER_PATCH)
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1

typedef enum cufftResult_t {
    CUFFT_SUCCESS = 0,
    CUFFT_INVALID_PLAN = 1,
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INVALID_TYPE = 3,
    CUFFT_INVALID_VALUE = 4,
    CUFFT_INTERNAL_ERROR = 5,
    CUFFT_EXEC_FAILED = 6,
    CUFFT_SETUP_FAILED = 7,
    CUFFT_INVALID_SIZE = 8,
    CUFFT_UNALIGNED_DATA = 9,
    CUFFT_INCOMPLETE_PARAMETER_LIST = 10,
    CUFFT_INVALID_DEVICE = 11,
    CUFFT_PARSE_ERROR = 12,
    CUFFT_NO_WORKSPACE = 13,
    CUFFT_NOT_IMPLEMENTED = 14,
    CUFFT_LICENSE_ERROR = 15,
    CUFFT_NOT_SUPPORTED = 16,
    CUFFT_MISSING_DEPENDENCY = 17,
    CUFFT_NVRTC_FAILURE = 18,
    CUFFT_NVJITLINK_FAILURE = 19,
    CUFFT_NVSHMEM_FAILURE = 20
} cufftResult;
typedef enum cufftType_t {
    CUFFT_C2C = 0x29,
    CUFFT_R2C = 0x2a,
    CUFFT_C2R = 0x2c,
    CUFFT_Z2Z = 0x69,
    CUFFT_D2Z = 0x6a,
    CUFFT_Z2D = 0x6c
} cufftType;
typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

cufftResult cufftPlan1d(cufftHandle *plan, int x, cufftType type, int batch);
cufftResult cufftPlan2d(cufftHandle *plan, int y, int x, cufftType type);
cufftResult cufftPlan3d(cufftHandle *plan, int z, int y, int x, cufftType type);
cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *from_size, int from_step, int from_distance, int *to_size,
                          int to_step, int to_distance, cufftType type, int batch);
cufftResult cufftCreate(cufftHandle *plan);
cufftResult cufftMakePlan1d(cufftHandle plan, int x, cufftType type, int batch, size_t *work_bytes);
cufftResult cufftMakePlan2d(cufftHandle plan, int y, int x, cufftType type, size_t *work_bytes);
cufftResult cufftMakePlan3d(cufftHandle plan, int z, int y, int x, cufftType type, size_t *work_bytes);
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *from_size, int from_step, int from_distance,
                              int *to_size, int to_step, int to_distance, cufftType type, int batch, size_t *work_bytes);
cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *from_size, long long from_step,
                                long long from_distance, long long *to_size, long long to_step, long long to_distance,
                                cufftType type, long long batch, size_t *work_bytes);
cufftResult cufftEstimate1d(int x, cufftType type, int batch, size_t *work_bytes);
cufftResult cufftEstimate2d(int y, int x, cufftType type, size_t *work_bytes);
cufftResult cufftEstimate3d(int z, int y, int x, cufftType type, size_t *work_bytes);
cufftResult cufftGetSize1d(cufftHandle plan, int x, cufftType type, int batch, size_t *work_bytes);
cufftResult cufftGetSize2d(cufftHandle plan, int y, int x, cufftType type, size_t *work_bytes);
cufftResult cufftGetSize3d(cufftHandle plan, int z, int y, int x, cufftType type, size_t *work_bytes);
cufftResult cufftGetSize(cufftHandle plan, size_t *work_bytes);
cufftResult cufftSetWorkArea(cufftHandle plan, void *work);
cufftResult cufftSetAutoAllocation(cufftHandle plan, int is_automatic);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftGetVersion(int *version);
cufftResult cufftGetProperty(libraryPropertyType type, int *value);
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *from, cufftComplex *to, int direction);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal *from, cufftComplex *to);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *from, cufftReal *to);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleComplex *to, int direction);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *from, cufftDoubleComplex *to);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleReal *to);

#ifdef __cplusplus
}
#endif
#endif
