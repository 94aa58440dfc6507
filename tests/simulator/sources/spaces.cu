// Generic addresses of every memory, and calls whose arguments lie on the stack.

__constant__ int table[4] = {1, 2, 3, 4};
__device__ int counted[2];

__device__ __noinline__ float helper(const float *values, int first, float *kept)
{
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        kept[k] = values[first + k];
        sum += kept[k];
    }
    return sum;
}

extern "C" __global__ void spaces(int *in, int *out, int n)
{
    __shared__ int tile[64];
    int own[8];
    int t = threadIdx.x;
    own[n & 7] = t;
    tile[t] = t;
    __syncthreads();
    const int *place = t % 4 == 0 ? in + t : t % 4 == 1 ? &tile[t] : t % 4 == 2 ? &own[n & 7] : &table[n & 3];
    const int *constant = n > 100 ? in : table + (t & 3);
    int found = *constant << 4;
    if (__isGlobal(place))
        found += 1;
    if (__isShared(place))
        found += 2;
    if (__isLocal(place))
        found += 4;
    if (__isConstant(place))
        found += 8;
    out[blockIdx.x * blockDim.x + t] = found;
    atomicAdd(&counted[t & 1], found);
}

extern "C" __global__ void tiled(const float *in, float *out, int n)
{
    __shared__ float tile[128];
    float own[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n - 4 ? helper(in, i, own) : 0.0f;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 8; k++)
        sum += tile[(threadIdx.x + k) & 127] / (k + 1);
    if (i < n - 4)
        out[i] = sum + own[threadIdx.x & 3] * gridDim.x;
}

extern "C" __global__ void sums(const float *in, float *out, double *doubles, unsigned long long *counts, int n)
{
    __shared__ float sum;
    __shared__ unsigned long long count;
    float own = 0;
    if (threadIdx.x == 0) {
        sum = 0;
        count = 0;
    }
    __syncthreads();
    float value = floorf(in[threadIdx.x]);
    atomicAdd(n > 100 ? &own : &sum, value);
    atomicAdd(&count, (unsigned long long)value);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(out, sum + own);
        atomicAdd(doubles, (double)sum);
        atomicAdd(counts, count);
    }
}
