/* Where a launch was called from: return addresses, and the Python frames of the thread where it runs an interpreter. */
#ifndef GPA_LSP_COLLECTOR_CALL_PATH_H
#define GPA_LSP_COLLECTOR_CALL_PATH_H

#include <stdint.h>

#include "rows.h"

/* The number of the calling thread's path, written down when it is new; 0 where there are more than are told apart. */
HIDDEN uint32_t find_path(void);

#endif
