/* In place of cuRAND's functions for device code where it is not installed: the same numbers, of its generators XORWOW and Philox.
   Sources: G. Marsaglia, "Xorshift RNGs", 2003; J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011; cuRAND's documentation. */
#ifndef GPA_LSP_CURAND_KERNEL_H
#define GPA_LSP_CURAND_KERNEL_H
#ifndef __CUDACC_RTC__ /* which has all it needs, and no host */
#include <cuda_runtime.h>
#include <math.h>
#include "curand.h"
#endif

#define GPA_LSP_CURAND static __device__ __forceinline__

struct curandStateXORWOW {
    unsigned int d, v[5];
    int has_normal, has_normal_double;
    float normal;
    double normal_double;
};
struct curandStatePhilox4_32_10 {
    uint4 counter, output;
    uint2 key;
    unsigned int place;
    int has_normal, has_normal_double;
    float normal;
    double normal_double;
};
typedef struct curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

#ifdef __CUDACC__ /* sources for the host alone use the types */
/* What a jump is in the steps of XORWOW, a polynomial over GF(2), by the bits of the count; from row 64 on, jumps of sequences. */
static __constant__ unsigned int gpa_lsp_jumps[128][5] = {
#include "curand_jumps.h"
};

GPA_LSP_CURAND void gpa_lsp_step(unsigned int *v) {
    unsigned int t = v[0] ^ (v[0] >> 2);
    v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = v[4];
    v[4] = (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1));
}
GPA_LSP_CURAND void gpa_lsp_jump(unsigned int *v, unsigned long long count, int row) {
    for (; count != 0; count >>= 1, row++) {
        if ((count & 1) == 0)
            continue;
        unsigned int sum[5] = {0, 0, 0, 0, 0};
        for (int word = 0; word < 5; word++)
            for (unsigned int bit = 0; bit < 32; bit++) {
                unsigned int is_in = 0u - (gpa_lsp_jumps[row][word] >> bit & 1);
                for (int i = 0; i < 5; i++)
                    sum[i] ^= v[i] & is_in;
                gpa_lsp_step(v);
            }
        for (int i = 0; i < 5; i++)
            v[i] = sum[i];
    }
}
GPA_LSP_CURAND void skipahead(unsigned long long count, curandStateXORWOW *state) {
    gpa_lsp_jump(state->v, count, 0);
    state->d += 362437u * (unsigned int)count;
}
GPA_LSP_CURAND void skipahead_sequence(unsigned long long count, curandStateXORWOW *state) { gpa_lsp_jump(state->v, count, 64); }
GPA_LSP_CURAND void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, curandStateXORWOW *state) {
    unsigned int low = 1099087573u * ((unsigned int)seed ^ 0xaad26b49u), high = 2591861531u * ((unsigned int)(seed >> 32) ^ 0xf7dcefddu);
    state->d = 6615241u + high + low;
    state->v[0] = 123456789u + low;
    state->v[1] = 362436069u ^ low;
    state->v[2] = 521288629u + high;
    state->v[3] = 88675123u ^ high;
    state->v[4] = 5783321u + low;
    state->has_normal = state->has_normal_double = 0;
    state->normal = 0;
    state->normal_double = 0;
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}
GPA_LSP_CURAND unsigned int curand(curandStateXORWOW *state) {
    gpa_lsp_step(state->v);
    state->d += 362437u;
    return state->v[4] + state->d;
}

GPA_LSP_CURAND uint4 curand_Philox4x32_10(uint4 c, uint2 key) {
    for (int round = 0; round < 10; round++) {
        unsigned int low = 0xD2511F53u * c.x, high = __umulhi(0xD2511F53u, c.x), other = 0xCD9E8D57u * c.z, above = __umulhi(0xCD9E8D57u, c.z);
        c = make_uint4(above ^ c.y ^ key.x, other, high ^ c.w ^ key.y, low);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return c;
}
/* Adds to a counter of 128 bits, from its word `first` on. */
GPA_LSP_CURAND void gpa_lsp_count(uint4 *counter, unsigned long long count, int first) {
    unsigned int *words = &counter->x;
    unsigned long long carry = 0;
    for (int i = first; i < 4; i++) {
        unsigned long long added = i - first < 2 ? count >> (32 * (i - first)) & 0xffffffffu : 0;
        carry += (unsigned long long)words[i] + added;
        words[i] = (unsigned int)carry;
        carry >>= 32;
    }
}
GPA_LSP_CURAND void skipahead(unsigned long long count, curandStatePhilox4_32_10 *state) {
    state->place += (unsigned int)(count & 3);
    gpa_lsp_count(&state->counter, count / 4 + (state->place > 3), 0);
    state->place &= 3;
    state->output = curand_Philox4x32_10(state->counter, state->key);
}
GPA_LSP_CURAND void skipahead_sequence(unsigned long long count, curandStatePhilox4_32_10 *state) {
    gpa_lsp_count(&state->counter, count, 2);
    state->output = curand_Philox4x32_10(state->counter, state->key);
}
GPA_LSP_CURAND void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                                curandStatePhilox4_32_10 *state) {
    state->counter = make_uint4(0, 0, 0, 0);
    state->key = make_uint2((unsigned int)seed, (unsigned int)(seed >> 32));
    state->place = 0;
    state->has_normal = state->has_normal_double = 0;
    state->normal = 0;
    state->normal_double = 0;
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}
GPA_LSP_CURAND unsigned int curand(curandStatePhilox4_32_10 *state) {
    unsigned int found = (&state->output.x)[state->place++];
    if (state->place == 4) {
        gpa_lsp_count(&state->counter, 1, 0);
        state->output = curand_Philox4x32_10(state->counter, state->key);
        state->place = 0;
    }
    return found;
}
GPA_LSP_CURAND uint4 curand4(curandStatePhilox4_32_10 *state) {
    unsigned int x = curand(state), y = curand(state), z = curand(state), w = curand(state);
    return make_uint4(x, y, z, w);
}

#define GPA_LSP_STEP 2.3283064e-10f
GPA_LSP_CURAND float gpa_lsp_uniform(unsigned int x) { return x * GPA_LSP_STEP + (GPA_LSP_STEP / 2.0f); }
GPA_LSP_CURAND double gpa_lsp_uniform_double(unsigned int x, unsigned int y, double scale) {
    unsigned long long bits = (unsigned long long)x ^ ((unsigned long long)y << 21);
    return bits * (scale * 1.1102230246251565e-16) + scale * 1.1102230246251565e-16 / 2.0;
}
/* Box and Muller's pair. */
GPA_LSP_CURAND float2 gpa_lsp_normal2(unsigned int x, unsigned int y) {
    float2 found;
    float size = sqrtf(-2.0f * logf(gpa_lsp_uniform(x)));
    __sincosf(y * (GPA_LSP_STEP * 6.2831855f) + (GPA_LSP_STEP * 6.2831855f) / 2.0f, &found.x, &found.y);
    return make_float2(found.x * size, found.y * size);
}
GPA_LSP_CURAND double2 gpa_lsp_normal2_double(unsigned int x, unsigned int more_x, unsigned int y, unsigned int more_y) {
    double2 found;
    double size = sqrt(-2.0 * log(gpa_lsp_uniform_double(x, more_x, 1.0)));
    sincospi(gpa_lsp_uniform_double(y, more_y, 2.0), &found.x, &found.y);
    return make_double2(found.x * size, found.y * size);
}
#define GPA_LSP_DISTRIBUTIONS(State)                                                                                   \
    GPA_LSP_CURAND float curand_uniform(State *state) { return gpa_lsp_uniform(curand(state)); }                       \
    GPA_LSP_CURAND double curand_uniform_double(State *state) {                                                        \
        unsigned int x = curand(state), y = curand(state);                                                             \
        return gpa_lsp_uniform_double(x, y, 1.0);                                                                      \
    }                                                                                                                  \
    GPA_LSP_CURAND float2 curand_normal2(State *state) {                                                               \
        unsigned int x = curand(state), y = curand(state);                                                             \
        return gpa_lsp_normal2(x, y);                                                                                  \
    }                                                                                                                  \
    GPA_LSP_CURAND double2 curand_normal2_double(State *state) {                                                       \
        unsigned int x = curand(state), more_x = curand(state), y = curand(state), more_y = curand(state);             \
        return gpa_lsp_normal2_double(x, more_x, y, more_y);                                                           \
    }                                                                                                                  \
    GPA_LSP_CURAND float curand_normal(State *state) {                                                                 \
        state->has_normal = !state->has_normal;                                                                        \
        if (!state->has_normal)                                                                                        \
            return state->normal;                                                                                      \
        float2 pair = curand_normal2(state);                                                                           \
        state->normal = pair.y;                                                                                        \
        return pair.x;                                                                                                 \
    }                                                                                                                  \
    GPA_LSP_CURAND double curand_normal_double(State *state) {                                                         \
        state->has_normal_double = !state->has_normal_double;                                                          \
        if (!state->has_normal_double)                                                                                 \
            return state->normal_double;                                                                               \
        double2 pair = curand_normal2_double(state);                                                                   \
        state->normal_double = pair.y;                                                                                 \
        return pair.x;                                                                                                 \
    }                                                                                                                  \
    GPA_LSP_CURAND float curand_log_normal(State *state, float mean, float deviation) {                                \
        return expf(mean + deviation * curand_normal(state));                                                          \
    }                                                                                                                  \
    GPA_LSP_CURAND double curand_log_normal_double(State *state, double mean, double deviation) {                      \
        return exp(mean + deviation * curand_normal_double(state));                                                    \
    }
GPA_LSP_DISTRIBUTIONS(curandStateXORWOW)
GPA_LSP_DISTRIBUTIONS(curandStatePhilox4_32_10)
GPA_LSP_CURAND float4 curand_uniform4(curandStatePhilox4_32_10 *state) {
    uint4 drawn = curand4(state);
    return make_float4(gpa_lsp_uniform(drawn.x), gpa_lsp_uniform(drawn.y), gpa_lsp_uniform(drawn.z), gpa_lsp_uniform(drawn.w));
}
GPA_LSP_CURAND float4 curand_normal4(curandStatePhilox4_32_10 *state) {
    uint4 drawn = curand4(state);
    float2 first = gpa_lsp_normal2(drawn.x, drawn.y), second = gpa_lsp_normal2(drawn.z, drawn.w);
    return make_float4(first.x, first.y, second.x, second.y);
}
#ifdef __CUDACC_RTC__ /* for looking at kernels only, and no program is built with it: as random, but other numbers than cuRAND's */
struct curandStateMRG32k3a : curandStateXORWOW {
    unsigned char rest[24];
};
typedef curandStateMRG32k3a curandStateMRG32k3a_t;
template <class State> GPA_LSP_CURAND unsigned int curand_poisson(State *state, double mean) {
    unsigned int count = 0;
    for (double product = curand_uniform_double(state), least = exp(-mean); product > least && count < 1000; count++)
        product *= curand_uniform_double(state);
    return count;
}
#endif
#endif
#endif
