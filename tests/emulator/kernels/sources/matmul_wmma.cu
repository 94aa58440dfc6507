// Matrix products by warp-wide matrix operations: half to float, bytes to int, bfloat16 to float, double.
// least: 80
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

template <typename Input, typename Sum>
__device__ void multiply(const Input* a, const Input* b, Sum* c, int size)
{
    const int warp = threadIdx.x / 32;
    const int row = blockIdx.y * 16;
    const int column = (blockIdx.x * 2 + warp) * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sum;
    wmma::load_matrix_sync(sum, c + row * size + column, size, wmma::mem_row_major);
    for (int k = 0; k < size; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, Input, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, Input, wmma::col_major> right;
        wmma::load_matrix_sync(left, a + row * size + k, size);
        wmma::load_matrix_sync(right, b + column * size + k, size);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i)
        sum.x[i] = sum.x[i] + sum.x[i];
    wmma::store_matrix_sync(c + row * size + column, sum, size, wmma::mem_row_major);
}

extern "C" __global__ void matmul_wmma_half(const __half* a, const __half* b, float* c, int size) { multiply(a, b, c, size); }
extern "C" __global__ void matmul_wmma_bfloat16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int size) { multiply(a, b, c, size); }
extern "C" __global__ void matmul_wmma_byte(const signed char* a, const signed char* b, int* c, int size) { multiply(a, b, c, size); }

extern "C" __global__ void matmul_wmma_double(const double* a, const double* b, double* c, int size)
{
    const int row = blockIdx.y * 8;
    const int column = blockIdx.x * 8;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::fill_fragment(sum, 0.0);
    for (int k = 0; k < size; k += 4) {
        wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> right;
        wmma::load_matrix_sync(left, a + row * size + k, size);
        wmma::load_matrix_sync(right, b + k * size + column, size);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * size + column, sum, size, wmma::mem_row_major);
}
