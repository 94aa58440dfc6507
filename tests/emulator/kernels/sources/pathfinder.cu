// Cheapest way down a grid, several rows a launch: a row in shared memory whose valid part shrinks by one on each side a row.
constexpr int block_size = 64;

extern "C" __global__ void pathfinder(const int* wall, const int* first_costs, int* costs, int columns, int rows)
{
    __shared__ int previous[block_size];
    __shared__ int result[block_size];
    const int inner_size = block_size - 2 * rows;
    const int t = threadIdx.x;
    const int x = static_cast<int>(blockIdx.x) * inner_size - rows + t;
    const bool inside = x >= 0 && x < columns;
    if (inside)
        previous[t] = first_costs[x];
    __syncthreads();
    bool computed = false;
    for (int row = 0; row < rows; ++row) {
        computed = false;
        if (inside && t >= row + 1 && t < block_size - row - 1) {
            computed = true;
            const int left = previous[x == 0 ? t : t - 1];
            const int right = previous[x == columns - 1 ? t : t + 1];
            const int least = min(min(left, previous[t]), right);
            result[t] = least + wall[row * columns + x];
        }
        __syncthreads();
        if (row == rows - 1)
            break;
        if (computed)
            previous[t] = result[t];
        __syncthreads();
    }
    if (computed)
        costs[x] = result[t];
}
