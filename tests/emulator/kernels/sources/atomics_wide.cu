// Atomics on 64 bits, in global and shared memory.

extern "C" __global__ void atomics_wide(const unsigned long long* in, unsigned long long* results, long long* signed_results, double* sums)
{
    __shared__ unsigned long long block_sum;
    if (threadIdx.x == 0)
        block_sum = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long value = in[i];
    atomicAdd(&results[0], value);
    atomicMin(&results[1], value);
    atomicMax(&results[2], value);
    atomicAnd(&results[3], value | 0xffff0000ffffull);
    atomicOr(&results[4], value & 0xff00ff00ff00ff00ull);
    atomicXor(&results[5], value);
    atomicMin(&signed_results[0], static_cast<long long>(value));
    atomicMax(&signed_results[1], static_cast<long long>(value));
    atomicAdd(&block_sum, value >> 7);
    atomicAdd(&sums[value % 4], static_cast<double>(value % 1000));  // whole numbers: exact in any order
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&results[6], block_sum);
}
