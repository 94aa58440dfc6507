/* What is written down of a process: records in one file that only grows. gpa_lsp/profile/collector/records.py has the same numbers. */
#ifndef GPA_LSP_COLLECTOR_ROWS_H
#define GPA_LSP_COLLECTOR_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define PUBLIC __attribute__((visibility("default")))

enum record {
    RECORD_PROCESS = 1,
    RECORD_TEXT = 2,
    RECORD_CONTEXT = 3,
    RECORD_REASONS = 4,
    RECORD_MODULE = 5,
    RECORD_FUNCTION = 6,
    RECORD_SAMPLES = 7,
    RECORD_LAUNCH = 8,
    RECORD_KERNEL = 9,
    RECORD_PATH = 11,
    RECORD_TROUBLE = 12,
    RECORD_END = 13,
};

/* What went wrong; the number beside it is CUPTI's result, or errno. */
enum trouble {
    TROUBLE_NO_CUPTI = 1,     /* no library, or one without what is needed */
    TROUBLE_SUBSCRIBER = 2,   /* another profiler is at work in this process */
    TROUBLE_ENABLE = 3,       /* sampling is not allowed, or not possible: timing alone */
    TROUBLE_CONFIGURE = 4,    /* the same, at a later step */
    TROUBLE_DRAIN = 5,        /* samples could not be fetched */
    TROUBLE_BUFFER_FULL = 6,  /* the hardware's buffer ran full; sampling was started again */
    TROUBLE_ROWS = 7,         /* a file could not be written, or is as large as it may become */
    TROUBLE_ACTIVITY = 8,     /* no times of kernels */
    TROUBLE_PATHS = 9,        /* more calling contexts than are told apart */
    TROUBLE_LATE = 10,        /* a callback could not wait for another thread */
};

#define MOST_TEXT_BYTES 4096

HIDDEN int open_rows(const char *folder, uint64_t limit_bytes);
HIDDEN int are_rows_open(void);
HIDDEN void close_rows(void);
HIDDEN void abandon_rows(void);
HIDDEN void flush_rows(void);
HIDDEN void sync_rows(void);
/* One record of up to three parts. */
HIDDEN void write_record(enum record kind, const void *first, size_t first_bytes, const void *second, size_t second_bytes,
                         const void *third, size_t third_bytes);
HIDDEN void write_trouble(enum trouble what, int32_t number, const char *where);
/* The number of a text, written down when it is new; 0 where there is none. */
HIDDEN uint32_t intern_text(const char *text);
/* A cubin in a file named by its hash, once, whoever has it. */
HIDDEN void write_image(uint64_t hash, const void *bytes, size_t size);
HIDDEN uint64_t hash_bytes(const void *bytes, size_t size);

/* A set of 64-bit keys (never 0) with a number each; grows, up to a bound. */
struct table {
    uint64_t *keys;
    uint32_t *values;
    size_t capacity, used, bound;
};
HIDDEN uint32_t *find_slot(struct table *table, uint64_t key, int *is_new); /* NULL: no memory, or at its bound */
HIDDEN void clear_table(struct table *table);

#endif
