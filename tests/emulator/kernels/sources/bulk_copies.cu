// Bulk copies and stores that tell barrier objects how many bytes came: within a block, and between blocks of a cluster.
// least: 90

__device__ unsigned shared_address(const void* place)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}

__device__ unsigned map_address(unsigned place, unsigned rank)
{
    unsigned far;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(place), "r"(rank));
    return far;
}

__device__ void init_barrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void expect_bytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void wait_for(unsigned barrier, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

__device__ void sync_cluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ unsigned rank_in_cluster()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Two buffers: while one is worked on, the next tile comes; results leave by a bulk copy, and are added up by another.
extern "C" __global__ void bulk_pipeline(const float* in, float* out, float* sums, int tiles)
{
    __shared__ alignas(128) float tile[2][256];
    __shared__ alignas(128) float result[256];
    __shared__ alignas(8) unsigned long long ready[2];
    const unsigned thread = threadIdx.x;
    const float* first = in + static_cast<size_t>(blockIdx.x) * tiles * 256;
    if (thread == 0) {
        init_barrier(shared_address(&ready[0]), 1);
        init_barrier(shared_address(&ready[1]), 1);
    }
    __syncthreads();
    auto fetch = [&](int number) {
        const unsigned barrier = shared_address(&ready[number % 2]);
        expect_bytes(barrier, 1024);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(tile[number % 2])),
                     "l"(first + number * 256), "r"(1024), "r"(barrier)
                     : "memory");
    };
    if (thread == 0)
        fetch(0);
    for (int number = 0; number < tiles; ++number) {
        if (thread == 0 && number + 1 < tiles)
            fetch(number + 1);
        wait_for(shared_address(&ready[number % 2]), number / 2 % 2);
        result[thread] = 2 * tile[number % 2][thread] + 1;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (thread == 0) {
            float* to = out + (static_cast<size_t>(blockIdx.x) * tiles + number) * 256;
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(to), "r"(shared_address(result)) : "memory");
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 1024;" ::"l"(sums), "r"(shared_address(result))
                         : "memory");
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
    }
}

// The block of rank 0 sends one tile to all blocks of its cluster; each sends a part of it on to its neighbour.
extern "C" __global__ void __cluster_dims__(4, 1, 1) bulk_multicast(const int* in, int* out)
{
    __shared__ alignas(128) int tile[128];
    __shared__ alignas(128) int passed[128];
    __shared__ alignas(8) unsigned long long ready[2];
    const unsigned thread = threadIdx.x, rank = rank_in_cluster();
    if (thread == 0) {
        init_barrier(shared_address(&ready[0]), 1);
        init_barrier(shared_address(&ready[1]), 1);
        expect_bytes(shared_address(&ready[0]), 512);
        expect_bytes(shared_address(&ready[1]), 512);
    }
    passed[thread] = 0;
    sync_cluster();
    if (thread == 0 && rank == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
                         shared_address(tile)),
                     "l"(in + blockIdx.x / 4 * 128), "r"(512), "r"(shared_address(&ready[0])), "h"(static_cast<unsigned short>(15))
                     : "memory");
    wait_for(shared_address(&ready[0]), 0);
    if (thread == 0) {
        const unsigned next = (rank + 1) % 4;
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         map_address(shared_address(passed), next)),
                     "r"(shared_address(tile + rank * 16)), "r"(64 * (rank + 1)), "r"(map_address(shared_address(&ready[1]), next))
                     : "memory");
    }
    if (thread < 4 && rank < 3) { // what is missing of the 512 bytes comes word by word
        const unsigned next = (rank + 1) % 4, far = map_address(shared_address(&ready[1]), next);
        for (unsigned word = 16 * (rank + 1) + thread; word < 128; word += 4)
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                             map_address(shared_address(&passed[word]), next)),
                         "r"(tile[word] + 1000 * rank), "r"(far)
                         : "memory");
    }
    if (thread < 64 && rank == 3) // or is added
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(
                         map_address(shared_address(&passed[64 + thread / 2]), 0)),
                     "r"(tile[thread]), "r"(map_address(shared_address(&ready[1]), 0))
                     : "memory");
    wait_for(shared_address(&ready[1]), 0);
    out[blockIdx.x * 128 + thread] = passed[thread];
    sync_cluster();
}
