// The parts of a radix sort: digit counts of each block, and a stable split of a block by one bit after another.
constexpr int block_size = 128;

extern "C" __global__ void radix_digit_counts(const unsigned* keys, unsigned* counts, int n, int shift)
{
    __shared__ unsigned digits[16];
    if (threadIdx.x < 16)
        digits[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&digits[(keys[i] >> shift) & 15u], 1u);
    __syncthreads();
    if (threadIdx.x < 16)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = digits[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(block_size) radix_sort_block(unsigned* keys)
{
    __shared__ unsigned tile[block_size];
    __shared__ int zeros_before[block_size / 32 + 1];
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    unsigned key = keys[blockIdx.x * block_size + t];
    for (int bit = 0; bit < 12; ++bit) {
        const bool is_zero = ((key >> bit) & 1u) == 0;
        const unsigned zeros = __ballot_sync(0xffffffffu, is_zero);
        if (lane == 0)
            zeros_before[warp + 1] = __popc(zeros);
        if (t == 0)
            zeros_before[0] = 0;
        __syncthreads();
        if (t == 0)
            for (int w = 0; w < block_size / 32; ++w)
                zeros_before[w + 1] += zeros_before[w];
        __syncthreads();
        const int my_zeros = zeros_before[warp] + __popc(zeros & ((1u << lane) - 1));
        const int place = is_zero ? my_zeros : zeros_before[block_size / 32] + t - my_zeros;
        tile[place] = key;
        __syncthreads();
        key = tile[t];
        __syncthreads();
    }
    keys[blockIdx.x * block_size + t] = key;
}
