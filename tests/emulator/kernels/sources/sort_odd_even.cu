// Odd-even transposition sort of 16-bit keys, one block each.

extern "C" __global__ void sort_odd_even(short* keys, int count)
{
    extern __shared__ short row[];
    const int t = threadIdx.x;
    short* mine = keys + blockIdx.x * count;
    row[2 * t] = mine[2 * t];
    row[2 * t + 1] = mine[2 * t + 1];
    __syncthreads();
    for (int step = 0; step < count; ++step) {
        const int left = 2 * t + (step & 1);
        if (left + 1 < count && row[left] > row[left + 1]) {
            const short swapped = row[left];
            row[left] = row[left + 1];
            row[left + 1] = swapped;
        }
        __syncthreads();
    }
    mine[2 * t] = row[2 * t];
    mine[2 * t + 1] = row[2 * t + 1];
}
