// Programs that do not end: each is stopped within its budget, at the line where it stands.

extern "C" __global__ void endless_loop(int* out)
{
    volatile int* place = out;
    while (true)
        *place = *place + 1;  // fault: instruction budget reached
}

extern "C" __global__ void endless_spin(volatile int* flags, int* out)
{
    if (threadIdx.x == 0)
        while (flags[blockIdx.x + 1] == 0) {  // fault: instruction budget reached
        }
    __syncthreads();
    out[blockIdx.x] = 1;
}

__device__ __noinline__ int deeper(volatile int* values, int depth)
{
    values[depth % 4] = depth;
    return deeper(values, depth + 1) + values[depth % 4];  // fault: calls nested too deeply
}

extern "C" __global__ void endless_recursion(int* out)
{
    out[threadIdx.x] = deeper(out, 0);
}
