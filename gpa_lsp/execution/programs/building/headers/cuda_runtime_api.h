/* Before CUDA's own header of this name, while gpa-lsp rebuilds a program. */
#include "gpa_lsp_device_properties.h"
#include_next <cuda_runtime_api.h>
#include "gpa_lsp_old_forms.h"
