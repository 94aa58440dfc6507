/* What the libraries share that compute on the CPU what NVIDIA's compute on the GPU. They stand on our runtime library: memory of the device is read
   and written where that library has it, and everything that was launched before is done. */
#ifndef GPA_LSP_HOST_LIBRARY_H
#define GPA_LSP_HOST_LIBRARY_H

#include "../runtime.h"

enum readiness { READY, IS_CAPTURED, HAS_FAILED };

/* Whether a function can be computed: no graph is captured on its stream, and the device has not failed. */
static inline enum readiness begin_work(const char *function, cudaStream_t stream) {
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &capture) == cudaSuccess && capture != cudaStreamCaptureStatusNone) {
        gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, function);
        return IS_CAPTURED;
    }
    return cudaStreamSynchronize(stream) == cudaSuccess ? READY : HAS_FAILED;
}

/* Whether an operand of some elements is memory that the device sees; if not, gpa_lsp is told. */
static inline int can_reach(const char *function, const void *operand, size_t elements, size_t element_bytes) {
    int is_inside = elements == 0 || gpa_lsp_runtime.is_reachable(operand, multiply_sizes(elements, element_bytes));
    if (!is_inside)
        gpa_lsp_runtime.send_note(NOTE_OUT_OF_REACH, function);
    return is_inside;
}

/* What gpa_lsp computes: the status that it gives, below 0 where it failed; see compute in runtime.h. */
static inline int have_computed(const char *function, const char *kinds, ...) {
    va_list given;
    va_start(given, kinds);
    int status = gpa_lsp_runtime.compute(function, 0, 0, kinds, given);
    va_end(given);
    return status;
}

/* The functions that tell a library's version. */
#define GIVE_VERSION(status, library, LIBRARY, invalid)                                                                \
    PUBLIC status library##GetVersion(int *version) {                                                                  \
        if (version == NULL)                                                                                           \
            return invalid;                                                                                            \
        *version = LIBRARY##_VERSION;                                                                                  \
        return (status)0;                                                                                              \
    }                                                                                                                  \
    PUBLIC status library##GetProperty(libraryPropertyType type, int *value) {                                         \
        if (value == NULL)                                                                                             \
            return invalid;                                                                                            \
        *value = type == MAJOR_VERSION ? LIBRARY##_VER_MAJOR : type == MINOR_VERSION ? LIBRARY##_VER_MINOR : LIBRARY##_VER_PATCH; \
        return (status)0;                                                                                              \
    }

#endif
