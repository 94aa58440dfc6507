// What ends the lanes that do it: traps, failed assertions, stores to constants, instructions the emulator does not know.
#include <cuda/std/cassert>

__constant__ int constants[4] = {1, 2, 3, 4};

extern "C" __global__ void fails_assertion(const int* in, int* out)
{
    const int i = threadIdx.x;
    assert(in[i] != 5);  // fault: trap
    out[i] = 1;
}

extern "C" __global__ void traps(int* out)
{
    out[threadIdx.x] = 1;
    if (threadIdx.x == 17)
        __trap();  // fault: trap
    out[threadIdx.x] = 2;
}

extern "C" __global__ void writes_constant(int* out)
{
    int* place = constants;
    asm volatile("st.s32 [%0], 5;" ::"l"(place + (out[0] & 1)) : "memory");  // fault: store to constant memory
    out[threadIdx.x] = 1;
}

extern "C" __global__ void divides_by_zero(const int* in, int* out)
{
    int quotient = 100 / in[threadIdx.x];  // fault: integer division by zero
    out[threadIdx.x] = quotient;
}

// No fault of the kernel's: a megabyte of local memory for each thread of a block is more than a small budget holds.
extern "C" __global__ void needs_memory(const int* in, int* out)
{
    int large[1 << 18];
    for (int k = 0; k < 64; ++k)
        large[(in[threadIdx.x] * 1000 + k) & 0x3ffff] = k;
    out[threadIdx.x] = large[in[threadIdx.x] & 0x3ffff];
}
