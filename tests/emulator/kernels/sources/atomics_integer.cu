// Every 32-bit integer atomic, without looking at the old values: what remains does not depend on the order.

extern "C" __global__ void atomics_integer(const int* in, int* results, unsigned* unsigned_results, int n)
{
    __shared__ int block_least;
    __shared__ unsigned block_bits;
    if (threadIdx.x == 0) {
        block_least = 0x7fffffff;
        block_bits = 0;
    }
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const int value = in[i];
        atomicAdd(&results[0], value);
        atomicSub(&results[1], value);
        atomicMin(&results[2], value);
        atomicMax(&results[3], value);
        atomicAnd(&results[4], value | 0x00ffff00);
        atomicOr(&results[5], value & 0x0f0f0f0f);
        atomicXor(&results[6], value);
        atomicMin(&unsigned_results[0], static_cast<unsigned>(value));
        atomicMax(&unsigned_results[1], static_cast<unsigned>(value));
        atomicInc(&unsigned_results[2], 99u);
        atomicDec(&unsigned_results[3], 76u);
        atomicMin(&block_least, value);
        atomicOr(&block_bits, 1u << (value & 31));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMin(&results[7], block_least);
        atomicOr(&unsigned_results[4], block_bits);
    }
}
