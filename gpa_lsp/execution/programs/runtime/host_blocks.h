/* Where blocks of the host's memory were allocated; preloaded/host_blocks.c knows. */
#ifndef GPA_LSP_HOST_BLOCKS_H
#define GPA_LSP_HOST_BLOCKS_H

#include <stdint.h>

#define MOST_CALLERS 32

/* Puts the return addresses of who allocated the block of an address where there is room for MOST_CALLERS, innermost first; gives how many, 0 where the
   block is not known. NULL where nothing is preloaded that knows. */
extern __attribute__((weak, visibility("default"))) uint32_t gpa_lsp_find_block(uint64_t address, uint64_t *callers);

#endif
