/* In place of the header of cuFFT's extensions where it is not installed: plans and transforms by types of elements, on one GPU. */
#ifndef GPA_LSP_CUFFT_XT_H
#define GPA_LSP_CUFFT_XT_H
#include "cufft.h"
#ifdef __cplusplus
extern "C" {
#endif
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *from_size, long long from_step,
                                long long from_distance, cudaDataType from_type, long long *to_size, long long to_step,
                                long long to_distance, cudaDataType to_type, long long batch, size_t *work_bytes,
                                cudaDataType computed_type);
cufftResult cufftXtExec(cufftHandle plan, void *from, void *to, int direction);
#ifdef __cplusplus
}
#endif
#endif
