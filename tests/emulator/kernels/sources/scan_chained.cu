// One launch scans the whole array: each block takes a ticket, waits for its predecessor's total, publishes its own.
// Needs blocks to make progress while others spin.

struct Chain {
    unsigned ticket;
    unsigned pad;
};

extern "C" __global__ void scan_chained(const int* in, int* out, Chain* chain, volatile int* states, volatile int* sums)
{
    __shared__ int tile[64];
    __shared__ unsigned tile_number;
    __shared__ int before;
    if (threadIdx.x == 0)
        tile_number = atomicAdd(&chain->ticket, 1u);
    __syncthreads();
    const unsigned number = tile_number;
    const int i = number * 64 + threadIdx.x;
    tile[threadIdx.x] = in[i];
    __syncthreads();
    for (int distance = 1; distance < 64; distance *= 2) {
        const int other = threadIdx.x >= distance ? tile[threadIdx.x - distance] : 0;
        __syncthreads();
        tile[threadIdx.x] += other;
        __syncthreads();
    }
    if (threadIdx.x == 63) {
        int sum = 0;
        if (number > 0) {
            while (states[number - 1] == 0) {
            }
            __threadfence();
            sum = sums[number - 1];
        }
        sums[number] = sum + tile[63];
        __threadfence();
        states[number] = 1;
        before = sum;
    }
    __syncthreads();
    out[i] = before + tile[threadIdx.x];
}
