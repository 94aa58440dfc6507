/* Before CUDA's own header of this name, while gpa-lsp rebuilds a program. */
#include "gpa_lsp_device_properties.h"
#include_next <builtin_types.h>
