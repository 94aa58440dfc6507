/* Graphs: what a stream would have done while it was captured, or nodes put together by hand; done in order when the graph is launched. */
#define _GNU_SOURCE
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

static cudaGraph_t captured;
static int is_borrowed; /* the graph that is captured into was there before */
static uint32_t capture_number; /* of the capture under way; 0 where there is none */
static uint32_t captures;
static int is_capture_invalid; /* something was asked for that a stream may not do while it is captured */
static enum cudaStreamCaptureMode capture_mode;
static pthread_t capturing_thread;
static __thread enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

int is_under_capture(uint32_t number) { return number != 0 && number == capture_number; }

int is_captured(cudaStream_t stream) {
    return capture_number != 0 && (uintptr_t)stream > 2 && is_handle(STREAM, stream) && stream->capture == capture_number;
}

int has_strict_capture(void) {
    return capture_number != 0 && thread_mode != cudaStreamCaptureModeRelaxed &&
           (capture_mode == cudaStreamCaptureModeGlobal ||
            (capture_mode == cudaStreamCaptureModeThreadLocal && pthread_equal(capturing_thread, pthread_self())));
}

cudaError_t refuse_capture(void) {
    is_capture_invalid = 1;
    return cudaErrorStreamCaptureUnsupported;
}

static int is_graph(cudaGraph_t graph) { return is_handle(GRAPH, graph); }

static void free_node(struct CUgraphNode_st *node);

void clear_graph(cudaGraph_t graph) {
    for (struct CUgraphNode_st *node = graph->first, *next; node != NULL; node = next) {
        next = node->next;
        free_node(node);
    }
    destroy_handle(GRAPH, graph);
}

void give_capture_up(void) {
    if (!is_borrowed)
        clear_graph(captured);
    captured = NULL;
    capture_number = 0;
}

static void free_node(struct CUgraphNode_st *node) {
    if (node->child != NULL)
        clear_graph(node->child);
    free(node->work.parameters);
    free(node->before);
    free(node->arguments);
    destroy_handle(NODE, node);
}

static cudaGraphNode_t add_node(cudaGraph_t graph, enum cudaGraphNodeType type, const cudaGraphNode_t *before, size_t count) {
    struct CUgraphNode_st *node = make_handle(NODE, sizeof *node);
    if (node == NULL)
        return NULL;
    node->type = type;
    node->graph = graph;
    if (count > 0) {
        node->before = malloc(multiply_sizes(count, sizeof *before));
        if (node->before == NULL) {
            destroy_handle(NODE, node);
            return NULL;
        }
        memcpy(node->before, before, count * sizeof *before);
        node->before_count = count;
    }
    if (graph->last == NULL)
        graph->first = node;
    else
        graph->last->next = node;
    graph->last = node;
    graph->count++;
    return node;
}

static enum cudaGraphNodeType type_of(const struct work *work) {
    switch (work->kind) {
    case WORK_LAUNCH: return cudaGraphNodeTypeKernel;
    case WORK_COPY: return cudaGraphNodeTypeMemcpy;
    case WORK_FILL: return cudaGraphNodeTypeMemset;
    case WORK_HOST: return cudaGraphNodeTypeHost;
#if CUDART_VERSION >= 11040
    case WORK_ALLOCATE: return cudaGraphNodeTypeMemAlloc;
    case WORK_RELEASE: return cudaGraphNodeTypeMemFree;
#endif
    default: return cudaGraphNodeTypeEmpty;
    }
}

/* Each captured piece of work waits for the one before it: streams are not told apart, which a GPU is free to do as well. */
cudaError_t capture(const struct work *work) {
    if (is_capture_invalid || !is_graph(captured)) {
        free(work->parameters);
        return cudaErrorStreamCaptureInvalidated;
    }
    cudaGraphNode_t last = captured->last;
    cudaGraphNode_t node = add_node(captured, type_of(work), &last, last != NULL);
    if (node == NULL)
        return cudaErrorMemoryAllocation;
    node->work = *work;
    return cudaSuccess;
}

static cudaError_t begin(cudaStream_t stream, cudaGraph_t into, enum cudaStreamCaptureMode mode) {
    LOCK_FOR("cudaStreamBeginCapture");
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    REQUIRE((uintptr_t)stream > 2, cudaErrorStreamCaptureUnsupported);
    REQUIRE(capture_number == 0, cudaErrorIllegalState);
    if (result == cudaSuccess) {
        captured = into == NULL ? make_handle(GRAPH, sizeof *captured) : into;
        is_borrowed = into != NULL;
        result = captured == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
    }
    if (result == cudaSuccess) {
        stream->capture = capture_number = ++captures;
        is_capture_invalid = 0;
        capture_mode = mode;
        capturing_thread = pthread_self();
    }
    UNLOCK();
}
PUBLIC cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    return begin(stream, NULL, mode);
}
#if CUDART_VERSION >= 12030
PUBLIC cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *before,
                                                 const cudaGraphEdgeData *edges, size_t count,
                                                 enum cudaStreamCaptureMode mode) {
    (void)before, (void)edges, (void)count; /* what is captured stands behind all that is there */
    return is_graph(graph) ? begin(stream, graph, mode) : keep_error(cudaErrorInvalidValue);
}
#endif

PUBLIC cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *into) {
    LOCK();
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    REQUIRE(is_captured(stream), cudaErrorIllegalState);
    if (result == cudaSuccess) {
        int is_well = !is_capture_invalid && is_graph(captured);
        if (into != NULL)
            *into = is_well ? captured : NULL;
        is_borrowed |= (is_well && into != NULL) || !is_graph(captured);
        give_capture_up();
        result = is_well ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
    }
    UNLOCK();
}

/* The graph that a stream is captured into, and the number of the capture; NULL where it is not. */
cudaGraph_t find_captured(cudaStream_t stream, uint32_t *number) {
    *number = is_captured(stream) ? capture_number : 0;
    return is_captured(stream) && is_graph(captured) ? captured : NULL;
}

PUBLIC cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    if (!is_stream(stream))
        return keep_error(cudaErrorInvalidResourceHandle);
    if (status == NULL)
        return keep_error(cudaErrorInvalidValue);
    *status = !is_captured(stream)  ? cudaStreamCaptureStatusNone
              : is_capture_invalid ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

PUBLIC cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    if (mode == NULL || (unsigned int)*mode > cudaStreamCaptureModeRelaxed)
        return keep_error(cudaErrorInvalidValue);
    enum cudaStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

PUBLIC cudaError_t cudaGraphCreate(cudaGraph_t *into, unsigned int flags) {
    (void)flags;
    if (into == NULL)
        return keep_error(cudaErrorInvalidValue);
    *into = make_handle(GRAPH, sizeof **into);
    return keep_error(*into == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}

/* A graph by itself, its nodes behind what they wait for; NULL where nodes wait for each other. */
cudaGraph_t copy_in_order(cudaGraph_t graph) {
    cudaGraph_t made = make_handle(GRAPH, sizeof *made);
    int is_moving = 1, is_well = made != NULL;
    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next)
        node->is_done = 0;
    while (is_well && made->count < graph->count && is_moving) {
        is_moving = 0;
        for (struct CUgraphNode_st *node = graph->first; is_well && node != NULL; node = node->next) {
            int is_ready = !node->is_done;
            for (size_t i = 0; is_ready && i < node->before_count; i++)
                is_ready = node->before[i]->is_done;
            if (!is_ready)
                continue;
            struct CUgraphNode_st *copy = add_node(made, node->type, NULL, 0);
            is_well = copy != NULL;
            node->is_done = is_moving = 1;
            if (!is_well)
                break;
            copy->work = node->work;
            copy->is_disabled = node->is_disabled;
            copy->original = node;
            copy->work.parameters = NULL;
            if (node->work.parameters != NULL) {
                copy->work.parameters = malloc(node->work.parameter_bytes + 1u);
                is_well = copy->work.parameters != NULL;
                if (is_well)
                    memcpy(copy->work.parameters, node->work.parameters, node->work.parameter_bytes);
            }
            if (is_well && node->child != NULL) {
                copy->child = copy_in_order(node->child);
                is_well = copy->child != NULL;
            }
        }
    }
    if (is_well && made->count == graph->count)
        return made;
    if (made != NULL)
        clear_graph(made);
    return NULL;
}

static cudaError_t run_graph(cudaGraph_t graph) {
    cudaError_t error = cudaSuccess;
    for (struct CUgraphNode_st *node = graph->first; node != NULL && error == cudaSuccess; node = node->next)
        if (!node->is_disabled)
            error = node->child != NULL ? run_graph(node->child) : do_work(&node->work);
    return error;
}

static cudaError_t instantiate(cudaGraphExec_t *into, cudaGraph_t graph) {
    LOCK_FOR("cudaGraphInstantiate");
    REQUIRE(into != NULL && is_graph(graph), cudaErrorInvalidValue);
    struct CUgraphExec_st *made = result == cudaSuccess ? make_handle(EXECUTABLE, sizeof *made) : NULL;
    REQUIRE(made != NULL, cudaErrorMemoryAllocation);
    if (result == cudaSuccess) {
        made->graph = copy_in_order(graph);
        result = made->graph == NULL ? cudaErrorInvalidValue : cudaSuccess;
    }
    if (result == cudaSuccess)
        *into = made;
    else
        destroy_handle(EXECUTABLE, made);
    UNLOCK();
}

#if CUDART_VERSION >= 12000
PUBLIC cudaError_t cudaGraphInstantiate(cudaGraphExec_t *into, cudaGraph_t graph, unsigned long long flags) {
    (void)flags;
    return instantiate(into, graph);
}
PUBLIC cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *into, cudaGraph_t graph,
                                                  cudaGraphInstantiateParams *parameters) {
    if (parameters == NULL)
        return keep_error(cudaErrorInvalidValue);
    cudaError_t error = instantiate(into, graph);
    parameters->errNode_out = NULL;
    parameters->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
    return error;
}
#else
PUBLIC cudaError_t cudaGraphInstantiate(cudaGraphExec_t *into, cudaGraph_t graph, cudaGraphNode_t *node, char *log,
                                        size_t log_bytes) {
    if (node != NULL)
        *node = NULL;
    if (log != NULL && log_bytes > 0)
        *log = 0;
    return instantiate(into, graph);
}
#endif
#if CUDART_VERSION >= 11040
PUBLIC cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *into, cudaGraph_t graph, unsigned long long flags) {
    (void)flags;
    return instantiate(into, graph);
}
#endif

/* The graph that another became: its work takes the place of what was there. */
static cudaError_t update(cudaGraphExec_t executable, cudaGraph_t graph) {
    LOCK_FOR("cudaGraphExecUpdate");
    REQUIRE(is_handle(EXECUTABLE, executable) && is_graph(graph), cudaErrorInvalidValue);
    cudaGraph_t made = result == cudaSuccess ? copy_in_order(graph) : NULL;
    int is_alike = made != NULL && made->count == executable->graph->count;
    struct CUgraphNode_st *old = made == NULL ? NULL : executable->graph->first;
    for (struct CUgraphNode_st *node = made == NULL ? NULL : made->first; is_alike && node != NULL; node = node->next) {
        is_alike = node->type == old->type;
        old = old->next;
    }
    if (result == cudaSuccess && !is_alike)
        result = cudaErrorGraphExecUpdateFailure;
    if (is_alike) {
        clear_graph(executable->graph);
        executable->graph = made;
    } else if (made != NULL)
        clear_graph(made);
    UNLOCK();
}

#if CUDART_VERSION >= 12000
PUBLIC cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
    cudaError_t error = update(executable, graph);
    if (info != NULL) {
        memset(info, 0, sizeof *info);
        info->result = error == cudaSuccess ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    }
    return error;
}
#else
PUBLIC cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t *node,
                                       enum cudaGraphExecUpdateResult *how) {
    cudaError_t error = update(executable, graph);
    if (node != NULL)
        *node = NULL;
    if (how != NULL)
        *how = error == cudaSuccess ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    return error;
}
#endif

PUBLIC cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    LOCK();
    REQUIRE(is_handle(EXECUTABLE, executable), cudaErrorInvalidValue);
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess && is_captured(stream) && (is_capture_invalid || !is_graph(captured)))
        result = cudaErrorStreamCaptureInvalidated;
    if (result == cudaSuccess && is_captured(stream)) {
        cudaGraphNode_t last = captured->last;
        cudaGraphNode_t node = add_node(captured, cudaGraphNodeTypeGraph, &last, last != NULL);
        if (node == NULL || (node->child = copy_in_order(executable->graph)) == NULL)
            result = cudaErrorMemoryAllocation;
    } else if (result == cudaSuccess)
        result = run_graph(executable->graph);
    UNLOCK();
}
PUBLIC cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
    int is_well = is_handle(EXECUTABLE, executable) && is_stream(stream);
    return keep_error(is_well ? cudaSuccess : cudaErrorInvalidValue);
}
PUBLIC cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    if (!is_handle(EXECUTABLE, executable))
        return keep_error(cudaErrorInvalidValue);
    clear_graph(executable->graph);
    destroy_handle(EXECUTABLE, executable);
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    if (!is_graph(graph))
        return keep_error(cudaErrorInvalidValue);
    clear_graph(graph);
    return cudaSuccess;
}

/* Whether these are nodes, of one graph where it is given. */
static int are_nodes(const cudaGraphNode_t *nodes, size_t count, cudaGraph_t graph) {
    for (size_t i = 0; i < count; i++)
        if (nodes == NULL || !is_handle(NODE, nodes[i]) || (graph != NULL && nodes[i]->graph != graph))
            return 0;
    return 1;
}

cudaError_t add_work(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                            enum cudaGraphNodeType type, const struct work *work) {
    int is_well = into != NULL && is_graph(graph) && are_nodes(before, count, graph);
    cudaGraphNode_t made = is_well ? add_node(graph, type, before, count) : NULL;
    if (made == NULL) {
        free(work->parameters);
        return keep_error(is_well ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
    }
    made->work = *work;
    *into = made;
    return cudaSuccess;
}

static cudaError_t read_kernel(struct work *work, const struct cudaKernelNodeParams *parameters) {
    if (parameters == NULL)
        return keep_error(cudaErrorInvalidValue);
    return keep_error(make_launch(work, parameters->func, parameters->gridDim, parameters->blockDim,
                                  parameters->kernelParams, parameters->sharedMemBytes));
}

PUBLIC cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                          size_t count, const struct cudaKernelNodeParams *parameters) {
    struct work work;
    cudaError_t error = read_kernel(&work, parameters);
    return error == cudaSuccess ? add_work(into, graph, before, count, cudaGraphNodeTypeKernel, &work) : error;
}
static cudaError_t set_kernel(cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters) {
    struct work work;
    if (!is_handle(NODE, node) || node->work.kind != WORK_LAUNCH)
        return keep_error(cudaErrorInvalidValue);
    cudaError_t error = read_kernel(&work, parameters);
    if (error == cudaSuccess) {
        free(node->work.parameters);
        node->work = work;
    }
    return error;
}
PUBLIC cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters) {
    return set_kernel(node, parameters);
}
cudaGraphNode_t find_copy(cudaGraphExec_t executable, cudaGraphNode_t node) {
    if (!is_handle(EXECUTABLE, executable))
        return NULL;
    return find_copy_in(executable->graph, node);
}
cudaGraphNode_t find_copy_in(cudaGraph_t graph, cudaGraphNode_t node) {
    for (struct CUgraphNode_st *one = is_graph(graph) ? graph->first : NULL; one != NULL; one = one->next)
        if (one->original == node)
            return one;
    return NULL;
}
PUBLIC cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                    const struct cudaKernelNodeParams *parameters) {
    cudaGraphNode_t copy = find_copy(executable, node);
    return copy == NULL ? keep_error(cudaErrorInvalidValue) : set_kernel(copy, parameters);
}
PUBLIC cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *parameters) {
    if (!is_handle(NODE, node) || node->work.kind != WORK_LAUNCH || parameters == NULL)
        return keep_error(cudaErrorInvalidValue);
    free(node->arguments);
    node->arguments = calloc(count_parameters(&node->work) + 1, sizeof *node->arguments);
    if (node->arguments == NULL)
        return keep_error(cudaErrorMemoryAllocation);
    describe_launch(&node->work, parameters, node->arguments);
    return cudaSuccess;
}

PUBLIC cudaError_t cudaGraphClone(cudaGraph_t *into, cudaGraph_t graph) {
    if (into == NULL || !is_graph(graph))
        return keep_error(cudaErrorInvalidValue);
    *into = copy_in_order(graph);
    return keep_error(*into == NULL ? cudaErrorInvalidValue : cudaSuccess);
}

/* What waited for it waits for what it waited for, as nodes run in the order of the list. */
PUBLIC cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    if (!is_handle(NODE, node))
        return keep_error(cudaErrorInvalidValue);
    cudaGraphNode_t *place = &node->graph->first, before = NULL;
    for (; *place != node; place = &(*place)->next)
        before = *place;
    *place = node->next;
    if (node->graph->last == node)
        node->graph->last = before;
    node->graph->count--;
    for (cudaGraphNode_t one = node->graph->first; one != NULL; one = one->next)
        for (size_t i = 0; i < one->before_count; i++)
            if (one->before[i] == node)
                one->before[i--] = one->before[--one->before_count];
    free_node(node);
    return cudaSuccess;
}

cudaError_t set_work(cudaGraphNode_t node, const struct work *work) {
    if (!is_handle(NODE, node) || work == NULL || node->work.kind != work->kind)
        return keep_error(cudaErrorInvalidValue);
    node->work = *work;
    return cudaSuccess;
}
struct work make_copy(void *to, const void *from, size_t size) {
    return (struct work){.kind = WORK_COPY, .to = {to, size, 0}, .from = {(char *)from, size, 0},
                         .width = size, .height = 1, .depth = 1};
}
/* What parameters ask for; of none nothing, which no node does that could be set to it. */
static struct work make_fill(const struct cudaMemsetParams *parameters) {
    if (parameters == NULL)
        return (struct work){.kind = WORK_NOTHING};
    return (struct work){.kind = WORK_FILL, .to = {parameters->dst, parameters->pitch, 0}, .value = parameters->value,
                         .element_bytes = parameters->elementSize,
                         .width = multiply_sizes(parameters->width, parameters->elementSize), .height = parameters->height, .depth = 1};
}
static struct work make_call(const struct cudaHostNodeParams *parameters) {
    if (parameters == NULL || parameters->fn == NULL)
        return (struct work){.kind = WORK_NOTHING};
    return (struct work){.kind = WORK_HOST, .call = parameters->fn, .data = parameters->userData};
}
static cudaError_t add_some(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                            enum cudaGraphNodeType type, struct work work) {
    return work.kind == WORK_NOTHING ? keep_error(cudaErrorInvalidValue) : add_work(into, graph, before, count, type, &work);
}
PUBLIC cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t size,
                                                  enum cudaMemcpyKind kind) {
    (void)kind;
    struct work work = make_copy(to, from, size);
    return set_work(node, &work);
}
PUBLIC cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void *to,
                                                      const void *from, size_t size, enum cudaMemcpyKind kind) {
    return cudaGraphMemcpyNodeSetParams1D(find_copy(executable, node), to, from, size, kind);
}
PUBLIC cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *parameters) {
    struct work work = make_fill(parameters);
    return set_work(node, &work);
}
PUBLIC cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                    const struct cudaMemsetParams *parameters) {
    return cudaGraphMemsetNodeSetParams(find_copy(executable, node), parameters);
}
PUBLIC cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *parameters) {
    struct work work = make_call(parameters);
    return set_work(node, &work);
}
PUBLIC cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                  const struct cudaHostNodeParams *parameters) {
    return cudaGraphHostNodeSetParams(find_copy(executable, node), parameters);
}

PUBLIC cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                            size_t count, void *to, const void *from, size_t size,
                                            enum cudaMemcpyKind kind) {
    (void)kind;
    struct work work = make_copy(to, from, size);
    return add_work(into, graph, before, count, cudaGraphNodeTypeMemcpy, &work);
}
PUBLIC cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                          size_t count, const struct cudaMemcpy3DParms *parameters) {
    struct work work;
    cudaError_t error = make_box_copy(&work, parameters);
    return error == cudaSuccess ? add_work(into, graph, before, count, cudaGraphNodeTypeMemcpy, &work) : error;
}
PUBLIC cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                          size_t count, const struct cudaMemsetParams *parameters) {
    return add_some(into, graph, before, count, cudaGraphNodeTypeMemset, make_fill(parameters));
}
PUBLIC cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                        size_t count, const struct cudaHostNodeParams *parameters) {
    return add_some(into, graph, before, count, cudaGraphNodeTypeHost, make_call(parameters));
}
PUBLIC cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                         size_t count) {
    struct work work = {.kind = WORK_NOTHING};
    return add_work(into, graph, before, count, cudaGraphNodeTypeEmpty, &work);
}
PUBLIC cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before,
                                              size_t count, cudaGraph_t child) {
    struct work work = {.kind = WORK_NOTHING};
    cudaGraph_t copy = is_graph(child) ? copy_in_order(child) : NULL;
    if (copy == NULL)
        return keep_error(cudaErrorInvalidValue);
    cudaError_t error = add_work(into, graph, before, count, cudaGraphNodeTypeGraph, &work);
    if (error == cudaSuccess)
        (*into)->child = copy;
    else
        clear_graph(copy);
    return error;
}

static cudaError_t add_dependencies(const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count) {
    if (!are_nodes(from, count, NULL) || !are_nodes(to, count, NULL))
        return keep_error(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; i++) {
        cudaGraphNode_t *grown = realloc(to[i]->before, (to[i]->before_count + 1) * sizeof *grown);
        if (grown == NULL)
            return keep_error(cudaErrorMemoryAllocation);
        grown[to[i]->before_count++] = from[i];
        to[i]->before = grown;
    }
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
PUBLIC cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            const cudaGraphEdgeData *edges, size_t count) {
    (void)graph, (void)edges;
    return add_dependencies(from, to, count);
}
#else
PUBLIC cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            size_t count) {
    (void)graph;
    return add_dependencies(from, to, count);
}
#endif

static cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *into, size_t *count, int is_roots_only) {
    size_t found = 0;
    if (!is_graph(graph) || count == NULL)
        return keep_error(cudaErrorInvalidValue);
    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        if (is_roots_only && node->before_count > 0)
            continue;
        if (into != NULL && found < *count)
            into[found] = node;
        found++;
    }
    *count = found;
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *into, size_t *count) {
    return list_nodes(graph, into, count, 0);
}
PUBLIC cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *into, size_t *count) {
    return list_nodes(graph, into, count, 1);
}
PUBLIC cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
    if (!is_handle(NODE, node) || type == NULL)
        return keep_error(cudaErrorInvalidValue);
    *type = node->type;
    return cudaSuccess;
}
