/* What the parts of the runtime share: the connection to gpa_lsp, device memory, modules. */
#ifndef GPA_LSP_RUNTIME_H
#define GPA_LSP_RUNTIME_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define PUBLIC __attribute__((visibility("default")))

/* Requests; gpa_lsp/programs/messages.py has the same numbers. */
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

/* The device as gpa_lsp describes it in its first reply. */
struct device {
    uint64_t arena_base, arena_bytes, client_base, memory_bytes;
    int32_t major, minor, sm_count, clock_khz, memory_clock_khz, bus_bits, l2_bytes;
    int32_t shared_per_block, shared_per_block_optin, shared_per_sm, registers_per_sm, threads_per_sm, blocks_per_sm;
    char name[128];
};

/* connection.c */
HIDDEN extern pthread_mutex_t runtime_lock; /* recursive; held by every public function that touches shared state */
HIDDEN extern struct device device;
HIDDEN extern int memory_file; /* of device memory */
HIDDEN cudaError_t connect_once(void);
HIDDEN cudaError_t ask(uint32_t request, const struct part *parts, int count, struct reply *reply);
HIDDEN void free_reply(struct reply *reply);
HIDDEN void send_note(uint32_t kind, const char *name);
HIDDEN cudaError_t keep_error(cudaError_t error);
HIDDEN void set_fatal_error(cudaError_t error);

#define LOCK()                                                                                                         \
    pthread_mutex_lock(&runtime_lock);                                                                                 \
    cudaError_t result = connect_once()
#define UNLOCK()                                                                                                       \
    pthread_mutex_unlock(&runtime_lock);                                                                               \
    return keep_error(result)

/* memory.c */
enum allocation_kind { ON_DEVICE, ON_HOST, MANAGED, POOLED, REGISTERED };
struct allocation {
    uint64_t base, size;
    int kind;
};
HIDDEN uint64_t allocate(uint64_t size, enum allocation_kind kind);
HIDDEN int release(uint64_t base);
HIDDEN const struct allocation *find_allocation(uint64_t address);
HIDDEN int is_on_device(const void *pointer); /* or memory of the host that the device sees */
HIDDEN const struct allocation *list_allocations(uint32_t *count, uint32_t *generation);
HIDDEN uint64_t count_pooled_bytes(void);
HIDDEN int allocate_again(uint64_t base, uint64_t size);

/* modules.c: what the driver library, which has the same connection and memory, asks of this one beside the public functions */
struct module;
struct function;
struct parts_of_runtime {
    cudaError_t (*load_image)(const void *image, struct module **into);
    cudaError_t (*find_function)(struct module *module, const char *name, struct function **into);
    cudaError_t (*find_variable)(struct module *module, const char *name, uint64_t *address, uint64_t *size);
    cudaError_t (*find_parameter)(struct function *function, size_t number, size_t *offset, size_t *size);
    const char *(*name_function)(struct function *function);
    cudaError_t (*launch)(struct function *function, dim3 grid, dim3 block, void **arguments, const void *packed,
                          size_t packed_bytes, size_t shared, uint32_t is_cooperative);
    cudaError_t (*find_range)(uint64_t address, uint64_t *base, uint64_t *size, int *is_host);
    void (*send_note)(uint32_t kind, const char *name);
    int (*is_on_device)(const void *pointer);
};
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
enum work_kind { WORK_NOTHING, WORK_LAUNCH, WORK_COPY, WORK_FILL, WORK_HOST, WORK_ALLOCATE, WORK_RELEASE };
struct work {
    enum work_kind kind;
    struct function *function;
    dim3 grid, block;
    char *parameters; /* its own */
    uint32_t parameter_bytes, is_cooperative;
    size_t shared;
    struct rows to, from;
    size_t width, height, depth; /* width in bytes */
    int is_to_device, is_from_device; /* what a copy was said to be */
    uint32_t value, element_bytes;
    void (*call)(void *);
    void *data;
};
/* modules.c */
HIDDEN cudaError_t make_launch(struct work *work, const void *host, dim3 grid, dim3 block, void **arguments, size_t shared);
HIDDEN cudaError_t do_launch(const struct work *work);
HIDDEN size_t count_parameters(const struct work *work);
HIDDEN void describe_launch(const struct work *work, struct cudaKernelNodeParams *into, void **arguments);
/* copies.c */
HIDDEN struct work make_box_copy(const struct cudaMemcpy3DParms *parameters);
HIDDEN cudaError_t make_symbol_copy(struct work *work, const void *symbol, void *other, size_t size, size_t offset,
                                    int is_to_symbol);
HIDDEN cudaError_t do_work(const struct work *work);
/* graphs.c */
HIDDEN int is_captured(cudaStream_t stream);
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
HIDDEN char *locate_in_array(const struct cudaArray *array, size_t x_bytes, size_t y, size_t z);

#endif
