// Blocks reduce, scan and sort with CUB, as most programs do today.
// least: 80
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

constexpr int block_size = 128;
constexpr int per_thread = 4;

extern "C" __global__ void __launch_bounds__(block_size) block_library(const int* in, int* sums, int* scanned, unsigned* keys, int* values)
{
    using Reduce = cub::BlockReduce<int, block_size>;
    using Scan = cub::BlockScan<int, block_size>;
    using Sort = cub::BlockRadixSort<unsigned, block_size, per_thread, int>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename Sort::TempStorage sort;
    } storage;
    const int first = (blockIdx.x * block_size + threadIdx.x) * per_thread;
    int own[per_thread];
    unsigned own_keys[per_thread];
    int own_values[per_thread];
    for (int k = 0; k < per_thread; ++k) {
        own[k] = in[first + k];
        own_keys[k] = keys[first + k];
        own_values[k] = values[first + k];
    }
    const int sum = Reduce(storage.reduce).Sum(own);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
    __syncthreads();
    Scan(storage.scan).ExclusiveSum(own, own);
    __syncthreads();
    Sort(storage.sort).Sort(own_keys, own_values);
    for (int k = 0; k < per_thread; ++k) {
        scanned[first + k] = own[k];
        keys[first + k] = own_keys[k];
        values[first + k] = own_values[k];
    }
}
