// Reductions by warp shuffles, then across the warps of a block by shared memory.
// flags: -fmad=false
constexpr unsigned all_lanes = 0xffffffffu;

template <typename Number>
__device__ Number warp_sum(Number value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(all_lanes, value, distance);
    return value;
}

template <typename Number>
__device__ void block_sum(const Number* in, Number* out, int n)
{
    __shared__ Number warp_sums[32];
    Number value = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value += in[i];
    value = warp_sum(value);
    const unsigned lane = threadIdx.x % warpSize;
    if (lane == 0)
        warp_sums[threadIdx.x / warpSize] = value;
    __syncthreads();
    if (threadIdx.x < warpSize) {
        value = lane < blockDim.x / warpSize ? warp_sums[lane] : Number(0);
        value = warp_sum(value);
        if (lane == 0)
            out[blockIdx.x] = value;
    }
}

extern "C" __global__ void reduce_shuffle_float(const float* in, float* out, int n) { block_sum(in, out, n); }
extern "C" __global__ void reduce_shuffle_double(const double* in, double* out, int n) { block_sum(in, out, n); }
extern "C" __global__ void reduce_shuffle_long(const long long* in, long long* out, int n) { block_sum(in, out, n); }
