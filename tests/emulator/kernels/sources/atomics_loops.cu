// Atomics that somebody builds from compare-and-swap: a float maximum, a product modulo a prime, saturating bytes in words; and half pairs.
#include <cuda_fp16.h>

__device__ void atomic_max_float(float* at, float value)
{
    int* bits = reinterpret_cast<int*>(at);
    int old = *bits;
    while (__int_as_float(old) < value) {
        const int assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(value));
        if (old == assumed)
            break;
    }
}

__device__ void atomic_multiply(unsigned long long* at, unsigned long long factor)
{
    unsigned long long old = *at;
    unsigned long long assumed;
    do {
        assumed = old;
        old = atomicCAS(at, assumed, assumed * factor % 1000003ull);
    } while (assumed != old);
}

extern "C" __global__ void atomics_loops(const float* in, float* peaks, unsigned long long* products, __half2* pair_sums)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomic_max_float(&peaks[i % 3], in[i]);
    atomic_multiply(&products[i % 5], 2 + i);
    atomicAdd(&pair_sums[i % 8], __floats2half2_rn(static_cast<float>(i % 4), 1.0f));  // sums stay below 2048: exact in any order
}
