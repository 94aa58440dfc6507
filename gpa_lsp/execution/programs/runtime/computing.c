/* What libraries such as cuBLAS have gpa_lsp compute: the name of a function and its arguments go there, a status and a result come back. */
#include "runtime.h"

#define MOST_ARGUMENTS 24

int compute(const char *function, size_t scalar_bytes, int has_device_scalars, const char *kinds, va_list given) {
    struct argument arguments[MOST_ARGUMENTS] = {{0}};
    void *result = NULL;
    uint32_t count = 0;
    pthread_mutex_lock(&runtime_lock);
    for (; kinds[count] != 0 && count < MOST_ARGUMENTS; count++) {
        struct argument *one = &arguments[count];
        if (kinds[count] == 'i' || kinds[count] == 'l') {
            one->word = kinds[count] == 'i' ? (uint64_t)(int64_t)va_arg(given, int) : (uint64_t)va_arg(given, long long);
            continue;
        }
        void *pointer = va_arg(given, void *);
        uint64_t on_device = find_on_device((uint64_t)(uintptr_t)pointer);
        one->word = on_device != 0 ? on_device : (uint64_t)(uintptr_t)pointer;
        one->is_here = kinds[count] != 'p' && !has_device_scalars && pointer != NULL;
        if (one->is_here && kinds[count] == 's')
            memcpy(one->value, pointer, scalar_bytes <= sizeof one->value ? scalar_bytes : sizeof one->value);
        else if (one->is_here)
            result = pointer;
    }
    uint32_t path = find_path(), allocations, is_whole, generation;
    const struct allocation *list = list_changes(&allocations, &is_whole, &generation);
    uint32_t head[] = {generation, allocations, is_whole, path, count};
    struct part parts[] = {{head, sizeof head},
                           {list, multiply_sizes(allocations, sizeof *list)},
                           {arguments, count * sizeof *arguments},
                           {function, strlen(function)}};
    struct reply reply;
    int32_t status = -1;
    if (ask(REQUEST_COMPUTE, parts, sizeof parts / sizeof *parts, &reply) == cudaSuccess && reply.size >= sizeof status) {
        memcpy(&status, reply.bytes, sizeof status);
        if (result != NULL)
            memcpy(result, reply.bytes + sizeof status, reply.size - sizeof status);
    }
    forget_changes();
    free_reply(&reply);
    pthread_mutex_unlock(&runtime_lock);
    return status;
}
