// Variables of the module: constants the host fills, tables with initial values, a counter in global memory, pointers between them.

__constant__ float weights[16];
__constant__ int shifts[4] = {1, -2, 3, -4};
__device__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int* place = table + 2;
__device__ unsigned visits;
__device__ double2 pair = {1.5, -2.25};

extern "C" __global__ void constant_memory(const int* in, float* out, int* chosen)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int value = in[i];
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k)
        sum = __fadd_rn(sum, __fmul_rn(weights[(value + k) & 15], static_cast<float>(k)));
    out[i] = sum;
    chosen[i] = table[value & 7] * shifts[value & 3] + place[i & 3] + static_cast<int>(pair.x + pair.y * 4.0);
    atomicAdd(&visits, 1u);
}
