/* Preloaded into the application: ends it, as kill -9 does, at the write that KILL_AT names, after KILL_BYTES of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int file, const void *bytes, size_t size) {
    static long count;
    const char *at = getenv("KILL_AT");
    char link[64], name[4096];
    strcpy(link, "/proc/self/fd/");
    char digits[12] = "";
    int place = 11;
    for (int number = file; place > 0 && (number > 0 || place == 11); number /= 10)
        digits[--place] = (char)('0' + number % 10);
    strcat(link, digits + place);
    ssize_t length = readlink(link, name, sizeof name - 1);
    int is_rows = length > 5 && memcmp(name + length - 5, ".rows", 5) == 0;
    if (at != NULL && is_rows && ++count == atol(at)) {
        size_t some = (size_t)atol(getenv("KILL_BYTES"));
        syscall(SYS_write, file, bytes, some < size ? some : size);
        raise(SIGKILL);
    }
    return syscall(SYS_write, file, bytes, size);
}
