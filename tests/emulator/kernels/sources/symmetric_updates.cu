// Updates of rank k and 2k of a symmetric matrix, an element a thread, summed in memory.
// flags: -fmad=false

extern "C" __global__ void syrk(const float* a, float* c, float alpha, float beta, int size, int depth)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < size && column < size) {
        c[row * size + column] *= beta;
        for (int k = 0; k < depth; ++k)
            c[row * size + column] += alpha * a[row * depth + k] * a[column * depth + k];
    }
}

extern "C" __global__ void syr2k(const float* a, const float* b, float* c, float alpha, float beta, int size, int depth)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < size && column < size) {
        c[row * size + column] *= beta;
        for (int k = 0; k < depth; ++k)
            c[row * size + column] += alpha * a[row * depth + k] * b[column * depth + k] + alpha * b[row * depth + k] * a[column * depth + k];
    }
}
