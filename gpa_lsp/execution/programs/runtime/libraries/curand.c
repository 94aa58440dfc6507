/* cuRAND's generators for the host, on the CPU. Numbers come from Philox 4x32-10 whatever the generator's type: they are as random, and other ones than
   on a GPU. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC11); Box and Muller, A note on the generation of random normal deviates
   (1958); Hoermann, The transformed rejection method for generating Poisson random variables (1993). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curand.h"
#include "host_library.h"

int refuse_call(const char *name) {
    gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, name);
    return CURAND_STATUS_TYPE_ERROR;
}

struct curandGenerator_st {
    cudaStream_t stream;
    curandRngType_t type;
    int is_for_host;
    uint64_t seed, offset, place; /* of the next word */
    int is_drawn;                 /* the block that it stands in */
    uint32_t block[4];
};

static int is_generator(curandGenerator_t generator) { return gpa_lsp_runtime.is_handle(GENERATOR, generator); }

static void draw_block(struct curandGenerator_st *generator) {
    uint64_t block = generator->place / 4;
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
    uint32_t key[2] = {(uint32_t)generator->seed, (uint32_t)(generator->seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t one = 0xD2511F53ull * counter[0], other = 0xCD9E8D57ull * counter[2];
        uint32_t mixed[4] = {(uint32_t)(other >> 32) ^ counter[1] ^ key[0], (uint32_t)other, (uint32_t)(one >> 32) ^ counter[3] ^ key[1],
                             (uint32_t)one};
        memcpy(counter, mixed, sizeof mixed);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    memcpy(generator->block, counter, sizeof counter);
    generator->is_drawn = 1;
}
/* One of the words of a sequence. */
static inline uint32_t draw(struct curandGenerator_st *generator) {
    if (!generator->is_drawn || generator->place % 4 == 0)
        draw_block(generator);
    return generator->block[generator->place++ % 4];
}
static void start_anew(struct curandGenerator_st *generator) {
    generator->place = generator->offset;
    generator->is_drawn = 0;
}
/* Above 0, at most 1. */
static float draw_float(struct curandGenerator_st *generator) { return ((draw(generator) >> 8) + 1) * 0x1p-24f; }
static double draw_double(struct curandGenerator_st *generator) {
    uint64_t high = draw(generator);
    return (((high << 32 | draw(generator)) >> 11) + 1) * 0x1p-53;
}
static double draw_normal(struct curandGenerator_st *generator) {
    double radius = sqrt(-2 * log(draw_double(generator)));
    return radius * cos(2 * M_PI * draw_double(generator));
}
#define MOST_TURNS 1000 /* a few are enough; so many do not come */
static unsigned int draw_poisson(struct curandGenerator_st *generator, double mean) {
    if (mean < 10) {
        double left = draw_double(generator), least = exp(-mean);
        unsigned int found = 0;
        for (; left > least && found < MOST_TURNS; found++)
            left *= draw_double(generator);
        return found;
    }
    double root = sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b, v_r = 0.9277 - 3.6224 / (b - 2);
    for (int turn = 0; turn < MOST_TURNS; turn++) {
        double u = draw_double(generator) - 0.5, v = draw_double(generator), distance = 0.5 - fabs(u);
        double k = floor((2 * a / distance + b) * u + mean + 0.43);
        if (distance >= 0.07 && v <= v_r)
            return (unsigned int)k;
        if (k < 0 || (distance < 0.013 && v > distance))
            continue;
        if (log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (distance * distance) + b)) <= k * log(mean) - mean - lgamma(k + 1))
            return (unsigned int)k;
    }
    return (unsigned int)mean;
}

static curandStatus_t create(curandGenerator_t *into, curandRngType_t type, int is_for_host, const char *function) {
    if (into == NULL)
        return CURAND_STATUS_TYPE_ERROR;
    if (type >= CURAND_RNG_QUASI_DEFAULT && type <= CURAND_RNG_QUASI_SCRAMBLED_SOBOL64) {
        gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, function); /* sequences whose dimensions matter */
        return CURAND_STATUS_TYPE_ERROR;
    }
    if (type != CURAND_RNG_TEST && (type < CURAND_RNG_PSEUDO_DEFAULT || type > CURAND_RNG_PSEUDO_PHILOX4_32_10))
        return CURAND_STATUS_TYPE_ERROR;
    struct curandGenerator_st *made = gpa_lsp_runtime.make_handle(GENERATOR, sizeof *made);
    if (made == NULL)
        return CURAND_STATUS_ALLOCATION_FAILED;
    made->type = type;
    made->is_for_host = is_for_host;
    *into = made;
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type) {
    return create(generator, type, 0, "curandCreateGenerator of quasi-random numbers");
}
PUBLIC curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type) {
    return create(generator, type, 1, "curandCreateGeneratorHost of quasi-random numbers");
}
PUBLIC curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
    return gpa_lsp_runtime.destroy_handle(GENERATOR, generator) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
PUBLIC curandStatus_t curandGetVersion(int *version) {
    if (version == NULL)
        return CURAND_STATUS_OUT_OF_RANGE;
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandGetProperty(libraryPropertyType type, int *value) {
    if (value == NULL)
        return CURAND_STATUS_OUT_OF_RANGE;
    *value = type == MAJOR_VERSION ? CURAND_VER_MAJOR : type == MINOR_VERSION ? CURAND_VER_MINOR : CURAND_VER_PATCH;
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
    if (!is_generator(generator))
        return CURAND_STATUS_NOT_INITIALIZED;
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
    if (!is_generator(generator))
        return CURAND_STATUS_NOT_INITIALIZED;
    generator->seed = seed;
    start_anew(generator);
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
    if (!is_generator(generator))
        return CURAND_STATUS_NOT_INITIALIZED;
    generator->offset = offset;
    start_anew(generator);
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
    if (!is_generator(generator))
        return CURAND_STATUS_NOT_INITIALIZED;
    return order < CURAND_ORDERING_PSEUDO_BEST || order > CURAND_ORDERING_PSEUDO_DYNAMIC ? CURAND_STATUS_OUT_OF_RANGE : CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
    return !is_generator(generator) ? CURAND_STATUS_NOT_INITIALIZED : CURAND_STATUS_SUCCESS;
}

/* Fill an array with what an expression draws. */
#define GENERATE(is_valid, invalid, expression)                                                                        \
    if (!is_generator(generator))                                                                                             \
        return CURAND_STATUS_NOT_INITIALIZED;                                                                          \
    if (!(is_valid))                                                                                                   \
        return invalid;                                                                                                \
    if (begin_work(__func__, generator->stream) != READY)                                                    \
        return CURAND_STATUS_PREEXISTING_FAILURE;                                                                      \
    if (generator->is_for_host ? count > 0 && !gpa_lsp_runtime.is_writable(into, multiply_sizes(count, sizeof *into))    \
                               : !can_reach(__func__, into, count, sizeof *into))                                      \
        return CURAND_STATUS_LAUNCH_FAILURE;                                                                           \
    into = gpa_lsp_runtime.locate(into);                                                                               \
    for (size_t i = 0; i < count; i++)                                                                                 \
        into[i] = expression;                                                                                          \
    return CURAND_STATUS_SUCCESS
PUBLIC curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int *into, size_t count) {
    GENERATE(1, CURAND_STATUS_SUCCESS, draw(generator));
}
PUBLIC curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *into, size_t count) {
    GENERATE(1, CURAND_STATUS_SUCCESS, draw_float(generator));
}
PUBLIC curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *into, size_t count) {
    GENERATE(1, CURAND_STATUS_SUCCESS, draw_double(generator));
}
PUBLIC curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *into, size_t count, float mean, float deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, (float)(mean + deviation * draw_normal(generator)));
}
PUBLIC curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double *into, size_t count, double mean, double deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, mean + deviation * draw_normal(generator));
}
PUBLIC curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float *into, size_t count, float mean, float deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, (float)exp(mean + deviation * draw_normal(generator)));
}
PUBLIC curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double *into, size_t count, double mean,
                                                    double deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, exp(mean + deviation * draw_normal(generator)));
}
PUBLIC curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int *into, size_t count, double mean) {
    GENERATE(mean > 0 && mean < 0x1p31, CURAND_STATUS_OUT_OF_RANGE, draw_poisson(generator, mean));
}
