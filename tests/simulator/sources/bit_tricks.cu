// Counting, finding, reversing, extracting and funnelling bits and bytes.

extern "C" __global__ void bit_tricks(const unsigned* a, const unsigned* b, unsigned* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned x = a[i];
    const unsigned y = b[i];
    const unsigned long long wide = static_cast<unsigned long long>(x) << 32 | y;
    out[0 * n + i] = __popc(x);
    out[1 * n + i] = __clz(x);
    out[2 * n + i] = __ffs(x);
    out[3 * n + i] = __brev(x);
    out[4 * n + i] = __popcll(wide);
    out[5 * n + i] = __clzll(wide);
    out[6 * n + i] = static_cast<unsigned>(__brevll(wide) >> 17);
    out[7 * n + i] = __funnelshift_l(x, y, y & 63);
    out[8 * n + i] = __funnelshift_rc(x, y, y & 63);
    out[9 * n + i] = __byte_perm(x, y, y >> 9);
    out[10 * n + i] = __byte_perm(x, y, 0x3715);
    out[11 * n + i] = x >> 5 & 0x7ff;
    out[12 * n + i] = static_cast<unsigned>(static_cast<int>(x << 9) >> 20);
    out[13 * n + i] = (x & y) | (~x & (x >> 3)) | (y ^ 0x55555555u);
    out[14 * n + i] = __ffsll(static_cast<long long>(wide << 13));
    out[15 * n + i] = __hadd(static_cast<int>(x), static_cast<int>(y));
    out[16 * n + i] = __urhadd(x, y);
    unsigned field, inserted, mask_found, found;
    asm("bfe.u32 %0, %1, %2, 11;" : "=r"(field) : "r"(x), "r"(y & 31));
    asm("bfi.b32 %0, %1, %2, %3, 9;" : "=r"(inserted) : "r"(x), "r"(y), "r"(y & 31));
    asm("bfind.u32 %0, %1;" : "=r"(found) : "r"(x));
    asm("fns.b32 %0, %1, 4, 2;" : "=r"(mask_found) : "r"(x));
    out[17 * n + i] = field;
    out[18 * n + i] = inserted;
    out[19 * n + i] = found;
    out[20 * n + i] = mask_found;
}
