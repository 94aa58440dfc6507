// Quotients and remainders of signed and unsigned integers of 8 to 64 bits, by values and by constants.

extern "C" __global__ void divisions(const int* a, const int* b, int* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int x = a[i];
    const int y = b[i];
    const unsigned ux = static_cast<unsigned>(x);
    const unsigned uy = static_cast<unsigned>(y);
    out[0 * n + i] = x / y;
    out[1 * n + i] = x % y;
    out[2 * n + i] = static_cast<int>(ux / uy);
    out[3 * n + i] = static_cast<int>(ux % uy);
    out[4 * n + i] = x / 7;
    out[5 * n + i] = x % -10;
    out[6 * n + i] = static_cast<int>(ux / 641u);
    out[7 * n + i] = x / 16;
    out[8 * n + i] = static_cast<short>(x) / (static_cast<short>(y) | 1);
    out[9 * n + i] = static_cast<signed char>(x) % (static_cast<unsigned char>(y) | 1);
}

extern "C" __global__ void divisions_wide(const long long* a, const long long* b, long long* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long x = a[i];
    const long long y = b[i];
    out[0 * n + i] = x / y;
    out[1 * n + i] = x % y;
    out[2 * n + i] = static_cast<long long>(static_cast<unsigned long long>(x) / static_cast<unsigned long long>(y));
    out[3 * n + i] = static_cast<long long>(static_cast<unsigned long long>(x) % static_cast<unsigned long long>(y));
    out[4 * n + i] = x / 1000000007;
    out[5 * n + i] = x % 86400;
}
