// Old values that atomics give back: tickets, a list built with exchange, who came first.

extern "C" __global__ void atomics_returned(const int* in, unsigned* counter, unsigned* tickets, int* kept, int* heads, int* next, int* winners)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned ticket = atomicAdd(counter, 1u);
    tickets[i] = ticket;
    if (in[i] > 0) {
        const unsigned place = atomicAdd(counter + 1, 1u);
        kept[place] = in[i];
    }
    next[i] = atomicExch(&heads[in[i] & 7], i);
    winners[i] = atomicCAS(&heads[8 + (in[i] & 3)], -1, i) == -1;
}
