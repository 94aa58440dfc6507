// Tree reductions of one block's elements in shared memory: halves added to halves, a barrier a step.
// flags: -fmad=false

extern "C" __global__ void reduce_tree_int(const int* in, int* block_sums, int* block_peaks, int n)
{
    extern __shared__ int scratch[];
    int* peaks = scratch + blockDim.x;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    scratch[threadIdx.x] = i < n ? in[i] : 0;
    peaks[threadIdx.x] = i < n ? in[i] : -2147483647 - 1;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            scratch[threadIdx.x] += scratch[threadIdx.x + half];
            peaks[threadIdx.x] = max(peaks[threadIdx.x], peaks[threadIdx.x + half]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        block_sums[blockIdx.x] = scratch[0];
        block_peaks[blockIdx.x] = peaks[0];
    }
}

// The order of additions is fixed by the tree, so the sums are exact to the bit.
extern "C" __global__ void reduce_tree_float(const float* in, float* block_sums, int n)
{
    __shared__ float scratch[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
    scratch[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        block_sums[blockIdx.x] = scratch[0];
}
