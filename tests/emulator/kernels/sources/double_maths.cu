// Double precision: library functions within their stated error.

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
