// Copies from global to shared memory that pass no register, in two stages.
// least: 80
// flags: -fmad=false
#include <cuda_pipeline_primitives.h>

constexpr int tile_size = 64;

extern "C" __global__ void async_tiles(const float4* in, const int* shifts, float4* out, int tiles)
{
    __shared__ __align__(16) float4 tile[2][tile_size];
    __shared__ int shift[2][tile_size];
    const int t = threadIdx.x;
    const auto start = [&](int k) {
        __pipeline_memcpy_async(&tile[k & 1][t], &in[(blockIdx.x * tiles + k) * tile_size + t], 16);
        __pipeline_memcpy_async(&shift[k & 1][t], &shifts[k * tile_size + t], 4);
        __pipeline_commit();
    };
    start(0);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k = 0; k < tiles; ++k) {
        if (k + 1 < tiles)
            start(k + 1);
        else
            __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        const float4 value = tile[k & 1][(t + shift[k & 1][t]) % tile_size];
        sum.x += value.x;
        sum.y = sum.y * 0.5f + value.y;
        sum.z = fmaxf(sum.z, value.z);
        sum.w -= value.w;
        __syncthreads();
    }
    out[blockIdx.x * tile_size + t] = sum;
}
