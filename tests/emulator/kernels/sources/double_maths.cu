// Double precision: what is exactly rounded, and library functions within their stated error.

extern "C" __global__ void double_exact(const double* a, const double* b, double* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double x = a[i];
    const double y = b[i];
    out[0 * n + i] = __dadd_rn(x, y);
    out[1 * n + i] = __dmul_rn(x, y);
    out[2 * n + i] = fma(x, y, -__dmul_rn(x, y));
    out[3 * n + i] = x / y;
    out[4 * n + i] = sqrt(fabs(x));
    out[5 * n + i] = 1.0 / y;
    out[6 * n + i] = __dadd_rz(x, y);
    out[7 * n + i] = __dmul_ru(x, y);
    out[8 * n + i] = fmin(x, y);
    out[9 * n + i] = fmod(x, y);
    out[10 * n + i] = floor(x);
    out[11 * n + i] = ldexp(x, i % 40 - 20);
}

extern "C" __global__ void double_functions(const double* a, double* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double x = a[i];
    out[0 * n + i] = exp(x);
    out[1 * n + i] = log(fabs(x) + 0.5);
    out[2 * n + i] = sin(x);
    out[3 * n + i] = cos(x);
    out[4 * n + i] = atan(x);
    out[5 * n + i] = tanh(x);
    out[6 * n + i] = pow(fabs(x) + 0.25, 1.5);
    out[7 * n + i] = rsqrt(fabs(x) + 1.0);
    out[8 * n + i] = cbrt(x);
    out[9 * n + i] = exp2(x);
    out[10 * n + i] = log10(fabs(x) + 2.0);
    out[11 * n + i] = hypot(x, 3.0);
}
