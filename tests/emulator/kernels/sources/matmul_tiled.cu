// Matrix products with square tiles in shared memory, for three types by one template.
// flags: -fmad=false
constexpr int tile_size = 8;

template <typename Number>
__global__ void matmul_tiled(const Number* __restrict__ a, const Number* __restrict__ b, Number* __restrict__ c, int size)
{
    __shared__ Number left[tile_size][tile_size];
    __shared__ Number right[tile_size][tile_size];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * tile_size + ty;
    const int column = blockIdx.x * tile_size + tx;
    Number sum = 0;
    for (int first = 0; first < size; first += tile_size) {
        left[ty][tx] = a[row * size + first + tx];
        right[ty][tx] = b[(first + ty) * size + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < tile_size; ++k)
            sum += left[ty][k] * right[k][tx];
        __syncthreads();
    }
    c[row * size + column] = sum;
}

template __global__ void matmul_tiled<float>(const float*, const float*, float*, int);
template __global__ void matmul_tiled<double>(const double*, const double*, double*, int);
template __global__ void matmul_tiled<int>(const int*, const int*, int*, int);
