/* What the parts of graphs share: their nodes. */
#ifndef GPA_LSP_GRAPHS_H
#define GPA_LSP_GRAPHS_H

#include "runtime.h"

struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    struct work work;
    enum cudaGraphNodeType type;
    struct CUgraph_st *child; /* its own copy */
    struct CUgraph_st *graph; /* it is part of */
    cudaGraphNode_t *before;  /* what it waits for */
    size_t before_count;
    int is_done; /* while a graph is put in order */
    int is_disabled;
    struct CUgraphNode_st *original; /* of a node of an executable graph, or of a clone */
    void **arguments;                /* copies for cudaGraphKernelNodeGetParams, freed with the node */
};

struct CUgraph_st {
    struct CUgraphNode_st *first, *last;
    size_t count;
};

struct CUgraphExec_st {
    struct CUgraph_st *graph;
};

/* graphs.c */
HIDDEN cudaGraph_t copy_in_order(cudaGraph_t graph);
HIDDEN void clear_graph(cudaGraph_t graph);
HIDDEN cudaGraphNode_t find_copy(cudaGraphExec_t executable, cudaGraphNode_t node); /* NULL where there is none */
HIDDEN cudaGraphNode_t find_copy_in(cudaGraph_t graph, cudaGraphNode_t node);
HIDDEN cudaError_t add_work(cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                            enum cudaGraphNodeType type, const struct work *work);
HIDDEN cudaError_t set_work(cudaGraphNode_t node, const struct work *work);
HIDDEN struct work make_copy(void *to, const void *from, size_t size);
HIDDEN cudaGraph_t find_captured(cudaStream_t stream, uint32_t *number);

#endif
