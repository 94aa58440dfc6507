// Twenty-five points in double: a star of range four in three dimensions, marched along z by no one.
// flags: -fmad=false
constexpr int range = 4;

extern "C" __global__ void star_3d(const double* __restrict__ in, double* __restrict__ out, int width, int height, int depth)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x + range;
    const int y = blockIdx.y * blockDim.y + threadIdx.y + range;
    const int z = blockIdx.z * blockDim.z + threadIdx.z + range;
    if (x >= width - range || y >= height - range || z >= depth - range)
        return;
    const long row = width;
    const long plane = static_cast<long>(width) * height;
    const long i = z * plane + y * row + x;
    double sum = in[i];
#pragma unroll
    for (int k = 1; k <= range; ++k) {
        const double around = in[i - k] + in[i + k] + in[i - k * row] + in[i + k * row] + in[i - k * plane] + in[i + k * plane];
        sum += around * (0.25 / k);
    }
    out[i] = sum;
}
