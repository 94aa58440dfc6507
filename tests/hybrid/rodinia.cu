// Kernels that do what those of Rodinia do that the hybrid paper lists in its Table IV.
struct Node { int starting; int no_of_edges; };
struct Place { float latitude, longitude; };

extern "C" __global__ void nearestNeighbor(const Place *places, float *distances, int count, float latitude, float longitude) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < count) {
        Place own = places[id];
        distances[id] = sqrtf((latitude - own.latitude) * (latitude - own.latitude) + (longitude - own.longitude) * (longitude - own.longitude));
    }
}

extern "C" __global__ void BFS_1(const Node *nodes, const int *edges, char *mask, char *updating, char *visited, int *cost, int count) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < count && mask[id]) {
        mask[id] = false;
        for (int i = nodes[id].starting; i < nodes[id].no_of_edges + nodes[id].starting; i++) {
            int other = edges[i];
            if (!visited[other]) {
                cost[other] = cost[id] + 1;
                updating[other] = true;
            }
        }
    }
}

extern "C" __global__ void BFS_2(char *mask, char *updating, char *visited, char *over, int count) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < count && updating[id]) {
        mask[id] = true;
        visited[id] = true;
        *over = true;
        updating[id] = false;
    }
}

extern "C" __global__ void bpnn_layerforward(const float *input, float *weights, float *sums, int in, int hid) {
    __shared__ float node[16];
    __shared__ float matrix[16][16];
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int index = (hid + 1) * 16 * by + (hid + 1) * ty + tx + 1 + (hid + 1);
    if (tx == 0) node[ty] = input[16 * by + ty + 1];
    __syncthreads();
    matrix[ty][tx] = weights[index];
    __syncthreads();
    matrix[ty][tx] = matrix[ty][tx] * node[ty];
    __syncthreads();
    for (int i = 1; i <= __log2f(16); i++) {
        int power = __powf(2, i);
        if (ty % power == 0) matrix[ty][tx] = matrix[ty][tx] + matrix[ty + power / 2][tx];
        __syncthreads();
    }
    weights[index] = matrix[ty][tx];
    __syncthreads();
    if (tx == 0) sums[by * hid + ty] = matrix[tx][ty];
}

extern "C" __global__ void bpnn_adjust_weights(const float *delta, int hid, const float *values, int in, float *weights, float *old) {
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int index = (hid + 1) * 16 * by + (hid + 1) * ty + tx + 1 + (hid + 1);
    int y = 16 * by + ty + 1, x = tx + 1;
    weights[index] += 0.3f * delta[x] * values[y] + 0.3f * old[index];
    old[index] = 0.3f * delta[x] * values[y] + 0.3f * old[index];
    __syncthreads();
    if (ty == 0 && by == 0) {
        weights[x] += 0.3f * delta[x] + 0.3f * old[x];
        old[x] = 0.3f * delta[x] + 0.3f * old[x];
    }
}
