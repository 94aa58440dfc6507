// Generators of random numbers: xorshift, a permuted congruential one, Philox rounds; and a Monte Carlo count.

__device__ unsigned xorshift(unsigned& state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

extern "C" __global__ void random_numbers(const unsigned* seeds, unsigned* out, unsigned* inside, int n, int turns)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = seeds[i] | 1u;
    unsigned count = 0;
    for (int k = 0; k < turns; ++k) {
        const unsigned long long x = xorshift(state) >> 8;
        const unsigned long long y = xorshift(state) >> 8;
        count += x * x + y * y < 1ull << 48;
    }
    inside[i] = count;
    unsigned long long congruential = seeds[i];
    congruential = congruential * 6364136223846793005ull + 1442695040888963407ull;
    const unsigned shifted = static_cast<unsigned>((congruential >> 18 ^ congruential) >> 27);
    const unsigned turn = static_cast<unsigned>(congruential >> 59);
    out[0 * n + i] = shifted >> turn | shifted << (-turn & 31);
    uint4 counter = make_uint4(i, seeds[i], 0x1234567u, 42u);
    uint2 key = make_uint2(0xdecafbadu, seeds[i] ^ 0x55aa55aau);
    for (int round = 0; round < 10; ++round) {
        const unsigned high0 = __umulhi(0xd2511f53u, counter.x);
        const unsigned low0 = 0xd2511f53u * counter.x;
        const unsigned high1 = __umulhi(0xcd9e8d57u, counter.z);
        const unsigned low1 = 0xcd9e8d57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9e3779b9u;
        key.y += 0xbb67ae85u;
    }
    out[1 * n + i] = counter.x;
    out[2 * n + i] = counter.y;
    out[3 * n + i] = counter.z;
    out[4 * n + i] = counter.w;
}
