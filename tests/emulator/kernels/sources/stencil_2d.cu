// Two-dimensional stencils without shared memory: five points in float, a box of nine on bytes with clamped edges.
// flags: -fmad=false

extern "C" __global__ void stencil_5point(const float* in, float* out, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const int i = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[i] = in[i];
        return;
    }
    const float around = in[i - 1] + in[i + 1] + in[i - width] + in[i + width];
    out[i] = 0.5f * in[i] + 0.125f * around;
}

extern "C" __global__ void stencil_box9(const unsigned char* in, unsigned char* out, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            const int column = min(max(x + dx, 0), width - 1);
            const int row = min(max(y + dy, 0), height - 1);
            sum += in[row * width + column];
        }
    out[y * width + x] = static_cast<unsigned char>((sum + 4) / 9);
}
