// One block goes where it must not.

extern "C" __global__ void straying(const int *in, int *out, int stray)
{
    __shared__ int tile[64];
    int place = threadIdx.x;
    tile[place] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (blockIdx.x == 2)
        place += stray;
    out[blockIdx.x * blockDim.x + threadIdx.x] = tile[place];
}
