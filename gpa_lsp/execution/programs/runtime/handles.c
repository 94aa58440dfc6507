/* What the program holds handles of: a handle is looked up before it is followed, so that NULL, foreign and destroyed ones are errors. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>

struct entry {
    struct entry *next;
    uint64_t key;
    enum handle_kind kind;
    void *object;
};
static struct entry **buckets;
static size_t bucket_count, entry_count; /* a power of two */

static struct entry **find_bucket(uint64_t key) {
    return &buckets[(key * 0x9E3779B97F4A7C15u >> 32) & (bucket_count - 1)];
}

static int grow(void) {
    size_t old_count = bucket_count, count = old_count == 0 ? 64 : 2 * old_count;
    struct entry **old = buckets, **made = calloc(count, sizeof *made);
    if (made == NULL)
        return old != NULL; /* longer chains do as well */
    buckets = made;
    bucket_count = count;
    for (size_t i = 0; i < old_count; i++)
        for (struct entry *one = old[i], *next; one != NULL; one = next) {
            next = one->next;
            struct entry **bucket = find_bucket(one->key);
            one->next = *bucket;
            *bucket = one;
        }
    free(old);
    return 1;
}

int keep_handle(enum handle_kind kind, uint64_t key, void *object) {
    pthread_mutex_lock(&runtime_lock);
    struct entry *made = entry_count < bucket_count || grow() ? malloc(sizeof *made) : NULL;
    if (made != NULL) {
        struct entry **bucket = find_bucket(key);
        *made = (struct entry){*bucket, key, kind, object};
        *bucket = made;
        entry_count++;
    }
    pthread_mutex_unlock(&runtime_lock);
    return made != NULL;
}

void *make_handle(enum handle_kind kind, size_t bytes) {
    void *object = calloc(1, bytes);
    if (object != NULL && !keep_handle(kind, (uint64_t)(uintptr_t)object, object)) {
        free(object);
        return NULL;
    }
    return object;
}

void *find_handle(enum handle_kind kind, uint64_t key) {
    pthread_mutex_lock(&runtime_lock);
    struct entry *one = bucket_count == 0 || key == 0 ? NULL : *find_bucket(key);
    while (one != NULL && (one->key != key || one->kind != kind))
        one = one->next;
    void *found = one == NULL ? NULL : one->object;
    pthread_mutex_unlock(&runtime_lock);
    return found;
}

int is_handle(enum handle_kind kind, const void *handle) { return find_handle(kind, (uint64_t)(uintptr_t)handle) != NULL; }

void *take_out_handle(enum handle_kind kind, uint64_t key) {
    pthread_mutex_lock(&runtime_lock);
    struct entry **place = bucket_count == 0 || key == 0 ? NULL : find_bucket(key);
    while (place != NULL && *place != NULL && ((*place)->key != key || (*place)->kind != kind))
        place = &(*place)->next;
    struct entry *found = place == NULL ? NULL : *place;
    void *object = found == NULL ? NULL : found->object;
    if (found != NULL) {
        *place = found->next;
        free(found);
        entry_count--;
    }
    pthread_mutex_unlock(&runtime_lock);
    return object;
}

int drop_handle(enum handle_kind kind, uint64_t key) {
    void *object = take_out_handle(kind, key);
    free(object);
    return object != NULL;
}

int destroy_handle(enum handle_kind kind, void *handle) { return drop_handle(kind, (uint64_t)(uintptr_t)handle); }

void drop_handles(enum handle_kind kind) {
    for (size_t i = 0; i < bucket_count; i++)
        for (struct entry *one = buckets[i], *next; one != NULL; one = next) {
            next = one->next;
            if (one->kind == kind)
                drop_handle(kind, one->key);
        }
}
