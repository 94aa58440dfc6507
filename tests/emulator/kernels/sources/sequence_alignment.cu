// One tile of a Needleman-Wunsch table: waves along the diagonals in shared memory.
constexpr int tile_size = 16;

extern "C" __global__ void sequence_alignment(const int* scores, int* table, int columns, int penalty)
{
    __shared__ int cells[tile_size + 1][tile_size + 1];
    __shared__ int score[tile_size][tile_size];
    const int t = threadIdx.x;
    // Tiles of one anti-diagonal are independent; here every block has a table of its own.
    int* mine = table + blockIdx.x * columns * columns;
    const int* my_scores = scores + blockIdx.x * columns * columns;
    for (int row = 0; row < tile_size; ++row)
        score[row][t] = my_scores[(row + 1) * columns + t + 1];
    cells[t + 1][0] = mine[(t + 1) * columns];
    cells[0][t + 1] = mine[t + 1];
    if (t == 0)
        cells[0][0] = mine[0];
    __syncthreads();
    for (int wave = 0; wave < 2 * tile_size - 1; ++wave) {
        const int row = wave - t;
        if (row >= 0 && row < tile_size) {
            const int diagonal = cells[row][t] + score[row][t];
            const int gap = max(cells[row][t + 1], cells[row + 1][t]) - penalty;
            cells[row + 1][t + 1] = max(diagonal, gap);
        }
        __syncthreads();
    }
    for (int row = 0; row < tile_size; ++row)
        mine[(row + 1) * columns + t + 1] = cells[row + 1][t + 1];
}
