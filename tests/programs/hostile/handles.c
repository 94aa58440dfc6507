/* Handles that are none, that are of another kind, and that were destroyed. */
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include "checking.h"

#define NOWHERE ((void *)0xdead0000)
static unsigned char host[1 << 16];

static void use_streams(void) {
    cudaStream_t stream, other;
    cudaEvent_t event;
    unsigned int flags;
    float ms;
    GIVES(cudaErrorInvalidValue, cudaStreamCreate(NULL));
    GIVES(cudaSuccess, cudaStreamCreate(&stream));
    GIVES(cudaSuccess, cudaEventCreate(&event));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamSynchronize((cudaStream_t)event));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventRecord((cudaEvent_t)stream, stream));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventRecord(NULL, stream));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventSynchronize(NULL));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, event, event));
    GIVES(cudaErrorInvalidValue, cudaEventElapsedTime(NULL, event, event));
    GIVES(cudaSuccess, cudaEventDestroy(event));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventDestroy(event));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventQuery(event));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(stream, event, 0));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(NOWHERE));
    GIVES(cudaErrorInvalidResourceHandle, cudaMemcpyAsync(host, host + 64, 16, cudaMemcpyHostToHost, NOWHERE));
    GIVES(cudaErrorInvalidResourceHandle, cudaMemsetAsync(host, 0, 16, NOWHERE));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamGetFlags(NOWHERE, &flags));
    GIVES(cudaErrorInvalidValue, cudaStreamGetFlags(stream, NULL));
    GIVES(cudaErrorInvalidValue, cudaLaunchHostFunc(stream, NULL, NULL));
    GIVES(cudaErrorInvalidValue, cudaStreamAddCallback(stream, NULL, NULL, 0));
    GIVES(cudaSuccess, cudaStreamDestroy(stream));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamQuery(stream));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
    for (int i = 0; i < 1000; i++) { /* the table of handles grows and shrinks */
        GIVES(cudaSuccess, cudaStreamCreate(&other));
        if (i % 3 == 0)
            GIVES(cudaSuccess, cudaStreamDestroy(other));
    }
}

static void use_graphs(void) {
    cudaGraph_t graph, clone;
    cudaGraphNode_t node, other;
    cudaGraphExec_t executable = NULL;
    size_t count = 7;
    GIVES(cudaErrorInvalidValue, cudaGraphCreate(NULL, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphDestroy(NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphLaunch(NULL, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphInstantiateWithFlags(&executable, NULL, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphExecDestroy(NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, NULL, NULL, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphGetNodes(NULL, NULL, &count));
    GIVES(cudaSuccess, cudaGraphCreate(&graph, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphAddEmptyNode(NULL, graph, NULL, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, graph, NULL, 3));
    GIVES(cudaSuccess, cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphAddChildGraphNode(&other, graph, NULL, 0, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphAddHostNode(&other, graph, NULL, 0, &(struct cudaHostNodeParams){0}));
    GIVES(cudaErrorInvalidValue, cudaGraphAddKernelNode(&other, graph, NULL, 0, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphKernelNodeSetParams(node, &(struct cudaKernelNodeParams){0}));
    GIVES(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(node, &(struct cudaKernelNodeParams){0}));
    GIVES(cudaErrorInvalidValue, cudaGraphNodeGetType((cudaGraphNode_t)graph, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphNodeGetType(node, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &node, NULL, NULL, 1));
    GIVES(cudaErrorInvalidValue, cudaGraphAddDependencies(NULL, &node, &node, NULL, 1));
    GIVES(cudaErrorNotSupported, cudaGraphDestroyNode(node)); /* refused, as all that few programs ask of graphs */
    GIVES(cudaErrorNotSupported, cudaGraphDebugDotPrint(graph, "graph.dot", 0));
    GIVES(cudaErrorNotSupported, cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
    GIVES(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&other, graph, (cudaGraphNode_t *)&graph, 1));
    GIVES(cudaSuccess, cudaGraphClone(&clone, graph));
    GIVES(cudaSuccess, cudaGraphInstantiateWithFlags(&executable, graph, 0));
    GIVES(cudaSuccess, cudaGraphDestroy(graph));
    GIVES(cudaErrorInvalidValue, cudaGraphDestroy(graph));
    GIVES(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphExecUpdate(executable, graph, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphExecUpdate(NULL, clone, NULL));
    GIVES(cudaSuccess, cudaGraphExecDestroy(executable));
    GIVES(cudaErrorInvalidValue, cudaGraphLaunch(executable, NULL));
    GIVES(cudaSuccess, cudaGraphDestroy(clone));
}

static void capture(void) {
    cudaStream_t stream;
    cudaEvent_t event;
    cudaGraph_t graph;
    enum cudaStreamCaptureStatus status;
    GIVES(cudaSuccess, cudaStreamCreate(&stream));
    GIVES(cudaSuccess, cudaEventCreate(&event));
    GIVES(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
    GIVES(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamBeginCapture(NOWHERE, cudaStreamCaptureModeGlobal));
    GIVES(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    GIVES(cudaErrorIllegalState, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    GIVES(cudaSuccess, cudaEventRecord(event, stream));
    GIVES(cudaErrorCapturedEvent, cudaEventSynchronize(event));
    GIVES(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
    GIVES(cudaSuccess, cudaStreamIsCapturing(stream, &status));
    HOLDS(status == cudaStreamCaptureStatusInvalidated);
    GIVES(cudaErrorStreamCaptureInvalidated, cudaMemcpyAsync(host, host + 64, 16, cudaMemcpyHostToHost, stream));
    GIVES(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    HOLDS(graph == NULL);
    GIVES(cudaSuccess, cudaStreamSynchronize(stream));
    GIVES(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    GIVES(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
    GIVES(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, NULL));
    GIVES(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    GIVES(cudaSuccess, cudaDeviceSynchronize());
    GIVES(cudaSuccess, cudaStreamDestroy(stream)); /* in the middle of it */
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamEndCapture(stream, &graph));
    GIVES(cudaSuccess, cudaStreamCreate(&stream));
    GIVES(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    GIVES(cudaSuccess, cudaStreamEndCapture(stream, &graph));
    GIVES(cudaSuccess, cudaGraphDestroy(graph));
}

static void use_textures(void) {
    enum { COUNT = 6000 };
    static cudaTextureObject_t made[COUNT];
    void *p;
    GIVES(cudaSuccess, cudaMalloc(&p, 4096));
    struct cudaResourceDesc resource = {.resType = cudaResourceTypeLinear};
    resource.res.linear.devPtr = p;
    resource.res.linear.sizeInBytes = 4096;
    resource.res.linear.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    struct cudaTextureDesc how = {.readMode = cudaReadModeElementType};
    for (int i = 0; i < COUNT; i++)
        GIVES(cudaSuccess, cudaCreateTextureObject(&made[i], &resource, &how, NULL));
    for (int i = 0; i < COUNT; i++)
        GIVES(cudaSuccess, cudaDestroyTextureObject(made[i]));
    GIVES(cudaErrorInvalidValue, cudaDestroyTextureObject(made[0]));
    GIVES(cudaErrorInvalidValue, cudaGetTextureObjectResourceDesc(&resource, made[0]));
    GIVES(cudaErrorInvalidValue, cudaCreateTextureObject(NULL, &resource, &how, NULL));
    GIVES(cudaErrorInvalidValue, cudaCreateTextureObject(&made[0], NULL, &how, NULL));
    GIVES(cudaErrorInvalidValue, cudaCreateTextureObject(&made[0], &resource, NULL, NULL));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = NULL;
    GIVES(cudaErrorInvalidResourceHandle, cudaCreateTextureObject(&made[0], &resource, &how, NULL));
    GIVES(cudaSuccess, cudaFree(p));
}

static void use_memory(void) {
    void *p, *q, *pinned;
    struct cudaPointerAttributes found;
    unsigned int flags;
    GIVES(cudaSuccess, cudaMalloc(&p, 4096));
    GIVES(cudaSuccess, cudaMallocHost(&pinned, 4096));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(NULL, p, 16, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(p, NULL, 16, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(host, (void *)0x10, 16, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(NOWHERE, p, 16, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(p, NOWHERE, 16, cudaMemcpyDefault));
    GIVES(cudaErrorInvalidValue, cudaMemset(NOWHERE, 0, 16));
    GIVES(cudaErrorInvalidValue, cudaMemset(host, 0, 16));
    GIVES(cudaErrorInvalidValue, cudaFree((char *)p + 16));
    GIVES(cudaErrorInvalidValue, cudaFree(host));
    GIVES(cudaErrorInvalidValue, cudaFree(pinned));
    GIVES(cudaErrorInvalidValue, cudaFreeHost(p));
    GIVES(cudaSuccess, cudaFreeHost(pinned));
    GIVES(cudaErrorInvalidValue, cudaFreeHost(pinned));
    GIVES(cudaSuccess, cudaFree(p));
    GIVES(cudaErrorInvalidValue, cudaFree(p));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(host, p, 16, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaPointerGetAttributes(NULL, p));
    GIVES(cudaSuccess, cudaPointerGetAttributes(&found, NOWHERE));
    GIVES(cudaErrorInvalidValue, cudaHostGetDevicePointer(&q, NOWHERE, 0));
    GIVES(cudaErrorInvalidValue, cudaHostGetFlags(&flags, NOWHERE));
    char *pages = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 8192, 8192);
    GIVES(cudaErrorInvalidValue, cudaHostRegister(pages, 16384, cudaHostRegisterDefault));
    GIVES(cudaErrorInvalidValue, cudaHostRegister(NOWHERE, 4096, cudaHostRegisterDefault));
    GIVES(cudaErrorInvalidValue, cudaHostRegister(pages, (size_t)-1, cudaHostRegisterDefault));
    GIVES(cudaErrorInvalidValue, cudaHostRegister(NULL, 16, cudaHostRegisterDefault));
    GIVES(cudaSuccess, cudaHostRegister(pages, 8192, cudaHostRegisterDefault));
    GIVES(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pages + 4096, 16, cudaHostRegisterDefault));
    GIVES(cudaSuccess, cudaHostGetDevicePointer(&q, pages + 100, 0));
    GIVES(cudaSuccess, cudaHostUnregister(pages));
    GIVES(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pages));
    GIVES(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(NULL));
}

static void ask_nothing(void) {
    cudaMemPool_t pool;
    GIVES(cudaErrorInvalidValue, cudaGetDevice(NULL));
    GIVES(cudaErrorInvalidValue, cudaGetDeviceCount(NULL));
    GIVES(cudaErrorInvalidValue, cudaGetDeviceProperties(NULL, 0));
    GIVES(cudaErrorInvalidValue, cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
    GIVES(cudaErrorInvalidValue, cudaRuntimeGetVersion(NULL));
    GIVES(cudaErrorInvalidValue, cudaDeviceGetLimit(NULL, cudaLimitStackSize));
    GIVES(cudaErrorInvalidDevice, cudaSetDevice(-1));
    GIVES(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(NULL, 16, 0));
    GIVES(cudaErrorInvalidValue, cudaDeviceGetPCIBusId((char *)host, -1, 0));
    GIVES(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(NOWHERE, host, 16, 0, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidSymbol, cudaGetSymbolAddress((void **)&host, NULL));
    GIVES(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(NOWHERE, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    GIVES(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    GIVES(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, NULL));
    GIVES(cudaErrorInvalidValue, cudaMemPoolDestroy(NULL));
    GIVES(cudaErrorInvalidValue, cudaMemPoolDestroy(NOWHERE));
    GIVES(cudaErrorInvalidValue, cudaMallocFromPoolAsync((void **)&pool, 16, NOWHERE, NULL));
}

static void reset(void) {
    void *p, *pinned;
    cudaStream_t stream;
    GIVES(cudaSuccess, cudaMalloc(&p, 4096));
    GIVES(cudaSuccess, cudaMallocHost(&pinned, 4096));
    GIVES(cudaSuccess, cudaStreamCreate(&stream));
    GIVES(cudaSuccess, cudaDeviceReset());
    GIVES(cudaErrorInvalidValue, cudaMemcpy(host, p, 16, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemset(p, 0, 16));
    GIVES(cudaErrorInvalidValue, cudaFree(p));
    GIVES(cudaErrorInvalidValue, cudaFreeHost(pinned));
    GIVES(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    GIVES(cudaSuccess, cudaMalloc(&p, 4096));
    GIVES(cudaSuccess, cudaMemset(p, 0, 4096));
    GIVES(cudaSuccess, cudaDeviceReset());
}

int main(void) {
    use_streams();
    use_graphs();
    capture();
    use_textures();
    use_memory();
    ask_nothing();
    reset();
    return finish();
}
