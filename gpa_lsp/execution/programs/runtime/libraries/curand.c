/* cuRAND's generators for the host, whose numbers gpa_lsp draws with numpy: whatever the generator's type they are as random, and other ones than on a
   GPU. */
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
    uint64_t seed, offset, place; /* of the next number */
};

static int is_generator(curandGenerator_t generator) { return gpa_lsp_runtime.is_handle(GENERATOR, generator); }

static curandStatus_t create(curandGenerator_t *into, curandRngType_t type, int is_for_host, const char *function) {
    REFUSE_IF(into == NULL, CURAND_STATUS_TYPE_ERROR);
    if (type >= CURAND_RNG_QUASI_DEFAULT && type <= CURAND_RNG_QUASI_SCRAMBLED_SOBOL64) {
        gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, function); /* sequences whose dimensions matter */
        return CURAND_STATUS_TYPE_ERROR;
    }
    REFUSE_IF(type != CURAND_RNG_TEST && (type < CURAND_RNG_PSEUDO_DEFAULT || type > CURAND_RNG_PSEUDO_PHILOX4_32_10), CURAND_STATUS_TYPE_ERROR);
    struct curandGenerator_st *made = gpa_lsp_runtime.make_handle(GENERATOR, sizeof *made);
    REFUSE_IF(made == NULL, CURAND_STATUS_ALLOCATION_FAILED);
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
GIVE_VERSION(curandStatus_t, curand, CURAND, CURAND_STATUS_OUT_OF_RANGE)
PUBLIC curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
    REFUSE_IF(!is_generator(generator), CURAND_STATUS_NOT_INITIALIZED);
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
    REFUSE_IF(!is_generator(generator), CURAND_STATUS_NOT_INITIALIZED);
    generator->seed = seed;
    generator->place = generator->offset;
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
    REFUSE_IF(!is_generator(generator), CURAND_STATUS_NOT_INITIALIZED);
    generator->offset = generator->place = offset;
    return CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
    REFUSE_IF(!is_generator(generator), CURAND_STATUS_NOT_INITIALIZED);
    return order < CURAND_ORDERING_PSEUDO_BEST || order > CURAND_ORDERING_PSEUDO_DYNAMIC ? CURAND_STATUS_OUT_OF_RANGE : CURAND_STATUS_SUCCESS;
}
PUBLIC curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
    return !is_generator(generator) ? CURAND_STATUS_NOT_INITIALIZED : CURAND_STATUS_SUCCESS;
}

#define PIECE ((size_t)1 << 20) /* numbers that are drawn at once; gpa_lsp/execution/programs/computing.py has it too */
static curandStatus_t draw(curandGenerator_t generator, const char *function, void *into, size_t count, size_t bytes, double mean,
                           double deviation) {
    REFUSE_IF(begin_work(function, generator->stream) != READY, CURAND_STATUS_PREEXISTING_FAILURE);
    if (generator->is_for_host ? count > 0 && !gpa_lsp_runtime.is_writable(into, multiply_sizes(count, bytes))
                               : !can_reach(function, into, count, bytes))
        return CURAND_STATUS_LAUNCH_FAILURE;
    long long shape[2];
    memcpy(shape, &mean, sizeof mean);
    memcpy(shape + 1, &deviation, sizeof deviation);
    for (size_t first = 0, some; first < count; first += some, generator->place += some) {
        some = count - first < PIECE ? count - first : PIECE;
        int status = have_computed(function, generator->is_for_host ? "lllllr" : "lllllp", (long long)generator->seed, (long long)generator->place,
                             (long long)some, shape[0], shape[1], (char *)into + first * bytes);
        if (status != 0)
            return status < 0 ? CURAND_STATUS_LAUNCH_FAILURE : (curandStatus_t)status;
    }
    return CURAND_STATUS_SUCCESS;
}
/* Fill an array. */
#define GENERATE(is_valid, invalid, mean, deviation)                                                                   \
    if (!is_generator(generator))                                                                                      \
        return CURAND_STATUS_NOT_INITIALIZED;                                                                          \
    return (is_valid) ? draw(generator, __func__, into, count, sizeof *into, mean, deviation) : (invalid)
PUBLIC curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int *into, size_t count) {
    GENERATE(1, CURAND_STATUS_SUCCESS, 0, 1);
}
PUBLIC curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *into, size_t count) {
    GENERATE(1, CURAND_STATUS_SUCCESS, 0, 1);
}
PUBLIC curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *into, size_t count) {
    GENERATE(1, CURAND_STATUS_SUCCESS, 0, 1);
}
PUBLIC curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *into, size_t count, float mean, float deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, mean, deviation);
}
PUBLIC curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double *into, size_t count, double mean, double deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, mean, deviation);
}
PUBLIC curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float *into, size_t count, float mean, float deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, mean, deviation);
}
PUBLIC curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double *into, size_t count, double mean,
                                                    double deviation) {
    GENERATE(count % 2 == 0, CURAND_STATUS_LENGTH_NOT_MULTIPLE, mean, deviation);
}
PUBLIC curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int *into, size_t count, double mean) {
    GENERATE(mean > 0 && mean < 0x1p31, CURAND_STATUS_OUT_OF_RANGE, mean, 1);
}
