// The two products of the BiCG method, a thread per result. Sums go to memory in every turn.
extern "C" __global__ void bicg_columns(float* a, float* r, float* s, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        s[column] = 0.0f;
        for (int row = 0; row < rows; row++)
            s[column] += a[row * columns + column] * r[row];
    }
}

extern "C" __global__ void bicg_rows(float* a, float* p, float* q, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        q[row] = 0.0f;
        for (int column = 0; column < columns; column++)
            q[row] += a[row * columns + column] * p[column];
    }
}
