#pragma once

// Small functions that kernels call; all of them are inlined.
__device__ inline float soften(float value, float signal)
{
    value = value + 0.5f * signal;
    return value * (1.0f - 0.125f * value);
}

__device__ inline float share_of(float part, float whole)
{
    return part / whole;
}
