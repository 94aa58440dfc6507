// Two kernels, the first of them slow in more than one way.
#include "curves.cuh"

__global__ void relax(const float* __restrict__ in, float* __restrict__ out, int n, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;

    float value = 1.0f;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const float /* größe, 測定 */ signal = in[step * n + i];
        value = 0.9f * value + signal;
        value = soften(value, 0.25f);
    }
#pragma unroll 4
    for (int round = 0; round < 16; ++round) {
        value = value * 0.7 + 0.1;
    }
    out[i] = value;
}

__global__ void normalise(const float* __restrict__ in, const float* __restrict__ sums, float* __restrict__ out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;

    out[i] = share_of(in[i], sums[i / 32]);
}
