// Grid-stride loops in three dimensions and one, with 64-bit counters.

extern "C" __global__ void saxpy(float factor, const float* x, float* y, size_t n)
{
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += static_cast<size_t>(gridDim.x) * blockDim.x)
        y[i] = fmaf(factor, x[i], y[i]);
}

extern "C" __global__ void fill_volume(unsigned* out, int width, int height, int depth)
{
    for (int z = blockIdx.z * blockDim.z + threadIdx.z; z < depth; z += gridDim.z * blockDim.z)
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < height; y += gridDim.y * blockDim.y)
            for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width; x += gridDim.x * blockDim.x)
                out[(z * height + y) * width + x] = (x | y << 8 | z << 16) ^ (threadIdx.z << 24);
}
