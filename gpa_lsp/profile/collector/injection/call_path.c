/* Calling contexts. Native frames are return addresses by module and offset, which mean the same in the next run; what lines they are is asked
 * later, and only of those that are shown. Python frames are read as they lie in memory: taking the interpreter's lock inside a launch could
 * wait for a thread that waits for the launch. At first every read goes through the kernel, so that an interpreter that is built otherwise gives no
 * frames instead of a fault, and only what has the type of a code object is taken for one. */
#define _GNU_SOURCE
#include "call_path.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#define MOST_NATIVE 64
#define MOST_PYTHON 64
#define MOST_SKIPPED_PYTHON 128
#define MOST_PATHS (1 << 16)
#define MOST_NAME 240
#define TRUSTED_STACKS 8

struct native_frame {
    uint64_t image; /* the number of its record */
    uint64_t offset;
};
struct python_frame {
    uint64_t code, instruction, frame;
};
struct python_line {
    uint32_t file, function, line;
};

static pthread_mutex_t path_lock = PTHREAD_MUTEX_INITIALIZER;
static struct table paths = {.bound = MOST_PATHS};

/* -- native frames ------------------------------------------------------------------------------------------------ */

struct walk {
    uint64_t addresses[MOST_NATIVE];
    int count;
    uint64_t end_begins, end_ends; /* an image in which the walk ends: what is below the interpreter, its own frames say better */
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *data) {
    struct walk *walk = data;
    uint64_t address = _Unwind_GetIP(context);
    if (address == 0 || walk->count == MOST_NATIVE)
        return _URC_END_OF_STACK;
    walk->addresses[walk->count++] = address;
    if (address >= walk->end_begins && address < walk->end_ends)
        return _URC_END_OF_STACK;
    return _URC_NO_REASON;
}

struct image_query {
    uint64_t address, base, begin, end; /* of the segment */
    const char *name;
    int is_found;
};

static int match_image(struct dl_phdr_info *info, size_t size, void *data) {
    struct image_query *query = data;
    for (int number = 0; number < info->dlpi_phnum; number++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[number];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && query->address >= start && query->address < start + header->p_memsz) {
            query->base = info->dlpi_addr;
            query->begin = start;
            query->end = start + header->p_memsz;
            query->name = info->dlpi_name;
            query->is_found = 1;
            return 1;
        }
    }
    return 0;
}

static struct native_frame place(uint64_t address) {
    static char program[4096];
    struct image_query query = {.address = address};
    dl_iterate_phdr(match_image, &query);
    if (!query.is_found)
        return (struct native_frame){0, address};
    if (query.name == NULL || *query.name == 0) {
        if (*program == 0) {
            ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
            if (size < 0)
                size = 0;
            program[size] = 0;
        }
        query.name = program;
    }
    return (struct native_frame){intern_text(query.name), address - query.base};
}

/* -- Python frames ------------------------------------------------------------------------------------------------ */

enum { TYPE_BASIC_SIZE = 32, TYPE_MEMBERS = 240, OBJECT_TYPE = 8 };

static struct {
    int is_looked_for, minor;
    void *(*thread_state)(void);
    int (*address_to_line)(void *code, int offset);
    int (*frame_line)(void *frame);          /* of an interpreter's frame, 3.12 and later */
    int (*object_line)(void *frame);         /* of a frame object, until 3.10 */
    ssize_t (*text_length)(void *text);
    uint32_t (*text_character)(void *text, ssize_t at);
    uint64_t code_type, text_type;
    uint64_t code_size;                      /* where the instructions of a code object begin */
    uint64_t file_offset, name_offset;
    uint64_t state_slot;                     /* of the current frame in a thread's state, 3.13 and later; found by trying */
    uint64_t begin, end;                     /* of its machine code */
    int is_trusted;                          /* whole stacks were read as they should be */
} python;

static int read_memory(uint64_t address, void *into, size_t size) {
    static pid_t process;
    struct iovec local = {into, size}, remote = {(void *)address, size};
    if (address < 4096)
        return 0;
    if (python.is_trusted) {
        memcpy(into, (const void *)address, size);
        return 1;
    }
    if (process == 0)
        process = getpid();
    return process_vm_readv(process, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static uint64_t read_word(uint64_t address) {
    uint64_t word;
    return read_memory(address, &word, sizeof word) ? word : 0;
}

struct member {
    uint64_t name;
    int32_t type, unused;
    int64_t offset;
    int32_t flags, unused_too;
    uint64_t words;
};

static void find_members(void) {
    uint64_t at = read_word(python.code_type + TYPE_MEMBERS);
    uint64_t plain = 0;
    struct member member;
    char name[16];
    for (int number = 0; number < 64 && read_memory(at, &member, sizeof member) && member.name != 0; number++) {
        at += sizeof member;
        memset(name, 0, sizeof name);
        for (size_t letter = 0; letter < sizeof name - 1; letter++)
            if (!read_memory(member.name + letter, name + letter, 1) || name[letter] == 0)
                break;
        if (strcmp(name, "co_filename") == 0)
            python.file_offset = (uint64_t)member.offset;
        else if (strcmp(name, "co_qualname") == 0)
            python.name_offset = (uint64_t)member.offset;
        else if (strcmp(name, "co_name") == 0)
            plain = (uint64_t)member.offset;
    }
    if (python.name_offset == 0)
        python.name_offset = plain;
}

/* The interpreter in this process, if there is one whose frames are known. */
static void find_python(void) {
    python.is_looked_for = 1;
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    python.thread_state = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    python.address_to_line = (int (*)(void *, int))dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
    python.frame_line = (int (*)(void *))dlsym(RTLD_DEFAULT, "PyUnstable_InterpreterFrame_GetLine");
    python.object_line = (int (*)(void *))dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
    python.text_length = (ssize_t(*)(void *))dlsym(RTLD_DEFAULT, "PyUnicode_GetLength");
    python.text_character = (uint32_t(*)(void *, ssize_t))dlsym(RTLD_DEFAULT, "PyUnicode_ReadChar");
    python.code_type = (uint64_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
    python.text_type = (uint64_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    if (version == NULL || python.thread_state == NULL || python.address_to_line == NULL ||
        python.text_length == NULL || python.text_character == NULL || python.code_type == 0 || python.text_type == 0)
        return;
    const char *words = version();
    if (strncmp(words, "3.", 2) != 0)
        return;
    int minor = atoi(words + 2);
    if (minor < 9 || (minor < 11 && python.object_line == NULL) || (minor > 11 && python.frame_line == NULL))
        return;
    find_members();
    python.code_size = read_word(python.code_type + TYPE_BASIC_SIZE);
    struct image_query query = {.address = (uint64_t)version};
    dl_iterate_phdr(match_image, &query);
    python.begin = query.begin;
    python.end = query.end;
    if (python.file_offset != 0 && python.name_offset != 0)
        python.minor = minor;
}

static int is_code(uint64_t object) { return object != 0 && read_word(object + OBJECT_TYPE) == python.code_type; }

/* A frame's code object, the frame that called it, and where in the code it is. */
static int read_frame(uint64_t frame, struct python_frame *found, uint64_t *previous) {
    uint64_t words[8];
    if (!read_memory(frame, words, sizeof words))
        return 0;
    found->frame = frame;
    if (python.minor <= 10) { /* a frame object */
        *previous = words[3];
        found->code = words[4];
        found->instruction = 0;
    } else if (python.minor == 11) {
        *previous = words[6];
        found->code = words[4];
        found->instruction = words[7];
    } else {
        *previous = words[1];
        found->code = words[0] & ~(uint64_t)3; /* tagged since 3.14 */
        found->instruction = words[7];
    }
    return 1;
}

static uint64_t find_current_frame(uint64_t state) {
    if (python.minor <= 10)
        return read_word(state + 24);
    if (python.minor == 11)
        return read_word(read_word(state + 56) + 8);
    if (python.minor == 12)
        return read_word(read_word(state + 56));
    if (python.state_slot != 0)
        return read_word(state + python.state_slot);
    for (uint64_t slot = 24; slot <= 160; slot += 8) {
        uint64_t frame = read_word(state + slot), previous;
        struct python_frame found;
        if (frame != 0 && read_frame(frame, &found, &previous) && is_code(found.code)) {
            python.state_slot = slot;
            return frame;
        }
    }
    return 0;
}

static int list_python(struct python_frame *frames) {
    static int read_stacks;
    if (!python.is_looked_for)
        find_python();
    if (python.minor == 0)
        return 0;
    uint64_t state = (uint64_t)python.thread_state();
    uint64_t frame = state == 0 ? 0 : find_current_frame(state);
    int count = 0;
    int is_whole = 1;
    for (int step = 0; frame != 0 && step < MOST_SKIPPED_PYTHON && count < MOST_PYTHON; step++) {
        uint64_t previous;
        is_whole = read_frame(frame, &frames[count], &previous);
        if (!is_whole)
            break;
        count += is_code(frames[count].code); /* what is none is a mark between two calls of the interpreter */
        frame = previous;
    }
    if (!python.is_trusted && is_whole && frame == 0 && count > 0 && ++read_stacks == TRUSTED_STACKS)
        python.is_trusted = 1; /* from here on without the kernel, which costs a microsecond a frame */
    if (python.minor <= 10)
        for (int number = 0; number < count; number++)
            frames[number].instruction = (uint64_t)python.object_line((void *)frames[number].frame);
    return count;
}

static uint32_t read_text(uint64_t object) {
    char text[MOST_NAME * 4 + 8];
    size_t size = 0;
    if (object == 0 || read_word(object + OBJECT_TYPE) != python.text_type)
        return 0;
    ssize_t length = python.text_length((void *)object), first = length > MOST_NAME ? length - MOST_NAME : 0;
    for (ssize_t at = first; at < length; at++) {
        uint32_t one = python.text_character((void *)object, at);
        if (one < 0x80) {
            text[size++] = (char)one;
        } else if (one < 0x800) {
            text[size++] = (char)(0xc0 | one >> 6);
            text[size++] = (char)(0x80 | (one & 0x3f));
        } else if (one < 0x10000) {
            text[size++] = (char)(0xe0 | one >> 12);
            text[size++] = (char)(0x80 | (one >> 6 & 0x3f));
            text[size++] = (char)(0x80 | (one & 0x3f));
        } else {
            text[size++] = (char)(0xf0 | one >> 18);
            text[size++] = (char)(0x80 | (one >> 12 & 0x3f));
            text[size++] = (char)(0x80 | (one >> 6 & 0x3f));
            text[size++] = (char)(0x80 | (one & 0x3f));
        }
    }
    text[size] = 0;
    return intern_text(text);
}

static struct python_line describe(const struct python_frame *frame) {
    int line;
    if (python.minor <= 10)
        line = (int)frame->instruction;
    else if (python.minor == 11)
        line = python.address_to_line((void *)frame->code, (int)(frame->instruction - frame->code - python.code_size));
    else
        line = python.frame_line((void *)frame->frame);
    return (struct python_line){
        read_text(read_word(frame->code + python.file_offset)),
        read_text(read_word(frame->code + python.name_offset)),
        line > 0 ? (uint32_t)line : 0,
    };
}

/* -- paths -------------------------------------------------------------------------------------------------------- */

static void write_path(uint32_t number, const struct walk *walk, const struct python_frame *frames, int python_count) {
    struct native_frame native[MOST_NATIVE];
    struct python_line lines[MOST_PYTHON];
    uint32_t head[3] = {number, (uint32_t)walk->count, (uint32_t)python_count};
    for (int at = 0; at < walk->count; at++)
        native[at] = place(walk->addresses[at]);
    for (int at = 0; at < python_count; at++)
        lines[at] = describe(&frames[at]);
    write_record(RECORD_PATH, head, sizeof head, native, (size_t)walk->count * sizeof *native, lines,
                 (size_t)python_count * sizeof *lines);
}

uint32_t find_path(void) {
    static int is_told;
    struct walk walk;
    struct python_frame frames[MOST_PYTHON];
    uint64_t keys[MOST_NATIVE + 2 * MOST_PYTHON];
    int python_count = list_python(frames), size = 0, is_new;
    walk.count = 0;
    walk.end_begins = python_count > 0 ? python.begin : 0;
    walk.end_ends = python_count > 0 ? python.end : 0;
    _Unwind_Backtrace(take_frame, &walk);
    for (int at = 0; at < walk.count; at++)
        keys[size++] = walk.addresses[at];
    for (int at = 0; at < python_count; at++) {
        keys[size++] = frames[at].code;
        keys[size++] = frames[at].instruction;
    }
    uint64_t key = hash_bytes(keys, (size_t)size * sizeof *keys);
    pthread_mutex_lock(&path_lock);
    uint32_t *slot = find_slot(&paths, key, &is_new), number = 0;
    if (slot != NULL) {
        if (is_new)
            *slot = (uint32_t)paths.used;
        number = *slot;
        if (is_new)
            write_path(number, &walk, frames, python_count);
    } else if (!is_told) {
        is_told = 1;
        write_trouble(TROUBLE_PATHS, 0, "paths");
    }
    pthread_mutex_unlock(&path_lock);
    return number;
}
