// The two products of the BiCG method: q = A p along rows and s = r A along columns.
// flags: -fmad=false

extern "C" __global__ void bicg_rows(const float* a, const float* p, float* q, int rows, int columns)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        q[row] = 0.0f;
        for (int column = 0; column < columns; ++column)
            q[row] += a[row * columns + column] * p[column];
    }
}

extern "C" __global__ void bicg_columns(const float* a, const float* r, float* s, int rows, int columns)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        s[column] = 0.0f;
        for (int row = 0; row < rows; ++row)
            s[column] += a[row * columns + column] * r[row];
    }
}
