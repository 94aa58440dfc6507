// Work-efficient exclusive scan after Blelloch: up the tree and down again, padded against bank conflicts.
// flags: -fmad=false
constexpr int elements = 256;

__device__ int place(int k) { return k + (k >> 5); }

template <typename Number>
__device__ void scan_block(const Number* in, Number* out, Number* totals)
{
    __shared__ Number tree[elements + elements / 32];
    const int t = threadIdx.x;
    const int first = blockIdx.x * elements;
    tree[place(t)] = in[first + t];
    tree[place(t + elements / 2)] = in[first + t + elements / 2];
    int offset = 1;
    for (int nodes = elements / 2; nodes > 0; nodes /= 2) {
        __syncthreads();
        if (t < nodes) {
            const int left = place(offset * (2 * t + 1) - 1);
            const int right = place(offset * (2 * t + 2) - 1);
            tree[right] += tree[left];
        }
        offset *= 2;
    }
    if (t == 0) {
        totals[blockIdx.x] = tree[place(elements - 1)];
        tree[place(elements - 1)] = 0;
    }
    for (int nodes = 1; nodes < elements; nodes *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < nodes) {
            const int left = place(offset * (2 * t + 1) - 1);
            const int right = place(offset * (2 * t + 2) - 1);
            const Number swapped = tree[left];
            tree[left] = tree[right];
            tree[right] += swapped;
        }
    }
    __syncthreads();
    out[first + t] = tree[place(t)];
    out[first + t + elements / 2] = tree[place(t + elements / 2)];
}

extern "C" __global__ void scan_blelloch_int(const int* in, int* out, int* totals) { scan_block(in, out, totals); }
extern "C" __global__ void scan_blelloch_float(const float* in, float* out, float* totals) { scan_block(in, out, totals); }
