// Heat that spreads on a chip, two steps a launch: a shared tile that shrinks by one row and column on each side a step.
// flags: -fmad=false
constexpr int tile_size = 16;
constexpr int steps = 2;
constexpr int inner_size = tile_size - 2 * steps;

extern "C" __global__ void hotspot(const float* __restrict__ power, const float* __restrict__ heat, float* __restrict__ out, int size, float share,
                                   float ambient)
{
    __shared__ float now[tile_size][tile_size];
    __shared__ float strength[tile_size][tile_size];
    __shared__ float next[tile_size][tile_size];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int x = static_cast<int>(blockIdx.x) * inner_size + tx - steps;
    const int y = static_cast<int>(blockIdx.y) * inner_size + ty - steps;
    const bool inside = x >= 0 && y >= 0 && x < size && y < size;
    const int column = min(max(x, 0), size - 1);
    const int row = min(max(y, 0), size - 1);
    now[ty][tx] = heat[row * size + column];
    strength[ty][tx] = power[row * size + column];
    __syncthreads();
    bool computed = false;
    for (int step = 1; step <= steps; ++step) {
        computed = inside && tx >= step && ty >= step && tx < tile_size - step && ty < tile_size - step;
        if (computed) {
            const int west = x == 0 ? tx : tx - 1;
            const int east = x == size - 1 ? tx : tx + 1;
            const int north = y == 0 ? ty : ty - 1;
            const int south = y == size - 1 ? ty : ty + 1;
            const float here = now[ty][tx];
            const float vertical = now[south][tx] + now[north][tx] - 2.0f * here;
            const float horizontal = now[ty][east] + now[ty][west] - 2.0f * here;
            next[ty][tx] = here + share * (strength[ty][tx] + vertical + horizontal + (ambient - here));
        }
        __syncthreads();
        if (step < steps) {
            if (computed)
                now[ty][tx] = next[ty][tx];
            __syncthreads();
        }
    }
    if (computed)
        out[y * size + x] = next[ty][tx];
}
