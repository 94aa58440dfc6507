// Lanes go their own ways: odd and even ones, as long as their number says, and a gather through indices.
__device__ float halve(const float* values, int place)
{
    return 0.5f * values[place];
}

extern "C" __global__ void divergent(const int* index, const float* values, float* result)
{
    __shared__ float tiles[2][32 * 32];
    float* tile = tiles[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int turn = 0; turn <= lane; turn++)
        sum += halve(values, index[(threadIdx.x + turn) % 256]);
    tile[lane * 32] = sum;
    __syncwarp();
    result[blockIdx.x * blockDim.x + threadIdx.x] = tile[(31 - lane) * 32];
}
