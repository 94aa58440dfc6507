// Structures as parameters: nested ones, arrays and pointers in them, and one in constant memory.

struct Box {
    float low[3];
    float high[3];
};

struct Grid {
    char kind;
    short levels[5];
    Box box;
    const int* values;
    long long count;
    double scale;
};

extern "C" __global__ void struct_parameters(Grid grid, char offset, float* out, int3 shape, const __grid_constant__ Box other, unsigned char last)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= grid.count)
        return;
    const int axis = i % 3;
    const float middle = __fmul_rn(0.5f, __fadd_rn(grid.box.low[axis], other.high[axis]));
    const int sides[3] = {shape.x, shape.y, shape.z};
    const int whole = grid.values[i] * sides[axis] + grid.levels[i % 5] + grid.kind + offset + last;
    out[i] = static_cast<float>(__dadd_rn(__dmul_rn(grid.scale, whole), middle));
}
