// Instructions of compute capability 9.0 that move whole tensors or multiply by groups of warps.
// least: 90
// flags: --gpu-architecture=sm_90a

extern "C" __global__ void unsupported_wgmma(const int* in, int* out)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (in[0] == 1)
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");  // fault: unsupported instruction
    out[threadIdx.x] += 1;
}

extern "C" __global__ void unsupported_bulk_copy(const int* in, int* out)
{
    __shared__ __align__(128) int tile[32];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    const unsigned signal = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"  // fault: unsupported instruction
                 ::"r"(to), "l"(in), "r"(signal) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
