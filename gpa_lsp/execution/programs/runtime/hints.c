/* Hints, which change no result. Without the headers: nothing is read. */
#define ACCEPT(name) __attribute__((visibility("default"))) int name(void) { return 0; }

ACCEPT(cudaCtxResetPersistingL2Cache)
ACCEPT(cudaDeviceFlushGPUDirectRDMAWrites)
ACCEPT(cudaDeviceGraphMemTrim)
ACCEPT(cudaGraphKernelNodeCopyAttributes)
ACCEPT(cudaGraphKernelNodeSetAttribute)
ACCEPT(cudaMemAdvise_v2)
ACCEPT(cudaMemPrefetchAsync_v2)
ACCEPT(cudaStreamCopyAttributes)
ACCEPT(cudaStreamSetAttribute)
