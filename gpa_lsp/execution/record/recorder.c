/* A library that stands before CUDA's driver library under its name: what a program loads and launches is written down, with the
 * memory a launch is given or can reach, and passed on. It needs none of CUDA's headers; everything else the driver has is found behind it.
 *
 * Folders get image-ID.bin (what was loaded), link-ID-N.ptx (what an image was linked of), launch-PROCESS-N.raw and
 * maps-PROCESS-N.txt (where its code lay then), each whole or not at all. The variables of the environment that begin with GPA_LSP_RECORD say where and how much.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "images.h"
#include "memory_sites.h"
#include "textures.h"
#include "variable_names.h"

#ifndef REAL_DRIVER
#error "the path of the driver's own library is missing"
#endif
#define PUBLIC __attribute__((visibility("default")))

typedef int result;
typedef void *handle;
typedef uint64_t address;
typedef struct { /* CUlaunchAttribute */
    int kind, unused;
    unsigned int value[16];
} launch_attribute;
enum { CLUSTER_DIMENSION = 4 };
typedef struct { /* CUlaunchConfig */
    unsigned int grid[3], block[3], shared_bytes;
    handle stream;
    launch_attribute *attributes;
    unsigned int attribute_count;
} launch_config;

enum { SUCCESS = 0, NO_FUNCTION = 500, MOST_PARAMETERS = 4096, MOST_ARRAYS = 1024, MOST_PARAMETER_BYTES = 32764 };
enum { PER_THREAD_STREAM = 2, INPUT_PTX = 1, RELAXED_CAPTURE = 2, MOST_ASKED = 1 << 20, NEAR_BITS = 40, MOST_TEXTURES = 128 };

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char folder[4096], image_folder[4096];
static uint64_t limit_bytes = 256u << 20;
static unsigned long chosen, written, skipped;
static int is_on;

/* ---- the driver's own functions ---- */

static void *find_real(const char *name) {
    static void *library;
    if (library == NULL)
        library = dlopen(REAL_DRIVER, RTLD_LAZY | RTLD_LOCAL);
    return library == NULL ? NULL : dlsym(library, name);
}

#define REAL(name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (real == NULL) \
        real = (result(*)(__VA_ARGS__))find_real(name); \
    if (real == NULL) \
        return NO_FUNCTION

static result call_pointer(const char *name, void *into, address value, size_t *size) {
    result (*range)(void *, size_t *, address) = (result(*)(void *, size_t *, address))find_real(name);
    return range == NULL ? NO_FUNCTION : range(into, size, value);
}

/* ---- what handles stand for ---- */

struct known {
    handle key;
    uint64_t image;
    char *kernel; /* NULL for a module or library */
    int is_kernel_object;
    handle owner; /* the module or library of a kernel */
    int is_of_library;
    unsigned long launches;
    uint64_t most_threads;
    struct known *next;
};
static struct known *table[4096];

static struct known **slot_of(handle key) { return &table[((uintptr_t)key >> 4) % (sizeof table / sizeof *table)]; }

static struct known *find(handle key) {
    struct known *one = *slot_of(key);
    while (one != NULL && one->key != key)
        one = one->next;
    return one;
}

static void remember(handle key, uint64_t image, const char *kernel, int is_kernel_object) {
    pthread_mutex_lock(&lock);
    struct known *one = find(key);
    if (one == NULL && (one = calloc(1, sizeof *one)) != NULL) {
        one->key = key;
        one->next = *slot_of(key);
        *slot_of(key) = one;
    }
    if (one != NULL && (one->image != image || kernel == NULL || one->kernel == NULL || strcmp(one->kernel, kernel) != 0)) {
        free(one->kernel);
        one->kernel = kernel == NULL ? NULL : strdup(kernel);
        one->image = image;
        one->launches = one->most_threads = 0;
    }
    if (one != NULL)
        one->is_kernel_object = is_kernel_object;
    pthread_mutex_unlock(&lock);
}

static uint64_t image_of(handle key) {
    pthread_mutex_lock(&lock);
    struct known *one = find(key);
    uint64_t image = one == NULL ? 0 : one->image;
    pthread_mutex_unlock(&lock);
    return image;
}

static void remember_owner(handle key, handle owner, int is_of_library) {
    pthread_mutex_lock(&lock);
    struct known *one = find(key);
    if (one != NULL) {
        one->owner = owner;
        one->is_of_library = is_of_library;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- names of variables ---- */

struct variable {
    uint64_t image;
    char *name;
    struct variable *next;
};
static struct variable *variables[1024];

static struct variable **variables_of(uint64_t image) { return &variables[image % (sizeof variables / sizeof *variables)]; }

static void add_variable(uint64_t image, const char *name, size_t length) {
    pthread_mutex_lock(&lock);
    struct variable *one = *variables_of(image);
    while (one != NULL && (one->image != image || strncmp(one->name, name, length) != 0 || one->name[length] != 0))
        one = one->next;
    if (one == NULL && (one = calloc(1, sizeof *one)) != NULL) {
        if ((one->name = strndup(name, length)) == NULL) {
            free(one);
        } else {
            one->image = image;
            one->next = *variables_of(image);
            *variables_of(image) = one;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- files ---- */

static uint64_t hash(const unsigned char *data, size_t size) { /* FNV-1a */
    uint64_t value = 0xCBF29CE484222325u;
    for (size_t place = 0; place < size; place++)
        value = (value ^ data[place]) * 0x100000001B3u;
    return value == 0 ? 1 : value;
}

static FILE *open_file(const char *into, const char *name, char *temporary, size_t room) {
    static unsigned int number; /* two threads may load the same image at once */
    unsigned int own = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
    if (snprintf(temporary, room, "%s/%s.%d-%u.part", into, name, (int)getpid(), own) >= (int)room)
        return NULL;
    return fopen(temporary, "wb");
}

static int close_file(FILE *stream, const char *temporary, const char *into, const char *name) {
    char path[sizeof folder + 128];
    int failed = ferror(stream) | fclose(stream);
    snprintf(path, sizeof path, "%s/%s", into, name);
    if (!failed && rename(temporary, path) == 0)
        return 1;
    unlink(temporary);
    return 0;
}

static void write_image(const char *name, const void *data, size_t size) {
    char temporary[sizeof folder + 128];
    FILE *stream = open_file(image_folder, name, temporary, sizeof temporary);
    if (stream == NULL)
        return;
    fwrite(data, 1, size, stream);
    close_file(stream, temporary, image_folder, name);
}

/* ---- images ---- */

/* What was loaded, without the wrapper of a fat binary. */
static const unsigned char *unwrap(const void *image) {
    const unsigned char *inner = image;
    uint32_t magic = 0;
    if (can_read(image, 16))
        memcpy(&magic, image, sizeof magic);
    if (magic == FATBIN_WRAPPER_MAGIC)
        memcpy(&inner, (const char *)image + 8, sizeof inner);
    return inner;
}

static void take_image(handle key, const void *given) {
    if (given == NULL || key == NULL)
        return;
    const unsigned char *image = unwrap(given);
    size_t size = measure_image(image);
    if (size == 0)
        return;
    uint64_t id = hash(image, size);
    remember(key, id, NULL, 0);
    if (*image_folder == 0)
        return;
    char name[64], path[sizeof folder + 128];
    snprintf(name, sizeof name, "image-%016llx.bin", (unsigned long long)id);
    snprintf(path, sizeof path, "%s/%s", image_folder, name);
    if (access(path, F_OK) != 0)
        write_image(name, image, size);
    list_variable_names(image, size, id, add_variable);
}

static void take_image_file(handle key, const char *path) {
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return;
    fseek(stream, 0, SEEK_END);
    long size = ftell(stream);
    rewind(stream);
    char *content = size < 0 ? NULL : calloc(1, add_sizes((size_t)size, 64));
    if (content != NULL && fread(content, 1, (size_t)size, stream) == (size_t)size)
        take_image(key, content);
    free(content);
    fclose(stream);
}

/* ---- what was linked ---- */

struct part {
    handle state;
    char *text;
    struct part *next;
};
static struct part *parts;

static void take_part(handle state, int type, const void *data, size_t size) {
    if (type != INPUT_PTX || data == NULL)
        return;
    struct part *one = calloc(1, sizeof *one);
    if (one == NULL)
        return;
    one->text = can_read(data, size) ? calloc(1, add_sizes(size, 1)) : NULL;
    if (one->text != NULL)
        memcpy(one->text, data, size);
    one->state = state;
    pthread_mutex_lock(&lock);
    one->next = parts;
    parts = one;
    pthread_mutex_unlock(&lock);
}

/* Given an image, the parts it was linked of are written down; without one, they are forgotten. */
static void take_linked(handle state, const void *given) {
    const unsigned char *image = given == NULL ? NULL : unwrap(given);
    size_t size = image == NULL ? 0 : measure_image(image);
    uint64_t id = image == NULL ? 0 : hash(image, size);
    int number = 0;
    pthread_mutex_lock(&lock);
    for (struct part **at = &parts; *at != NULL;) {
        struct part *one = *at;
        if (one->state != state) {
            at = &one->next;
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "link-%016llx-%d.ptx", (unsigned long long)id, number++);
        if (image != NULL && *image_folder != 0 && one->text != NULL)
            write_image(name, one->text, strlen(one->text));
        *at = one->next;
        free(one->text);
        free(one);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- launches ---- */

struct layout {
    size_t count, offsets[MOST_PARAMETERS], sizes[MOST_PARAMETERS], end;
};

static int lay_out(handle function, int is_kernel_object, struct layout *out) {
    typedef result (*info)(handle, size_t, size_t *, size_t *);
    info ask = (info)find_real(is_kernel_object ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo");
    out->count = out->end = 0;
    if (ask == NULL)
        return 0;
    while (out->count < MOST_PARAMETERS) {
        size_t place = 0, size = 0;
        if (ask(function, out->count, &place, &size) != SUCCESS)
            break;
        out->offsets[out->count] = place;
        out->sizes[out->count++] = size;
        size_t end = add_sizes(place, size);
        if (end > out->end)
            out->end = end;
    }
    return out->end <= MOST_PARAMETER_BYTES;
}

static int gather(struct layout *layout, void **arguments, void **extra, unsigned char *into) {
    if (arguments != NULL) {
        for (size_t number = 0; number < layout->count; number++)
            if (!can_read(arguments[number], layout->sizes[number]))
                return 0;
        for (size_t number = 0; number < layout->count; number++)
            memcpy(into + layout->offsets[number], arguments[number], layout->sizes[number]);
        return 1;
    }
    const void *buffer = NULL;
    size_t size = 0;
    for (void **one = extra; one != NULL && *one != NULL; one += 2) { /* 1: a buffer, 2: its size, 0: the end */
        if (*one == (void *)1)
            buffer = one[1];
        else if (*one == (void *)2 && can_read(one[1], sizeof size))
            size = *(size_t *)one[1];
    }
    size = size < layout->end ? size : layout->end;
    if (buffer != NULL && !can_read(buffer, size))
        return 0;
    if (buffer != NULL)
        memcpy(into, buffer, size);
    return buffer != NULL || layout->count == 0;
}

/* What a launch is given or can reach. Variables come first. */
struct memory {
    size_t count, asked, texture_count;
    address textures[MOST_TEXTURES];
    address bases[MOST_ARRAYS];
    size_t sizes[MOST_ARRAYS];
    uint64_t total;
};

static int find_known(const struct memory *memory, address value) {
    for (size_t number = 0; number < memory->count; number++)
        if (value >= memory->bases[number] && value - memory->bases[number] < memory->sizes[number])
            return 1;
    return 0;
}

static void add_array(struct memory *memory, address base, size_t size) {
    if (memory->count == MOST_ARRAYS || size == 0)
        return;
    memory->bases[memory->count] = base;
    memory->sizes[memory->count++] = size;
    memory->total = add_sizes(memory->total, size);
}

/* Whether a word is an address of the driver's; of one that is not known yet an array is added where that is wanted. */
static int follow(struct memory *memory, address value, int is_wanted, int *is_first) {
    address base = 0;
    size_t size = 0;
    if (value < 4096)
        return 0;
    if (find_known(memory, value)) {
        for (size_t number = 0; number < memory->count; number++)
            *is_first |= memory->bases[number] == value;
        return 1;
    }
    if (memory->asked++ > MOST_ASKED || call_pointer("cuMemGetAddressRange_v2", &base, value, &size) != SUCCESS || size == 0)
        return 0;
    *is_first |= base == value;
    if (is_wanted)
        add_array(memory, base, size);
    return 1;
}

static int is_near(const struct memory *memory, address value) {
    for (size_t number = 0; number < memory->count; number++)
        if (value >> NEAR_BITS == memory->bases[number] >> NEAR_BITS)
            return value != 0;
    return 0;
}

/* Memory holds addresses where a word is that of the first byte of an allocation: those inside of one are too easily numbers. */
static void follow_all(struct memory *memory, const char *content, size_t size) {
    int is_first = 0;
    for (int is_wanted = 0; is_wanted <= is_first; is_wanted++) {
        address last = 0;
        for (size_t place = 0; place + sizeof last <= size; place += sizeof last) {
            address value;
            memcpy(&value, content + place, sizeof value);
            if (value == last || !is_near(memory, value))
                continue;
            last = value;
            follow(memory, value, is_wanted, &is_first);
        }
        if (!is_first)
            return;
    }
}

static void list_variables(struct known *one, struct memory *memory, FILE *stream) {
    typedef result (*finder)(address *, size_t *, handle, const char *);
    finder ask = (finder)find_real(one->is_of_library ? "cuLibraryGetGlobal" : "cuModuleGetGlobal_v2");
    struct variable *each = one->owner == NULL || ask == NULL ? NULL : *variables_of(one->image);
    for (; each != NULL && memory->count < MOST_ARRAYS; each = each->next) {
        address base = 0;
        size_t size = 0;
        if (each->image != one->image || ask(&base, &size, one->owner, each->name) != SUCCESS || find_known(memory, base))
            continue;
        fprintf(stream, "variable %s %llu\n", each->name, (unsigned long long)base);
        add_array(memory, base, size);
    }
}

static int write_array(FILE *stream, struct memory *memory, size_t number) {
    typedef result (*copy)(void *, address, size_t);
    static const size_t most = 16u << 20;
    copy take = (copy)find_real("cuMemcpyDtoH_v2");
    address base = memory->bases[number];
    size_t size = memory->sizes[number];
    char *piece = malloc(size < most ? size : most);
    int is_well = take != NULL && piece != NULL;
    fprintf(stream, "array %llu %zu\n", (unsigned long long)base, size);
    for (size_t place = 0; is_well && place < size; place += most) {
        size_t now = size - place < most ? size - place : most;
        is_well = take(piece, base + place, now) == SUCCESS && fwrite(piece, 1, now, stream) == now;
        if (is_well)
            follow_all(memory, piece, now);
    }
    free(piece);
    fprintf(stream, "\n");
    return is_well;
}

static void add_texture(struct memory *memory, address value) {
    uint64_t size = value == 0 ? 0 : measure_texture(value, find_real);
    if (size == 0 || memory->texture_count == MOST_TEXTURES)
        return;
    for (size_t number = 0; number < memory->texture_count; number++)
        if (memory->textures[number] == value)
            return;
    memory->textures[memory->texture_count++] = value;
    memory->total = add_sizes(memory->total, size);
}

static int write_arrays(FILE *stream, struct memory *memory) {
    int is_well = 1;
    for (size_t number = 0; is_well && number < memory->texture_count && memory->total <= limit_bytes; number++)
        is_well = write_texture(stream, memory->textures[number], find_real);
    for (size_t number = 0; is_well && number < memory->count && memory->total <= limit_bytes; number++)
        is_well = write_array(stream, memory, number);
    if (memory->total > limit_bytes)
        fprintf(stream, "too-large %llu\n", (unsigned long long)memory->total);
    return is_well;
}

/* What /proc/self/maps says now, by which return addresses become places in files. */
static void write_mappings(unsigned long number) {
    char name[64], temporary[sizeof folder + 128], piece[4096];
    snprintf(name, sizeof name, "maps-%d-%06lu.txt", (int)getpid(), number);
    FILE *from = fopen("/proc/self/maps", "r"), *into = from == NULL ? NULL : open_file(folder, name, temporary, sizeof temporary);
    for (size_t size; into != NULL && (size = fread(piece, 1, sizeof piece, from)) > 0;)
        fwrite(piece, 1, size, into);
    if (into != NULL)
        close_file(into, temporary, folder, name);
    if (from != NULL)
        fclose(from);
}

static int is_captured(handle stream) {
    typedef result (*ask)(handle, int *);
    ask status = (ask)find_real("cuStreamIsCapturing");
    int state = 0;
    return status != NULL && status(stream, &state) == SUCCESS && state != 0;
}

static void write_launch(struct known *one, handle function, const launch_config *shape, void **arguments, void **extra) {
    static struct layout layout; /* under the lock */
    static unsigned char content[MOST_PARAMETER_BYTES + 8];
    static struct memory memory;
    char name[64], temporary[sizeof folder + 128];
    memset(&memory, 0, sizeof memory);
    memset(content, 0, sizeof content);
    if (!lay_out(function, one->is_kernel_object, &layout) || !gather(&layout, arguments, extra, content)) {
        skipped++;
        return;
    }
    result (*wait)(void) = (result(*)(void))find_real("cuCtxSynchronize");
    if (wait != NULL)
        wait();
    snprintf(name, sizeof name, "launch-%d-%06lu.raw", (int)getpid(), written + 1);
    FILE *stream = open_file(folder, name, temporary, sizeof temporary);
    if (stream == NULL) {
        skipped++;
        return;
    }
    fprintf(stream, "gpa-lsp-launch 1\nimage %016llx\nkernel %s\nnumber %lu\ngrid %u %u %u\nblock %u %u %u\nshared %u\n",
            (unsigned long long)one->image, one->kernel, one->launches, shape->grid[0], shape->grid[1], shape->grid[2],
            shape->block[0], shape->block[1], shape->block[2], shape->shared_bytes);
    for (unsigned int place = 0; shape->attributes != NULL && place < shape->attribute_count; place++)
        if (shape->attributes[place].kind == CLUSTER_DIMENSION)
            fprintf(stream, "cluster %u %u %u\n", shape->attributes[place].value[0], shape->attributes[place].value[1],
                    shape->attributes[place].value[2]);
    for (size_t number = 0; number < layout.count; number++)
        fprintf(stream, "parameter %zu %zu\n", layout.offsets[number], layout.sizes[number]);
    fprintf(stream, "content %zu\n", layout.end);
    fwrite(content, 1, layout.end, stream);
    fprintf(stream, "\n");
    list_variables(one, &memory, stream);
    for (size_t place = 0; place + 8 <= layout.end; place += 8) {
        address value;
        int is_first = 0;
        memcpy(&value, content + place, sizeof value);
        follow(&memory, value, 1, &is_first);
        add_texture(&memory, value);
    }
    int is_well = write_arrays(stream, &memory);
    for (size_t number = 0; number < memory.count; number++)
        write_sites(stream, memory.bases[number]);
    write_caller(stream);
    write_mappings(written + 1);
    fprintf(stream, "end %d\n", is_well);
    if (close_file(stream, temporary, folder, name))
        written++;
    else
        skipped++;
}

/* Waiting and copying must not spoil a graph that another thread, or another stream, is captured into meanwhile. */
static void exchange_capture_mode(int *mode) {
    result (*exchange)(int *) = (result(*)(int *))find_real("cuThreadExchangeStreamCaptureMode");
    if (exchange != NULL)
        exchange(mode);
}

static void see_launch(handle function, const launch_config *shape, void **arguments, void **extra) {
    pthread_mutex_lock(&lock);
    struct known *one = is_on ? find(function) : NULL;
    if (one != NULL && one->kernel != NULL) {
        uint64_t threads = 1;
        for (int axis = 0; axis < 3; axis++)
            threads = multiply_sizes(threads, (uint64_t)shape->grid[axis] * shape->block[axis]);
        one->launches++;
        int is_wanted = chosen != 0 ? one->launches == chosen : threads > one->most_threads;
        if (is_wanted && !is_captured(shape->stream)) {
            one->most_threads = threads;
            int mode = RELAXED_CAPTURE;
            exchange_capture_mode(&mode);
            write_launch(one, function, shape, arguments, extra);
            exchange_capture_mode(&mode);
        } else if (is_wanted) {
            skipped++;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- for whoever records in this process ---- */

PUBLIC void gpa_lsp_record_keep(const char *images) {
    pthread_mutex_lock(&lock);
    snprintf(image_folder, sizeof image_folder, "%s", images);
    pthread_mutex_unlock(&lock);
}

PUBLIC void gpa_lsp_record_begin(const char *into, uint64_t limit, unsigned long number) {
    pthread_mutex_lock(&lock);
    snprintf(folder, sizeof folder, "%s", into);
    limit_bytes = limit;
    chosen = number;
    written = skipped = 0;
    for (size_t place = 0; place < sizeof table / sizeof *table; place++)
        for (struct known *one = table[place]; one != NULL; one = one->next)
            one->launches = one->most_threads = 0;
    is_on = 1;
    pthread_mutex_unlock(&lock);
}

PUBLIC unsigned long gpa_lsp_record_end(unsigned long *left_out) {
    pthread_mutex_lock(&lock);
    is_on = 0;
    *left_out = skipped;
    unsigned long count = written;
    pthread_mutex_unlock(&lock);
    return count;
}

__attribute__((constructor)) static void begin(void) {
    const char *into = getenv("GPA_LSP_RECORD_FOLDER"), *limit = getenv("GPA_LSP_RECORD_BYTES");
    const char *number = getenv("GPA_LSP_RECORD_LAUNCH");
    if (into == NULL || *into == 0)
        return;
    gpa_lsp_record_keep(into);
    gpa_lsp_record_begin(into, limit == NULL ? limit_bytes : strtoull(limit, NULL, 10),
                         number == NULL ? 0 : strtoul(number, NULL, 10));
}

/* ---- the driver's functions, as programs call them ---- */

PUBLIC result cuModuleLoad(handle *into, const char *path) {
    REAL("cuModuleLoad", handle *, const char *);
    result error = real(into, path);
    if (error == SUCCESS)
        take_image_file(*into, path);
    return error;
}

#define LOADER(name) \
    PUBLIC result name(handle *into, const void *image) { \
        REAL(#name, handle *, const void *); \
        result error = real(into, image); \
        if (error == SUCCESS) \
            take_image(*into, image); \
        return error; \
    }
LOADER(cuModuleLoadData)
LOADER(cuModuleLoadFatBinary)

PUBLIC result cuModuleLoadDataEx(handle *into, const void *image, unsigned int count, void *options, void **values) {
    REAL("cuModuleLoadDataEx", handle *, const void *, unsigned int, void *, void **);
    result error = real(into, image, count, options, values);
    if (error == SUCCESS)
        take_image(*into, image);
    return error;
}

PUBLIC result cuLibraryLoadData(handle *into, const void *image, void *options, void **values, unsigned int count,
                                void *more, void **more_values, unsigned int more_count) {
    REAL("cuLibraryLoadData", handle *, const void *, void *, void **, unsigned int, void *, void **, unsigned int);
    result error = real(into, image, options, values, count, more, more_values, more_count);
    if (error == SUCCESS)
        take_image(*into, image);
    return error;
}

PUBLIC result cuLibraryLoadFromFile(handle *into, const char *path, void *options, void **values, unsigned int count,
                                    void *more, void **more_values, unsigned int more_count) {
    REAL("cuLibraryLoadFromFile", handle *, const char *, void *, void **, unsigned int, void *, void **, unsigned int);
    result error = real(into, path, options, values, count, more, more_values, more_count);
    if (error == SUCCESS)
        take_image_file(*into, path);
    return error;
}

PUBLIC result cuLibraryGetModule(handle *into, handle library) {
    REAL("cuLibraryGetModule", handle *, handle);
    result error = real(into, library);
    if (error == SUCCESS)
        remember(*into, image_of(library), NULL, 0);
    return error;
}

PUBLIC result cuModuleGetFunction(handle *into, handle module, const char *name) {
    REAL("cuModuleGetFunction", handle *, handle, const char *);
    result error = real(into, module, name);
    if (error == SUCCESS) {
        remember(*into, image_of(module), name, 0);
        remember_owner(*into, module, 0);
    }
    return error;
}

PUBLIC result cuLibraryGetKernel(handle *into, handle library, const char *name) {
    REAL("cuLibraryGetKernel", handle *, handle, const char *);
    result error = real(into, library, name);
    if (error == SUCCESS) {
        remember(*into, image_of(library), name, 1);
        remember_owner(*into, library, 1);
    }
    return error;
}

#define FINDER(name) \
    PUBLIC result name(address *into, size_t *size, handle owner, const char *variable) { \
        REAL(#name, address *, size_t *, handle, const char *); \
        result error = real(into, size, owner, variable); \
        uint64_t image = error == SUCCESS && variable != NULL ? image_of(owner) : 0; \
        if (image != 0) \
            add_variable(image, variable, strlen(variable)); \
        return error; \
    }
FINDER(cuModuleGetGlobal_v2)
FINDER(cuLibraryGetGlobal)
FINDER(cuLibraryGetManaged)

PUBLIC result cuKernelGetFunction(handle *into, handle kernel) {
    REAL("cuKernelGetFunction", handle *, handle);
    result error = real(into, kernel);
    pthread_mutex_lock(&lock);
    struct known *one = error == SUCCESS ? find(kernel) : NULL;
    if (one != NULL && one->kernel != NULL && *into != kernel) {
        remember(*into, one->image, one->kernel, 0);
        remember_owner(*into, one->owner, one->is_of_library);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

PUBLIC result cuLinkAddData_v2(handle state, int type, void *data, size_t size, const char *name, unsigned int count,
                               void *options, void **values) {
    REAL("cuLinkAddData_v2", handle, int, void *, size_t, const char *, unsigned int, void *, void **);
    result error = real(state, type, data, size, name, count, options, values);
    if (error == SUCCESS)
        take_part(state, type, data, size);
    return error;
}

PUBLIC result cuLinkComplete(handle state, void **image, size_t *size) {
    REAL("cuLinkComplete", handle, void **, size_t *);
    result error = real(state, image, size);
    if (error == SUCCESS)
        take_linked(state, *image);
    return error;
}

/* The next state may have this one's address. */
PUBLIC result cuLinkDestroy(handle state) {
    REAL("cuLinkDestroy", handle);
    take_linked(state, NULL);
    return real(state);
}

static void see_texture(const address *handle, const resource_description *resource, const texture_description *texture) {
    pthread_mutex_lock(&lock);
    remember_texture(*handle, resource, texture);
    pthread_mutex_unlock(&lock);
}

PUBLIC result cuTexObjectCreate(address *into, const resource_description *resource, const texture_description *texture,
                                const void *view) {
    REAL("cuTexObjectCreate", address *, const resource_description *, const texture_description *, const void *);
    result error = real(into, resource, texture, view);
    if (error == SUCCESS && texture != NULL && view == NULL)
        see_texture(into, resource, texture);
    return error;
}

PUBLIC result cuSurfObjectCreate(address *into, const resource_description *resource) {
    REAL("cuSurfObjectCreate", address *, const resource_description *);
    result error = real(into, resource);
    if (error == SUCCESS)
        see_texture(into, resource, NULL);
    return error;
}

#define DESTROYER(name) \
    PUBLIC result name(address handle) { \
        REAL(#name, address); \
        pthread_mutex_lock(&lock); \
        forget_texture(handle); \
        pthread_mutex_unlock(&lock); \
        return real(handle); \
    }
DESTROYER(cuTexObjectDestroy)
DESTROYER(cuSurfObjectDestroy)

/* Memory, and copies between the device's and the host's. */
static result see_memory(result error, const void *into, size_t size, int is_pinned) {
    address base;
    if (error == SUCCESS && is_on) {
        memcpy(&base, into, sizeof base);
        remember_memory(base, size, is_pinned);
    }
    return error;
}

static result see_copy(result error, address to, address from) {
    address base = 0;
    size_t size = 0;
    if (error != SUCCESS || !is_on)
        return error;
    if (call_pointer("cuMemGetAddressRange_v2", &base, to, &size) == SUCCESS)
        remember_counterpart(base, from);
    if (call_pointer("cuMemGetAddressRange_v2", &base, from, &size) == SUCCESS)
        remember_counterpart(base, to);
    return error;
}

PUBLIC result cuMemAlloc_v2(address *into, size_t size) {
    REAL("cuMemAlloc_v2", address *, size_t);
    return see_memory(real(into, size), into, size, 0);
}

PUBLIC result cuMemAllocManaged(address *into, size_t size, unsigned int flags) {
    REAL("cuMemAllocManaged", address *, size_t, unsigned int);
    return see_memory(real(into, size, flags), into, size, 0);
}

PUBLIC result cuMemAllocPitch_v2(address *into, size_t *pitch, size_t width, size_t height, unsigned int element) {
    REAL("cuMemAllocPitch_v2", address *, size_t *, size_t, size_t, unsigned int);
    result error = real(into, pitch, width, height, element);
    return see_memory(error, into, error == SUCCESS ? multiply_sizes(*pitch, height) : 0, 0);
}

PUBLIC result cuMemHostAlloc(void **into, size_t size, unsigned int flags) {
    REAL("cuMemHostAlloc", void **, size_t, unsigned int);
    return see_memory(real(into, size, flags), into, size, 1);
}

PUBLIC result cuMemAllocHost_v2(void **into, size_t size) {
    REAL("cuMemAllocHost_v2", void **, size_t);
    return see_memory(real(into, size), into, size, 1);
}

PUBLIC result cuMemFree_v2(address base) {
    REAL("cuMemFree_v2", address);
    forget_memory(base);
    return real(base);
}

PUBLIC result cuMemFreeHost(void *base) {
    REAL("cuMemFreeHost", void *);
    forget_memory((uintptr_t)base);
    return real(base);
}

#define POOLED(suffix) \
    PUBLIC result cuMemAllocAsync##suffix(address *into, size_t size, handle stream) { \
        REAL("cuMemAllocAsync" #suffix, address *, size_t, handle); \
        return see_memory(real(into, size, stream), into, size, 0); \
    } \
    PUBLIC result cuMemFreeAsync##suffix(address base, handle stream) { \
        REAL("cuMemFreeAsync" #suffix, address, handle); \
        forget_memory(base); \
        return real(base, stream); \
    }
POOLED()
POOLED(_ptsz)

#define COPIER(name, to_type, from_type) \
    PUBLIC result name(to_type to, from_type from, size_t size) { \
        REAL(#name, to_type, from_type, size_t); \
        return see_copy(real(to, from, size), (address)to, (address)from); \
    }
#define ASYNCHRONOUS(name, to_type, from_type) \
    PUBLIC result name(to_type to, from_type from, size_t size, handle stream) { \
        REAL(#name, to_type, from_type, size_t, handle); \
        return see_copy(real(to, from, size, stream), (address)to, (address)from); \
    }
COPIER(cuMemcpyHtoD_v2, address, const void *)
COPIER(cuMemcpyHtoD_v2_ptds, address, const void *)
COPIER(cuMemcpyDtoH_v2, void *, address)
COPIER(cuMemcpyDtoH_v2_ptds, void *, address)
COPIER(cuMemcpy, address, address)
COPIER(cuMemcpy_ptds, address, address)
ASYNCHRONOUS(cuMemcpyHtoDAsync_v2, address, const void *)
ASYNCHRONOUS(cuMemcpyHtoDAsync_v2_ptsz, address, const void *)
ASYNCHRONOUS(cuMemcpyDtoHAsync_v2, void *, address)
ASYNCHRONOUS(cuMemcpyDtoHAsync_v2_ptsz, void *, address)
ASYNCHRONOUS(cuMemcpyAsync, address, address)
ASYNCHRONOUS(cuMemcpyAsync_ptsz, address, address)

#define LAUNCHER(name) \
    PUBLIC result name(handle function, unsigned int x, unsigned int y, unsigned int z, unsigned int block_x, \
                       unsigned int block_y, unsigned int block_z, unsigned int shared, handle stream, \
                       void **arguments, void **extra) { \
        REAL(#name, handle, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
             unsigned int, handle, void **, void **); \
        launch_config shape = {{x, y, z}, {block_x, block_y, block_z}, shared, stream, NULL, 0}; \
        see_launch(function, &shape, arguments, extra); \
        return real(function, x, y, z, block_x, block_y, block_z, shared, stream, arguments, extra); \
    }
LAUNCHER(cuLaunchKernel)
LAUNCHER(cuLaunchKernel_ptsz)

#define COOPERATIVE(name) \
    PUBLIC result name(handle function, unsigned int x, unsigned int y, unsigned int z, unsigned int block_x, \
                       unsigned int block_y, unsigned int block_z, unsigned int shared, handle stream, \
                       void **arguments) { \
        REAL(#name, handle, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
             unsigned int, handle, void **); \
        launch_config shape = {{x, y, z}, {block_x, block_y, block_z}, shared, stream, NULL, 0}; \
        see_launch(function, &shape, arguments, NULL); \
        return real(function, x, y, z, block_x, block_y, block_z, shared, stream, arguments); \
    }
COOPERATIVE(cuLaunchCooperativeKernel)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz)

#define CONFIGURED(name) \
    PUBLIC result name(const launch_config *config, handle function, void **arguments, void **extra) { \
        REAL(#name, const launch_config *, handle, void **, void **); \
        if (config != NULL) \
            see_launch(function, config, arguments, extra); \
        return real(config, function, arguments, extra); \
    }
CONFIGURED(cuLaunchKernelEx)
CONFIGURED(cuLaunchKernelEx_ptsz)

/* ---- what asks for functions by name ---- */

PUBLIC result cuGetProcAddress(const char *name, void **into, int version, uint64_t flags);
PUBLIC result cuGetProcAddress_v2(const char *name, void **into, int version, uint64_t flags, void *status);

static void *stand_in(const char *name, int version, uint64_t flags) {
    static const struct {
        const char *name;
        void *ours, *per_thread;
    } known[] = {
        {"cuModuleLoad", cuModuleLoad, NULL},
        {"cuModuleLoadData", cuModuleLoadData, NULL},
        {"cuModuleLoadDataEx", cuModuleLoadDataEx, NULL},
        {"cuModuleLoadFatBinary", cuModuleLoadFatBinary, NULL},
        {"cuModuleGetFunction", cuModuleGetFunction, NULL},
        {"cuLibraryLoadData", cuLibraryLoadData, NULL},
        {"cuLibraryLoadFromFile", cuLibraryLoadFromFile, NULL},
        {"cuLibraryGetModule", cuLibraryGetModule, NULL},
        {"cuModuleGetGlobal", cuModuleGetGlobal_v2, NULL},
        {"cuLibraryGetGlobal", cuLibraryGetGlobal, NULL},
        {"cuLibraryGetManaged", cuLibraryGetManaged, NULL},
        {"cuLibraryGetKernel", cuLibraryGetKernel, NULL},
        {"cuKernelGetFunction", cuKernelGetFunction, NULL},
        {"cuTexObjectCreate", cuTexObjectCreate, NULL},
        {"cuTexObjectDestroy", cuTexObjectDestroy, NULL},
        {"cuSurfObjectCreate", cuSurfObjectCreate, NULL},
        {"cuSurfObjectDestroy", cuSurfObjectDestroy, NULL},
        {"cuLinkAddData", cuLinkAddData_v2, NULL},
        {"cuLinkComplete", cuLinkComplete, NULL},
        {"cuLinkDestroy", cuLinkDestroy, NULL},
        {"cuMemAlloc", cuMemAlloc_v2, NULL},
        {"cuMemAllocManaged", cuMemAllocManaged, NULL},
        {"cuMemAllocPitch", cuMemAllocPitch_v2, NULL},
        {"cuMemAllocAsync", cuMemAllocAsync, cuMemAllocAsync_ptsz},
        {"cuMemHostAlloc", cuMemHostAlloc, NULL},
        {"cuMemAllocHost", cuMemAllocHost_v2, NULL},
        {"cuMemFree", cuMemFree_v2, NULL},
        {"cuMemFreeAsync", cuMemFreeAsync, cuMemFreeAsync_ptsz},
        {"cuMemFreeHost", cuMemFreeHost, NULL},
        {"cuMemcpyHtoD", cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds},
        {"cuMemcpyDtoH", cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds},
        {"cuMemcpy", cuMemcpy, cuMemcpy_ptds},
        {"cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz},
        {"cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz},
        {"cuMemcpyAsync", cuMemcpyAsync, cuMemcpyAsync_ptsz},
        {"cuLaunchKernel", cuLaunchKernel, cuLaunchKernel_ptsz},
        {"cuLaunchKernelEx", cuLaunchKernelEx, cuLaunchKernelEx_ptsz},
        {"cuLaunchCooperativeKernel", cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz},
    };
    if (strcmp(name, "cuGetProcAddress") == 0)
        return version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
    for (size_t place = 0; place < sizeof known / sizeof *known; place++)
        if (strcmp(name, known[place].name) == 0)
            return (flags & PER_THREAD_STREAM) && known[place].per_thread != NULL ? known[place].per_thread : known[place].ours;
    return NULL;
}

PUBLIC result cuGetProcAddress(const char *name, void **into, int version, uint64_t flags) {
    REAL("cuGetProcAddress", const char *, void **, int, uint64_t);
    result error = real(name, into, version, flags);
    void *ours = error == SUCCESS && *into != NULL ? stand_in(name, version, flags) : NULL;
    if (ours != NULL)
        *into = ours;
    return error;
}

PUBLIC result cuGetProcAddress_v2(const char *name, void **into, int version, uint64_t flags, void *status) {
    REAL("cuGetProcAddress_v2", const char *, void **, int, uint64_t, void *);
    result error = real(name, into, version, flags, status);
    void *ours = error == SUCCESS && *into != NULL ? stand_in(name, version, flags) : NULL;
    if (ours != NULL)
        *into = ours;
    return error;
}
