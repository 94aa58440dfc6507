/* In place of the helpers of NVIDIA's samples where a program does not bring them: checks, and the choice of a device. */
#ifndef GPA_LSP_HELPER_CUDA_H
#define GPA_LSP_HELPER_CUDA_H
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include "helper_string.h"

#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif

static inline void gpa_lsp_check(int error, const char *name, const char *words, const char *call, const char *file, int line) {
    if (error != 0) {
        fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\": %s\n", file, line, error, name, call, words);
        exit(EXIT_FAILURE);
    }
}
static inline const char *_cudaGetErrorEnum(cudaError_t error) { return cudaGetErrorName(error); }
#define checkCudaErrors(call)                                                                                          \
    do {                                                                                                               \
        int gpa_lsp_error = (int)(call);                                                                               \
        gpa_lsp_check(gpa_lsp_error, cudaGetErrorName((cudaError_t)gpa_lsp_error),                                     \
                      cudaGetErrorString((cudaError_t)gpa_lsp_error), #call, __FILE__, __LINE__);                      \
    } while (0)
#define getLastCudaError(message) gpa_lsp_check_last(message, __FILE__, __LINE__, 1)
#define printLastCudaError(message) gpa_lsp_check_last(message, __FILE__, __LINE__, 0)
static inline void gpa_lsp_check_last(const char *message, const char *file, int line, int ends) {
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) {
        fprintf(stderr, "%s(%d) : %s : (%d) %s.\n", file, line, message, (int)error, cudaGetErrorString(error));
        if (ends)
            exit(EXIT_FAILURE);
    }
}

static inline int _ConvertSMVer2Cores(int major, int minor) {
    if (major == 6)
        return minor == 0 ? 64 : 128;
    if (major == 7 || (major == 8 && minor == 0))
        return 64;
    return 128;
}
static inline int ftoi(float value) { return (int)(value >= 0 ? value + 0.5f : value - 0.5f); }
static inline int gpuDeviceInit(int number) {
    checkCudaErrors(cudaSetDevice(number));
    return number;
}
static inline int gpuGetMaxGflopsDeviceId(void) { return 0; }
static inline int findCudaDevice(int count, const char **words) {
    cudaDeviceProp properties;
    int number = checkCmdLineFlag(count, words, "device") ? getCmdLineArgumentInt(count, words, "device=") : 0;
    checkCudaErrors(cudaSetDevice(number));
    checkCudaErrors(cudaGetDeviceProperties(&properties, number));
    printf("GPU Device %d: \"%s\" with compute capability %d.%d\n\n", number, properties.name, properties.major, properties.minor);
    return number;
}
static inline bool checkCudaCapabilities(int major, int minor) {
    cudaDeviceProp properties;
    checkCudaErrors(cudaGetDeviceProperties(&properties, 0));
    return properties.major > major || (properties.major == major && properties.minor >= minor);
}
#endif
