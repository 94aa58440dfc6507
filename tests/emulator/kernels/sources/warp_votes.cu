// Votes, ballots, matches and masks of active lanes.

extern "C" __global__ void warp_votes(const int* in, unsigned* out)
{
    const unsigned all = 0xffffffffu;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int n = gridDim.x * blockDim.x;
    const int lane = threadIdx.x % 32;
    const int value = in[i];
    out[0 * n + i] = __all_sync(all, value < 7);
    out[1 * n + i] = __any_sync(all, value == 7);
    out[2 * n + i] = __ballot_sync(all, value & 1);
    out[3 * n + i] = __match_any_sync(all, value);
    int agree = -1;
    out[4 * n + i] = __match_all_sync(all, value / 8, &agree);
    out[5 * n + i] = agree;
    unsigned mask = 0;
    if (value > 3) {
        mask = __activemask();
        mask = __ballot_sync(mask, value & 2);
    }
    out[6 * n + i] = mask;
    const unsigned thirds = lane % 3 == 0 ? 0x49249249u : lane % 3 == 1 ? 0x92492492u : 0x24924924u;
    out[7 * n + i] = __match_any_sync(thirds, static_cast<unsigned long long>(value) << 40);
    unsigned lower;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lower));
    out[8 * n + i] = lower;
}
