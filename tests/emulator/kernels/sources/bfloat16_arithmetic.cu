// bfloat16: arithmetic rounds once, from the exact result.
// least: 80
#include <cuda_bf16.h>

extern "C" __global__ void bfloat16_arithmetic(const float* a, const float* b, unsigned short* out, float* floats, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __nv_bfloat16 x = __float2bfloat16_rn(a[i]);
    const __nv_bfloat16 y = __float2bfloat16_rn(b[i]);
    out[0 * n + i] = __bfloat16_as_ushort(x);
    out[1 * n + i] = __bfloat16_as_ushort(__hfma(x, y, x));
    out[2 * n + i] = __bfloat16_as_ushort(__hmax(x, y));
    out[3 * n + i] = __bfloat16_as_ushort(__hneg(y));
    const __nv_bfloat162 pair = __hfma2(__halves2bfloat162(x, y), __halves2bfloat162(y, y), __halves2bfloat162(x, x));
    out[4 * n + i] = __bfloat16_as_ushort(__low2bfloat16(pair));
    out[5 * n + i] = __bfloat16_as_ushort(__high2bfloat16(pair));
    out[6 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rz(a[i]));
    floats[i] = __bfloat162float(y) + 1.0f;
}
