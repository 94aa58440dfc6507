// Inclusive scan of a block by warp shuffles, warps' totals scanned by the first warp; and a segmented one.

__device__ int warp_scan(int value)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, value, distance);
        if (lane >= distance)
            value += other;
    }
    return value;
}

extern "C" __global__ void scan_warp(const int* in, int* out, int n)
{
    __shared__ int totals[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    int before = 0;
    for (int start = 0; start < n; start += blockDim.x) {
        const int i = start + threadIdx.x;
        int value = warp_scan(i < n ? in[i] : 0);
        if (lane == 31)
            totals[warp] = value;
        __syncthreads();
        if (warp == 0) {
            const int total = lane < blockDim.x / 32 ? totals[lane] : 0;
            totals[lane] = warp_scan(total);
        }
        __syncthreads();
        value += before + (warp > 0 ? totals[warp - 1] : 0);
        if (i < n)
            out[i] = value;
        before += totals[blockDim.x / 32 - 1];
        __syncthreads();
    }
}

// A flag begins a segment; pairs (flag, value) are scanned together.
extern "C" __global__ void scan_segmented(const int* in, const unsigned char* begins, int* out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32;
    int value = in[i];
    bool begun = begins[i] != 0 || lane == 0;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, value, distance);
        const bool other_begun = __shfl_up_sync(0xffffffffu, begun, distance);
        if (lane >= distance && !begun) {
            value += other;
            begun = other_begun;
        }
    }
    out[i] = value;
}
