/* Graphs: pieces of work that are recorded from streams or put together by hand, each behind those it depends on. A launch does them as streams do
   theirs (do_work), one after the other. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>

enum place { NOWHERE, BEGUN, PLACED };
struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    struct CUgraph_st *graph; /* it is part of */
    struct work work;         /* whose parameters and child are its own */
    cudaGraphNode_t *before;  /* what it depends on */
    size_t before_count;
    enum place place;                /* while its graph is put in order */
    struct CUgraphNode_st *original; /* that it is a copy of */
    void **arguments;                /* for cudaGraphKernelNodeGetParams */
};
/* What is instantiated is a copy in order, with a handle of another kind. */
struct CUgraph_st {
    struct CUgraphNode_st *first, *last;
    size_t count;
};

static int is_graph(cudaGraph_t graph) { return is_handle(GRAPH, graph); }
static cudaError_t tell(int is_well) { return keep_error(is_well ? cudaSuccess : cudaErrorInvalidValue); }

/* --- What both kinds of graphs are made of --- */
static cudaError_t destroy(enum handle_kind kind, void *graph);

static void free_work(const struct work *work) {
    free(work->parameters);
    if (work->child != NULL)
        destroy(GRAPH, work->child);
}
static void free_node(cudaGraphNode_t node) {
    free_work(&node->work);
    free(node->before);
    free(node->arguments);
    destroy_handle(NODE, node);
}
static cudaError_t destroy(enum handle_kind kind, void *graph) {
    if (!is_handle(kind, graph))
        return tell(0);
    for (cudaGraphNode_t node = ((cudaGraph_t)graph)->first, next; node != NULL; node = next) {
        next = node->next;
        free_node(node);
    }
    destroy_handle(kind, graph);
    return cudaSuccess;
}

static int add_dependency(cudaGraphNode_t node, cudaGraphNode_t before) {
    cudaGraphNode_t *grown = realloc(node->before, multiply_sizes(node->before_count + 1, sizeof *grown));
    if (grown == NULL)
        return 0;
    grown[node->before_count++] = before;
    node->before = grown;
    return 1;
}

/* A node for a piece of work, which it takes over; NULL where there is no memory. */
static cudaGraphNode_t append(cudaGraph_t graph, const cudaGraphNode_t *before, size_t count, const struct work *work) {
    cudaGraphNode_t node = make_handle(NODE, sizeof *node);
    if (node == NULL) {
        free_work(work);
        return NULL;
    }
    node->graph = graph;
    node->work = *work;
    for (size_t i = 0; i < count; i++)
        if (!add_dependency(node, before[i])) {
            free_node(node);
            return NULL;
        }
    *(graph->last == NULL ? &graph->first : &graph->last->next) = node;
    graph->last = node;
    graph->count++;
    return node;
}

static cudaGraph_t copy_graph(enum handle_kind kind, cudaGraph_t graph);

/* Copies a node behind those that it depends on; 0 where nodes depend on each other, or there is no memory. */
static int copy_node(cudaGraph_t into, cudaGraphNode_t node) {
    if (node->place != NOWHERE)
        return node->place == PLACED;
    node->place = BEGUN;
    for (size_t i = 0; i < node->before_count; i++)
        if (!copy_node(into, node->before[i]))
            return 0;
    struct work work = node->work;
    if (work.parameters != NULL && (work.parameters = malloc(work.parameter_bytes + 1u)) != NULL)
        memcpy(work.parameters, node->work.parameters, work.parameter_bytes);
    if (work.child != NULL)
        work.child = copy_graph(GRAPH, work.child);
    cudaGraphNode_t copy = append(into, NULL, 0, &work);
    if (copy == NULL || (work.parameters == NULL) != (node->work.parameters == NULL) || (work.child == NULL) != (node->work.child == NULL))
        return 0;
    copy->original = node;
    node->place = PLACED;
    return 1;
}
static cudaGraph_t copy_graph(enum handle_kind kind, cudaGraph_t graph) {
    cudaGraph_t made = is_graph(graph) || is_handle(EXECUTABLE, graph) ? make_handle(kind, sizeof *made) : NULL;
    cudaGraphNode_t first = made == NULL ? NULL : graph->first;
    for (cudaGraphNode_t node = first; node != NULL; node = node->next)
        node->place = NOWHERE;
    for (cudaGraphNode_t node = first; node != NULL; node = node->next)
        if (!copy_node(made, node)) {
            destroy(kind, made);
            return NULL;
        }
    return made;
}

cudaError_t run_graph(cudaGraph_t graph) {
    cudaError_t error = cudaSuccess;
    for (cudaGraphNode_t node = graph->first; node != NULL && error == cudaSuccess; node = node->next)
        error = do_work(&node->work);
    return error;
}

/* --- Capture. Each piece of work depends on the one before: streams are not told apart, which a GPU is free to do as well --- */
static cudaGraph_t captured;
static uint32_t capture_number, captures; /* of the capture under way, 0 where there is none; how many there were */
static int is_capture_invalid;            /* something was asked for that a stream may not do while it is captured */
static enum cudaStreamCaptureMode capture_mode;
static pthread_t capturing_thread;
static cudaStream_t capture_origin; /* the stream that it began on */

int is_under_capture(uint32_t number) { return number != 0 && number == capture_number; }

int is_captured(cudaStream_t stream) {
    return (uintptr_t)stream > 2 && is_handle(STREAM, stream) && is_under_capture(stream->capture);
}

int has_strict_capture(void) {
    int is_own = capture_mode == cudaStreamCaptureModeThreadLocal && pthread_equal(capturing_thread, pthread_self());
    return capture_number != 0 && (capture_mode == cudaStreamCaptureModeGlobal || is_own);
}

cudaError_t refuse_capture(void) {
    is_capture_invalid = 1;
    return cudaErrorStreamCaptureUnsupported;
}

static void give_capture_up(void) {
    if (captured != NULL)
        destroy(GRAPH, captured);
    captured = NULL;
    capture_number = 0;
}

void leave_capture(cudaStream_t stream) {
    if (is_captured(stream) && stream == capture_origin)
        give_capture_up();
}

cudaError_t capture(const struct work *work) {
    if (is_capture_invalid) {
        free_work(work);
        return cudaErrorStreamCaptureInvalidated;
    }
    return append(captured, &captured->last, captured->last != NULL, work) == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}

PUBLIC cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    LOCK();
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    REQUIRE((uintptr_t)stream > 2, cudaErrorStreamCaptureUnsupported);
    REQUIRE(capture_number == 0, cudaErrorIllegalState);
    if (result == cudaSuccess)
        result = cudaGraphCreate(&captured, 0);
    if (result == cudaSuccess) {
        stream->capture = capture_number = ++captures;
        capture_origin = stream;
        is_capture_invalid = 0;
        capture_mode = mode;
        capturing_thread = pthread_self();
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *into) {
    LOCK();
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    REQUIRE(is_captured(stream), cudaErrorIllegalState);
    REQUIRE(stream == capture_origin, cudaErrorStreamCaptureUnmatched);
    if (result == cudaSuccess) {
        result = is_capture_invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
        if (into != NULL) {
            *into = is_capture_invalid ? NULL : captured;
            captured = is_capture_invalid ? captured : NULL; /* it is the program's from now on */
        }
        give_capture_up();
    }
    UNLOCK();
}

PUBLIC cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    if (!is_stream(stream) || status == NULL)
        return keep_error(status == NULL ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    *status = !is_captured(stream)  ? cudaStreamCaptureStatusNone
              : is_capture_invalid ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

/* --- Graphs --- */
PUBLIC cudaError_t cudaGraphCreate(cudaGraph_t *into, unsigned int flags) {
    if (into == NULL)
        return tell(0);
    *into = make_handle(GRAPH, sizeof **into);
    return keep_error(*into == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}
static cudaError_t give_copy(void *into, enum handle_kind kind, cudaGraph_t graph) {
    cudaGraph_t made = into != NULL && is_graph(graph) ? copy_graph(kind, graph) : NULL;
    if (made != NULL)
        memcpy(into, &made, sizeof made);
    return tell(made != NULL);
}
PUBLIC cudaError_t cudaGraphClone(cudaGraph_t *into, cudaGraph_t graph) { return give_copy(into, GRAPH, graph); }
PUBLIC cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy(GRAPH, graph); }

PUBLIC cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *into, cudaGraph_t graph, unsigned long long flags) {
    return give_copy(into, EXECUTABLE, graph);
}
#if CUDART_VERSION >= 12000
PUBLIC cudaError_t cudaGraphInstantiate(cudaGraphExec_t *into, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(into, graph, flags);
}
PUBLIC cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *into, cudaGraph_t graph, cudaGraphInstantiateParams *parameters) {
    if (parameters == NULL)
        return tell(0);
    cudaError_t error = cudaGraphInstantiateWithFlags(into, graph, parameters->flags);
    parameters->errNode_out = NULL;
    parameters->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
    return error;
}
/* What another graph does takes the place of what was done, where it is the same kind of work in the same order. */
PUBLIC cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
    LOCK();
    cudaGraph_t old = (cudaGraph_t)executable;
    REQUIRE(is_handle(EXECUTABLE, executable) && is_graph(graph), cudaErrorInvalidValue);
    cudaGraph_t made = result == cudaSuccess ? copy_graph(GRAPH, graph) : NULL;
    REQUIRE(made != NULL, cudaErrorGraphExecUpdateFailure);
    if (result == cudaSuccess) {
        cudaGraphNode_t one = old->first, other = made->first;
        for (; one != NULL && other != NULL && one->work.kind == other->work.kind; one = one->next, other = other->next)
            other->original = one->original;
        if (one != NULL || other != NULL)
            result = cudaErrorGraphExecUpdateFailure;
        else {
            struct CUgraph_st before = *old;
            *old = *made;
            *made = before;
        }
        destroy(GRAPH, made);
    }
    if (info != NULL)
        *info = (cudaGraphExecUpdateResultInfo){
            .result = result == cudaSuccess ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged};
    UNLOCK();
}
#else
PUBLIC cudaError_t cudaGraphInstantiate(cudaGraphExec_t *into, cudaGraph_t graph, cudaGraphNode_t *node, char *log, size_t log_bytes) {
    (void)node, (void)log, (void)log_bytes; /* which tell of errors alone */
    return give_copy(into, EXECUTABLE, graph);
}
#endif

PUBLIC cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    LOCK();
    struct work work = {.kind = WORK_GRAPH};
    REQUIRE(is_handle(EXECUTABLE, executable), cudaErrorInvalidValue);
    REQUIRE(is_stream(stream), cudaErrorInvalidResourceHandle);
    if (result == cudaSuccess && !is_captured(stream))
        result = run_graph((cudaGraph_t)executable);
    else if (result == cudaSuccess)
        result = (work.child = copy_graph(GRAPH, (cudaGraph_t)executable)) == NULL ? cudaErrorMemoryAllocation : capture(&work);
    UNLOCK();
}
PUBLIC cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
    return tell(is_handle(EXECUTABLE, executable) && is_stream(stream));
}
PUBLIC cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return destroy(EXECUTABLE, executable); }

/* --- Nodes by hand --- */
static int are_nodes(const cudaGraphNode_t *nodes, size_t count, cudaGraph_t graph) {
    for (size_t i = 0; i < count; i++)
        if (nodes == NULL || !is_handle(NODE, nodes[i]) || nodes[i]->graph != graph)
            return 0;
    return 1;
}
static cudaError_t add_node(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                            cudaError_t error, const struct work *work) {
    if (error != cudaSuccess)
        return keep_error(error);
    if (into == NULL || !is_graph(graph) || !are_nodes(before, count, graph)) {
        free_work(work);
        return tell(0);
    }
    *into = append(graph, before, count, work);
    return keep_error(*into == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}
static cudaError_t set_work(cudaGraphNode_t node, cudaError_t error, const struct work *work) {
    int is_well = error == cudaSuccess && is_handle(NODE, node) && node->work.kind == work->kind;
    if (error == cudaSuccess)
        free_work(is_well ? &node->work : work);
    if (is_well)
        node->work = *work;
    return tell(is_well);
}
static cudaGraphNode_t find_copy(cudaGraphExec_t executable, cudaGraphNode_t node) {
    cudaGraphNode_t one = is_handle(EXECUTABLE, executable) ? ((cudaGraph_t)executable)->first : NULL;
    while (one != NULL && one->original != node)
        one = one->next;
    return one;
}

static cudaError_t make_fill(struct work *work, const struct cudaMemsetParams *asked) {
    if (asked != NULL)
        *work = (struct work){.kind = WORK_FILL, .to = {asked->dst, asked->pitch, 0}, .value = asked->value,
                              .element_bytes = asked->elementSize, .width = multiply_sizes(asked->width, asked->elementSize),
                              .height = asked->height, .depth = 1};
    return asked == NULL ? cudaErrorInvalidValue : cudaSuccess;
}
static cudaError_t make_call(struct work *work, const struct cudaHostNodeParams *asked) {
    if (asked != NULL)
        *work = (struct work){.kind = WORK_HOST, .call = asked->fn, .data = asked->userData};
    return asked == NULL || asked->fn == NULL ? cudaErrorInvalidValue : cudaSuccess;
}

/* The functions that add a node of a kind, and that change one, by what makes work of their last parameters. */
#define ADD(Kind, suffix, make, ...)                                                                                   \
    PUBLIC cudaError_t cudaGraphAdd##Kind##Node##suffix(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before, \
                                                        size_t count, ##__VA_ARGS__) {                                 \
        struct work work;                                                                                              \
        return add_node(into, graph, before, count, make, &work);                                                      \
    }
#define ADD_AND_SET(Kind, suffix, make, ...)                                                                           \
    ADD(Kind, suffix, make, __VA_ARGS__)                                                                               \
    PUBLIC cudaError_t cudaGraph##Kind##NodeSetParams##suffix(cudaGraphNode_t node, __VA_ARGS__) {                     \
        struct work work;                                                                                              \
        return set_work(node, make, &work);                                                                            \
    }                                                                                                                  \
    PUBLIC cudaError_t cudaGraphExec##Kind##NodeSetParams##suffix(cudaGraphExec_t executable, cudaGraphNode_t node, __VA_ARGS__) { \
        struct work work;                                                                                              \
        return set_work(find_copy(executable, node), make, &work);                                                     \
    }
ADD_AND_SET(Kernel, , make_launch(&work, parameters), const struct cudaKernelNodeParams *parameters)
ADD_AND_SET(Memcpy, , make_box_copy(&work, parameters), const struct cudaMemcpy3DParms *parameters)
ADD_AND_SET(Memcpy, 1D, make_copy(&work, to, from, size), void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
ADD_AND_SET(Memcpy, ToSymbol, make_symbol_copy(&work, symbol, (void *)from, size, offset, 1), const void *symbol, const void *from,
            size_t size, size_t offset, enum cudaMemcpyKind kind)
ADD_AND_SET(Memcpy, FromSymbol, make_symbol_copy(&work, symbol, to, size, offset, 0), void *to, const void *symbol, size_t size,
            size_t offset, enum cudaMemcpyKind kind)
ADD_AND_SET(Memset, , make_fill(&work, parameters), const struct cudaMemsetParams *parameters)
ADD_AND_SET(Host, , make_call(&work, parameters), const struct cudaHostNodeParams *parameters)
ADD(ChildGraph, , (work = (struct work){.kind = WORK_GRAPH}, give_copy(&work.child, GRAPH, child)), cudaGraph_t child)
ADD(Empty, , (work = (struct work){.kind = WORK_NOTHING}, cudaSuccess))
#if CUDART_VERSION >= 11040
/* Memory is there from now on, and each launch finds it where it is. */
static cudaError_t make_node_allocation(struct work *work, struct cudaMemAllocNodeParams *asked) {
    cudaError_t error = asked == NULL || asked->bytesize == 0 ? cudaErrorInvalidValue : make_allocation(work, asked->bytesize);
    if (error == cudaSuccess)
        asked->dptr = work->to.base;
    return error;
}
ADD(MemAlloc, , make_node_allocation(&work, parameters), struct cudaMemAllocNodeParams *parameters)
ADD(MemFree, , (work = (struct work){.kind = WORK_RELEASE, .to = {pointer, 0, 0}}, tell(pointer != NULL)), void *pointer)
#endif

PUBLIC cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *into) {
    if (!is_handle(NODE, node) || node->work.kind != WORK_LAUNCH || into == NULL)
        return tell(0);
    free(node->arguments);
    node->arguments = describe_launch(&node->work, into);
    return keep_error(node->arguments == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}
PUBLIC cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *into) {
    if (is_handle(NODE, node) && into != NULL)
        *into = (enum cudaGraphNodeType)node->work.kind;
    return tell(is_handle(NODE, node) && into != NULL);
}

#if CUDART_VERSION >= 13000
#define EDGES const cudaGraphEdgeData *edges,
#else
#define EDGES
#endif
PUBLIC cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            EDGES size_t count) {
    int is_well = is_graph(graph) && are_nodes(from, count, graph) && are_nodes(to, count, graph);
    for (size_t i = 0; is_well && i < count; i++)
        is_well = add_dependency(to[i], from[i]);
    return tell(is_well);
}

static cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *into, size_t *count, int is_roots_only) {
    if (!is_graph(graph) || count == NULL)
        return tell(0);
    size_t room = into == NULL ? 0 : *count;
    *count = 0;
    for (cudaGraphNode_t node = graph->first; node != NULL; node = node->next)
        if (!is_roots_only || node->before_count == 0) {
            if (*count < room)
                into[*count] = node;
            ++*count;
        }
    return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *into, size_t *count) { return list_nodes(graph, into, count, 0); }
PUBLIC cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *into, size_t *count) { return list_nodes(graph, into, count, 1); }
