// A sparse matrix in compressed rows times a vector: a row a thread, and a row a warp.
// flags: -fmad=false

extern "C" __global__ void sparse_scalar(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = starts[row]; k < starts[row + 1]; ++k)
        sum += values[k] * x[columns[k]];
    y[row] = sum;
}

extern "C" __global__ void sparse_vector(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows)
{
    const int lane = threadIdx.x & 31;
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 32)
        sum += values[k] * x[columns[k]];
    for (int distance = 16; distance > 0; distance >>= 1)
        sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (lane == 0)
        y[row] = sum;
}
