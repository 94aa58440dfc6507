// Bitonic sorts of one block's elements in shared memory: keys, and keys with values.

extern "C" __global__ void sort_bitonic(unsigned* keys)
{
    __shared__ unsigned tile[128];
    const unsigned t = threadIdx.x;
    tile[t] = keys[blockIdx.x * 128 + t];
    __syncthreads();
    for (unsigned length = 2; length <= 128; length *= 2) {
        for (unsigned distance = length / 2; distance > 0; distance /= 2) {
            const unsigned other = t ^ distance;
            if (other > t) {
                const bool ascending = (t & length) == 0;
                const unsigned mine = tile[t];
                const unsigned its = tile[other];
                if ((mine > its) == ascending) {
                    tile[t] = its;
                    tile[other] = mine;
                }
            }
            __syncthreads();
        }
    }
    keys[blockIdx.x * 128 + t] = tile[t];
}

// One warp sorts 32 pairs with shuffles only.
extern "C" __global__ void sort_bitonic_pairs(const float* keys, const int* values, float* sorted_keys, int* sorted_values)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31;
    float key = keys[i];
    int value = values[i];
    for (int length = 2; length <= 32; length *= 2) {
        for (int distance = length / 2; distance > 0; distance /= 2) {
            const float other_key = __shfl_xor_sync(0xffffffffu, key, distance);
            const int other_value = __shfl_xor_sync(0xffffffffu, value, distance);
            const bool takes_less = ((lane & distance) == 0) == ((lane & length) == 0);
            const bool other_is_less = other_key < key || (other_key == key && other_value < value);
            if (takes_less == other_is_less && (other_key != key || other_value != value)) {
                key = other_key;
                value = other_value;
            }
        }
    }
    sorted_keys[i] = key;
    sorted_values[i] = value;
}
