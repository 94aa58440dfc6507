// A matrix product with float4 loads and a 4 by 4 tile of results in each thread's registers.
// flags: -fmad=false
constexpr int tile_size = 32;
constexpr int depth_step = 8;

extern "C" __global__ void __launch_bounds__(64) matmul_vector(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int size)
{
    __shared__ __align__(16) float left[depth_step][tile_size];
    __shared__ __align__(16) float right[depth_step][tile_size];
    const int t = threadIdx.x;
    const int tx = t % 8;
    const int ty = t / 8;
    const float* a_tile = a + blockIdx.y * tile_size * size;
    const float* b_tile = b + blockIdx.x * tile_size;
    float sums[4][4] = {};
    for (int first = 0; first < size; first += depth_step) {
        const float4 from_a = *reinterpret_cast<const float4*>(a_tile + (t / 2) * size + first + (t % 2) * 4);
        left[(t % 2) * 4 + 0][t / 2] = from_a.x;
        left[(t % 2) * 4 + 1][t / 2] = from_a.y;
        left[(t % 2) * 4 + 2][t / 2] = from_a.z;
        left[(t % 2) * 4 + 3][t / 2] = from_a.w;
        *reinterpret_cast<float4*>(&right[ty][tx * 4]) = *reinterpret_cast<const float4*>(b_tile + (first + ty) * size + tx * 4);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < depth_step; ++k) {
            const float4 rows = *reinterpret_cast<const float4*>(&left[k][ty * 4]);
            const float4 columns = *reinterpret_cast<const float4*>(&right[k][tx * 4]);
            const float row[4] = {rows.x, rows.y, rows.z, rows.w};
            const float column[4] = {columns.x, columns.y, columns.z, columns.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sums[i][j] += row[i] * column[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float* row = c + (blockIdx.y * tile_size + ty * 4 + i) * size + blockIdx.x * tile_size + tx * 4;
        *reinterpret_cast<float4*>(row) = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
    }
}
