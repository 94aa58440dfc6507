// Two sorted arrays merged: each thread finds the rank of its element in the other array by binary search.

__device__ int count_below(const int* values, int count, int bound, bool or_equal)
{
    int low = 0;
    int high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (values[middle] < bound || (or_equal && values[middle] == bound))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ void merge_by_rank(const int* left, int left_count, const int* right, int right_count, int* merged)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < left_count)
        merged[i + count_below(right, right_count, left[i], false)] = left[i];
    else if (i < left_count + right_count) {
        const int k = i - left_count;
        merged[k + count_below(left, left_count, right[k], true)] = right[k];
    }
}
