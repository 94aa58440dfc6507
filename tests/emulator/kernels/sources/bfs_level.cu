// One level of a breadth-first search: nodes of the frontier give their neighbours a cost; then the next frontier is made.

struct Node {
    int first, edges;
};

extern "C" __global__ void bfs_visit(const Node* nodes, const int* edges, unsigned char* frontier, unsigned char* next, const unsigned char* visited,
                                     int* costs, int count)
{
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < count && frontier[node]) {
        frontier[node] = 0;
        for (int k = nodes[node].first; k < nodes[node].first + nodes[node].edges; ++k) {
            const int neighbour = edges[k];
            if (!visited[neighbour]) {
                costs[neighbour] = costs[node] + 1;
                next[neighbour] = 1;
            }
        }
    }
}

extern "C" __global__ void bfs_advance(unsigned char* frontier, unsigned char* next, unsigned char* visited, int* goes_on, int count)
{
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < count && next[node]) {
        frontier[node] = 1;
        visited[node] = 1;
        *goes_on = 1;
        next[node] = 0;
    }
}
