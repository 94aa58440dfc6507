/* In place of the helpers of NVIDIA's samples where a program does not bring them. */
#ifndef GPA_LSP_HELPER_FUNCTIONS_H
#define GPA_LSP_HELPER_FUNCTIONS_H
#include <assert.h>
#include <math.h>
#include "helper_string.h"
#include "helper_timer.h"

static inline bool sdkCompareL2fe(const float *reference, const float *data, unsigned int count, float epsilon) {
    double error = 0, size = 0;
    for (unsigned int i = 0; i < count; i++) {
        error += ((double)reference[i] - data[i]) * ((double)reference[i] - data[i]);
        size += (double)reference[i] * reference[i];
    }
    return size > 0 && sqrt(error) / sqrt(size) < epsilon;
}
template <class T> static inline bool compareData(const T *reference, const T *data, unsigned int count, float epsilon, float share) {
    unsigned int wrong = 0;
    for (unsigned int i = 0; i < count; i++)
        wrong += fabs((double)reference[i] - (double)data[i]) > epsilon;
    return wrong <= share * count;
}
#endif
