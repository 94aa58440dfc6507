// Warp-wide matrix products of other types by mma.sync: bytes, bfloat16, tf32, half sums, doubles.
// least: 80

__device__ unsigned load4(const signed char* row) { return *reinterpret_cast<const unsigned*>(row); }
__device__ unsigned load2(const unsigned short* row) { return *reinterpret_cast<const unsigned*>(row); }

// C (16 by 8) = A (16 by 32, by rows) times B (32 by 8, by columns).
extern "C" __global__ void tensor_bytes(const signed char* a, const signed char* b, int* c)
{
    const int group = threadIdx.x / 4;
    const int member = threadIdx.x % 4;
    int sums[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                 : "r"(load4(a + group * 32 + member * 4)), "r"(load4(a + (group + 8) * 32 + member * 4)),
                   "r"(load4(a + group * 32 + member * 4 + 16)), "r"(load4(a + (group + 8) * 32 + member * 4 + 16)),
                   "r"(load4(b + group * 32 + member * 4)), "r"(load4(b + group * 32 + member * 4 + 16)));
    c[group * 8 + member * 2] = sums[0];
    c[group * 8 + member * 2 + 1] = sums[1];
    c[(group + 8) * 8 + member * 2] = sums[2];
    c[(group + 8) * 8 + member * 2 + 1] = sums[3];
}

// The same with 16 by 8 times 8 by 8 bfloat16, and with half sums of 16 by 16 times 16 by 8.
extern "C" __global__ void tensor_shorts(const unsigned short* a, const unsigned short* b, float* c, const unsigned short* a_half, const unsigned short* b_half,
                                         unsigned* c_half)
{
    const int group = threadIdx.x / 4;
    const int member = threadIdx.x % 4;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(load2(a + group * 8 + member * 2)), "r"(load2(a + (group + 8) * 8 + member * 2)), "r"(load2(b + group * 8 + member * 2)));
    c[group * 8 + member * 2] = sums[0];
    c[group * 8 + member * 2 + 1] = sums[1];
    c[(group + 8) * 8 + member * 2] = sums[2];
    c[(group + 8) * 8 + member * 2 + 1] = sums[3];
    unsigned halves[2] = {0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(halves[0]), "+r"(halves[1])
                 : "r"(load2(a_half + group * 16 + member * 2)), "r"(load2(a_half + (group + 8) * 16 + member * 2)),
                   "r"(load2(a_half + group * 16 + member * 2 + 8)), "r"(load2(a_half + (group + 8) * 16 + member * 2 + 8)),
                   "r"(load2(b_half + group * 16 + member * 2)), "r"(load2(b_half + group * 16 + member * 2 + 8)));
    c_half[group * 4 + member] = halves[0];
    c_half[(group + 8) * 4 + member] = halves[1];
}

// 16 by 4 times 4 by 8 in tf32, 8 by 4 times 4 by 8 in double.
extern "C" __global__ void tensor_wide(const float* a, const float* b, float* c, const double* a_double, const double* b_double, double* c_double)
{
    const int group = threadIdx.x / 4;
    const int member = threadIdx.x % 4;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    unsigned left[2], right;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(left[0]) : "f"(a[group * 4 + member]));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(left[1]) : "f"(a[(group + 8) * 4 + member]));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(right) : "f"(b[group * 4 + member]));
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(right));
    c[group * 8 + member * 2] = sums[0];
    c[group * 8 + member * 2 + 1] = sums[1];
    c[(group + 8) * 8 + member * 2] = sums[2];
    c[(group + 8) * 8 + member * 2 + 1] = sums[3];
    double wide[2] = {0.5, -0.5};
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(wide[0]), "+d"(wide[1])
                 : "d"(a_double[group * 4 + member]), "d"(b_double[group * 4 + member]));
    c_double[group * 8 + member * 2] = wide[0];
    c_double[group * 8 + member * 2 + 1] = wide[1];
}
