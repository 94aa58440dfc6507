// The warp-wide reduction instructions of compute capability 8.0.
// least: 80

extern "C" __global__ void reduce_redux(const unsigned* in, unsigned* out)
{
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned value = in[blockIdx.x * blockDim.x + threadIdx.x];
    const unsigned sum = __reduce_add_sync(0xffffffffu, value);
    const unsigned least = __reduce_min_sync(0xffffffffu, value);
    const int peak = __reduce_max_sync(0xffffffffu, static_cast<int>(value));
    const unsigned common = __reduce_and_sync(0xffffffffu, value | 0xff);
    const unsigned any = __reduce_or_sync(0xffffffffu, value & 0xff00);
    const unsigned parity = __reduce_xor_sync(0xffffffffu, value);
    unsigned odd_sum = 0;
    if (lane % 2 == 1)
        odd_sum = __reduce_add_sync(0xaaaaaaaau, value);
    if (lane == 1) {
        unsigned* row = out + 7 * warp;
        row[0] = sum;
        row[1] = least;
        row[2] = static_cast<unsigned>(peak);
        row[3] = common;
        row[4] = any;
        row[5] = parity;
        row[6] = odd_sum;
    }
}
