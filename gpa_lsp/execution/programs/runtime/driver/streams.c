/* Streams and events: those of the runtime. */
#define _GNU_SOURCE
#include "driver.h"

#undef cuStreamSynchronize
#undef cuStreamQuery
#undef cuStreamWaitEvent
#undef cuStreamAddCallback
#undef cuStreamGetFlags
#undef cuStreamGetPriority
#undef cuStreamIsCapturing
#undef cuStreamGetCtx
#undef cuStreamGetId
#undef cuLaunchHostFunc
#undef cuEventRecord
#undef cuEventRecordWithFlags

PUBLIC CUresult cuStreamCreate(CUstream *into, unsigned int flags) { CALL(cudaStreamCreateWithFlags(into, flags)); }
PUBLIC CUresult cuStreamCreateWithPriority(CUstream *into, unsigned int flags, int priority) {
    CALL(cudaStreamCreateWithPriority(into, flags, priority));
}
PUBLIC CUresult cuStreamDestroy(CUstream stream) { CALL(cudaStreamDestroy(stream)); }
PUBLIC CUresult cuStreamSynchronize(CUstream stream) { CALL(cudaStreamSynchronize(stream)); }
PUBLIC CUresult cuStreamQuery(CUstream stream) { CALL(cudaStreamQuery(stream)); }
PUBLIC CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    CALL(cudaStreamWaitEvent(stream, event, flags));
}
PUBLIC CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback call, void *data, unsigned int flags) {
    CALL(cudaStreamAddCallback(stream, (cudaStreamCallback_t)(void (*)(void))call, data, flags)); /* success is 0 in both */
}
PUBLIC CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *data) { CALL(cudaLaunchHostFunc(stream, call, data)); }
PUBLIC CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    CALL(cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)status)); /* they have the same numbers */
}
PUBLIC CUresult cuStreamGetCtx(CUstream stream, CUcontext *into) {
    unsigned int flags;
    CUresult error = cuStreamGetFlags(stream, &flags);
    return error != CUDA_SUCCESS ? error : cuDevicePrimaryCtxRetain(into, 0);
}
#if CUDA_VERSION >= 13000
PUBLIC CUresult cuStreamGetDevice(CUstream stream, CUdevice *into) { CALL(cudaStreamGetDevice(stream, into)); }
#endif
PUBLIC CUresult cuStreamGetId(CUstream stream, unsigned long long *into) { CALL(cudaStreamGetId(stream, into)); }
PUBLIC CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags) { CALL(cudaStreamGetFlags(stream, flags)); }
PUBLIC CUresult cuStreamGetPriority(CUstream stream, int *priority) { CALL(cudaStreamGetPriority(stream, priority)); }

PUBLIC CUresult cuEventCreate(CUevent *into, unsigned int flags) { CALL(cudaEventCreateWithFlags(into, flags)); }
PUBLIC CUresult cuEventDestroy(CUevent event) { CALL(cudaEventDestroy(event)); }
PUBLIC CUresult cuEventRecord(CUevent event, CUstream stream) { CALL(cudaEventRecord(event, stream)); }
PUBLIC CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
    CALL(cudaEventRecord(event, stream));
}
PUBLIC CUresult cuEventSynchronize(CUevent event) { CALL(cudaEventSynchronize(event)); }
PUBLIC CUresult cuEventQuery(CUevent event) { CALL(cudaEventQuery(event)); }
PUBLIC CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    CALL(cudaEventElapsedTime(milliseconds, start, end));
}
