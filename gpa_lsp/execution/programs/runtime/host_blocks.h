/* Where blocks of the host's memory were allocated; preloaded/host_blocks.c knows. */
#ifndef GPA_LSP_HOST_BLOCKS_H
#define GPA_LSP_HOST_BLOCKS_H

#include <stdint.h>
#include <unwind.h>

#define MOST_CALLERS 32

/* Return addresses of the calling thread, innermost first. */
struct walk {
    uint64_t addresses[MOST_CALLERS];
    uint32_t count;
};

static inline _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *data) {
    struct walk *walk = data;
    uint64_t address = _Unwind_GetIP(context);
    if (address == 0 || walk->count == MOST_CALLERS)
        return _URC_END_OF_STACK;
    walk->addresses[walk->count++] = address;
    return _URC_NO_REASON;
}

/* The walk of who allocated the block of an address; without a frame where the block is not known. NULL where nothing is preloaded that knows. */
extern __attribute__((weak, visibility("default"))) struct walk gpa_lsp_find_block(uint64_t address);

#endif
