// Products of warp groups with the left factor in registers: bytes, bits, halves, single precision cut to tf32, eight-bit floats.
// least: 90
// flags: --gpu-architecture=compute_90a

// B as 16 bytes of eight columns, one below the other, then the other half of the depth of the same columns.
__device__ unsigned long long place_right(unsigned char* tile, const unsigned char* b, int columns)
{
    for (int i = threadIdx.x; i < columns * 32; i += blockDim.x)
        tile[i / 32 / 8 * 256 + i % 32 / 16 * 128 + i / 32 % 8 * 16 + i % 16] = b[i];
    __syncthreads();
    asm volatile("fence.proxy.async;\nwgmma.fence.sync.aligned;" ::: "memory");
    const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    return start / 16 | 128ULL / 16 << 16 | 256ULL / 16 << 32;
}

__device__ void wait() { asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// Rows of A of 32 bytes: four registers of four bytes of each lane.
__device__ void load_left(unsigned* registers, const unsigned char* a)
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (int i = 0; i < 4; ++i)
        registers[i] = *reinterpret_cast<const unsigned*>(a + (row + i % 2 * 8) * 32 + threadIdx.x % 4 * 4 + i / 2 * 16);
}

template <typename T> __device__ void store(T* c, const T* sums, int columns)
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (int i = 0; i < columns / 2; ++i)
        c[(row + i % 4 / 2 * 8) * columns + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = sums[i];
}

template <typename T> __device__ void load(const T* c, T* sums, int columns)
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (int i = 0; i < columns / 2; ++i)
        sums[i] = c[(row + i % 4 / 2 * 8) * columns + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2];
}

// Two warp groups: C (128 by 24) += A (128 by 32) times B (24 columns of 32), kept within 32 bits or not.
extern "C" __global__ void warp_group_bytes(const unsigned char* a, const unsigned char* b, int* clamped, int* wrapped)
{
    __shared__ __align__(128) unsigned char tile[24 * 32];
    unsigned left[4];
    int sums[12];
    load_left(left, a);
    const unsigned long long right = place_right(tile, b, 24);
    load(clamped, sums, 24);
    asm volatile("wgmma.mma_async.sync.aligned.m64n24k32.s32.u8.s8.satfinite {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11}, "
                 "{%12, %13, %14, %15}, %16, 1;"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]), "+r"(sums[6]), "+r"(sums[7]),
                   "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right) : "memory");
    wait();
    store(clamped, sums, 24);
    load(wrapped, sums, 24);
    asm volatile("wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.u8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11}, "
                 "{%12, %13, %14, %15}, %16, 1;"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]), "+r"(sums[6]), "+r"(sums[7]),
                   "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right) : "memory");
    wait();
    store(wrapped, sums, 24);
}

// C (64 by 8) = ones that rows of 256 bits have in common with columns.
extern "C" __global__ void warp_group_bits(const unsigned char* a, const unsigned char* b, int* c)
{
    __shared__ __align__(128) unsigned char tile[8 * 32];
    unsigned left[4];
    int sums[4] = {5, 6, 7, 8};
    load_left(left, a);
    const unsigned long long right = place_right(tile, b, 8);
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 0;"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right) : "memory");
    wait();
    store(c, sums, 8);
}

// C (64 by 8) = 1 - A (64 by 16 halves) times B, in halves; B once more with neighbours across the depth side by side.
extern "C" __global__ void warp_group_halves(const unsigned char* a, const unsigned char* b, const unsigned short* b_turned, unsigned* c, unsigned* c_turned)
{
    __shared__ __align__(128) unsigned char tile[8 * 32];
    __shared__ __align__(128) unsigned short turned[16 * 8];
    unsigned left[4];
    load_left(left, a);
    for (int i = threadIdx.x; i < 128; i += blockDim.x)
        turned[i] = b_turned[i];
    const unsigned long long right = place_right(tile, b, 8);
    const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(turned));
    const unsigned long long right_turned = start / 16 | 128ULL / 16 << 16;
    unsigned sums[2] = {0x3c003c00, 0x3c003c00};
    unsigned others[2] = {0x3c003c00, 0x3c003c00};
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, %6, 1, 1, -1, 0;"
                 : "+r"(sums[0]), "+r"(sums[1]) : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right) : "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, %6, 1, -1, 1, 1;"
                 : "+r"(others[0]), "+r"(others[1])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right_turned) : "memory");
    wait();
    const int place = (threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4) * 4 + threadIdx.x % 4;
    c[place] = sums[0];
    c[place + 32] = sums[1];
    c_turned[place] = others[0];
    c_turned[place + 32] = others[1];
}

// C (64 by 8) = A (64 by 8) times B (8 columns of 8) of the upper 19 bits of each number.
extern "C" __global__ void warp_group_singles(const unsigned char* a, const unsigned char* b, float* c)
{
    __shared__ __align__(128) unsigned char tile[8 * 32];
    unsigned left[4];
    float sums[4] = {5.0f, 6.0f, 7.0f, 8.0f};
    load_left(left, a);
    const unsigned long long right = place_right(tile, b, 8);
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 0, 1, 1;"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right) : "memory");
    wait();
    store(c, sums, 8);
}

// C (64 by 8) = A (64 by 32) times B (8 columns of 32), e4m3 times e5m2.
extern "C" __global__ void warp_group_eights(const unsigned char* a, const unsigned char* b, float* c)
{
    __shared__ __align__(128) unsigned char tile[8 * 32];
    unsigned left[4];
    float sums[4];
    load_left(left, a);
    const unsigned long long right = place_right(tile, b, 8);
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 0, -1, 1;"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right) : "memory");
    wait();
    store(c, sums, 8);
}

// Three warp groups: the first multiplies once, the second three times, the third goes home; the warps of a group come one after the other.
extern "C" __global__ void warp_group_turns(const unsigned char* a, const unsigned char* b, int* c)
{
    __shared__ __align__(128) unsigned char tile[8 * 32];
    __shared__ volatile int turns[3];
    unsigned left[4];
    int sums[4] = {0, 0, 0, 0};
    if (threadIdx.x < 3)
        turns[threadIdx.x] = 0;
    load_left(left, a);
    const unsigned long long right = place_right(tile, b, 8);
    const int group = threadIdx.x / 128;
    if (group == 2)
        return;
    for (int i = 0; i <= 2 * group; ++i) {
        while (turns[group] != i * 4 + threadIdx.x / 32 % 4) {
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            turns[group] = turns[group] + 1;
        __syncwarp();
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1;"
                     : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right) : "memory");
    }
    wait();
    store(c + blockIdx.x * 128 * 8, sums, 8);
}
