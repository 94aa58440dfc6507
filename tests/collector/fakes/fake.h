/* What the made-up driver and the made-up CUPTI of the tests tell each other. */
#ifndef FAKE_H
#define FAKE_H

#include <stdint.h>
#include <stdio.h>

#include <cuda.h>

struct fake_module {
    uint32_t number;
    size_t size;
    char *cubin;
    uint64_t crc; /* CUPTI's */
};

struct fake_function {
    struct fake_module *module;
    char name[512];
    uint32_t symbol;
};

struct fake_context {
    uint32_t number;
    int is_busy; /* something was launched since the last synchronization */
    void *of_cupti;
};

struct fake_launch {
    int cbid;
    const void *parameters;
    struct fake_function *function; /* NULL: of a graph */
    struct fake_context *context;
    unsigned int grid[3], block[3], shared_bytes;
    uint32_t correlation;
    CUresult result;
};

struct fake_hooks {
    void (*context)(struct fake_context *context, int is_created);
    void (*module)(struct fake_context *context, struct fake_module *module, int is_loaded);
    void (*enter)(struct fake_launch *launch);
    void (*leave)(struct fake_launch *launch);
};

void fake_set_hooks(const struct fake_hooks *hooks); /* of the driver */

/* A setting out of FAKE_CUDA, such as "version=18,pcs=4". */
static inline long fake_setting(const char *name, long otherwise) {
    extern char *getenv(const char *);
    extern char *strstr(const char *, const char *);
    extern unsigned long strlen(const char *);
    extern long strtol(const char *, char **, int);
    const char *settings = getenv("FAKE_CUDA");
    while (settings != NULL && (settings = strstr(settings, name)) != NULL) {
        settings += strlen(name);
        if (*settings == '=')
            return strtol(settings + 1, NULL, 10);
    }
    return otherwise;
}

/* What must not be done: one line each, in the file FAKE_CUDA_LOG. */
static inline void fake_complain(const char *what) {
    extern char *getenv(const char *);
    const char *name = getenv("FAKE_CUDA_LOG");
    FILE *log = name == NULL ? stderr : fopen(name, "a");
    fprintf(log, "%s\n", what);
    if (name != NULL)
        fclose(log);
}

#endif
