// Inclusive scan after Hillis and Steele, two buffers that take turns.
// flags: -fmad=false

template <typename Number>
__device__ void scan_block(const Number* in, Number* out)
{
    __shared__ Number buffers[2][128];
    int from = 0;
    buffers[0][threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    for (int distance = 1; distance < 128; distance *= 2) {
        const int to = 1 - from;
        if (threadIdx.x >= distance)
            buffers[to][threadIdx.x] = buffers[from][threadIdx.x] + buffers[from][threadIdx.x - distance];
        else
            buffers[to][threadIdx.x] = buffers[from][threadIdx.x];
        from = to;
        __syncthreads();
    }
    out[blockIdx.x * 128 + threadIdx.x] = buffers[from][threadIdx.x];
}

extern "C" __global__ void scan_hillis_int(const int* in, int* out) { scan_block(in, out); }
extern "C" __global__ void scan_hillis_float(const float* in, float* out) { scan_block(in, out); }
