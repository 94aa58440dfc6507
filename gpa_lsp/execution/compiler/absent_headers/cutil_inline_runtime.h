/* In place of the helpers of NVIDIA's first samples (CUTIL). */
#include "cutil.h"
