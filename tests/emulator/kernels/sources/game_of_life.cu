// Conway's game of life on bits: 32 cells a word, several generations of one block's field.

extern "C" __global__ void game_of_life(unsigned* field, int generations)
{
    __shared__ unsigned rows[2][34];
    const int t = threadIdx.x;
    unsigned* mine = field + blockIdx.x * 32;
    int from = 0;
    rows[0][t + 1] = mine[t];
    if (t < 2) {
        rows[t][0] = 0;
        rows[t][33] = 0;
    }
    __syncthreads();
    for (int generation = 0; generation < generations; ++generation) {
        unsigned next = 0;
        for (int bit = 0; bit < 32; ++bit) {
            int count = 0;
            for (int dy = 0; dy < 3; ++dy) {
                const unsigned row = rows[from][t + dy];
                const unsigned three = bit > 0 ? row >> (bit - 1) & 7u : row << 1 & 7u;
                count += __popc(three);
            }
            const bool alive = rows[from][t + 1] >> bit & 1u;
            count -= alive;
            if (count == 3 || (alive && count == 2))
                next |= 1u << bit;
        }
        rows[1 - from][t + 1] = next;
        from = 1 - from;
        __syncthreads();
    }
    mine[t] = rows[from][t + 1];
}
