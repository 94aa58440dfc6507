// The same with CUDA's pipeline object, a thread's own.
// least: 80
#include <cuda/pipeline>

extern "C" __global__ void async_pipeline(const int* in, int* out, int tiles)
{
    __shared__ int tile[2][64];
    auto pipeline = cuda::make_pipeline();
    const int t = threadIdx.x;
    const int* source = in + blockIdx.x * tiles * 64;
    pipeline.producer_acquire();
    cuda::memcpy_async(&tile[0][t], &source[t], sizeof(int), pipeline);
    pipeline.producer_commit();
    int sum = 0;
    for (int k = 0; k < tiles; ++k) {
        pipeline.producer_acquire();
        if (k + 1 < tiles)
            cuda::memcpy_async(&tile[(k + 1) & 1][t], &source[(k + 1) * 64 + t], sizeof(int), pipeline);
        pipeline.producer_commit();
        cuda::pipeline_consumer_wait_prior<1>(pipeline);
        sum = sum * 3 + tile[k & 1][t];
        pipeline.consumer_release();
    }
    out[blockIdx.x * 64 + t] = sum;
}
