// Vector and word accesses whose addresses are no multiple of their size.

extern "C" __global__ void misaligned_vector(const float* in, float* out)
{
    const int i = threadIdx.x;
    const float4 four = *reinterpret_cast<const float4*>(in + i * 4 + 1);  // fault: misaligned access
    out[i] = four.x + four.w;
}

extern "C" __global__ void misaligned_word(char* bytes)
{
    const int i = threadIdx.x;
    *reinterpret_cast<int*>(bytes + i) = i;  // fault: misaligned access
}

extern "C" __global__ void misaligned_shared(float* out, int shift)
{
    __shared__ __align__(16) float tile[64];
    tile[threadIdx.x] = 1.0f;
    tile[threadIdx.x + 32] = 2.0f;
    __syncthreads();
    const float2 two = *reinterpret_cast<const float2*>(&tile[threadIdx.x + shift]);  // fault: misaligned access
    out[threadIdx.x] = two.x + two.y;
}
