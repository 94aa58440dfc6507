// What compute capability 9.0 adds for threads of one block: vector atomics, one elected lane, matrices stored, waiting for nobody.
// least: 90

extern "C" __global__ void vector_atomics(const float* in, float2* pairs, float4* fours)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float whole = truncf(in[i]);  // whole numbers: exact in any order
    atomicAdd(&pairs[i % 3], make_float2(whole, 1.0f));
    atomicAdd(&fours[i % 2], make_float4(1.0f, whole, 2.0f, -whole));
}

extern "C" __global__ void elected_lanes(unsigned* leaders, unsigned* turned)
{
    __shared__ __align__(16) unsigned short tile[64];
    unsigned leader = 0;
    unsigned is_leader = 0;
    asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(leader), "=r"(is_leader));
    if (is_leader)
        leaders[blockIdx.x] = threadIdx.x;
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x % 8 * 8]));
    const unsigned pair = (threadIdx.x * 2 + 1) << 16 | threadIdx.x * 2;
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(place), "r"(pair) : "memory");
    __syncwarp();
    turned[blockIdx.x * 32 + threadIdx.x] = reinterpret_cast<unsigned*>(tile)[threadIdx.x];
    __nanosleep(20);
}
