// Functions that are really called: the same load, reached in three ways, by each in another pattern.
__device__ __noinline__ float load(const float* values, int index)
{
    return values[index];
}

__device__ __noinline__ float load_column(const float* values, int row)
{
    return load(values, row * 32);
}

__device__ __noinline__ float sum_down(const float* values, int index)
{
    if (index < 0)
        return 0.0f;
    return load(values, index) + sum_down(values, index - 64);
}

extern "C" __global__ void called(const float* values, float* result)
{
    int thread = threadIdx.x;
    float sum = load(values, thread);
    sum += load_column(values, thread);
    sum += sum_down(values, thread + 128);
    result[thread] = sum;
}
