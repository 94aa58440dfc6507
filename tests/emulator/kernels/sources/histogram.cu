// Three ways to count bytes: atomics in global memory, in shared memory, and counters of each thread's own.

extern "C" __global__ void histogram_global(const unsigned char* in, unsigned* counts, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[in[i]], 1u);
}

extern "C" __global__ void histogram_shared(const uchar4* in, unsigned* counts, int n)
{
    __shared__ unsigned own[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x)
        own[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const uchar4 four = in[i];
        atomicAdd(&own[four.x], 1u);
        atomicAdd(&own[four.y], 1u);
        atomicAdd(&own[four.z], 1u);
        atomicAdd(&own[four.w], 1u);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += blockDim.x)
        atomicAdd(&counts[k], own[k]);
}

// Sixteen bins; each thread has a byte-sized counter for each, laid out so that a warp's threads share words.
extern "C" __global__ void histogram_private(const unsigned char* in, unsigned* counts, int n)
{
    __shared__ unsigned char own[16][64];
    for (int bin = 0; bin < 16; ++bin)
        own[bin][threadIdx.x] = 0;
    const int first = blockIdx.x * 64 * 32 + threadIdx.x;
    for (int k = 0; k < 32; ++k) {
        const int i = first + k * 64;
        if (i < n)
            ++own[in[i] >> 4][threadIdx.x];
    }
    __syncthreads();
    if (threadIdx.x < 16) {
        unsigned sum = 0;
        for (int t = 0; t < 64; ++t)
            sum += own[threadIdx.x][t];
        atomicAdd(&counts[threadIdx.x], sum);
    }
}
