/* The connection to gpa_lsp: one socket per process, made at the first call, and the mapping of device memory that comes with it. */
#define _GNU_SOURCE
#include "runtime.h"
#include "mapped_memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_VARIABLE "GPA_LSP_RUNTIME_SOCKET"
#define MOST_PARTS 8

pthread_mutex_t runtime_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
struct device device;
int memory_file = -1;
static struct last_words no_words;
struct last_words *last_words = &no_words;
struct events *events;
static char *view; /* all of device memory, where the library itself reads and writes it */

static int connection = -1;
static pid_t connected_process;
static int is_lost;
static __thread cudaError_t last_error;

static cudaError_t fatal_error;

/* A kernel that did not run to its end: from then on every call says so, as on a GPU. */
void set_fatal_error(cudaError_t error) { fatal_error = error; }

cudaError_t keep_error(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

PUBLIC cudaError_t cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

PUBLIC cudaError_t cudaPeekAtLastError(void) { return last_error; }

static int send_all(struct iovec *parts, int count) {
    while (count > 0) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        ssize_t sent = sendmsg(connection, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        while (count > 0 && (size_t)sent >= parts->iov_len) {
            sent -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

static int receive_all(void *into, size_t size) {
    char *place = into;
    while (size > 0) {
        ssize_t got = recv(connection, place, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        place += got;
        size -= (size_t)got;
    }
    return 0;
}

static cudaError_t lose(const char *why) {
    if (!is_lost)
        fprintf(stderr, "gpa-lsp: %s; the program goes on without a GPU\n", why);
    is_lost = 1;
    if (connection >= 0)
        close(connection);
    connection = -1;
    return cudaErrorNoDevice;
}

static cudaError_t exchange(uint32_t request, const struct part *parts, int count, struct reply *reply) {
    struct iovec pieces[MOST_PARTS + 1];
    uint64_t size = 0;
    for (int i = 0; i < count; i++) {
        pieces[i + 1].iov_base = (void *)parts[i].bytes;
        pieces[i + 1].iov_len = parts[i].size;
        size = add_sizes(size, parts[i].size);
    }
    REFUSE_IF(size > UINT32_MAX, cudaErrorInvalidValue);
    uint32_t head[2] = {request, (uint32_t)size};
    pieces[0].iov_base = head;
    pieces[0].iov_len = sizeof head;
    if (send_all(pieces, count + 1) != 0)
        return lose("the emulator is gone");
    struct {
        int32_t status;
        uint32_t size;
    } answer;
    if (receive_all(&answer, sizeof answer) != 0)
        return lose("the emulator is gone");
    reply->status = answer.status;
    reply->size = answer.size;
    reply->bytes = malloc((size_t)answer.size + 1);
    if (reply->bytes == NULL)
        return lose("no memory for an answer of the emulator");
    if (receive_all(reply->bytes, answer.size) != 0) {
        free(reply->bytes);
        reply->bytes = NULL;
        return lose("the emulator is gone");
    }
    reply->bytes[answer.size] = 0;
    return (cudaError_t)answer.status;
}

/* The file of device memory comes beside one byte. */
static int receive_file(void) {
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t got;
    do
        got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    struct cmsghdr *control = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (control == NULL || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
        return -1;
    int file;
    memcpy(&file, CMSG_DATA(control), sizeof file);
    return file;
}

void *locate(const void *pointer) {
    uint64_t place = (uint64_t)(uintptr_t)pointer - device.arena_base;
    return view != NULL && place < device.arena_bytes ? view + place : (void *)pointer;
}

int is_mapped(const void *pointer, size_t size) { return can_read(pointer, size); }

int is_writable(const void *pointer, size_t size) { return can_write(pointer, size); }

/* An access failed that nobody handles: where is written down, and it fails once more, as it would have. */
static void on_failed_access(int number, siginfo_t *info, void *context) {
    if (getpid() == connected_process) {
        last_words->address = (uint64_t)(uintptr_t)info->si_addr;
        last_words->signal = (uint32_t)number;
    }
    signal(number, SIG_DFL);
    if (info->si_code <= 0) /* somebody sent it */
        raise(number);
}

static void watch_accesses(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before, watch = {.sa_sigaction = on_failed_access, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        if (sigaction(numbers[i], NULL, &before) == 0 && (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &watch, NULL);
    }
}

/* Device memory is mapped twice: at its own addresses, where the host has access to what it sees on a GPU and to nothing else, and for the library. */
static int map_memory(int file) {
    void *wanted = (void *)(uintptr_t)device.arena_base; /* the address is what both processes agree on */
    void *seen = (void *)(uintptr_t)device.host_base;
    size_t seen_bytes = device.arena_base + device.arena_bytes - device.host_base;
    int how = MAP_SHARED | MAP_NORESERVE, both = PROT_READ | PROT_WRITE;
    if (mmap(wanted, device.arena_bytes, PROT_NONE, how | MAP_FIXED, file, 0) != wanted || mprotect(seen, seen_bytes, both) != 0)
        return -1;
    char *all = mmap(NULL, device.arena_bytes, both, how, file, 0);
    void *words = mmap(NULL, sizeof *last_words, both, MAP_SHARED, file, (off_t)device.arena_bytes);
    void *noted = mmap(NULL, sizeof *events, both, how, file, (off_t)(device.arena_bytes + LAST_WORDS_BYTES));
    if (all == MAP_FAILED || words == MAP_FAILED || noted == MAP_FAILED)
        return -1;
    madvise(wanted, device.arena_bytes, MADV_DONTDUMP);
    madvise(all, device.arena_bytes, MADV_DONTDUMP);
    view = all;
    last_words = words;
    events = noted;
    return 0;
}

static cudaError_t connect_now(void) {
    const char *path = getenv(SOCKET_VARIABLE);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || strlen(path) >= sizeof address.sun_path)
        return lose("started without the emulator; use `gpa-lsp emulate -- PROGRAM`");
    strcpy(address.sun_path, path);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        return lose("the emulator cannot be reached");
    struct {
        uint32_t process, version;
    } hello = {(uint32_t)getpid(), CUDART_VERSION};
    struct part part = {&hello, sizeof hello};
    struct reply reply = {0};
    cudaError_t error = exchange(REQUEST_HELLO, &part, 1, &reply);
    if (error == cudaSuccess && reply.size == sizeof device)
        memcpy(&device, reply.bytes, sizeof device);
    else if (error == cudaSuccess)
        error = lose("the emulator is of another version");
    free_reply(&reply);
    if (error != cudaSuccess)
        return error;
    int file = receive_file();
    if (file < 0)
        return lose("the emulator sent no memory");
    memory_file = file; /* kept: registered memory of the host is mapped to it, too */
    if (map_memory(file) != 0)
        return lose("device memory cannot be mapped");
    connected_process = getpid();
    watch_accesses();
    return cudaSuccess;
}

cudaError_t connect_once(void) {
    if (connected_process != 0 && connected_process != getpid())
        return cudaErrorInitializationError; /* the child of a fork has no part in what its parent began, as on a GPU */
    REFUSE_IF(is_lost, cudaErrorNoDevice);
    if (fatal_error != cudaSuccess)
        return fatal_error;
    return connection >= 0 ? cudaSuccess : connect_now();
}

cudaError_t ask(uint32_t request, const struct part *parts, int count, struct reply *reply) {
    memset(reply, 0, sizeof *reply);
    cudaError_t error = connect_once();
    return error == cudaSuccess ? exchange(request, parts, count, reply) : error;
}

void free_reply(struct reply *reply) {
    free(reply->bytes);
    reply->bytes = NULL;
}

void send_note(uint32_t kind, const char *name) {
    struct part parts[2] = {{&kind, sizeof kind}, {name, strlen(name)}};
    struct reply reply;
    pthread_mutex_lock(&runtime_lock);
    ask(REQUEST_NOTE, parts, 2, &reply);
    free_reply(&reply);
    pthread_mutex_unlock(&runtime_lock);
}

int refuse_call(const char *name) {
    send_note(NOTE_UNSUPPORTED, name);
    return (int)keep_error(cudaErrorNotSupported);
}
