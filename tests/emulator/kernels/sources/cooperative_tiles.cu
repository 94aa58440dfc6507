// Cooperative groups: tiles of sixteen and four lanes, coalesced groups, a block's barrier.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace groups = cooperative_groups;

extern "C" __global__ void cooperative_tiles(const int* in, int* sums, int* peaks, int* ranks)
{
    const groups::thread_block block = groups::this_thread_block();
    const auto sixteen = groups::tiled_partition<16>(block);
    const auto four = groups::tiled_partition<4>(sixteen);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int value = in[i];
    int sum = value;
    for (int distance = sixteen.size() / 2; distance > 0; distance /= 2)
        sum += sixteen.shfl_down(sum, distance);
    if (sixteen.thread_rank() == 0)
        sums[i / 16] = sum;
    peaks[i] = groups::reduce(four, value, groups::greater<int>());
    block.sync();
    ranks[i] = -1;
    if (value % 3 == 1) {
        const groups::coalesced_group active = groups::coalesced_threads();
        ranks[i] = active.thread_rank() * 100 + active.size();
    }
    sixteen.sync();
    if (sixteen.any(value > 90) && sixteen.meta_group_rank() == 1)
        ranks[i] -= 1000;
}
