// A matrix product in half precision: pairs of columns, one fused multiply-add of two halves a step.
#include <cuda_fp16.h>

extern "C" __global__ void matmul_half(const __half* a, const __half2* b, __half2* c, int size)
{
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    __half2 sum = __float2half2_rn(0.0f);
    for (int k = 0; k < size; ++k)
        sum = __hfma2(__half2half2(a[row * size + k]), b[k * (size / 2) + pair], sum);
    c[row * (size / 2) + pair] = sum;
}
