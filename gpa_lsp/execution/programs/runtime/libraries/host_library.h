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

#endif
