// Barriers as objects in shared memory, atomics with an order and a scope, a lock.
// least: 80
#include <cuda/atomic>
#include <cuda/barrier>

extern "C" __global__ void barrier_objects(const int* in, int* out, int* total, int* lock, int* guarded)
{
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ int tile[64];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier barrier;
    const int t = threadIdx.x;
    if (t == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    int value = in[blockIdx.x * 64 + t];
    for (int step = 0; step < 3; ++step) {
        tile[t] = value;
        barrier.arrive_and_wait();
        value = value * 2 + tile[(t + 1) % 64];
        barrier.arrive_and_wait();
    }
    out[blockIdx.x * 64 + t] = value;
    cuda::atomic_ref<int, cuda::thread_scope_device> sum(*total);
    sum.fetch_add(value, cuda::memory_order_relaxed);
    if (t == 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device> gate(*lock);
        while (gate.exchange(1, cuda::memory_order_acquire) != 0) {
        }
        *guarded = *guarded * 2 % 1000003 + 1;
        gate.store(0, cuda::memory_order_release);
    }
}
