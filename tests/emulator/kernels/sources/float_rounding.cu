// Single-precision operations that PTX rounds exactly, in each direction; flushed denormals; limits and signs.

extern "C" __global__ void float_rounding(const float* a, const float* b, const float* c, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = a[i];
    const float y = b[i];
    const float z = c[i];
    out[0 * n + i] = __fadd_rn(x, y);
    out[1 * n + i] = __fadd_rz(x, y);
    out[2 * n + i] = __fadd_ru(x, y);
    out[3 * n + i] = __fadd_rd(x, y);
    out[4 * n + i] = __fmul_rn(x, y);
    out[5 * n + i] = __fmul_rz(x, y);
    out[6 * n + i] = __fmul_ru(x, y);
    out[7 * n + i] = __fmul_rd(x, y);
    out[8 * n + i] = __fmaf_rn(x, y, z);
    out[9 * n + i] = __fmaf_rz(x, y, z);
    out[10 * n + i] = __fmaf_ru(x, y, z);
    out[11 * n + i] = __fmaf_rd(x, y, z);
    out[12 * n + i] = __fdiv_rn(x, y);
    out[13 * n + i] = __fdiv_rz(x, y);
    out[14 * n + i] = __fsqrt_rn(fabsf(x));
    out[15 * n + i] = __fsqrt_ru(fabsf(x));
    out[16 * n + i] = __frcp_rn(y);
    out[17 * n + i] = __frcp_rd(y);
    out[18 * n + i] = fminf(x, y);
    out[19 * n + i] = fmaxf(x, y);
    out[20 * n + i] = copysignf(x, y);
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(out[21 * n + i]) : "f"(x * 1e-38f), "f"(y * 1e-39f));
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(out[22 * n + i]) : "f"(x), "f"(1e-39f));
    asm("add.sat.f32 %0, %1, %2;" : "=f"(out[23 * n + i]) : "f"(x), "f"(y));
}
