/* Where the host allocated memory of the device, and where the host's own memory was allocated that it copied there or back. */
#ifndef GPA_LSP_MEMORY_SITES_H
#define GPA_LSP_MEMORY_SITES_H

#include <stdint.h>
#include <stdio.h>

/* Memory that the calling thread has just been given by the driver: the device's, or pinned memory of the host. */
void remember_memory(uint64_t base, uint64_t size, int is_pinned);
void forget_memory(uint64_t base);

/* A copy between memory of the device that begins at base, and the host's. */
void remember_counterpart(uint64_t base, uint64_t host);

/* Writes ``allocated BASE ADDRESS…`` and, for each counterpart, ``host BASE ADDRESS…``: return addresses, innermost first. */
void write_sites(FILE *stream, uint64_t base);

/* Writes ``path ADDRESS…``, where the calling thread is. */
void write_caller(FILE *stream);

#endif
