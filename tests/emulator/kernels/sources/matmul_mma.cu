// A matrix product by mma.sync and ldmatrix in inline assembly: one warp, tiles of 16 by 8 by 16.
// least: 80
#include <cuda_fp16.h>

constexpr int pitch = 24;  // halves a row of a tile: 48 bytes keep rows aligned to 16 and spread over the banks

extern "C" __global__ void matmul_mma(const __half* a, const __half* b, float* c, int size)
{
    __shared__ __align__(16) __half left[16 * pitch];
    __shared__ __align__(16) __half right[16 * pitch];
    const int lane = threadIdx.x;
    const int row = blockIdx.y * 16;
    const int column = blockIdx.x * 8;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int first = 0; first < size; first += 16) {
        for (int k = lane; k < 256; k += 32)
            left[k / 16 * pitch + k % 16] = a[(row + k / 16) * size + first + k % 16];
        for (int k = lane; k < 128; k += 32)
            right[k / 8 * pitch + k % 8] = b[(first + k / 8) * size + column + k % 8];
        __syncwarp();
        unsigned from_left[4];
        unsigned from_right[2];
        const unsigned left_at = static_cast<unsigned>(__cvta_generic_to_shared(&left[lane % 16 * pitch + lane / 16 * 8]));
        const unsigned right_at = static_cast<unsigned>(__cvta_generic_to_shared(&right[lane % 16 * pitch]));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(from_left[0]), "=r"(from_left[1]), "=r"(from_left[2]), "=r"(from_left[3])
                     : "r"(left_at));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(from_right[0]), "=r"(from_right[1])
                     : "r"(right_at));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(from_left[0]), "r"(from_left[1]), "r"(from_left[2]), "r"(from_left[3]), "r"(from_right[0]), "r"(from_right[1]));
        __syncwarp();
    }
    float* place = c + (row + lane / 4) * size + column + lane % 4 * 2;
    place[0] = sums[0];
    place[1] = sums[1];
    place[8 * size] = sums[2];
    place[8 * size + 1] = sums[3];
}
