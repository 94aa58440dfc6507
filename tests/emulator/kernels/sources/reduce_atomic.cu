// Whole-grid reductions: atomics, and the block that comes last adds up what the others left.
// flags: -fmad=false

__device__ unsigned finished_blocks = 0;

extern "C" __global__ void reduce_atomic(const int* in, int* total, unsigned long long* squares, float* float_total, int n)
{
    __shared__ int block_total;
    if (threadIdx.x == 0)
        block_total = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&block_total, in[i]);
        atomicAdd(squares, static_cast<unsigned long long>(in[i]) * in[i]);
        atomicAdd(float_total, static_cast<float>(in[i] & 15));  // small whole numbers: exact in any order
    }
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(total, block_total);
}

extern "C" __global__ void reduce_last_block(const int* in, volatile int* partial, int* total)
{
    __shared__ int sums[64];
    __shared__ bool is_last;
    sums[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];
        __threadfence();
        is_last = atomicInc(&finished_blocks, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int sum = 0;
        for (int block = 0; block < gridDim.x; ++block)
            sum += partial[block];
        *total = sum;
    }
}
