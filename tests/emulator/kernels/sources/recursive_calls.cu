// Functions that call themselves and each other, each lane as deep as its data say.

__device__ __noinline__ unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ bool is_odd(int n);
__device__ __noinline__ bool is_even(int n) { return n == 0 ? true : is_odd(n - 1); }
__device__ __noinline__ bool is_odd(int n) { return n == 0 ? false : is_even(n - 1); }

__device__ __noinline__ void sort(int* values, int first, int last)
{
    if (first >= last)
        return;
    const int pivot = values[last];
    int middle = first;
    for (int k = first; k < last; ++k)
        if (values[k] < pivot) {
            const int swapped = values[k];
            values[k] = values[middle];
            values[middle++] = swapped;
        }
    values[last] = values[middle];
    values[middle] = pivot;
    sort(values, first, middle - 1);
    sort(values, middle + 1, last);
}

extern "C" __global__ void recursive_calls(const unsigned* in, unsigned* out, int* rows, int width)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned x = in[i];
    unsigned value = fibonacci(x % 9);
    if (x % 3 == 0)
        value += 1000 * ackermann(2, x % 4);
    if (is_even(x % 13))
        value += 1000000;
    out[i] = value;
    sort(rows + i * width, 0, width - 1);
}
