// Kernels whose work is the same in blocks of any size, along any axes of the grid.

__device__ __forceinline__ int place()
{
    return (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
}

extern "C" __global__ void scale(const float* from, float* to, int n)
{
    int i = place();
    if (i < n) to[i] = 2.0f * from[i];
}

extern "C" __global__ void gather(const float* from, const int* at, float* to, int n)
{
    int i = place();
    if (i < n) to[i] = from[at[i]];
}

extern "C" __global__ void strided(const float* from, float* to, int n)
{
    int i = place();
    if (i < n) to[(i % 64) * (n / 64) + i / 64] = from[i];
}

extern "C" __global__ void polynomial(const float* from, float* to, int n, int turns)
{
    int i = place();
    if (i >= n) return;
    float x = from[i], y = 1.0f;
    for (int k = 0; k < turns; ++k) y = y * x + 0.5f;
    to[i] = y;
}

extern "C" __global__ void roots(const float* from, float* to, int n, int turns)
{
    int i = place();
    if (i >= n) return;
    float x = from[i];
    for (int k = 0; k < turns; ++k) x = sqrtf(x + 1.0f);
    to[i] = x;
}

extern "C" __global__ void column(const float* from, float* to, int n, int rows)
{
    int i = place();
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < rows; ++k) sum += from[k * n + i];
    to[i] = sum;
}

extern "C" __global__ void table(const float* from, const float* values, float* to, int n, int turns)
{
    int i = place();
    if (i >= n) return;
    float sum = from[i];
    for (int k = 0; k < turns; ++k) sum += values[(i * 33 + k * 97) & 4095];
    to[i] = sum;
}

extern "C" __global__ void count(const int* from, int* bins, int n, int width)
{
    int i = place();
    if (i < n) atomicAdd(&bins[from[i] & (width - 1)], 1);
}

extern "C" __global__ void fill(float* to, int n)
{
    int i = place();
    if (i < n) to[i] = 3.0f;
}

extern "C" __global__ void neighbours(const float* from, float* to, int n)
{
    int i = place();
    if (i >= 64 && i < n - 64) to[i] = from[i - 64] + from[i - 1] + from[i] + from[i + 1] + from[i + 64];
}

extern "C" __global__ void doubles(const double* from, double* to, int n, int turns)
{
    int i = place();
    if (i >= n) return;
    double x = from[i], y = 1.0;
    for (int k = 0; k < turns; ++k) y = y * x + 0.5;
    to[i] = y;
}
