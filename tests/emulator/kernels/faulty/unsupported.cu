// Instructions of compute capability 9.0 that move whole tensors or multiply sparse matrices by groups of warps.
// least: 90
// flags: --gpu-architecture=sm_90a

extern "C" __global__ void unsupported_sparse_product(const int* in, float* out)
{
    __shared__ __align__(128) int tile[1024];
    tile[threadIdx.x] = in[threadIdx.x];
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, %5, 0, 1, 1, 1, 0, 0;"  // fault: unsupported instruction
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "l"(0ULL), "r"(in[0]));
    out[threadIdx.x] = sums[0];
}

extern "C" __global__ void unsupported_tensor_copy(const int* in, int* out)
{
    __shared__ __align__(128) int tile[32];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    const unsigned signal = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"  // fault: unsupported instruction
                 ::"r"(to), "l"(in), "r"(0), "r"(signal) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
