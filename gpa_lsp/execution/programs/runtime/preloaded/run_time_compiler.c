/* NVRTC for programs that ask it for machine code: preloaded, it stands before the compiler and has PTX made and given in its place, which the driver
   loads as well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))
#define FAILED 11 /* NVRTC_ERROR_INTERNAL_ERROR */

/* The option with the PTX of an architecture in place of its machine code, as allocated text; NULL where there is no memory. */
static char *ask_for_ptx(const char *option) {
    const char *code = strstr(option, "sm_");
    int is_architecture = code != NULL && (code == option || code[-1] == '=');
    size_t before = is_architecture ? (size_t)(code - option) : strlen(option);
    char *made = malloc(strlen(option) + sizeof "compute_");
    if (made != NULL)
        sprintf(made, "%.*s%s%s", (int)before, option, is_architecture ? "compute_" : "", is_architecture ? code + 3 : "");
    return made;
}
PUBLIC int nvrtcCompileProgram(void *program, int count, const char *const *options) {
    int (*compile)(void *, int, const char *const *) = dlsym(RTLD_NEXT, "nvrtcCompileProgram");
    char **asked = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof *asked);
    int result = compile == NULL || asked == NULL ? FAILED : 0;
    for (int i = 0; result == 0 && i < count; i++)
        if ((asked[i] = ask_for_ptx(options[i])) == NULL)
            result = FAILED;
    if (result == 0)
        result = compile(program, count, (const char *const *)asked);
    for (int i = 0; asked != NULL && i < count; i++)
        free(asked[i]);
    free(asked);
    return result;
}
#define GIVE_PTX(name, type, ptx)                                                                                      \
    PUBLIC int name(void *program, type into) {                                                                        \
        int (*give)(void *, type) = dlsym(RTLD_NEXT, ptx);                                                             \
        return give == NULL ? FAILED : give(program, into);                                                            \
    }
GIVE_PTX(nvrtcGetCUBINSize, size_t *, "nvrtcGetPTXSize")
GIVE_PTX(nvrtcGetCUBIN, char *, "nvrtcGetPTX")
