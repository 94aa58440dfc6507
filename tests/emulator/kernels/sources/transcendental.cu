// Single-precision functions: the library's within their documented error, the fast ones within that of the hardware.

extern "C" __global__ void transcendental(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = in[i];
    const float positive = fabsf(x) + 0.125f;
    out[0 * n + i] = sinf(x);
    out[1 * n + i] = cosf(x);
    out[2 * n + i] = tanf(x);
    out[3 * n + i] = expf(x);
    out[4 * n + i] = exp2f(x);
    out[5 * n + i] = logf(positive);
    out[6 * n + i] = log2f(positive);
    out[7 * n + i] = powf(positive, 1.7f);
    out[8 * n + i] = tanhf(x);
    out[9 * n + i] = erff(x);
    out[10 * n + i] = rsqrtf(positive);
    out[11 * n + i] = sqrtf(positive);
    out[12 * n + i] = 1.0f / positive;
    out[13 * n + i] = atan2f(x, 2.0f);
    out[14 * n + i] = cbrtf(x);
    out[15 * n + i] = expm1f(x);
    out[16 * n + i] = log1pf(positive);
    out[17 * n + i] = asinf(x / 16.0f);
    out[18 * n + i] = sinf(x * 100000.0f);  // the slow range reduction
    out[19 * n + i] = fmodf(x, 0.7f);
}

extern "C" __global__ void fast_functions(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = in[i];
    const float positive = fabsf(x) + 0.125f;
    out[0 * n + i] = __sinf(x);
    out[1 * n + i] = __cosf(x);
    out[2 * n + i] = __expf(x);
    out[3 * n + i] = __logf(positive);
    out[4 * n + i] = __powf(positive, 1.7f);
    out[5 * n + i] = __fdividef(x, positive);
    out[6 * n + i] = __frsqrt_rn(positive);
    out[7 * n + i] = __log2f(positive);
    out[8 * n + i] = __exp10f(x * 0.25f);
    asm("tanh.approx.f32 %0, %1;" : "=f"(out[9 * n + i]) : "f"(x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out[10 * n + i]) : "f"(positive));
    asm("sqrt.approx.f32 %0, %1;" : "=f"(out[11 * n + i]) : "f"(positive));
}
