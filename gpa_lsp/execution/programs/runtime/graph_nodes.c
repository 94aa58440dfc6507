/* Nodes of graphs: of memory, of events, of any kind, and what programs ask of them. */
#define _GNU_SOURCE
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_work(cudaGraphNode_t node, enum work_kind kind) { return is_handle(NODE, node) && node->work.kind == kind; }

#if CUDART_VERSION >= 11040
static uint64_t graph_bytes; /* that nodes have allocated */

PUBLIC cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                            size_t count, struct cudaMemAllocNodeParams *parameters) {
    LOCK();
    struct work work;
    REQUIRE(parameters != NULL && parameters->bytesize != 0 && is_handle(GRAPH, graph), cudaErrorInvalidValue);
    if (result == cudaSuccess)
        result = make_allocation(&work, parameters->bytesize);
    if (result == cudaSuccess)
        result = add_work(into, graph, before, count, cudaGraphNodeTypeMemAlloc, &work);
    if (result == cudaSuccess) {
        parameters->dptr = work.to.base;
        graph_bytes += work.width;
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                           size_t count, void *pointer) {
    struct work work = {.kind = WORK_RELEASE, .to = {pointer, 0, 0}};
    return add_work(into, graph, before, count, cudaGraphNodeTypeMemFree, &work);
}
PUBLIC cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *parameters) {
    if (!is_work(node, WORK_ALLOCATE) || parameters == NULL)
        return keep_error(cudaErrorInvalidValue);
    memset(parameters, 0, sizeof *parameters);
    parameters->bytesize = node->work.width;
    parameters->dptr = node->work.to.base;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *into) {
    if (!is_work(node, WORK_RELEASE) || into == NULL)
        return keep_error(cudaErrorInvalidValue);
    memcpy(into, &node->work.to.base, sizeof node->work.to.base);
    return cudaSuccess;
}
PUBLIC cudaError_t cudaDeviceGetGraphMemAttribute(int number, enum cudaGraphMemAttributeType attribute, void *value) {
    (void)number, (void)attribute;
    if (value == NULL)
        return keep_error(cudaErrorInvalidValue);
    memcpy(value, &graph_bytes, sizeof graph_bytes);
    return cudaSuccess;
}
PUBLIC cudaError_t cudaDeviceSetGraphMemAttribute(int number, enum cudaGraphMemAttributeType attribute, void *value) {
    (void)number, (void)attribute, (void)value;
    return cudaSuccess;
}
#endif

#if CUDART_VERSION >= 11010
static void record(void *event) { cudaEventRecord(event, NULL); }

PUBLIC cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                               size_t count, cudaEvent_t event) {
    struct work work = {.kind = WORK_HOST, .call = record, .data = event};
    if (!is_handle(EVENT, event))
        return keep_error(cudaErrorInvalidValue);
    return add_work(into, graph, before, count, cudaGraphNodeTypeEventRecord, &work);
}
PUBLIC cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                             size_t count, cudaEvent_t event) {
    struct work work = {.kind = WORK_NOTHING, .data = event};
    if (!is_handle(EVENT, event))
        return keep_error(cudaErrorInvalidValue);
    return add_work(into, graph, before, count, cudaGraphNodeTypeWaitEvent, &work);
}
static cudaError_t set_event(cudaGraphNode_t node, cudaEvent_t event) {
    if (!is_handle(NODE, node) || !is_handle(EVENT, event))
        return keep_error(cudaErrorInvalidValue);
    node->work.data = event;
    return cudaSuccess;
}
#define EVENT_NODES(name)                                                                                              \
    PUBLIC cudaError_t cudaGraphEvent##name##NodeGetEvent(cudaGraphNode_t node, cudaEvent_t *into) {                   \
        if (!is_handle(NODE, node) || node->type != EVENT_TYPE_##name || into == NULL)                                \
            return keep_error(cudaErrorInvalidValue);                                                                  \
        *into = node->work.data;                                                                                       \
        return cudaSuccess;                                                                                            \
    }                                                                                                                  \
    PUBLIC cudaError_t cudaGraphEvent##name##NodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {                   \
        return set_event(is_handle(NODE, node) && node->type == EVENT_TYPE_##name ? node : NULL, event);               \
    }                                                                                                                  \
    PUBLIC cudaError_t cudaGraphExecEvent##name##NodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,        \
                                                              cudaEvent_t event) {                                     \
        return cudaGraphEvent##name##NodeSetEvent(find_copy(executable, node), event);                                 \
    }
#define EVENT_TYPE_Record cudaGraphNodeTypeEventRecord
#define EVENT_TYPE_Wait cudaGraphNodeTypeWaitEvent
EVENT_NODES(Record)
EVENT_NODES(Wait)
#endif

PUBLIC cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *parameters) {
    struct work work;
    cudaError_t error = make_box_copy(&work, parameters);
    return error == cudaSuccess ? set_work(node, &work) : error;
}
PUBLIC cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                    const struct cudaMemcpy3DParms *parameters) {
    return cudaGraphMemcpyNodeSetParams(find_copy(executable, node), parameters);
}
PUBLIC cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *parameters) {
    if (!is_work(node, WORK_COPY) || parameters == NULL)
        return keep_error(cudaErrorInvalidValue);
    const struct work *work = &node->work;
    struct cudaPitchedPtr to = {.ptr = work->to.base, .pitch = work->to.pitch, .xsize = work->width, .ysize = work->height};
    struct cudaPitchedPtr from = {
        .ptr = work->from.base, .pitch = work->from.pitch, .xsize = work->width, .ysize = work->height};
    memset(parameters, 0, sizeof *parameters);
    parameters->dstPtr = to;
    parameters->srcPtr = from;
    parameters->extent = (struct cudaExtent){work->width, work->height, work->depth};
    parameters->kind = cudaMemcpyDefault;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *parameters) {
    if (!is_work(node, WORK_FILL) || parameters == NULL)
        return keep_error(cudaErrorInvalidValue);
    const struct work *work = &node->work;
    unsigned int element = work->element_bytes == 0 ? 1 : work->element_bytes;
    *parameters = (struct cudaMemsetParams){.dst = work->to.base, .pitch = work->to.pitch, .value = work->value,
                                            .elementSize = element, .width = work->width / element, .height = work->height};
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *parameters) {
    if (!is_work(node, WORK_HOST) || parameters == NULL)
        return keep_error(cudaErrorInvalidValue);
    *parameters = (struct cudaHostNodeParams){.fn = node->work.call, .userData = node->work.data};
    return cudaSuccess;
}

PUBLIC cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                                  size_t count, const void *symbol, const void *from, size_t size,
                                                  size_t offset, enum cudaMemcpyKind kind) {
    (void)kind;
    struct work work;
    cudaError_t error = make_symbol_copy(&work, symbol, (void *)from, size, offset, 1);
    return error != cudaSuccess ? error : add_work(into, graph, before, count, cudaGraphNodeTypeMemcpy, &work);
}
PUBLIC cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                                    size_t count, void *to, const void *symbol, size_t size, size_t offset,
                                                    enum cudaMemcpyKind kind) {
    (void)kind;
    struct work work;
    cudaError_t error = make_symbol_copy(&work, symbol, to, size, offset, 0);
    return error != cudaSuccess ? error : add_work(into, graph, before, count, cudaGraphNodeTypeMemcpy, &work);
}

PUBLIC cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *into) {
    if (!is_handle(NODE, node) || node->child == NULL || into == NULL)
        return keep_error(cudaErrorInvalidValue);
    *into = node->child;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child) {
    cudaGraphNode_t copy = find_copy(executable, node);
    cudaGraph_t made = copy == NULL || copy->child == NULL || !is_handle(GRAPH, child) ? NULL : copy_in_order(child);
    if (made == NULL)
        return keep_error(cudaErrorInvalidValue);
    clear_graph(copy->child);
    copy->child = made;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *into, cudaGraphNode_t node, cudaGraph_t clone) {
    if (into == NULL)
        return keep_error(cudaErrorInvalidValue);
    *into = find_copy_in(clone, node);
    return keep_error(*into == NULL ? cudaErrorInvalidValue : cudaSuccess);
}

PUBLIC cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned int is_enabled) {
    cudaGraphNode_t copy = find_copy(executable, node);
    if (copy != NULL)
        copy->is_disabled = !is_enabled;
    return keep_error(copy == NULL ? cudaErrorInvalidValue : cudaSuccess);
}
PUBLIC cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned int *is_enabled) {
    cudaGraphNode_t copy = is_enabled == NULL ? NULL : find_copy(executable, node);
    if (copy != NULL)
        *is_enabled = copy != NULL && !copy->is_disabled;
    return keep_error(copy == NULL ? cudaErrorInvalidValue : cudaSuccess);
}
PUBLIC cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long *flags) {
    if (!is_handle(EXECUTABLE, executable) || flags == NULL)
        return keep_error(cudaErrorInvalidValue);
    *flags = 0;
    return cudaSuccess;
}

/* Up to *count of what waits for what, and how many there are; of one node where one is given. */
static cudaError_t list_edges(cudaGraph_t graph, cudaGraphNode_t only_from, cudaGraphNode_t only_to, cudaGraphNode_t *from,
                              cudaGraphNode_t *to, size_t *count) {
    size_t found = 0;
    if (!is_handle(GRAPH, graph) || count == NULL)
        return keep_error(cudaErrorInvalidValue);
    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next)
        for (size_t i = 0; i < node->before_count; i++) {
            if ((only_to != NULL && node != only_to) || (only_from != NULL && node->before[i] != only_from))
                continue;
            if (from != NULL && found < *count)
                from[found] = node->before[i];
            if (to != NULL && found < *count)
                to[found] = node;
            found++;
        }
    *count = found;
    return cudaSuccess;
}
static cudaError_t remove_edges(const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (from == NULL || to == NULL || !is_handle(NODE, to[i]))
            return keep_error(cudaErrorInvalidValue); /* before any is removed */
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < to[i]->before_count; k++)
            if (to[i]->before[k] == from[i])
                to[i]->before[k--] = to[i]->before[--to[i]->before_count];
    return cudaSuccess;
}

/* The edges of CUDA 13 have data; all of ours are of the ordinary kind. */
#if CUDART_VERSION >= 13000
#define EDGES cudaGraphEdgeData *edges,
#define CONST_EDGES const cudaGraphEdgeData *edges,
#define CLEAR_EDGES(count) memset(edges, 0, edges == NULL ? 0 : (count) * sizeof *edges)
#else
#define EDGES
#define CONST_EDGES
#define CLEAR_EDGES(count) (void)0
#endif
#define LIST_EDGES(graph, only_from, only_to, from, to)                                                                \
    size_t room = count == NULL ? 0 : *count;                                                                          \
    cudaError_t error = list_edges(graph, only_from, only_to, from, to, count);                                        \
    if (error == cudaSuccess)                                                                                          \
        CLEAR_EDGES(*count < room ? *count : room);                                                                    \
    return error
PUBLIC cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, EDGES size_t *count) {
    LIST_EDGES(graph, NULL, NULL, from, to);
}
PUBLIC cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *into, EDGES size_t *count) {
    LIST_EDGES(is_handle(NODE, node) ? node->graph : NULL, NULL, node, into, NULL);
}
PUBLIC cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *into, EDGES size_t *count) {
    LIST_EDGES(is_handle(NODE, node) ? node->graph : NULL, node, NULL, NULL, into);
}
PUBLIC cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                               CONST_EDGES size_t count) {
    (void)graph;
#if CUDART_VERSION >= 13000
    (void)edges;
#endif
    return remove_edges(from, to, count);
}

static cudaError_t describe_capture(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *number,
                                    cudaGraph_t *graph, const cudaGraphNode_t **before, size_t *count) {
    static __thread cudaGraphNode_t last;
    uint32_t found_number;
    if (!is_stream(stream) || status == NULL)
        return keep_error(is_stream(stream) ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    cudaGraph_t found = find_captured(stream, &found_number);
    last = found == NULL ? NULL : found->last;
    cudaError_t error = cudaStreamIsCapturing(stream, status);
    if (number != NULL)
        *number = found_number;
    if (graph != NULL)
        *graph = found;
    if (before != NULL)
        *before = &last;
    if (count != NULL)
        *count = last != NULL;
    return error;
}
#if CUDART_VERSION >= 13000
PUBLIC cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                            unsigned long long *number, cudaGraph_t *graph, const cudaGraphNode_t **before,
                                            const cudaGraphEdgeData **edges, size_t *count) {
    if (edges != NULL)
        *edges = NULL;
    return describe_capture(stream, status, number, graph, before, count);
}
/* What is captured stands behind all that was put into the graph before, by hand as well. */
PUBLIC cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *before,
                                                       const cudaGraphEdgeData *edges, size_t count, unsigned int flags) {
    (void)stream, (void)before, (void)edges, (void)count, (void)flags;
    return cudaSuccess;
}
#else
#if CUDART_VERSION >= 11030
PUBLIC cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                               unsigned long long *number, cudaGraph_t *graph,
                                               const cudaGraphNode_t **before, size_t *count) {
    return describe_capture(stream, status, number, graph, before, count);
}
#endif
#undef cudaStreamGetCaptureInfo
PUBLIC cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                            unsigned long long *number) {
    return describe_capture(stream, status, number, NULL, NULL, NULL);
}
#if CUDART_VERSION >= 11030
PUBLIC cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *before, size_t count,
                                                       unsigned int flags) {
    (void)stream, (void)before, (void)count, (void)flags;
    return cudaSuccess;
}
#endif
#endif

#if CUDART_VERSION >= 12020
static cudaError_t add_any(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                           struct cudaGraphNodeParams *any) {
    switch (any == NULL ? cudaGraphNodeTypeCount : any->type) {
    case cudaGraphNodeTypeKernel: {
        struct cudaKernelNodeParams kernel = {.func = any->kernel.func, .gridDim = any->kernel.gridDim,
                                              .blockDim = any->kernel.blockDim,
                                              .sharedMemBytes = any->kernel.sharedMemBytes,
                                              .kernelParams = any->kernel.kernelParams, .extra = any->kernel.extra};
        return cudaGraphAddKernelNode(into, graph, before, count, &kernel);
    }
    case cudaGraphNodeTypeMemcpy: return cudaGraphAddMemcpyNode(into, graph, before, count, &any->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
        struct cudaMemsetParams fill = {.dst = any->memset.dst, .pitch = any->memset.pitch, .value = any->memset.value,
                                        .elementSize = any->memset.elementSize, .width = any->memset.width,
                                        .height = any->memset.height};
        return cudaGraphAddMemsetNode(into, graph, before, count, &fill);
    }
    case cudaGraphNodeTypeHost: {
        struct cudaHostNodeParams host = {.fn = any->host.fn, .userData = any->host.userData};
        return cudaGraphAddHostNode(into, graph, before, count, &host);
    }
    case cudaGraphNodeTypeGraph: return cudaGraphAddChildGraphNode(into, graph, before, count, any->graph.graph);
    case cudaGraphNodeTypeEmpty: return cudaGraphAddEmptyNode(into, graph, before, count);
    case cudaGraphNodeTypeEventRecord:
        return cudaGraphAddEventRecordNode(into, graph, before, count, any->eventRecord.event);
    case cudaGraphNodeTypeWaitEvent: return cudaGraphAddEventWaitNode(into, graph, before, count, any->eventWait.event);
    case cudaGraphNodeTypeMemFree: return cudaGraphAddMemFreeNode(into, graph, before, count, any->free.dptr);
    case cudaGraphNodeTypeMemAlloc: {
        struct cudaMemAllocNodeParams memory = {.bytesize = any->alloc.bytesize};
        cudaError_t error = cudaGraphAddMemAllocNode(into, graph, before, count, &memory);
        any->alloc.dptr = memory.dptr;
        return error;
    }
    case cudaGraphNodeTypeCount: return keep_error(cudaErrorInvalidValue);
    default: send_note(NOTE_UNSUPPORTED, "a conditional node of a graph"); return keep_error(cudaErrorNotSupported);
    }
}
#if CUDART_VERSION >= 13000
PUBLIC cudaError_t cudaGraphAddNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                    const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *any) {
    (void)edges;
    return add_any(into, graph, before, count, any);
}
#else
PUBLIC cudaError_t cudaGraphAddNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                    struct cudaGraphNodeParams *any) {
    return add_any(into, graph, before, count, any);
}
#endif

/* The work of a node made for this takes the place of what a node did. */
static cudaError_t set_any(cudaGraphNode_t node, struct cudaGraphNodeParams *any) {
    cudaGraph_t holder;
    cudaGraphNode_t made;
    if (!is_handle(NODE, node) || any == NULL || node->type != any->type)
        return keep_error(cudaErrorInvalidValue);
    cudaError_t error = cudaGraphCreate(&holder, 0);
    if (error == cudaSuccess && (error = add_any(&made, holder, NULL, 0, any)) == cudaSuccess) {
        struct work old = node->work;
        cudaGraph_t child = node->child;
        node->work = made->work;
        node->child = made->child;
        made->work = old;
        made->child = child;
    }
    clear_graph(holder);
    return error;
}
PUBLIC cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *any) {
    return set_any(node, any);
}
PUBLIC cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                              struct cudaGraphNodeParams *any) {
    return set_any(find_copy(executable, node), any);
}
#endif

#if CUDART_VERSION >= 11030
PUBLIC cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags) {
    (void)flags;
    if (!is_handle(GRAPH, graph) || path == NULL)
        return keep_error(cudaErrorInvalidValue);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return keep_error(cudaErrorOperatingSystem);
    fprintf(file, "digraph dot {\n");
    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        fprintf(file, "\"%p\" [label=\"type %d\"];\n", (void *)node, (int)node->type);
        for (size_t i = 0; i < node->before_count; i++)
            fprintf(file, "\"%p\" -> \"%p\";\n", (void *)node->before[i], (void *)node);
    }
    fprintf(file, "}\n");
    return keep_error(fclose(file) == 0 ? cudaSuccess : cudaErrorOperatingSystem);
}
#endif
