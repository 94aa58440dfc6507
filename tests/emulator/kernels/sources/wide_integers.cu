// 64-bit and 128-bit integers: high products, carries, shifts by more than a word.
// flags: -device-int128

extern "C" __global__ void wide_integers(const unsigned long long* a, const unsigned long long* b, unsigned long long* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long x = a[i];
    const unsigned long long y = b[i];
    const unsigned shift = static_cast<unsigned>(y & 63);
    out[0 * n + i] = x + y;
    out[1 * n + i] = x * y;
    out[2 * n + i] = __umul64hi(x, y);
    out[3 * n + i] = static_cast<unsigned long long>(__mul64hi(static_cast<long long>(x), static_cast<long long>(y)));
    out[4 * n + i] = x << shift;
    out[5 * n + i] = x >> shift;
    out[6 * n + i] = static_cast<unsigned long long>(static_cast<long long>(x) >> shift);
    out[7 * n + i] = static_cast<unsigned long long>(static_cast<unsigned>(x)) * static_cast<unsigned>(y);
    out[8 * n + i] = static_cast<unsigned long long>(static_cast<long long>(static_cast<int>(x)) * static_cast<int>(y));
    out[9 * n + i] = __umulhi(static_cast<unsigned>(x), static_cast<unsigned>(y));
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * y + x;
    const unsigned __int128 turned = (product << 41) ^ (product >> 87);
    out[10 * n + i] = static_cast<unsigned long long>(product >> 64);
    out[11 * n + i] = static_cast<unsigned long long>(turned >> 64);
    out[12 * n + i] = static_cast<unsigned long long>(turned - y);
    out[13 * n + i] = x < y ? 1 : static_cast<long long>(x) < static_cast<long long>(y) ? 2 : 3;
    out[14 * n + i] = static_cast<unsigned long long>(__sad(static_cast<int>(x), static_cast<int>(y), 7u));
    out[15 * n + i] = static_cast<unsigned long long>(static_cast<long long>(__mul24(static_cast<int>(x), static_cast<int>(y))));
}
