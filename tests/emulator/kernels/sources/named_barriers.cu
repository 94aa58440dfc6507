// Barriers by number and count: producers arrive and go on, consumers wait; a barrier that counts and votes.

extern "C" __global__ void named_barriers(const int* in, int* out, int* votes)
{
    __shared__ int tile[2][64];
    const int t = threadIdx.x;
    const int base = blockIdx.x * 64;
    if (t < 64) {
        for (int k = 0; k < 2; ++k) {
            tile[k][t] = in[(base + t) * 2 + k] * 3;
            if (k == 0)
                asm volatile("bar.arrive 1, 128;" ::: "memory");
            else
                asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        int sum = tile[0][127 - t];
        asm volatile("bar.sync 2, 128;" ::: "memory");
        sum += 1000 * tile[1][t - 64];
        out[base + t - 64] = sum;
    }
    const int value = in[(base + t / 2) * 2 + t % 2];
    const int count = __syncthreads_count(value > 0);
    const int all = __syncthreads_and(value > -50);
    const int any = __syncthreads_or(value == 99);
    votes[blockIdx.x * 128 + t] = count * 4 + (all ? 2 : 0) + (any ? 1 : 0);
}
