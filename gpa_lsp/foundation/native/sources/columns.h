/* What the sources of the core share. Arrays come from numpy: contiguous, of the types written here, and of the lengths that go with them. */
#ifndef GPA_LSP_COLUMNS_H
#define GPA_LSP_COLUMNS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define LANES 32
#define FAILED (-1)

#endif
