/* Calls with the error that is due: each that gives another one is printed, and the program says how many there were. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong, calls;
#define GIVES(due, call)                                                                                               \
    do {                                                                                                               \
        int got_ = (int)(call);                                                                                        \
        calls++;                                                                                                       \
        if (got_ != (int)(due)) {                                                                                      \
            wrong++;                                                                                                   \
            printf("line %d: %s gave %d, not %d\n", __LINE__, #call, got_, (int)(due));                                \
            fflush(stdout);                                                                                            \
        }                                                                                                              \
    } while (0)
#define HOLDS(condition) GIVES(1, !!(condition))

static int finish(void) {
    printf("%d of %d calls went wrong\n", wrong, calls);
    return wrong != 0;
}
