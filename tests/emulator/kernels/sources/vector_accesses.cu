// Loads and stores of two and four elements of several types, and of structures that want no alignment.

struct Odd {
    unsigned char tag;
    int value;
    short half;
};

struct __align__(16) Wide {
    double position;
    int index;
    char flags[4];
};

extern "C" __global__ void vector_accesses(const float4* floats, const double2* doubles, const short4* shorts, const uchar2* bytes, const Odd* odds,
                                           Wide* wides, float2* sums, longlong2* longs, int3* threes)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 four = floats[i];
    const double2 two = doubles[i];
    const short4 small = shorts[i];
    const uchar2 tiny = bytes[i];
    const Odd odd = odds[i];
    sums[i] = make_float2(__fadd_rn(four.x, four.w), __fmul_rn(four.y, four.z));
    longs[i] = make_longlong2(static_cast<long long>(two.x), static_cast<long long>(two.y) * small.x);
    threes[i] = make_int3(small.y - small.z, tiny.x * tiny.y, odd.tag + odd.value * odd.half);
    Wide wide = wides[i];
    wide.position = -wide.position;
    wide.index += small.w;
    wide.flags[i & 3] = static_cast<char>(tiny.x);
    wides[i] = wide;
}
