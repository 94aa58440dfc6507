// What is kept is written without gaps and in order: within a block by ballots; and counted by groups of equal lanes.

extern "C" __global__ void compaction(const int* in, int* out, int* counts)
{
    __shared__ int warp_counts[8];
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
    const bool is_kept = value % 3 == 0;
    const unsigned kept = __ballot_sync(0xffffffffu, is_kept);
    if (lane == 0)
        warp_counts[warp] = __popc(kept);
    __syncthreads();
    int before = 0;
    for (int w = 0; w < warp; ++w)
        before += warp_counts[w];
    if (is_kept)
        out[blockIdx.x * blockDim.x + before + __popc(kept & ((1u << lane) - 1u))] = value;
    if (threadIdx.x == blockDim.x - 1)
        counts[blockIdx.x] = before + __popc(kept);
}

extern "C" __global__ void count_aggregated(const int* in, int* counts, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int key = in[i] & 15;
    const unsigned equals = __match_any_sync(__activemask(), key);
    const int leader = __ffs(equals) - 1;
    if ((threadIdx.x & 31) == leader)
        atomicAdd(&counts[key], __popc(equals));
}
