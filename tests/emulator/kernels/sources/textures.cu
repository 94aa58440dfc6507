// Texture objects: linear memory, the nearest texel, bilinear filtering, edges that clamp, wrap, mirror or have a border; surfaces.

extern "C" __global__ void texture_linear_memory(cudaTextureObject_t values, cudaTextureObject_t fours, float* out, uint4* four_out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[i] = tex1Dfetch<float>(values, n - 1 - i) + tex1Dfetch<float>(values, i / 2);
    four_out[i] = tex1Dfetch<uint4>(fours, i % 8);
}

extern "C" __global__ void texture_point(cudaTextureObject_t image, float* out, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    // Coordinates reach over every edge, where clamping repeats the last texel.
    out[y * width + x] = tex2D<float>(image, x - 1.5f, y + 2.25f);
}

extern "C" __global__ void texture_bilinear(cudaTextureObject_t image, float* out, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    // Fractions are multiples of 1/16, which the filter's eight bits hold exactly.
    out[y * width + x] = tex2D<float>(image, x * 0.5625f + 0.125f, y * 0.4375f - 0.5f);
}

extern "C" __global__ void texture_wrap(cudaTextureObject_t bytes, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1D<float>(bytes, (i - 20) / 32.0f);
}
