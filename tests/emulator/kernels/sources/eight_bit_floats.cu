// Eight-bit floating-point numbers: from single precision and back by way of halves.
// least: 90
#include <cuda_fp8.h>

extern "C" __global__ void eight_bit_floats(const float* in, unsigned char* e4m3, unsigned char* e5m2, float* back, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __nv_fp8_e4m3 narrow(in[i]);
    const __nv_fp8_e5m2 wide(in[i]);
    e4m3[i] = narrow.__x;
    e5m2[i] = wide.__x;
    back[i] = static_cast<float>(narrow);
    back[n + i] = static_cast<float>(wide);
}
