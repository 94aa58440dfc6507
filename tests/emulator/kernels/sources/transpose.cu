// Transposes: straight, through a shared tile, through a padded tile of structures of eight bytes.

extern "C" __global__ void transpose_naive(const int* in, int* out, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        out[x * height + y] = in[y * width + x];
}

template <typename Element, int pitch>
__device__ void transpose_tile(const Element* in, Element* out, int width, int height)
{
    __shared__ Element tile[16][pitch];
    int x = blockIdx.x * 16 + threadIdx.x;
    int y = blockIdx.y * 16 + threadIdx.y;
    for (int k = 0; k < 16; k += 4)
        if (x < width && y + k < height)
            tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    for (int k = 0; k < 16; k += 4)
        if (x < height && y + k < width)
            out[(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void transpose_shared(const unsigned short* in, unsigned short* out, int width, int height)
{
    transpose_tile<unsigned short, 16>(in, out, width, height);
}

extern "C" __global__ void transpose_padded(const int2* in, int2* out, int width, int height)
{
    transpose_tile<int2, 17>(in, out, width, height);
}
