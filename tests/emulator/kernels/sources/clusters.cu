// Blocks of a cluster meet, and read, write and change each other's shared memory.
// least: 90
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Each block sums its part; the block of rank 0 adds up the sums of the others through distributed shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sum(const int* in, int* out)
{
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ int sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x < cluster.num_blocks() && threadIdx.x != 0)
        atomicAdd(&sum, *cluster.map_shared_rank(&sum, threadIdx.x));
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0)
        out[blockIdx.x / cluster.num_blocks()] = sum;
}

// A histogram whose bins lie in the shared memory of all blocks of a cluster.
extern "C" __global__ void cluster_histogram(const int* in, int n, int bins_per_block, int* out)
{
    extern __shared__ int bins[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        bins[i] = 0;
    cluster.sync();
    const int all = bins_per_block * cluster.num_blocks();
    for (int i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size()) {
        const int bin = in[i] < 0 ? 0 : in[i] >= all ? all - 1 : in[i];
        atomicAdd(cluster.map_shared_rank(bins, bin / bins_per_block) + bin % bins_per_block, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        atomicAdd(&out[cluster.block_rank() * bins_per_block + i], bins[i]);
}

// Around a ring, each block stores into its neighbour by shared::cluster addresses of 32 bits, step by step, with arrive and wait apart.
extern "C" __global__ void cluster_ring(const unsigned* in, unsigned* out, int steps)
{
    __shared__ unsigned held[2][32];
    unsigned rank, blocks;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    held[0][threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    for (int step = 0; step < steps; ++step) {
        const unsigned own = held[step & 1][threadIdx.x];
        const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&held[(step + 1) & 1][threadIdx.x]));
        unsigned far;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(place), "r"((rank + 1) % blocks));
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(far), "r"(own * 3 + 1) : "memory");
        asm volatile("barrier.cluster.arrive.release;" ::: "memory");
        const unsigned meanwhile = own ^ step;  // work that needs no other block
        asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
        if (meanwhile == 0xffffffff)
            out[0] = 1;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = held[steps & 1][threadIdx.x];
}

// Places of blocks in clusters of 2 x 2, and whose memory addresses lead to.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_places(int4* places, int* owners)
{
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ int mine;
    const int block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0)
        mine = block;
    cluster.sync();
    const dim3 in_cluster = cluster.block_index();
    unsigned cluster_x, cluster_y;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(cluster_x));
    asm("mov.u32 %0, %%clusterid.y;" : "=r"(cluster_y));
    if (threadIdx.x == 0)
        places[block] = make_int4(in_cluster.x, in_cluster.y, cluster_x, cluster_y);
    if (threadIdx.x < 4) {
        int* far = cluster.map_shared_rank(&mine, threadIdx.x);
        owners[block * 4 + threadIdx.x] = *far * 8 + cluster.query_shared_rank(far);
    }
    cluster.sync();
}
