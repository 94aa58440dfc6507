// Shared memory that two threads use without a barrier between.

extern "C" __global__ void missing_barrier(const int* in, int* out)
{
    __shared__ int tile[128];
    tile[threadIdx.x] = in[threadIdx.x];  // fault: race on shared memory
    int other = tile[127 - threadIdx.x];  // fault: race on shared memory
    out[threadIdx.x] = other;
}

// The barrier at the end of the loop is forgotten: the next turn overwrites what others still read.
extern "C" __global__ void missing_second_barrier(const int* in, int* out, int turns)
{
    __shared__ int tile[128];
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < turns; ++k) {
        tile[threadIdx.x] = in[k * 128 + threadIdx.x];  // fault: race on shared memory
        __syncthreads();
        sum += tile[(threadIdx.x + 64) % 128];  // fault: race on shared memory
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void within_warp(const int* in, int* out)
{
    __shared__ int tile[32];
    tile[threadIdx.x] = in[threadIdx.x];  // fault: race on shared memory within a warp
    int other = tile[31 - threadIdx.x];  // fault: race on shared memory within a warp
    out[threadIdx.x] = other;
}

extern "C" __global__ void same_address(const int* in, int* out)
{
    __shared__ int last;
    last = in[threadIdx.x];  // fault: race on shared memory, race on shared memory within a warp
    __syncthreads();
    out[threadIdx.x] = last;
}

extern "C" __global__ void not_written(int* out)
{
    __shared__ int tile[64];
    if (threadIdx.x < 32)
        tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int value = tile[threadIdx.x];  // fault: read of shared memory nobody wrote
    out[threadIdx.x] = value;
}

// No fault: warps use parts of their own, with a warp barrier between; and everyone writes the same value.
extern "C" __global__ void no_race(const int* in, int* out)
{
    __shared__ int tile[128];
    __shared__ int flag;
    tile[threadIdx.x] = in[threadIdx.x];
    flag = 5;
    __syncwarp();
    out[threadIdx.x] = tile[threadIdx.x ^ 31];
    __syncthreads();
    out[threadIdx.x] += flag;
}
