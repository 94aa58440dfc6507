// Arrays of a thread's own in local memory: a stack, a histogram, a small matrix turned at run time, bytes within words.

extern "C" __global__ void local_arrays(const unsigned* in, unsigned* out, int length)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned* row = in + i * length;
    unsigned stack[16];
    int depth = 0;
    unsigned char counts[16] = {};
    double matrix[9];
    for (int k = 0; k < 9; ++k)
        matrix[k] = k + 1;
    for (int k = 0; k < length; ++k) {
        const unsigned x = row[k];
        ++counts[x & 15];
        if ((x & 1) && depth < 16)
            stack[depth++] = x;
        else if (depth > 1) {
            stack[depth - 2] = stack[depth - 2] * 31 + stack[depth - 1];
            --depth;
        }
        const double swapped = matrix[x % 9];
        matrix[x % 9] = matrix[(x >> 4) % 9];
        matrix[(x >> 4) % 9] = swapped;
    }
    unsigned mixed = depth;
    for (int k = 0; k < depth; ++k)
        mixed = mixed * 17 + stack[k];
    for (int k = 0; k < 16; ++k)
        mixed = mixed * 13 + counts[k];
    for (int k = 0; k < 9; ++k)
        mixed = mixed * 11 + static_cast<unsigned>(matrix[k]);
    out[i] = mixed;
}
