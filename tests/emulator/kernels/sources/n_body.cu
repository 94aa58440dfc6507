// Accelerations of bodies by all others, tile by tile, with the reciprocal root of the hardware.

extern "C" __global__ void n_body(const float4* bodies, float4* accelerations, int count)
{
    __shared__ float4 tile[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 mine = bodies[i];
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int first = 0; first < count; first += 64) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 64; ++k) {
            const float4 other = tile[k];
            const float dx = other.x - mine.x;
            const float dy = other.y - mine.y;
            const float dz = other.z - mine.z;
            const float squares = dx * dx + dy * dy + dz * dz + 0.01f;
            const float inverse = rsqrtf(squares);
            const float pull = other.w * inverse * inverse * inverse;
            sum.x += dx * pull;
            sum.y += dy * pull;
            sum.z += dz * pull;
            sum.w += pull;
        }
        __syncthreads();
    }
    accelerations[i] = sum;
}
