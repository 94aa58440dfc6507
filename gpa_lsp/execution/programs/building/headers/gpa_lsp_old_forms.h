/* Forms of functions that CUDA 13 has replaced, behind the new ones, for programs that gpa-lsp rebuilds. */
#if defined(__cplusplus) && defined(CUDART_VERSION) && CUDART_VERSION >= 13000 && !defined(GPA_LSP_OLD_FORMS)
#define GPA_LSP_OLD_FORMS
static inline cudaMemLocation gpa_lsp_locate(int device) {
    cudaMemLocation place = {};
    place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    place.id = device == cudaCpuDeviceId ? 0 : device;
    return place;
}
static inline cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, int device, cudaStream_t stream = 0) {
    return cudaMemPrefetchAsync(pointer, size, gpa_lsp_locate(device), 0u, stream);
}
static inline cudaError_t cudaMemAdvise(const void *pointer, size_t size, cudaMemoryAdvise advice, int device) {
    return cudaMemAdvise(pointer, size, advice, gpa_lsp_locate(device));
}
static inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                                   size_t count) {
    return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
#endif
