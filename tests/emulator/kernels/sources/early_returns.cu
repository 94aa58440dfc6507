// Lanes that leave a kernel early, at several places, while the others meet at barriers and shuffles.

extern "C" __global__ void early_returns(const int* in, int* out, int n)
{
    __shared__ int tile[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int value = in[i];
    out[i] = -1;
    if (value == 0)
        return;
    for (int k = 0; k < 4; ++k) {
        if ((value >> k & 3) == 3) {
            out[i] = 100 + k;
            return;
        }
    }
    out[i] = value * 2;
    if (value > 1000)
        asm volatile("exit;");
    tile[threadIdx.x] = value;
    __syncthreads();
    out[i] = tile[threadIdx.x] + 5;
}
