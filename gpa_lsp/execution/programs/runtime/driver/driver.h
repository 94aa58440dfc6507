/* What the parts of the driver library share. It stands on the runtime library: a stream, an event, a function of one is one of the other. */
#ifndef GPA_LSP_DRIVER_H
#define GPA_LSP_DRIVER_H

#include "../runtime.h"

#include <cuda.h>

/* The number an error of the runtime has here. */
HIDDEN CUresult translate(cudaError_t error);

/* Tells gpa_lsp that something is not emulated; gives the error that the caller gets. */
HIDDEN CUresult refuse_call(const char *name);

#define CALL(expression) return translate(expression)

#endif
