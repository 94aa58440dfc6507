/* What the parts of the driver library share. It stands on the runtime library: a stream, an event, a function of one is one of the other. */
#ifndef GPA_LSP_DRIVER_H
#define GPA_LSP_DRIVER_H

#include "../runtime.h"

#include <cuda.h>

/* The number an error of the runtime has here. */
HIDDEN CUresult translate(cudaError_t error);

#define CALL(expression) return translate(expression)

#endif
