// Accesses beyond arrays in each kind of memory. A mark behind a line names what must be found there, and nowhere else.

extern "C" __global__ void beyond_global(const int* in, int* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        out[i] =  // fault: out-of-bounds access
            in[i]  // fault: out-of-bounds access
            + 1;
}

extern "C" __global__ void before_global(const int* in, int* out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int left = in[i - 1];  // fault: out-of-bounds access
    out[i] = left;
}

extern "C" __global__ void beyond_shared(int* out, int shift)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int other = tile[threadIdx.x + shift];  // fault: out-of-bounds access
    out[threadIdx.x] = other;
}

extern "C" __global__ void beyond_local(const int* in, int* out)
{
    int own[8];
    for (int k = 0; k < 8; ++k)
        own[k] = in[k];
    int chosen = own[in[threadIdx.x]];  // fault: out-of-bounds access
    out[threadIdx.x] = chosen;
}

extern "C" __global__ void beyond_atomic(int* counts, const int* in)
{
    atomicAdd(&counts[in[threadIdx.x]], 1);  // fault: out-of-bounds access
}

extern "C" __global__ void wild_pointer(int* out, unsigned long long address)
{
    int* wild = reinterpret_cast<int*>(address);
    if (threadIdx.x == 3)
        *wild = 7;  // fault: out-of-bounds access
    out[threadIdx.x] = 1;
}

extern "C" __global__ void null_pointer(int* out, const int* nothing)
{
    int value = nothing[threadIdx.x];  // fault: out-of-bounds access
    out[threadIdx.x] = value;
}
