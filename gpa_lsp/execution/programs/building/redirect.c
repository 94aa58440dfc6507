/* Preloaded into the processes of a build: whoever starts nvcc, by whatever path, starts what stands before it; and linkers that are given the
   runtime library, static as host compilers are by CMake or shared, get a script that names the shared one, and the C++ library beside it: what
   this nvcc compiles needs that, and makefiles of older ones link with a C compiler. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

extern char **environ;

static const char *choose(const char *path) {
    const char *wrapper = getenv("GPA_LSP_NVCC_WRAPPER"), *name = path == NULL ? NULL : strrchr(path, '/');
    if (wrapper == NULL || name == NULL || strcmp(name, "/nvcc") != 0 || getenv("GPA_LSP_NVCC_STARTED") != NULL)
        return path;
    return wrapper;
}

PUBLIC int execve(const char *path, char *const arguments[], char *const variables[]) {
    int (*original)(const char *, char *const[], char *const[]) = dlsym(RTLD_NEXT, "execve");
    return original(choose(path), arguments, variables);
}
PUBLIC int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }
PUBLIC int execvpe(const char *file, char *const arguments[], char *const variables[]) {
    int (*original)(const char *, char *const[], char *const[]) = dlsym(RTLD_NEXT, "execvpe");
    return original(choose(file), arguments, variables);
}
PUBLIC int execvp(const char *file, char *const arguments[]) { return execvpe(file, arguments, environ); }
PUBLIC int posix_spawn(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) {
    int (*original)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                    char *const[]) = dlsym(RTLD_NEXT, "posix_spawn");
    return original(process, choose(path), actions, attributes, arguments, variables);
}
PUBLIC int posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) {
    int (*original)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                    char *const[]) = dlsym(RTLD_NEXT, "posix_spawnp");
    return original(process, choose(file), actions, attributes, arguments, variables);
}

/* Make and shells look whether a program is there before they start it. */
PUBLIC int access(const char *path, int mode) {
    int (*original)(const char *, int) = dlsym(RTLD_NEXT, "access");
    return original(choose(path), mode);
}
PUBLIC int eaccess(const char *path, int mode) {
    int (*original)(const char *, int) = dlsym(RTLD_NEXT, "eaccess");
    return original(choose(path), mode);
}
PUBLIC int euidaccess(const char *path, int mode) { return eaccess(path, mode); }
PUBLIC int faccessat(int folder, const char *path, int mode, int flags) {
    int (*original)(int, const char *, int, int) = dlsym(RTLD_NEXT, "faccessat");
    return original(folder, choose(path), mode, flags);
}

static const char *choose_library(const char *path) {
    const char *script = getenv("GPA_LSP_RUNTIME_SCRIPT"), *name = path == NULL ? NULL : strrchr(path, '/');
    int is_runtime = name != NULL && (strcmp(name, "/libcudart_static.a") == 0 || strcmp(name, "/libcudart.so") == 0);
    if (script == NULL || !is_runtime || access(path, R_OK) != 0)
        return path;
    return strstr(program_invocation_short_name, "ld") == NULL ? path : script; /* ld, ld.gold, ld.lld, mold */
}

PUBLIC FILE *fopen(const char *path, const char *mode) {
    FILE *(*original)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
    return original(choose_library(path), mode);
}
PUBLIC FILE *fopen64(const char *path, const char *mode) {
    FILE *(*original)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen64");
    return original(choose_library(path), mode);
}

/* The last argument is there only where a file may be made. */
#define OPEN(name)                                                                                                     \
    PUBLIC int name(const char *path, int flags, ...) {                                                                \
        int (*original)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;                                       \
        va_end(rest);                                                                                                  \
        return original(choose_library(path), flags, mode);                                                            \
    }
OPEN(open)
OPEN(open64)
