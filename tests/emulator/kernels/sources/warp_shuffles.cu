// Shuffles in every mode and with every width, sources out of range included.

extern "C" __global__ void warp_shuffles(const int* in, const float* floats, const double* doubles, int* out, float* float_out, double* double_out)
{
    const unsigned all = 0xffffffffu;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int n = gridDim.x * blockDim.x;
    const int lane = threadIdx.x % 32;
    const int value = in[i];
    out[0 * n + i] = __shfl_sync(all, value, 5);
    out[1 * n + i] = __shfl_sync(all, value, lane * 7 + 3);
    out[2 * n + i] = __shfl_sync(all, value, lane + 1, 8);
    out[3 * n + i] = __shfl_up_sync(all, value, 3);
    out[4 * n + i] = __shfl_up_sync(all, value, 2, 8);
    out[5 * n + i] = __shfl_down_sync(all, value, 9);
    out[6 * n + i] = __shfl_down_sync(all, value, 1, 4);
    out[7 * n + i] = __shfl_xor_sync(all, value, 21);
    out[8 * n + i] = __shfl_xor_sync(all, value, 12, 8);
    out[9 * n + i] = __shfl_sync(all, value, value & 31);
    float_out[i] = __shfl_xor_sync(all, floats[i], 16);
    double_out[i] = __shfl_down_sync(all, doubles[i], 1);
    // Half of the lanes on each side of a branch, each with a mask of its own.
    int other;
    if (lane & 1)
        other = __shfl_down_sync(0xaaaaaaaau, value, 2);
    else
        other = __shfl_up_sync(0x55555555u, value, 4);
    out[10 * n + i] = other;
}
