// In place of cuRAND's device functions where cuRAND is not installed: states of the same sizes and numbers that are as random, but other ones.
// For looking at kernels only; no program is built with it.
#ifndef GPA_LSP_CURAND_KERNEL_H
#define GPA_LSP_CURAND_KERNEL_H

// The xorwow generator of G. Marsaglia, "Xorshift RNGs", 2003.
struct gpa_lsp_random {
    unsigned int counter, word[5];
    __device__ unsigned int draw() {
        unsigned int t = word[0] ^ (word[0] >> 2);
        word[0] = word[1], word[1] = word[2], word[2] = word[3], word[3] = word[4];
        word[4] = word[4] ^ (word[4] << 4) ^ t ^ (t << 1);
        counter += 362437;
        return word[4] + counter;
    }
    __device__ void begin(unsigned long long seed, unsigned long long sequence, unsigned long long offset) {
        unsigned long long mixed = seed * 0x9e3779b97f4a7c15ull + sequence * 0xbf58476d1ce4e5b9ull + offset + 1;
        for (int i = 0; i < 5; i++) {
            mixed = (mixed ^ (mixed >> 30)) * 0x94d049bb133111ebull;
            word[i] = (unsigned int)(mixed >> 32) | 1;
        }
        counter = (unsigned int)mixed;
    }
};
#define GPA_LSP_RANDOM_STATE(name, bytes)                                                                              \
    struct __align__(8) name {                                                                                         \
        gpa_lsp_random random;                                                                                         \
        unsigned char rest[bytes - sizeof(gpa_lsp_random)];                                                            \
    };                                                                                                                 \
    typedef name name##_t;
GPA_LSP_RANDOM_STATE(curandStateXORWOW, 48)
GPA_LSP_RANDOM_STATE(curandStatePhilox4_32_10, 64)
GPA_LSP_RANDOM_STATE(curandStateMRG32k3a, 72)
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;

template <class State>
static __device__ __forceinline__ void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, State *state) {
    state->random.begin(seed, sequence, offset);
}
template <class State> static __device__ __forceinline__ unsigned int curand(State *state) { return state->random.draw(); }
template <class State> static __device__ __forceinline__ float curand_uniform(State *state) {
    return (state->random.draw() >> 8) * 5.9604645e-8f + 5.9604645e-8f;
}
template <class State> static __device__ __forceinline__ double curand_uniform_double(State *state) {
    unsigned long long high = state->random.draw();
    return ((high << 21 ^ state->random.draw() >> 11) & 0x1fffffffffffffull) * 1.1102230246251565e-16 + 1.1102230246251565e-16;
}
template <class State> static __device__ __forceinline__ float2 curand_normal2(State *state) {
    float radius = sqrtf(-2.0f * logf(curand_uniform(state))), angle = 6.2831853f * curand_uniform(state);
    return make_float2(radius * cosf(angle), radius * sinf(angle));
}
template <class State> static __device__ __forceinline__ float curand_normal(State *state) { return curand_normal2(state).x; }
template <class State> static __device__ __forceinline__ double2 curand_normal2_double(State *state) {
    double radius = sqrt(-2.0 * log(curand_uniform_double(state))), angle = 6.283185307179586 * curand_uniform_double(state);
    return make_double2(radius * cos(angle), radius * sin(angle));
}
template <class State> static __device__ __forceinline__ double curand_normal_double(State *state) { return curand_normal2_double(state).x; }
template <class State> static __device__ __forceinline__ float curand_log_normal(State *state, float mean, float deviation) {
    return expf(mean + deviation * curand_normal(state));
}
template <class State> static __device__ __forceinline__ unsigned int curand_poisson(State *state, double mean) {
    unsigned int count = 0;
    for (double product = curand_uniform_double(state), least = exp(-mean); product > least && count < 1000; count++)
        product *= curand_uniform_double(state);
    return count;
}
template <class State> static __device__ __forceinline__ uint4 curand4(State *state) {
    return make_uint4(curand(state), curand(state), curand(state), curand(state));
}
template <class State> static __device__ __forceinline__ float4 curand_uniform4(State *state) {
    return make_float4(curand_uniform(state), curand_uniform(state), curand_uniform(state), curand_uniform(state));
}
template <class State> static __device__ __forceinline__ float4 curand_normal4(State *state) {
    float2 first = curand_normal2(state), second = curand_normal2(state);
    return make_float4(first.x, first.y, second.x, second.y);
}
template <class State> static __device__ __forceinline__ void skipahead(unsigned long long count, State *state) {
    state->random.counter += 362437 * (unsigned int)count;
}
#endif
