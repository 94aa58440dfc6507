// Four bytes or two shorts in a word: dot products, sums, differences, comparisons.

extern "C" __global__ void packed_bytes(const unsigned* a, const unsigned* b, unsigned* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned x = a[i];
    const unsigned y = b[i];
    out[0 * n + i] = static_cast<unsigned>(__dp4a(static_cast<int>(x), static_cast<int>(y), 1000));
    out[1 * n + i] = __dp4a(x, y, 3u);
    out[2 * n + i] = static_cast<unsigned>(__dp2a_lo(static_cast<int>(x), static_cast<int>(y), -5));
    out[3 * n + i] = __dp2a_hi(x, y, 5u);
    out[4 * n + i] = __vadd4(x, y);
    out[5 * n + i] = __vsub2(x, y);
    out[6 * n + i] = __vabsdiffu4(x, y);
    out[7 * n + i] = __vsadu4(x, y);
    out[8 * n + i] = __vmaxs2(x, y);
    out[9 * n + i] = __vcmpgtu4(x, y);
    out[10 * n + i] = __vaddus4(x, y);
    out[11 * n + i] = __vavgu4(x, y);
}
