// Makes the compiler write the rarer kinds of control flow: BRA.CONV, BRA.DIV, WARPSYNC, BREAK, BPT.TRAP, calls out of the module, branches
// with a predicate operand, exits inside loops. Compiled with `nvcc -O3 -cubin -arch=sm_XX`, listed with `nvdisasm -c` (.sass) and
// `nvdisasm -bbcfg -poff` (.dot).
#include <cooperative_groups.h>

#include <cstdio>

namespace groups = cooperative_groups;

__global__ void warp_branches(int* data, int* lock, int count) {
    int value = data[threadIdx.x];
    if (value < 0) {
        if (value == -7) __trap();
        if (value < -9) printf("%d\n", value);
        data[threadIdx.x] = 0;
        return;
    }
    if (value & 1) {
        auto active = groups::coalesced_threads();
        value += active.shfl(data[1], 0) + static_cast<int>(active.size());
        active.sync();
    }
    auto tile = groups::tiled_partition<8>(groups::this_thread_block());
    for (int turn = 0; turn < count; ++turn) {
        if (tile.any(value == turn)) break;
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                data[turn] += value;
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
        }
        if (data[turn] == 12345) return;
    }
    tile.sync();
    data[threadIdx.x] = value / data[3];
}
