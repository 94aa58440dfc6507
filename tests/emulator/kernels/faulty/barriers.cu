// Barriers that not every thread reaches, and lanes that wait for lanes that never come.

extern "C" __global__ void divergent_barrier(const int* in, int* out)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 40)
        __syncthreads();  // fault: barrier in divergent code
    else
        out[threadIdx.x] = 1;
    out[threadIdx.x] = in[threadIdx.x];
    while (in[0] == 0 && threadIdx.x >= 40)
        out[threadIdx.x] += 1;
    __syncthreads();  // fault: barrier in divergent code
}

extern "C" __global__ void missing_lanes(const int* in, int* out)
{
    int value = in[threadIdx.x];
    if (threadIdx.x < 16)
        value = __shfl_sync(0xffffffffu, value, 3);  // fault: deadlock
    else
        asm volatile("bar.sync 1, 64;");  // fault: deadlock
    out[threadIdx.x] = value;
}
