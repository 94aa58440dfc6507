// Matrix products, an element a thread; the compiler may contract multiply and add.

extern "C" __global__ void matmul_naive_float(const float* a, const float* b, float* c, int rows, int columns, int depth)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    float sum = 0.0f;
    for (int k = 0; k < depth; ++k)
        sum += a[row * depth + k] * b[k * columns + column];
    c[row * columns + column] = sum;
}

extern "C" __global__ void matmul_naive_double(const double* a, const double* b, double* c, int size, double alpha, double beta)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    double sum = 0.0;
    for (int k = 0; k < size; ++k)
        sum = fma(a[row * size + k], b[k * size + column], sum);
    c[row * size + column] = alpha * sum + beta * c[row * size + column];
}
