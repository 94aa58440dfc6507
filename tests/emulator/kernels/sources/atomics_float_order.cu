// Additions of floats by atomics within one warp: rounding depends on the order, which no one promises.

extern "C" __global__ void atomics_float_order(const float* in, float* sums, double* double_sums)
{
    __shared__ float block_sum;
    if (threadIdx.x == 0)
        block_sum = 0.0f;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&block_sum, in[i]);
    atomicAdd(&sums[i % 7], in[i]);
    atomicAdd(double_sums, static_cast<double>(in[i]));
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&sums[7], block_sum);
}
