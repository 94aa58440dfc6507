// Device functions that take and return structures by value, and change them through pointers and references.

struct Pair {
    int least, most;
    double mean;
};

struct Matrix {
    float values[4];
};

__device__ __noinline__ Pair widen(Pair pair, const int* row, int width)
{
    for (int k = 0; k < width; ++k) {
        pair.least = min(pair.least, row[k]);
        pair.most = max(pair.most, row[k]);
        pair.mean += row[k];
    }
    pair.mean /= width;
    return pair;
}

__device__ __noinline__ Matrix multiply(const Matrix& a, Matrix b)
{
    Matrix product;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            product.values[2 * i + j] = __fadd_rn(__fmul_rn(a.values[2 * i], b.values[j]), __fmul_rn(a.values[2 * i + 1], b.values[2 + j]));
    return product;
}

__device__ __noinline__ void change(Pair* pair, short& counter, char by)
{
    pair->least -= by;
    counter += by;
}

extern "C" __global__ void struct_returns(const int* in, Pair* out, Matrix* matrices, int width)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Pair pair = widen(Pair{1 << 30, -(1 << 30), 0.0}, in + i * width, width);
    short counter = 30000;
    change(&pair, counter, static_cast<char>(in[i * width]));
    pair.most += counter;
    out[i] = pair;
    Matrix matrix = matrices[i];
    for (int k = 0; k < 3; ++k)
        matrix = multiply(matrix, matrices[i]);
    matrices[i] = matrix;
}
