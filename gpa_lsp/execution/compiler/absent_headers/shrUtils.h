/* In place of the helpers of NVIDIA's samples of CUDA 3 and 4 (SHRUTIL) where a program does not bring them: the command line, files, logs. */
#ifndef GPA_LSP_SHR_UTILS_H
#define GPA_LSP_SHR_UTILS_H
#include <stdarg.h>
#include "helper_functions.h"

typedef bool shrBOOL;
#define shrTRUE true
#define shrFALSE false
#define shrFindFilePath(name, program) sdkFindFilePath(name, program)
#define shrCompareL2fe(reference, data, count, epsilon) sdkCompareL2fe(reference, data, count, epsilon)
#define shrComparefe(reference, data, count, epsilon) compareData(reference, data, count, epsilon, 0.0f)
#define shrLoadPPM4ub(name, data, width, height) sdkLoadPPM4ub(name, data, width, height)
#define shrSavePPM4ub(name, data, width, height) sdkSavePPM4ub(name, data, width, height)
#define shrEXIT(count, words) exit(EXIT_SUCCESS)
#define shrExitEX(count, words, status) exit(status)

static inline void shrSetLogFileName(const char *name) { (void)name; }
static inline int shrLog(const char *text, ...) {
    va_list rest;
    va_start(rest, text);
    int printed = vprintf(text, rest);
    va_end(rest);
    return printed;
}
static inline double shrDeltaT(int watch = 0) {
    static double begun_ms[4];
    double now = StopWatchInterface::now_ms(), before = begun_ms[watch & 3];
    begun_ms[watch & 3] = now;
    return before > 0 ? (now - before) / 1e3 : 0;
}
static inline void shrFillArray(float *data, int count) {
    for (int i = 0; i < count; i++)
        data[i] = (float)rand() / (float)RAND_MAX;
}
static inline size_t shrRoundUp(int group, int count) { return (size_t)((count + group - 1) / group * group); }
static inline shrBOOL shrCheckCmdLineFlag(int count, const char **words, const char *name) { return checkCmdLineFlag(count, words, name); }
static inline shrBOOL shrGetCmdLineArgumenti(int count, const char **words, const char *name, int *into) {
    if (checkCmdLineFlag(count, words, name))
        *into = getCmdLineArgumentInt(count, words, name);
    return checkCmdLineFlag(count, words, name);
}
static inline shrBOOL shrGetCmdLineArgumentf(int count, const char **words, const char *name, float *into) {
    if (checkCmdLineFlag(count, words, name))
        *into = getCmdLineArgumentFloat(count, words, name);
    return checkCmdLineFlag(count, words, name);
}
static inline shrBOOL shrGetCmdLineArgumentstr(int count, const char **words, const char *name, char **into) {
    return getCmdLineArgumentString(count, words, name, into);
}
#endif
