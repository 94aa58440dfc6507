// Products of warp groups that do not come together, or read what is not theirs.
// least: 90
// flags: --gpu-architecture=compute_90a

constexpr unsigned long long EIGHT_ROWS = 128 / 16;

// Rows of eight halves, one below the other: 16 bytes for each row, the second half of the depth behind all of them.
__device__ unsigned long long describe(const void* matrix, unsigned rows)
{
    const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(matrix));
    return start / 16 | static_cast<unsigned long long>(rows) << 16 | EIGHT_ROWS << 32;
}

__device__ void begin() { asm volatile("fence.proxy.async; wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void end() { asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// One of the four warps does not come.
extern "C" __global__ void absent_warp(const short* in, unsigned* out)
{
    __shared__ __align__(1024) short tile[64 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x)
        tile[i] = in[i];
    __syncthreads();
    unsigned sums[2] = {0, 0};
    const unsigned long long at = describe(tile, 64);
    if (threadIdx.x / 32 != 2) {
        begin();
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %2, 1, 1, 1, 0, 0;"  // fault: deadlock
                     : "+r"(sums[0]), "+r"(sums[1]) : "l"(at));
        end();
    }
    out[threadIdx.x] = sums[0];
}

// The block has three warps.
extern "C" __global__ void small_group(const short* in, unsigned* out)
{
    __shared__ __align__(1024) short tile[64 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x)
        tile[i] = in[i];
    __syncthreads();
    unsigned sums[2] = {0, 0};
    const unsigned long long at = describe(tile, 64);
    begin();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %2, 1, 1, 1, 0, 0;"  // fault: deadlock
                 : "+r"(sums[0]), "+r"(sums[1]) : "l"(at));
    end();
    out[threadIdx.x] = sums[0];
}

// A has 64 rows, and its second half of the depth is said to be where shared memory has ended.
extern "C" __global__ void beyond_tile(const short* in, unsigned* out)
{
    __shared__ __align__(1024) short tile[64 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x)
        tile[i] = in[i];
    __syncthreads();
    unsigned sums[2] = {0, 0};
    const unsigned long long left = describe(tile, 96);
    const unsigned long long right = describe(tile, 8);
    begin();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 0, 0;"  // fault: out-of-bounds access
                 : "+r"(sums[0]), "+r"(sums[1]) : "l"(left), "l"(right));
    end();
    out[threadIdx.x] = sums[0];
}

// Nobody waits for the other warps that fill the matrices.
extern "C" __global__ void early_product(const short* in, unsigned* out)
{
    __shared__ __align__(1024) short tile[64 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x)
        tile[i] = in[i];  // fault: race on shared memory
    unsigned sums[2] = {0, 0};
    const unsigned long long at = describe(tile, 64);
    begin();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %2, 1, 1, 1, 0, 0;"  // fault: race on shared memory
                 : "+r"(sums[0]), "+r"(sums[1]) : "l"(at));
    end();
    out[threadIdx.x] = sums[0];
}

// Half of the matrices is never written.
extern "C" __global__ void half_filled(const short* in, unsigned* out)
{
    __shared__ __align__(1024) short tile[64 * 16];
    for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x)
        tile[i] = in[i];
    __syncthreads();
    unsigned sums[2] = {0, 0};
    const unsigned long long at = describe(tile, 64);
    begin();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %2, 1, 1, 1, 0, 0;"  // fault: read of shared memory nobody wrote
                 : "+r"(sums[0]), "+r"(sums[1]) : "l"(at));
    end();
    out[threadIdx.x] = sums[0];
}

// Atoms of a swizzle of 128 bytes that do not begin at multiples of 1024 bytes are not emulated.
extern "C" __global__ void odd_atoms(const short* in, unsigned* out)
{
    __shared__ __align__(1024) short tile[64 * 64];
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x)
        tile[i] = in[i % 1024];
    __syncthreads();
    unsigned sums[2] = {0, 0};
    const unsigned long long at = describe(tile, 64) | 1ULL << 62 | 1ULL << 49;
    begin();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %2, 1, 1, 1, 0, 0;"  // fault: unsupported instruction
                 : "+r"(sums[0]), "+r"(sums[1]) : "l"(at));
    end();
    out[threadIdx.x] = sums[0];
}

// Lanes of one warp give different descriptors of A, and warps of one group different ones of B.
extern "C" __global__ void several_descriptors(const short* in, unsigned* out)
{
    __shared__ __align__(1024) short tile[64 * 32];
    for (int i = threadIdx.x; i < 64 * 32; i += blockDim.x)
        tile[i] = in[i % 1024];
    __syncthreads();
    unsigned sums[2] = {0, 0};
    const unsigned long long left = describe(tile + threadIdx.x % 32 / 16 * 8, 64);
    const unsigned long long right = describe(tile + threadIdx.x / 64 * 8, 8);
    begin();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 0, 0;"  // fault: unsupported instruction
                 : "+r"(sums[0]), "+r"(sums[1]) : "l"(left), "l"(right));
    end();
    out[threadIdx.x] = sums[0];
}
