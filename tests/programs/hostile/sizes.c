/* Sizes that are negative, or whose sums and products do not fit: nothing is copied, filled or allocated. */
#include <cuda_runtime_api.h>

#include "checking.h"

enum { BYTES = 8192 };
static unsigned char host[1 << 16], seen[BYTES];
static unsigned char *p;

/* Bytes around the middle are as they were filled. */
static int is_untouched(void) {
    cudaMemcpy(seen, p, BYTES, cudaMemcpyDeviceToHost);
    for (int i = 0; i < BYTES; i++)
        if (seen[i] != 0x11)
            return 0;
    return 1;
}

static void copy(void) {
    for (int n = -1; n >= -4096; n = 3 * n - 5) {
        GIVES(cudaErrorInvalidValue, cudaMemcpy(p + 4096, host + 4096, (size_t)n, cudaMemcpyHostToDevice));
        GIVES(cudaErrorInvalidValue, cudaMemcpy(host + 4096, p + 4096, (size_t)n, cudaMemcpyDeviceToHost));
        GIVES(cudaErrorInvalidValue, cudaMemcpy(p + 4096, p, (size_t)n, cudaMemcpyDeviceToDevice));
        GIVES(cudaErrorInvalidValue, cudaMemcpy(host, host + 1, (size_t)n, cudaMemcpyHostToHost));
        GIVES(cudaErrorInvalidValue, cudaMemcpyAsync(p + 4096, host + 4096, (size_t)n, cudaMemcpyDefault, NULL));
        GIVES(cudaErrorInvalidValue, cudaMemcpyPeer(p + 4096, 0, p, 0, (size_t)n));
        GIVES(cudaErrorInvalidValue, cudaMemset(p + 4096, 0, (size_t)n));
    }
    GIVES(cudaErrorInvalidDevice, cudaMemcpyPeer(p, 3, p, 0, 16));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(p, host, BYTES + 1, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(p + BYTES, host, 1, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidMemcpyDirection, cudaMemcpy(p, host, 16, (enum cudaMemcpyKind)9));
    GIVES(cudaErrorInvalidMemcpyDirection, cudaMemcpy(p, host, 16, (enum cudaMemcpyKind)-1));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(host, host + 64, 16, cudaMemcpyHostToDevice));
    GIVES(cudaSuccess, cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
}

static void copy_rows(void) {
    GIVES(cudaErrorInvalidValue, cudaMemcpy2D(p, 64, host, 64, 16, (size_t)-1, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, (size_t)1 << 63, host, (size_t)1 << 63, 16, 3, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, 8, host, 64, 16, 2, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidPitchValue, cudaMemcpy2D(host, 64, p, 64, (size_t)-16, 2, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2D(host, 64, p, 64, 16, ((size_t)1 << 58) + 1, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemset2D(p, 64, 0, 16, (size_t)-1));
    GIVES(cudaErrorInvalidValue, cudaMemset2D(p, 0, 0, 16, 1 << 20));
    GIVES(cudaErrorInvalidValue, cudaMemset2D(p, (size_t)1 << 63, 0, 16, 3));
    GIVES(cudaErrorInvalidValue, cudaMemset2D(p, 64, 0, (size_t)-64, 2));
    struct cudaPitchedPtr box = {p, 64, 64, 16}, flat = {p, 64, 64, 0}, wide = {p, (size_t)1 << 63, 64, 2}, source = {host, 64, 64, 16};
    GIVES(cudaErrorInvalidValue, cudaMemset3D(box, 0, (struct cudaExtent){16, 2, (size_t)1 << 56}));
    GIVES(cudaErrorInvalidValue, cudaMemset3D(box, 0, (struct cudaExtent){16, (size_t)-1, 2}));
    GIVES(cudaErrorInvalidValue, cudaMemset3D(flat, 0, (struct cudaExtent){16, 2, (size_t)1 << 56}));
    GIVES(cudaErrorInvalidValue, cudaMemset3D(wide, 0, (struct cudaExtent){16, 2, 2}));
    struct cudaMemcpy3DParms deep = {.srcPtr = source, .dstPtr = box, .extent = {16, 2, (size_t)1 << 56}, .kind = cudaMemcpyDefault};
    GIVES(cudaErrorInvalidValue, cudaMemcpy3D(&deep));
    deep.extent = (struct cudaExtent){16, 2, 2};
    deep.dstPos = (struct cudaPos){0, 0, (size_t)-1};
    GIVES(cudaErrorInvalidValue, cudaMemcpy3D(&deep));
    deep.dstPos = (struct cudaPos){(size_t)-16, 0, 0};
    GIVES(cudaErrorInvalidValue, cudaMemcpy3D(&deep));
    deep.dstPos = (struct cudaPos){0};
    deep.dstPtr.pitch = (size_t)1 << 63;
    GIVES(cudaErrorInvalidPitchValue, cudaMemcpy3D(&deep));
    GIVES(cudaErrorInvalidValue, cudaMemcpy3D(NULL));
    GIVES(cudaErrorInvalidValue, cudaMemcpy3DPeer(NULL));
}

static void allocate(void) {
    void *q = NULL;
    size_t pitch = 0;
    struct cudaPitchedPtr box;
    cudaArray_t array;
    struct cudaChannelFormatDesc floats = cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindFloat);
    struct cudaChannelFormatDesc odd = cudaCreateChannelDesc(-8, 0, 0, 0, cudaChannelFormatKindFloat);
    GIVES(cudaErrorMemoryAllocation, cudaMalloc(&q, (size_t)-1));
    GIVES(cudaErrorMemoryAllocation, cudaMalloc(&q, (size_t)1 << 40));
    GIVES(cudaErrorMemoryAllocation, cudaMallocHost(&q, (size_t)-4096));
    GIVES(cudaErrorMemoryAllocation, cudaHostAlloc(&q, (size_t)-4096, cudaHostAllocMapped));
    GIVES(cudaErrorInvalidValue, cudaHostAlloc(&q, 16, 1u << 20));
    GIVES(cudaErrorMemoryAllocation, cudaMallocManaged(&q, (size_t)-1, cudaMemAttachGlobal));
    GIVES(cudaErrorInvalidValue, cudaMallocManaged(&q, 16, 77));
    GIVES(cudaErrorInvalidValue, cudaMallocManaged(&q, 0, cudaMemAttachGlobal));
    GIVES(cudaErrorMemoryAllocation, cudaMallocAsync(&q, (size_t)-1, NULL));
    GIVES(cudaErrorMemoryAllocation, cudaMallocPitch(&q, &pitch, (size_t)1 << 40, (size_t)1 << 24));
    GIVES(cudaErrorMemoryAllocation, cudaMallocPitch(&q, &pitch, (size_t)-1, 2));
    GIVES(cudaErrorMemoryAllocation, cudaMalloc3D(&box, (struct cudaExtent){(size_t)1 << 40, (size_t)1 << 20, 16}));
    GIVES(cudaErrorMemoryAllocation, cudaMallocArray(&array, &floats, (size_t)1 << 60, 1, 0));
    GIVES(cudaErrorMemoryAllocation, cudaMallocArray(&array, &floats, (size_t)1 << 40, (size_t)1 << 24, 0));
    GIVES(cudaErrorMemoryAllocation, cudaMalloc3DArray(&array, &floats, (struct cudaExtent){1 << 20, 1 << 20, 1 << 24}, 0));
    GIVES(cudaErrorInvalidValue, cudaMallocArray(&array, &floats, 0, 0, 0));
    GIVES(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &odd, 16, 0, 0));
    GIVES(cudaSuccess, cudaMalloc(&q, 0));
    HOLDS(q == NULL);
    GIVES(cudaErrorInvalidValue, cudaMalloc(NULL, 16));
    GIVES(cudaErrorInvalidValue, cudaMallocPitch(&q, NULL, 16, 2));
    GIVES(cudaErrorInvalidValue, cudaMalloc3D(NULL, (struct cudaExtent){16, 2, 2}));
    GIVES(cudaErrorInvalidValue, cudaMemGetInfo(NULL, NULL));
}

static void copy_arrays(void) {
    cudaArray_t array;
    struct cudaChannelFormatDesc bytes = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    GIVES(cudaSuccess, cudaMallocArray(&array, &bytes, 64, 16, 0));
    GIVES(cudaSuccess, cudaMemcpy2DToArray(array, 0, 0, host, 64, 64, 16, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 0, 0, host, 64, 64, (size_t)-1, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, (size_t)-64, 0, host, 64, 64, 2, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 0, (size_t)-1, host, 64, 64, 2, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 32, 0, host, 64, 33, 2, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2DFromArray(host, 64, array, 0, 15, 64, 2, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2DFromArray(host, 64, array, 0, 0, 64, (size_t)1 << 58, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidPitchValue, cudaMemcpy2DFromArray(host, 8, array, 0, 0, 64, 2, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemcpyToArray(array, 0, 0, host, (size_t)-1, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpyFromArray(host, array, 0, 1, 64 * 16, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2DArrayToArray(array, 0, 0, array, 0, 0, 64, (size_t)-1, cudaMemcpyDeviceToDevice));
    GIVES(cudaErrorInvalidResourceHandle, cudaMemcpy2DToArray(NULL, 0, 0, host, 64, 64, 2, cudaMemcpyHostToDevice));
    struct cudaMemcpy3DParms box = {.srcPtr = {host, 64, 64, 16}, .dstArray = array, .extent = {64, 16, (size_t)1 << 56}, .kind = cudaMemcpyHostToDevice};
    GIVES(cudaErrorInvalidValue, cudaMemcpy3D(&box));
    box.extent = (struct cudaExtent){(size_t)1 << 63, 2, 1};
    GIVES(cudaErrorInvalidValue, cudaMemcpy3D(&box));
    GIVES(cudaSuccess, cudaFreeArray(array));
    GIVES(cudaErrorInvalidValue, cudaFreeArray(array));
    GIVES(cudaErrorInvalidResourceHandle, cudaMemcpy2DToArray(array, 0, 0, host, 64, 64, 2, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidResourceHandle, cudaGetChannelDesc(&bytes, array));
}

static void add_nodes(void) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t executable;
    struct cudaMemsetParams fill = {.dst = p, .pitch = 64, .elementSize = 4, .width = (size_t)1 << 62, .height = 2};
    GIVES(cudaSuccess, cudaGraphCreate(&graph, 0));
    GIVES(cudaSuccess, cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
    GIVES(cudaSuccess, cudaGraphInstantiateWithFlags(&executable, graph, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphLaunch(executable, NULL));
    fill.width = 4;
    fill.elementSize = 77;
    GIVES(cudaSuccess, cudaGraphExecMemsetNodeSetParams(executable, node, &fill));
    GIVES(cudaErrorInvalidValue, cudaGraphLaunch(executable, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphAddMemsetNode(&node, graph, NULL, 0, NULL));
    GIVES(cudaErrorInvalidValue, cudaGraphAddMemcpyNode(&node, graph, NULL, 0, NULL));
    GIVES(cudaSuccess, cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, p, host, (size_t)-1, cudaMemcpyHostToDevice));
    GIVES(cudaSuccess, cudaGraphExecDestroy(executable));
    GIVES(cudaSuccess, cudaGraphInstantiateWithFlags(&executable, graph, 0));
    GIVES(cudaErrorInvalidValue, cudaGraphLaunch(executable, NULL));
    GIVES(cudaSuccess, cudaGraphExecDestroy(executable));
    GIVES(cudaSuccess, cudaGraphDestroy(graph));
}

int main(void) {
    GIVES(cudaSuccess, cudaMalloc((void **)&p, BYTES));
    memset(host, 0xEE, sizeof host);
    GIVES(cudaSuccess, cudaMemset(p, 0x11, BYTES));
    copy();
    copy_rows();
    allocate();
    copy_arrays();
    add_nodes();
    HOLDS(is_untouched());
    return finish();
}
