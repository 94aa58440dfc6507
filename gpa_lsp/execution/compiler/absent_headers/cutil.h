/* In place of the helpers of NVIDIA's first samples (CUTIL), which CUDA 5 left out: checks and timers. */
#ifndef GPA_LSP_CUTIL_H
#define GPA_LSP_CUTIL_H
#include <math.h>
#include "helper_cuda.h"
#include "helper_image.h"
#include "helper_timer.h"

typedef int CUTBoolean;
#define CUTTrue 1
#define CUTFalse 0
#define CUDA_SAFE_CALL_NO_SYNC(call) checkCudaErrors(call)
#define CUDA_SAFE_CALL(call) checkCudaErrors(call)
#define CUT_SAFE_CALL(call) ((void)(call))
#define CUT_CHECK_ERROR(message) getLastCudaError(message)
#define CUT_DEVICE_INIT(count, words) ((void)cudaSetDevice(0))
#define CUT_EXIT(count, words) exit(EXIT_SUCCESS)
#define CUT_CONDITION(is_right) ((void)(is_right))
#define CUT_CHECK_DEVICE() ((void)cudaSetDevice(0))
#define CUT_BANK_CHECKER(array, index) array[index]
#define cutilSafeCall(call) checkCudaErrors(call)
#define cutilSafeCallNoSync(call) checkCudaErrors(call)
#define cutilSafeThreadSync() cudaDeviceSynchronize()
#define cutilThreadSynchronize() cudaDeviceSynchronize()
#define cutilDeviceSynchronize() cudaDeviceSynchronize()
#define cutilDeviceReset() cudaDeviceReset()
#define cutilCheckMsg(message) getLastCudaError(message)
#define cutilCheckError(call) ((void)(call))
#define cutilExit(count, words) exit(EXIT_SUCCESS)
#define cutilDeviceInit(count, words) ((void)cudaSetDevice(0))
#define cutilChooseCudaDevice(count, words) ((void)cudaSetDevice(0))
#define cutGetMaxGflopsDeviceId() 0
#define cutFree(pointer) free(pointer)

static inline StopWatchInterface *gpa_lsp_timer(unsigned int number) {
    static StopWatchInterface timers[256];
    return &timers[number % 256];
}
static inline CUTBoolean cutCreateTimer(unsigned int *number) {
    static unsigned int count;
    *number = ++count;
    gpa_lsp_timer(*number)->reset();
    return CUTTrue;
}
static inline CUTBoolean cutDeleteTimer(unsigned int number) { return (void)number, CUTTrue; }
static inline CUTBoolean cutStartTimer(unsigned int number) { return gpa_lsp_timer(number)->start(), CUTTrue; }
static inline CUTBoolean cutStopTimer(unsigned int number) { return gpa_lsp_timer(number)->stop(), CUTTrue; }
static inline CUTBoolean cutResetTimer(unsigned int number) { return gpa_lsp_timer(number)->reset(), CUTTrue; }
static inline float cutGetTimerValue(unsigned int number) { return gpa_lsp_timer(number)->getTime(); }
static inline float cutGetAverageTimerValue(unsigned int number) { return gpa_lsp_timer(number)->getAverageTime(); }
static inline CUTBoolean cutCheckCmdLineFlag(int count, const char **words, const char *name) { return checkCmdLineFlag(count, words, name); }
static inline CUTBoolean cutGetCmdLineArgumenti(int count, const char **words, const char *name, int *into) {
    if (!checkCmdLineFlag(count, words, name))
        return CUTFalse;
    *into = getCmdLineArgumentInt(count, words, name);
    return CUTTrue;
}
static inline CUTBoolean cutGetCmdLineArgumentf(int count, const char **words, const char *name, float *into) {
    if (!checkCmdLineFlag(count, words, name))
        return CUTFalse;
    *into = getCmdLineArgumentFloat(count, words, name);
    return CUTTrue;
}
static inline CUTBoolean cutGetCmdLineArgumentstr(int count, const char **words, const char *name, char **into) {
    return getCmdLineArgumentString(count, words, name, into);
}
#define cutFindFilePath(name, program) sdkFindFilePath(name, program)
#define cutLoadPGMub(name, data, width, height) sdkLoadPGM<unsigned char>(name, data, width, height)
#define cutLoadPGMf(name, data, width, height) sdkLoadPGM<float>(name, data, width, height)
#define cutLoadPPMub(name, data, width, height) sdkLoadPPMub(name, data, width, height)
#define cutLoadPPM4ub(name, data, width, height) sdkLoadPPM4ub(name, data, width, height)
#define cutSavePGMub(name, data, width, height) sdkSavePGM<unsigned char>(name, data, width, height)
#define cutSavePGMf(name, data, width, height) sdkSavePGM<float>(name, data, width, height)
#define cutSavePPMub(name, data, width, height) sdkSavePPMub(name, data, width, height)
#define cutSavePPM4ub(name, data, width, height) sdkSavePPM4ub(name, data, width, height)
#define cutReadFilef(name, data, count, tells) sdkReadFile<float>(name, data, count, tells)
#define cutReadFilei(name, data, count, tells) sdkReadFile<int>(name, data, count, tells)
#define cutWriteFilef(name, data, count, epsilon) sdkWriteFile<float>(name, data, count, epsilon, false)
#define cutWriteFilei(name, data, count) sdkWriteFile<int>(name, data, count, 0, false)
#define cutComparef(reference, data, count) compareData(reference, data, count, 0.0f, 0.0f)
#define cutComparei(reference, data, count) compareData(reference, data, count, 0, 0.0f)
#define cutCompareub(reference, data, count) compareData(reference, data, count, 0, 0.0f)
static inline CUTBoolean cutCompareL2fe(const float *reference, const float *data, unsigned int count, float epsilon) {
    return sdkCompareL2fe(reference, data, count, epsilon);
}
static inline CUTBoolean cutComparefe(const float *reference, const float *data, unsigned int count, float epsilon) {
    for (unsigned int i = 0; i < count; i++)
        if (fabs((double)reference[i] - data[i]) > epsilon)
            return CUTFalse;
    return CUTTrue;
}
#endif
