/* Calls of cuBLAS and cuFFT that no program should make: each gives the status that is due. */
#include "checking.h"

#include <cublas_v2.h>
#include <cufft.h>

#define MOST 0x7fffffff

static float *device, host[64];
static const float one = 1, none = 0;

static void check_handles(cublasHandle_t handle) {
    cublasHandle_t gone;
    int version, number;
    GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasCreate(NULL));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasCreate(&gone));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasDestroy(gone));
    GIVES(CUBLAS_STATUS_NOT_INITIALIZED, cublasDestroy(gone));
    GIVES(CUBLAS_STATUS_NOT_INITIALIZED, cublasSaxpy(gone, 4, &one, device, 1, device, 1));
    GIVES(CUBLAS_STATUS_NOT_INITIALIZED, cublasSaxpy((cublasHandle_t)host, 4, &one, device, 1, device, 1));
    GIVES(CUBLAS_STATUS_NOT_INITIALIZED, cublasSaxpy(NULL, 4, &one, device, 1, device, 1));
    GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasGetVersion(handle, NULL));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasGetVersion(handle, &version));
    GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasIsamax(handle, 4, device, 1, NULL));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasIsamax(handle, 0, NULL, 1, &number));
    HOLDS(number == 0);
}

static void check_sizes(cublasHandle_t handle) {
    float sum;
    double complex_one[2] = {1, 0};
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSaxpy(handle, MOST, &one, device, MOST, device, 1));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSaxpy(handle, 4, &one, device, -MOST - 1, device, 1));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSaxpy(handle, 4, &one, host, 1, device, 1));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSaxpy(handle, 4, &one, (float *)UINTPTR_MAX, 1, device, 1));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSasum(handle, 65, device, 1, &sum));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasSasum(handle, 64, device, 1, &sum));
    GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSscal(handle, 4, NULL, device, 1));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasSscal(handle, -4, &one, NULL, 1));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasZscal(handle, MOST, (void *)complex_one, (void *)device, MOST));
    GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm(handle, 0, 0, 4, 4, -1, &one, device, 4, device, 4, &none, device, 4));
    GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm(handle, 3, 0, 4, 4, 4, &one, device, 4, device, 4, &none, device, 4));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSgemm(handle, 0, 0, MOST, MOST, MOST, &one, device, MOST, device, MOST, &none, device, MOST));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSgemmBatched(handle, 0, 0, 4, 4, 4, &one, (void *)host, 4, (void *)host, 4, &none, (void *)host, 4, 2));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSgemmBatched(handle, 0, 0, 4, 4, 4, &one, (void *)device, 4, (void *)device, 4, &none, (void *)device, 4, 2));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSgemmStridedBatched(handle, 0, 0, 4, 4, 4, &one, device, 4, INT64_MIN, device, 4, INT64_MAX, &none, device, 4, 0, 2));
    GIVES(CUBLAS_STATUS_NOT_SUPPORTED, cublasGemmEx(handle, 0, 0, 4, 4, 4, &one, device, 99, 4, device, 99, 4, &none, device, 99, 4, 99, -1));
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE) || cublasSscal(handle, 4, &one, device, 1) != CUBLAS_STATUS_EXECUTION_FAILED ? 0 : CUBLAS_STATUS_EXECUTION_FAILED);
    GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasSdot(handle, 4, device, 1, device, 1, &sum));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasSdot(handle, 4, device, 1, device, 1, device + 63));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
}

static void check_transforms(void) {
    cufftHandle plan;
    int n[] = {4, 4}, huge[] = {1, MOST};
    GIVES(CUFFT_INVALID_PLAN, cufftExecC2C(77, (void *)device, (void *)device, CUFFT_FORWARD));
    GIVES(CUFFT_INVALID_PLAN, cufftExecC2C(-1, (void *)device, (void *)device, CUFFT_FORWARD));
    GIVES(CUFFT_INVALID_SIZE, cufftPlan3d(&plan, MOST, MOST, MOST, CUFFT_C2C));
    GIVES(CUFFT_INVALID_SIZE, cufftPlanMany(&plan, 2, n, n, 0, 0, n, 1, 0, CUFFT_C2C, 1));
    GIVES(CUFFT_SUCCESS, cufftPlanMany(&plan, 2, n, huge, MOST, MOST, huge, MOST, MOST, CUFFT_C2C, MOST));
    GIVES(CUFFT_EXEC_FAILED, cufftExecC2C(plan, (void *)device, (void *)device, CUFFT_FORWARD));
    GIVES(CUFFT_INVALID_VALUE, cufftExecC2C(plan, (void *)device, NULL, CUFFT_FORWARD));
    GIVES(CUFFT_INVALID_VALUE, cufftExecC2C(plan, (void *)device, (void *)device, 0));
    GIVES(CUFFT_SUCCESS, cufftDestroy(plan));
    GIVES(CUFFT_SUCCESS, cufftPlan1d(&plan, 32, CUFFT_C2C, 1));
    GIVES(CUFFT_SUCCESS, cufftExecC2C(plan, (void *)device, (void *)device, CUFFT_FORWARD));
    GIVES(CUFFT_EXEC_FAILED, cufftExecC2C(plan, (void *)(device + 1), (void *)device, CUFFT_FORWARD));
    GIVES(CUFFT_EXEC_FAILED, cufftExecC2C(plan, (void *)host, (void *)device, CUFFT_FORWARD));
    GIVES(CUFFT_SUCCESS, cufftDestroy(plan));
}

int main(void) {
    cublasHandle_t handle;
    GIVES(cudaSuccess, cudaMalloc((void **)&device, sizeof host));
    GIVES(cudaSuccess, cudaMemset(device, 0, sizeof host));
    GIVES(CUBLAS_STATUS_SUCCESS, cublasCreate(&handle));
    check_handles(handle);
    check_sizes(handle);
    check_transforms();
    GIVES(CUBLAS_STATUS_SUCCESS, cublasDestroy(handle));
    return finish();
}
