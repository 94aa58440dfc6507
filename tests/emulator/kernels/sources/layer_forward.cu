// One layer of a neural network forward, sums of 16 inputs a block by a tree; and the weights adjusted.
// flags: -fmad=false
constexpr int inputs = 16;

extern "C" __global__ void layer_forward(const float* input, float* weights, float* partial_sums, int hidden)
{
    __shared__ float nodes[inputs];
    __shared__ float products[inputs][inputs];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int index = (hidden + 1) * inputs * blockIdx.y + (hidden + 1) * ty + tx + 1 + (hidden + 1);
    if (tx == 0)
        nodes[ty] = input[inputs * blockIdx.y + ty + 1];
    __syncthreads();
    products[ty][tx] = weights[index] * nodes[ty];
    __syncthreads();
    for (int step = 1; step <= 4; ++step) {
        const int power = 1 << step;
        if (ty % power == 0)
            products[ty][tx] += products[ty + power / 2][tx];
        __syncthreads();
    }
    weights[index] = products[ty][tx];
    __syncthreads();
    if (tx == 0)
        partial_sums[blockIdx.y * hidden + ty] = products[0][ty];
}

extern "C" __global__ void adjust_weights(const float* delta, const float* units, float* weights, float* old_weights, int hidden)
{
    const int tx = threadIdx.x;
    const int index = (hidden + 1) * inputs * blockIdx.y + (hidden + 1) * threadIdx.y + tx + 1 + (hidden + 1);
    const int unit = inputs * blockIdx.y + threadIdx.y + 1;
    const float change = 0.3f * delta[tx + 1] * units[unit] + 0.3f * old_weights[index];
    weights[index] += change;
    old_weights[index] = change;
}
