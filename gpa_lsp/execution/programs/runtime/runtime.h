/* What the parts of the runtime share: the connection to gpa_lsp, device memory, modules. */
#ifndef GPA_LSP_RUNTIME_H
#define GPA_LSP_RUNTIME_H

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "sizes.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define PUBLIC __attribute__((visibility("default")))

/* Requests; gpa_lsp/execution/programs/messages.py has the same numbers. */
enum request {
    REQUEST_HELLO = 1,
    REQUEST_MODULE = 2,
    REQUEST_FUNCTION = 3,
    REQUEST_VARIABLE = 4,
    REQUEST_LAUNCH = 5,
    REQUEST_TEXTURE = 6,
    REQUEST_OCCUPANCY = 7,
    REQUEST_NOTE = 8,
    REQUEST_DROP_TEXTURE = 9,
    REQUEST_EVENTS = 10, /* there is no room for more of them: they are to be taken */
    REQUEST_PATH = 11,   /* a number, and the return addresses that it stands for */
    REQUEST_COMPUTE = 12, /* what a function of a library does to memory of the device */
};

/* What stands in a note: something the program asked for that is not done as a GPU would do it. */
enum note {
    NOTE_UNSUPPORTED = 1,
    NOTE_EVENT_TIME = 2,
    NOTE_OWN_RUNTIME = 3, /* a runtime library that is linked statically asked for the driver */
    NOTE_OUT_OF_REACH = 4, /* a function of a library was given memory that the device does not see, or too little */
};

struct part {
    const void *bytes;
    size_t size;
};

struct reply {
    int32_t status; /* a cudaError_t */
    uint32_t size;
    char *bytes; /* freed by free_reply */
};

/* The device as gpa_lsp describes it in its first reply. What the program allocates begins at client_base, what the host sees of it at host_base. */
struct device {
    uint64_t arena_base, arena_bytes, client_base, host_base, memory_bytes;
    int32_t major, minor, sm_count, clock_khz, memory_clock_khz, bus_bits, l2_bytes;
    int32_t shared_per_block, shared_per_block_optin, shared_per_sm, registers_per_sm, threads_per_sm, blocks_per_sm;
    char name[128];
};

#define LAST_WORDS_BYTES 4096
/* What is known of a program that died: behind the arena in the file of device memory. gpa_lsp/execution/programs/messages.py reads it. */
struct last_words {
    uint64_t address; /* that an access failed at */
    uint32_t signal;  /* that the failed access raised; 0 where none did */
    char call[60];    /* the function of CUDA that was called last */
};

/* What happened to memory, in order; taken with each launch, and when the program has ended. */
enum event_kind { EVENT_ALLOCATE = 1, EVENT_RELEASE = 2, EVENT_COPY = 3, EVENT_FILL = 4, EVENT_LAUNCH = 5, EVENT_LOCATE = 6 };
struct event {
    uint32_t kind, path;   /* where the host was; 0 where that is not known */
    uint64_t to, from;     /* addresses; of an allocation its base and its kind, of a copy of rows with gaps between them also those */
    uint64_t size;         /* bytes from the first to the last */
    uint32_t is_gapped, host_path; /* of a copy: where the host allocated its side */
};
#define MOST_EVENTS 1600
struct events {
    uint32_t count, unused;
    struct event listed[MOST_EVENTS];
};

/* events.c */
HIDDEN uint32_t find_path(void);
HIDDEN void note_event(enum event_kind kind, const void *to, const void *from, uint64_t size, int is_gapped);

/* connection.c */
HIDDEN extern struct events *events; /* behind the last words; NULL before there is a connection */
HIDDEN extern pthread_mutex_t runtime_lock; /* recursive; held by every public function that touches shared state */
HIDDEN extern struct device device;
HIDDEN extern int memory_file; /* of device memory */
HIDDEN extern struct last_words *last_words;
static inline void note_call(const char *name) {
    if (name[0] == 'c' && name[1] == 'u') /* not what is ours alone */
        strncpy(last_words->call, name, sizeof last_words->call - 1);
}
HIDDEN void *locate(const void *pointer); /* where the library itself reads and writes memory: the host has no access to the device's own addresses */
HIDDEN int is_mapped(const void *pointer, size_t size); /* for the host, to be read */
HIDDEN int is_writable(const void *pointer, size_t size);
HIDDEN cudaError_t connect_once(void);
HIDDEN cudaError_t ask(uint32_t request, const struct part *parts, int count, struct reply *reply);
HIDDEN void free_reply(struct reply *reply);
HIDDEN void send_note(uint32_t kind, const char *name);
HIDDEN int refuse_call(const char *name); /* each library has its own: tells gpa_lsp what is not emulated, gives the error that the caller gets */
HIDDEN cudaError_t keep_error(cudaError_t error);
HIDDEN void set_fatal_error(cudaError_t error);

#define LOCK() LOCK_FOR(__func__)
#define LOCK_FOR(call)                                                                                                 \
    pthread_mutex_lock(&runtime_lock);                                                                                 \
    cudaError_t result = connect_once();                                                                               \
    note_call(call)
#define UNLOCK()                                                                                                       \
    pthread_mutex_unlock(&runtime_lock);                                                                               \
    return keep_error(result)

/* Refuse at once. */
#define REFUSE_IF(condition, error)                                                                                    \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            return (error);                                                                                            \
    } while (0)
/* Succeed so far, or refuse. */
#define REQUIRE(condition, error)                                                                                      \
    if (result == cudaSuccess && !(condition))                                                                         \
    result = (error)

/* handles.c */
enum handle_kind { STREAM, EVENT, ARRAY, TEXTURE, POOL, GRAPH, EXECUTABLE, NODE, MODULE, FUNCTION, LINK, CUBLAS, GENERATOR };
HIDDEN void *make_handle(enum handle_kind kind, size_t bytes); /* zeros; NULL where there is no room */
HIDDEN int is_handle(enum handle_kind kind, const void *handle);
HIDDEN int destroy_handle(enum handle_kind kind, void *handle); /* whether there was one */
HIDDEN int keep_handle(enum handle_kind kind, uint64_t key, void *object); /* of an object that is the table's from now on */
HIDDEN void *find_handle(enum handle_kind kind, uint64_t key);
HIDDEN int drop_handle(enum handle_kind kind, uint64_t key);
HIDDEN void *take_out_handle(enum handle_kind kind, uint64_t key); /* of an object that others still follow; NULL where there was none */
HIDDEN void drop_handles(enum handle_kind kind); /* all of a kind */

/* memory.c */
enum allocation_kind { ON_DEVICE, ON_HOST, MANAGED, POOLED, REGISTERED, OF_ARRAY, PITCHED }; /* messages.py has them */
struct allocation {
    uint64_t base, size;
    int kind;
};
HIDDEN uint64_t allocate(uint64_t size, enum allocation_kind kind);
HIDDEN int release(uint64_t base);
HIDDEN const struct allocation *find_allocation(uint64_t address);
HIDDEN int is_on_device(const void *pointer); /* or memory of the host that the device sees */
HIDDEN uint64_t find_on_device(uint64_t host);
HIDDEN int is_reachable(const void *pointer, size_t size); /* for the device, all of it */
HIDDEN const struct allocation *list_changes(uint32_t *count, uint32_t *is_whole, uint32_t *generation);
HIDDEN void forget_changes(void); /* they have been sent */
HIDDEN void release_all(void);
HIDDEN uint64_t count_pooled_bytes(void);
HIDDEN void show_to_host(uint64_t base, uint64_t size); /* a variable in managed memory */
HIDDEN int allocate_again(uint64_t base, uint64_t size);

struct argument {
    uint64_t word;    /* a number, or an address that the device has */
    uint32_t is_here; /* what a pointer of the host leads to is in the value, or comes back */
    uint32_t unused;
    char value[16];
};
/* computing.c: the status of a library's function; below 0 where it was not computed. kinds has a letter for each argument: i an int, l a long long,
   p an address, s a scalar of some bytes, r where a result goes; scalars and results are where they are said to be. */
HIDDEN int compute(const char *function, size_t scalar_bytes, int has_device_scalars, const char *kinds, va_list given);

/* How blocks belong together: all of a cooperative launch, and those of a cluster; no cluster is as the kernel was compiled for. */
struct manner {
    uint32_t is_cooperative;
    dim3 cluster;
};

/* modules.c: what the driver library, which has the same connection and memory, asks of this one beside the public functions */
struct module;
struct function;
struct parts_of_runtime {
    cudaError_t (*load_image)(const void *image, struct module **into);
    cudaError_t (*find_function)(struct module *module, const char *name, struct function **into);
    cudaError_t (*find_variable)(struct module *module, const char *name, uint64_t *address, uint64_t *size);
    cudaError_t (*find_parameter)(struct function *function, size_t number, size_t *offset, size_t *size);
    const char *(*name_function)(struct function *function);
    cudaError_t (*unload)(struct module *module);
    cudaError_t (*launch)(struct function *function, dim3 grid, dim3 block, void **arguments, const void *packed,
                          size_t packed_bytes, size_t shared, struct manner manner, cudaStream_t stream);
    cudaError_t (*find_range)(uint64_t address, uint64_t *base, uint64_t *size, int *is_host);
    void (*send_note)(uint32_t kind, const char *name);
    int (*is_writable)(const void *pointer, size_t size);
    int (*is_reachable)(const void *pointer, size_t size);
    void *(*locate)(const void *pointer);
    cudaError_t (*fill)(void *pointer, size_t pitch, uint32_t value, uint32_t element_bytes, size_t width, size_t height,
                        cudaStream_t stream); /* width in elements */
    void *(*make_handle)(enum handle_kind kind, size_t bytes);
    int (*is_handle)(enum handle_kind kind, const void *handle);
    int (*destroy_handle)(enum handle_kind kind, void *handle);
    int (*compute)(const char *function, size_t scalar_bytes, int has_device_scalars, const char *kinds, va_list given);
    const int *has_context; /* functions of the runtime have made the context current */
};
HIDDEN extern int has_context;
extern const struct parts_of_runtime gpa_lsp_runtime;
HIDDEN uint64_t find_symbol(const void *symbol, uint64_t *size);

struct CUstream_st {
    unsigned int flags;
    int priority;
    uint32_t capture; /* the number of the capture it takes part in */
};

/* A plane of rows somewhere. */
struct rows {
    char *base;
    size_t pitch, plane; /* from one row to the next, from one plane to the next */
};

/* What is done at once, or kept in a graph. */
enum work_kind {
    WORK_LAUNCH = cudaGraphNodeTypeKernel,
    WORK_COPY = cudaGraphNodeTypeMemcpy,
    WORK_FILL = cudaGraphNodeTypeMemset,
    WORK_HOST = cudaGraphNodeTypeHost,
    WORK_GRAPH = cudaGraphNodeTypeGraph,
    WORK_NOTHING = cudaGraphNodeTypeEmpty,
    WORK_ALLOCATE = 10, /* cudaGraphNodeTypeMemAlloc, since CUDA 11.4 */
    WORK_RELEASE = 11,  /* cudaGraphNodeTypeMemFree */
};
struct work {
    enum work_kind kind;
    struct function *function;
    dim3 grid, block;
    char *parameters; /* its own */
    uint32_t parameter_bytes;
    struct manner manner;
    size_t shared;
    struct rows to, from;
    size_t width, height, depth; /* width in bytes */
    int is_to_device, is_from_device; /* what a copy was said to be */
    uint32_t value, element_bytes;
    void (*call)(void *);
    void *data;
    struct CUgraph_st *child; /* its own */
};
/* modules.c */
HIDDEN cudaError_t make_launch(struct work *work, const struct cudaKernelNodeParams *asked);
HIDDEN cudaError_t do_launch(const struct work *work);
HIDDEN void **describe_launch(const struct work *work, struct cudaKernelNodeParams *into); /* where the arguments are, to be freed */
/* copies.c */
HIDDEN cudaError_t make_copy(struct work *work, void *to, const void *from, size_t size);
HIDDEN cudaError_t make_box_copy(struct work *work, const struct cudaMemcpy3DParms *parameters);
HIDDEN cudaError_t make_symbol_copy(struct work *work, const void *symbol, void *other, size_t size, size_t offset,
                                    int is_to_symbol);
HIDDEN cudaError_t do_work(const struct work *work);
HIDDEN cudaError_t fill(void *pointer, size_t pitch, uint32_t value, uint32_t element_bytes, size_t width, size_t height,
                        cudaStream_t stream); /* width in elements */
/* graphs.c */
HIDDEN int is_stream(cudaStream_t stream); /* or one of those that are always there */
HIDDEN int is_captured(cudaStream_t stream);
HIDDEN cudaError_t refuse_capture(void); /* what no stream may do while it is captured: ends the capture */
HIDDEN void leave_capture(cudaStream_t stream); /* that is destroyed: ends the capture that began on it */
HIDDEN cudaError_t run_graph(struct CUgraph_st *graph);
HIDDEN int is_under_capture(uint32_t number); /* the capture of this number */
HIDDEN int has_strict_capture(void); /* one is under way that forbids to wait for the device */
HIDDEN cudaError_t capture(const struct work *work); /* which takes over its parameters */

/* memory.c */
HIDDEN cudaError_t make_allocation(struct work *work, size_t size);

/* arrays.c */
struct cudaArray {
    struct cudaChannelFormatDesc format;
    struct cudaExtent extent; /* in texels; height and depth are 0 below two and three dimensions */
    size_t texel_bytes, row_bytes;
    uint64_t base;
    unsigned int flags;
};
HIDDEN int is_array(const struct cudaArray *array);
HIDDEN size_t count_rows(const struct cudaArray *array); /* of one plane */
HIDDEN char *find_in_array(const struct cudaArray *array, size_t x_bytes, size_t y, size_t z);

#endif
