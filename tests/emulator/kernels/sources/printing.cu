// What a kernel prints, memory it asks for and gives back, an assertion that holds.
#include <cuda/std/cassert>

struct Node {
    int value;
    Node* next;
};

extern "C" __global__ void printing(const int* in, int* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Node* list = nullptr;
    for (int k = 0; k < n; ++k) {
        Node* node = static_cast<Node*>(malloc(sizeof(Node)));
        node->value = in[k] + i;
        node->next = list;
        list = node;
    }
    int sum = 0;
    while (list) {
        sum = sum * 7 + list->value;
        Node* next = list->next;
        free(list);
        list = next;
    }
    assert(sum != 12345);
    out[i] = sum;
    if (i == 3)
        printf("thread %d of block %u: %s %.3f %llx\n", i, blockIdx.x, "sum", sum * 0.5, 0xabcdef0123ull);
}
