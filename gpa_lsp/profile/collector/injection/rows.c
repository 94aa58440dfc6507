/* The file of records. What was handed to the system survives the end of this process, however it comes. */
#define _GNU_SOURCE
#include "rows.h"

#include "sizes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (256 << 10)
#define MOST_IMAGE_BYTES ((size_t)1 << 30)
#define MOST_TEXTS (1 << 18)

static const char MAGIC[8] = {'G', 'P', 'A', 'R', 'O', 'W', 'S', '1'};

struct head {
    uint32_t kind, bytes, checksum;
};

static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static char folder_name[4096];
static int file = -1;
static uint64_t written_bytes, limit;
static int is_over;
static char buffer[BUFFER_BYTES];
static size_t filled;
static uint32_t sum_table[256];
static struct table texts = {.bound = MOST_TEXTS};

/* -- numbers ------------------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93ull;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93ull;
    return value ^ value >> 32;
}

uint64_t hash_bytes(const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t hash = mix(size + 0x9e3779b97f4a7c15ull), word;
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash = mix(hash ^ word) + word;
    }
    word = 0;
    memcpy(&word, at, size);
    hash = mix(hash ^ word ^ (uint64_t)size << 56);
    return hash ? hash : 1;
}

/* CRC-32 as zlib has it, which is what the reader computes. */
static uint32_t sum_bytes(uint32_t sum, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    sum = ~sum;
    while (size--)
        sum = sum_table[(sum ^ *at++) & 255] ^ sum >> 8;
    return ~sum;
}

static void make_sum_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? 0xedb88320u ^ sum >> 1 : sum >> 1;
        sum_table[byte] = sum;
    }
}

static int grow(struct table *table) {
    size_t capacity = table->capacity ? multiply_sizes(table->capacity, 2) : 256;
    uint64_t *keys = calloc(capacity, sizeof *keys);
    uint32_t *values = calloc(capacity, sizeof *values);
    if (keys == NULL || values == NULL) {
        free(keys);
        free(values);
        return 0;
    }
    for (size_t old = 0; old < table->capacity; old++) {
        if (table->keys[old] == 0)
            continue;
        size_t at = mix(table->keys[old]) & (capacity - 1);
        while (keys[at] != 0)
            at = (at + 1) & (capacity - 1);
        keys[at] = table->keys[old];
        values[at] = table->values[old];
    }
    free(table->keys);
    free(table->values);
    table->keys = keys;
    table->values = values;
    table->capacity = capacity;
    return 1;
}

uint32_t *find_slot(struct table *table, uint64_t key, int *is_new) {
    *is_new = 0;
    if (table->used * 2 >= table->capacity && !grow(table) && table->used + 1 >= table->capacity)
        return NULL;
    size_t at = mix(key) & (table->capacity - 1);
    while (table->keys[at] != 0) {
        if (table->keys[at] == key)
            return &table->values[at];
        at = (at + 1) & (table->capacity - 1);
    }
    if (table->used >= table->bound)
        return NULL;
    table->keys[at] = key;
    table->used++;
    *is_new = 1;
    return &table->values[at];
}

void clear_table(struct table *table) {
    free(table->keys);
    free(table->values);
    table->keys = NULL;
    table->values = NULL;
    table->capacity = table->used = 0;
}

/* -- the file ----------------------------------------------------------------------------------------------------- */

int open_rows(const char *folder, uint64_t limit_bytes) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char name[4200];
    if (strlen(folder) >= sizeof folder_name)
        return ENAMETOOLONG;
    strcpy(folder_name, folder);
    snprintf(name, sizeof name, "%s/process-%d-%lld%09ld.rows", folder, (int)getpid(), (long long)now.tv_sec, now.tv_nsec);
    file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return errno;
    limit = limit_bytes;
    make_sum_table();
    memcpy(buffer, MAGIC, sizeof MAGIC);
    filled = sizeof MAGIC;
    return 0;
}

int are_rows_open(void) { return __atomic_load_n(&file, __ATOMIC_RELAXED) >= 0; }

/* Hand over what is in the buffer; a disk that is full ends the collection, never the application. */
static void hand_over(void) {
    size_t done = 0;
    while (file >= 0 && done < filled) {
        ssize_t count = write(file, buffer + done, filled - done);
        if (count < 0) {
            if (errno == EINTR)
                continue;
            close(file);
            __atomic_store_n(&file, -1, __ATOMIC_RELAXED);
            break;
        }
        done += (size_t)count;
    }
    written_bytes += done;
    filled = 0;
}

static void put(const void *bytes, size_t size) {
    const char *at = bytes;
    while (size > 0) {
        if (filled == BUFFER_BYTES)
            hand_over();
        size_t piece = BUFFER_BYTES - filled < size ? BUFFER_BYTES - filled : size;
        memcpy(buffer + filled, at, piece);
        filled += piece;
        at += piece;
        size -= piece;
    }
}

static void append(enum record kind, const void *first, size_t first_bytes, const void *second, size_t second_bytes,
                   const void *third, size_t third_bytes) {
    struct head head = {kind, (uint32_t)(first_bytes + second_bytes + third_bytes), 0};
    head.checksum = sum_bytes(kind, first, first_bytes);
    head.checksum = sum_bytes(head.checksum, second, second_bytes);
    head.checksum = sum_bytes(head.checksum, third, third_bytes);
    if (filled + sizeof head + head.bytes > BUFFER_BYTES)
        hand_over(); /* a record is torn by nothing but the end of the process in the middle of a write */
    put(&head, sizeof head);
    put(first, first_bytes);
    put(second, second_bytes);
    put(third, third_bytes);
}

void write_record(enum record kind, const void *first, size_t first_bytes, const void *second, size_t second_bytes,
                  const void *third, size_t third_bytes) {
    if (!are_rows_open())
        return;
    pthread_mutex_lock(&rows_lock);
    size_t bytes = add_sizes(first_bytes, add_sizes(second_bytes, third_bytes));
    uint64_t after = add_sizes(add_sizes(written_bytes, filled), bytes);
    if (file >= 0 && !is_over && limit != 0 && after > limit) {
        struct {
            uint32_t what;
            int32_t number;
        } trouble = {TROUBLE_ROWS, EFBIG};
        append(RECORD_TROUBLE, &trouble, sizeof trouble, "rows", 4, NULL, 0);
        hand_over();
        is_over = 1;
    }
    if (file >= 0 && (!is_over || kind == RECORD_END) && bytes <= UINT32_MAX)
        append(kind, first, first_bytes, second, second_bytes, third, third_bytes);
    pthread_mutex_unlock(&rows_lock);
}

void flush_rows(void) {
    pthread_mutex_lock(&rows_lock);
    hand_over();
    pthread_mutex_unlock(&rows_lock);
}

void sync_rows(void) {
    flush_rows();
    int current = __atomic_load_n(&file, __ATOMIC_RELAXED);
    if (current >= 0)
        fsync(current);
}

void close_rows(void) {
    sync_rows();
    pthread_mutex_lock(&rows_lock);
    if (file >= 0)
        close(file);
    __atomic_store_n(&file, -1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&rows_lock);
}

/* In a child after fork: the file is the parent's, and so is what waits in the buffer. */
void abandon_rows(void) {
    filled = 0;
    if (file >= 0)
        close(file);
    __atomic_store_n(&file, -1, __ATOMIC_RELAXED);
}

void write_trouble(enum trouble what, int32_t number, const char *where) {
    struct {
        uint32_t what;
        int32_t number;
    } trouble = {what, number};
    write_record(RECORD_TROUBLE, &trouble, sizeof trouble, where, strlen(where), NULL, 0);
}

uint32_t intern_text(const char *text) {
    if (text == NULL)
        return 0;
    size_t size = strnlen(text, MOST_TEXT_BYTES);
    uint64_t key = hash_bytes(text, size);
    int is_new;
    pthread_mutex_lock(&text_lock);
    uint32_t *slot = find_slot(&texts, key, &is_new);
    if (slot != NULL && is_new) {
        *slot = (uint32_t)texts.used;
        write_record(RECORD_TEXT, slot, sizeof *slot, text, size, NULL, 0);
    }
    uint32_t number = slot == NULL ? 0 : *slot;
    pthread_mutex_unlock(&text_lock);
    return number;
}

void write_image(uint64_t hash, const void *bytes, size_t size) {
    char name[4300], partial[4400];
    struct stat status;
    if (size > MOST_IMAGE_BYTES) {
        write_trouble(TROUBLE_ROWS, EFBIG, "module");
        return;
    }
    snprintf(name, sizeof name, "%s/%016llx.cubin", folder_name, (unsigned long long)hash);
    if (stat(name, &status) == 0)
        return;
    snprintf(partial, sizeof partial, "%s.%d-%d", name, (int)getpid(), (int)gettid());
    int target = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t done = 0;
    while (target >= 0 && done < size) {
        ssize_t count = write(target, (const char *)bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            break;
        done += (size_t)count;
    }
    int error = target < 0 || done < size ? errno : 0;
    if (target >= 0)
        close(target);
    if (error == 0 && rename(partial, name) != 0)
        error = errno;
    if (error != 0) {
        write_trouble(TROUBLE_ROWS, error, "module");
        unlink(partial);
    }
}
