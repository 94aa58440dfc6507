/* Whether memory of this process can be read or written, asked before it is done: who passes a bad pointer gets an error, not a signal. */
#ifndef GPA_LSP_MAPPED_MEMORY_H
#define GPA_LSP_MAPPED_MEMORY_H

#include <sys/mman.h>
#include <unistd.h>

#include "sizes.h"

#ifndef MADV_POPULATE_READ /* since Linux 5.14; headers may be older */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* Touches the first and the last page as an access would, but for the signal, and sees that those between are mapped: to touch them all would take as
   long as to copy them. Where the system cannot touch, each need only be mapped. */
static inline int can_access(const void *pointer, size_t size, int how) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)pointer / page * page;
    size_t bytes = round_up_size(add_sizes((uintptr_t)pointer - first, size), page);
    if (pointer == NULL || size > SIZE_MAX - (uintptr_t)pointer || bytes > SIZE_MAX - first)
        return 0;
    if (bytes > 2 * page && (msync((void *)first, bytes, MS_ASYNC) != 0 || !can_access((void *)(first + bytes - page), page, how)))
        return 0;
    if (bytes > 2 * page)
        bytes = page;
    if (madvise((void *)first, bytes, how) == 0)
        return 1;
    int can_touch = madvise((void *)first, 0, how) == 0;
    return !can_touch && msync((void *)first, bytes, MS_ASYNC) == 0;
}

static inline int can_read(const void *pointer, size_t size) { return can_access(pointer, size, MADV_POPULATE_READ); }

static inline int can_write(const void *pointer, size_t size) { return can_access(pointer, size, MADV_POPULATE_WRITE); }

#endif
