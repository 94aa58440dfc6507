// Products of warp groups, both factors in shared memory by descriptor: all swizzles, neighbours along the depth and across it.
// least: 90
// flags: --gpu-architecture=compute_90a

constexpr int ROWS = 64;
constexpr int COLUMNS = 72;
constexpr int DEPTH = 32;
constexpr int STEP = 16;
constexpr int FACTOR_BYTES = 32 << 10;

// How a factor stands in shared memory: in units of 16 bytes, `width` of them side by side in an atom of eight rows.
struct Layout {
    unsigned width, leading, stride, tile;
    bool turned;

    // Without the swizzle. `line` is a row of A or a column of B.
    __device__ unsigned find(unsigned line, unsigned k) const
    {
        if (turned) {
            const unsigned unit = line / 8;
            const unsigned inner = line % 8 * 2 + k % 8 * 16 * width;
            if (width == 1)
                return inner + unit * stride + k / 8 * leading;
            return inner + unit % width * 16 + unit / width * leading + k / 8 * stride;
        }
        const unsigned unit = k / 8;
        const unsigned inner = k % 8 * 2 + line % 8 * 16 * width + line / 8 * stride;
        return inner + (width == 1 ? unit * leading : unit % width * 16 + unit / width * tile);
    }

    __device__ unsigned swizzle(unsigned at) const { return at ^ (at / 128 & (width - 1)) * 16; }

    __device__ unsigned long long describe(const unsigned char* factor, unsigned k) const
    {
        const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(factor)) + find(0, k);
        const unsigned long long mode = width == 1 ? 0 : width == 8 ? 1 : width == 4 ? 2 : 3;
        return start / 16 | static_cast<unsigned long long>(leading / 16) << 16 | static_cast<unsigned long long>(stride / 16) << 32 | mode << 62;
    }
};

// Atoms one behind the other; without a swizzle there is a gap behind each eight rows.
__device__ Layout choose(unsigned width, unsigned lines, bool turned)
{
    const unsigned atom = 128 * width;
    if (width == 1)
        return {1, turned ? lines / 8 * 144 : lines / 8 * 144 + 32, 144, 0, turned};
    if (turned)
        return {width, atom * (DEPTH / 8), atom, 0, true};
    return {width, 16, atom, lines / 8 * atom, false};
}

__device__ void fill(unsigned char* factor, const unsigned short* from, const Layout& layout, int lines)
{
    for (int i = threadIdx.x; i < lines * DEPTH; i += blockDim.x)
        *reinterpret_cast<unsigned short*>(factor + layout.swizzle(layout.find(i / DEPTH, i % DEPTH))) = from[i];
}

#define REGISTERS(V) V(0), V(1), V(2), V(3), V(4), V(5), V(6), V(7), V(8), V(9), V(10), V(11), V(12), V(13), V(14), V(15), V(16), V(17), \
    V(18), V(19), V(20), V(21), V(22), V(23), V(24), V(25), V(26), V(27), V(28), V(29), V(30), V(31), V(32), V(33), V(34), V(35)
#define SUM(i) "+f"(sums[i])
#define NAMES "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
    "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35}"
#define MULTIPLY(type, choices) \
    asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %38, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n72k16.f32." type "." type " " NAMES ", %36, %37, keeps, " choices ";\n}" \
                 : REGISTERS(SUM) : "l"(left), "l"(right), "r"(k) : "memory")

// C (64 by 72) = A (64 by 32) times B (72 columns of 32), by one warp group; the blocks take the swizzles in turn.
template <bool LEFT_TURNED, bool RIGHT_TURNED, typename Multiply>
__device__ void multiply(const unsigned short* a, const unsigned short* b, float* c, Multiply multiply_step)
{
    extern __shared__ __align__(1024) unsigned char factors[];
    const unsigned width = 1 << blockIdx.x;
    const Layout left_layout = choose(width, ROWS, LEFT_TURNED);
    const Layout right_layout = choose(8 / width, COLUMNS, RIGHT_TURNED);
    fill(factors, a, left_layout, ROWS);
    fill(factors + FACTOR_BYTES, b, right_layout, COLUMNS);
    __syncthreads();
    asm volatile("fence.proxy.async;" ::: "memory");
    float sums[COLUMNS / 2];
    for (int i = 0; i < COLUMNS / 2; ++i)
        sums[i] = 1e30f;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < DEPTH; k += STEP)
        multiply_step(sums, left_layout.describe(factors, k), right_layout.describe(factors + FACTOR_BYTES, k), k);
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (int i = 0; i < COLUMNS / 2; ++i)
        c[(blockIdx.x * ROWS + row + i % 4 / 2 * 8) * COLUMNS + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = sums[i];
}

extern "C" __global__ void __launch_bounds__(128) warp_group_rows(const unsigned short* a, const unsigned short* b, float* c)
{
    multiply<false, false>(a, b, c, [](float* sums, unsigned long long left, unsigned long long right, int k) { MULTIPLY("f16", "1, 1, 0, 0"); });
}

extern "C" __global__ void __launch_bounds__(128) warp_group_columns(const unsigned short* a, const unsigned short* b, float* c)
{
    multiply<true, true>(a, b, c, [](float* sums, unsigned long long left, unsigned long long right, int k) { MULTIPLY("bf16", "-1, 1, 1, 1"); });
}

extern "C" __global__ void __launch_bounds__(128) warp_group_mixed(const unsigned short* a, const unsigned short* b, float* c)
{
    multiply<true, false>(a, b, c, [](float* sums, unsigned long long left, unsigned long long right, int k) { MULTIPLY("f16", "-1, -1, 1, 0"); });
}
