// Where a thread stands: indexes in three dimensions, sizes, lanes, warps, masks of lanes; and a clock that does not go back.

extern "C" __global__ void special_registers(unsigned* out)
{
    extern __shared__ unsigned char dynamic[];
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned* mine = out + (block * blockDim.x * blockDim.y * blockDim.z + thread) * 8;
    unsigned lane, equal, greater, at_most, dynamic_bytes;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(equal));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(greater));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(at_most));
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic_bytes));
    const long long before = clock64();
    dynamic[thread] = static_cast<unsigned char>(thread);
    const long long after = clock64();
    mine[0] = threadIdx.x | threadIdx.y << 8 | threadIdx.z << 16;
    mine[1] = blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16;
    mine[2] = lane | warpSize << 8;
    mine[3] = equal;
    mine[4] = greater;
    mine[5] = at_most;
    mine[6] = dynamic_bytes + dynamic[thread];
    mine[7] = after >= before && __isGlobal(out) && __isShared(dynamic) && !__isLocal(dynamic) ? 1u : 0u;
}
