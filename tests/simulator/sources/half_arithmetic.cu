// Half precision: single values and pairs, fused and not, comparisons, conversions with each rounding.
#include <cuda_fp16.h>

extern "C" __global__ void half_scalars(const __half* a, const __half* b, __half* out, unsigned* facts, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half x = a[i];
    const __half y = b[i];
    out[0 * n + i] = __hadd_rn(x, y);
    out[1 * n + i] = __hsub_rn(x, y);
    out[2 * n + i] = __hmul_rn(x, y);
    out[3 * n + i] = __hfma(x, y, __float2half(0.5f));
    out[4 * n + i] = __hneg(x);
    out[5 * n + i] = __habs(x);
    out[6 * n + i] = __float2half_rn(__half2float(x) * 1.0009765625f);
    out[7 * n + i] = __float2half_rz(__half2float(x) * 1.0009765625f);
    out[8 * n + i] = __double2half(static_cast<double>(__half2float(y)) / 3.0);
    out[9 * n + i] = __int2half_rn(i * 37 - 2000);
    out[10 * n + i] = __hadd_sat(x, y);
    unsigned bits = 0;
    bits |= __hlt(x, y) ? 1 : 0;
    bits |= __heq(x, y) ? 2 : 0;
    bits |= __hge(x, y) ? 4 : 0;
    bits |= __hisnan(x) ? 8 : 0;
    bits |= __hltu(x, y) ? 16 : 0;
    facts[0 * n + i] = bits;
    facts[1 * n + i] = static_cast<unsigned>(__half2int_rn(x));
    facts[2 * n + i] = static_cast<unsigned>(__half2int_rz(x));
    facts[3 * n + i] = __half_as_ushort(y) * 3u;
}

extern "C" __global__ void half_pairs(const __half2* a, const __half2* b, __half2* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half2 x = a[i];
    const __half2 y = b[i];
    out[0 * n + i] = __hadd2_rn(x, y);
    out[1 * n + i] = __hmul2_rn(x, y);
    out[2 * n + i] = __hfma2(x, y, __half2half2(__low2half(y)));
    out[3 * n + i] = __lows2half2(x, y);
    out[4 * n + i] = __hgt2(x, y);
    out[5 * n + i] = __lowhigh2highlow(x);
    const float2 wide = __half22float2(x);
    out[6 * n + i] = __floats2half2_rn(__fadd_rn(wide.x, wide.y), __fmul_rn(wide.x, wide.y));
}

extern "C" __global__ void half_limits(const __half* a, const __half* b, __half* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[0 * n + i] = __hmin(a[i], b[i]);
    out[1 * n + i] = __hmax(a[i], b[i]);
    out[2 * n + i] = hsqrt(__habs(a[i]));
    out[3 * n + i] = __hdiv(a[i], b[i]);
    out[4 * n + i] = hfloor(a[i]);
    out[5 * n + i] = hrint(b[i]);
}
