/* cuFFT: plans, and transforms that gpa_lsp computes with numpy. Source: the cuFFT documentation for layouts. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cufftXt.h"
#include "host_library.h"

int refuse_call(const char *name) {
    gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, name);
    return CUFFT_NOT_SUPPORTED;
}

#define MOST_PLANS 1024
#define MOST_DIMENSIONS 3

/* Where the elements of one side of a transform are. */
struct layout {
    int size[MOST_DIMENSIONS]; /* of the array they stand in; the first does not matter */
    int step, distance;        /* from one element to the next, from one transform to the next */
};
struct plan {
    cudaStream_t stream;
    cufftType type;
    int rank, n[MOST_DIMENSIONS], batch; /* n of the last dimension varies fastest; batch is 0 until it is made */
    struct layout from, to;              /* their steps are 0 where none was given */
};
static struct plan *plans[MOST_PLANS];
static pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER;

static cufftResult execute(cufftHandle handle, const char *function, cufftType type, const void *from, void *to, int direction) {
    pthread_mutex_lock(&plans_lock);
    struct plan plan = {0};
    if (handle >= 0 && handle < MOST_PLANS && plans[handle] != NULL)
        plan = *plans[handle];
    pthread_mutex_unlock(&plans_lock);
    REFUSE_IF(plan.batch == 0 || plan.type != type, CUFFT_INVALID_PLAN);
    REFUSE_IF((direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) || from == NULL || to == NULL, CUFFT_INVALID_VALUE);
    REFUSE_IF(begin_work(function, plan.stream) != READY, CUFFT_EXEC_FAILED);
    const int *n = plan.n, *in = plan.from.size, *out = plan.to.size;
    int status = have_computed(function, "iiiii" "iiiii" "iiiii" "ppi", plan.rank, n[0], n[1], n[2], plan.batch, in[0], in[1], in[2], plan.from.step,
                         plan.from.distance, out[0], out[1], out[2], plan.to.step, plan.to.distance, from, to, direction);
    return status < 0 ? CUFFT_EXEC_FAILED : (cufftResult)status;
}
#define EXECUTE(type, direction) return execute(plan, __func__, type, from, to, direction)
PUBLIC cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *from, cufftComplex *to, int direction) { EXECUTE(CUFFT_C2C, direction); }
PUBLIC cufftResult cufftExecR2C(cufftHandle plan, cufftReal *from, cufftComplex *to) { EXECUTE(CUFFT_R2C, CUFFT_FORWARD); }
PUBLIC cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *from, cufftReal *to) { EXECUTE(CUFFT_C2R, CUFFT_INVERSE); }
PUBLIC cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleComplex *to, int direction) {
    EXECUTE(CUFFT_Z2Z, direction);
}
PUBLIC cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *from, cufftDoubleComplex *to) { EXECUTE(CUFFT_D2Z, CUFFT_FORWARD); }
PUBLIC cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleReal *to) { EXECUTE(CUFFT_Z2D, CUFFT_INVERSE); }

/* --- Plans --- */
static struct plan *find_plan(cufftHandle handle) { return handle >= 0 && handle < MOST_PLANS ? plans[handle] : NULL; }

PUBLIC cufftResult cufftCreate(cufftHandle *plan) {
    REFUSE_IF(plan == NULL, CUFFT_INVALID_VALUE);
    cufftResult result = CUFFT_ALLOC_FAILED;
    pthread_mutex_lock(&plans_lock);
    for (int one = 1; one < MOST_PLANS; one++) /* none is 0: programs set handles to it that have no plan */
        if (plans[one] == NULL) {
            plans[one] = calloc(1, sizeof **plans);
            *plan = one;
            result = plans[one] == NULL ? CUFFT_ALLOC_FAILED : CUFFT_SUCCESS;
            break;
        }
    pthread_mutex_unlock(&plans_lock);
    return result;
}
PUBLIC cufftResult cufftDestroy(cufftHandle plan) {
    pthread_mutex_lock(&plans_lock);
    struct plan *found = find_plan(plan);
    if (found != NULL)
        plans[plan] = NULL;
    pthread_mutex_unlock(&plans_lock);
    free(found);
    return found == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}

PUBLIC cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *from_size, int from_step, int from_distance, int *to_size,
                                     int to_step, int to_distance, cufftType type, int batch, size_t *work_bytes) {
    if (type != CUFFT_C2C && type != CUFFT_R2C && type != CUFFT_C2R && type != CUFFT_Z2Z && type != CUFFT_D2Z && type != CUFFT_Z2D)
        return CUFFT_INVALID_TYPE;
    REFUSE_IF(rank < 1 || rank > MOST_DIMENSIONS || n == NULL || batch < 1, CUFFT_INVALID_SIZE);
    long long room = 1LL << 40; /* for elements: no product below overflows */
    for (int dimension = 0; dimension < rank; dimension++) {
        REFUSE_IF(n[dimension] < 1 || n[dimension] > room, CUFFT_INVALID_SIZE);
        room /= n[dimension];
    }
    int is_given = from_size != NULL && to_size != NULL;
    REFUSE_IF(is_given && (from_step < 1 || to_step < 1 || from_distance < 0 || to_distance < 0), CUFFT_INVALID_SIZE);
    for (int dimension = 1; is_given && dimension < rank; dimension++)
        if (from_size[dimension] < 1 || to_size[dimension] < 1)
            return CUFFT_INVALID_SIZE; /* else elements would lie in front of the first */
    pthread_mutex_lock(&plans_lock);
    struct plan *found = find_plan(plan);
    cufftResult result = found == NULL || found->batch != 0 ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
    if (result == CUFFT_SUCCESS) {
        found->type = type;
        found->rank = rank;
        memcpy(found->n, n, sizeof *n * rank);
        if (is_given) {
            found->from = (struct layout){.step = from_step, .distance = from_distance};
            found->to = (struct layout){.step = to_step, .distance = to_distance};
            memcpy(found->from.size, from_size, sizeof *n * rank);
            memcpy(found->to.size, to_size, sizeof *n * rank);
        }
        found->batch = batch;
        if (work_bytes != NULL)
            *work_bytes = 0;
    }
    pthread_mutex_unlock(&plans_lock);
    return result;
}
PUBLIC cufftResult cufftMakePlan1d(cufftHandle plan, int x, cufftType type, int batch, size_t *work_bytes) {
    return cufftMakePlanMany(plan, 1, &x, NULL, 1, 0, NULL, 1, 0, type, batch, work_bytes);
}
PUBLIC cufftResult cufftMakePlan2d(cufftHandle plan, int y, int x, cufftType type, size_t *work_bytes) {
    int n[] = {y, x};
    return cufftMakePlanMany(plan, 2, n, NULL, 1, 0, NULL, 1, 0, type, 1, work_bytes);
}
PUBLIC cufftResult cufftMakePlan3d(cufftHandle plan, int z, int y, int x, cufftType type, size_t *work_bytes) {
    int n[] = {z, y, x};
    return cufftMakePlanMany(plan, 3, n, NULL, 1, 0, NULL, 1, 0, type, 1, work_bytes);
}
PUBLIC cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *from_size, int from_step, int from_distance, int *to_size,
                                 int to_step, int to_distance, cufftType type, int batch) {
    cufftResult result = cufftCreate(plan);
    if (result != CUFFT_SUCCESS)
        return result;
    result = cufftMakePlanMany(*plan, rank, n, from_size, from_step, from_distance, to_size, to_step, to_distance, type, batch, NULL);
    if (result != CUFFT_SUCCESS)
        cufftDestroy(*plan);
    return result;
}
PUBLIC cufftResult cufftPlan1d(cufftHandle *plan, int x, cufftType type, int batch) {
    return cufftPlanMany(plan, 1, &x, NULL, 1, 0, NULL, 1, 0, type, batch);
}
PUBLIC cufftResult cufftPlan2d(cufftHandle *plan, int y, int x, cufftType type) {
    int n[] = {y, x};
    return cufftPlanMany(plan, 2, n, NULL, 1, 0, NULL, 1, 0, type, 1);
}
PUBLIC cufftResult cufftPlan3d(cufftHandle *plan, int z, int y, int x, cufftType type) {
    int n[] = {z, y, x};
    return cufftPlanMany(plan, 3, n, NULL, 1, 0, NULL, 1, 0, type, 1);
}

/* The same with wide numbers, and with types of elements in place of a type of transform */
static int narrow(long long number) { return number < 0 || number > INT_MAX ? -1 : (int)number; }
static int *narrow_all(int *into, const long long *numbers, int rank) {
    for (int dimension = 0; numbers != NULL && dimension < rank && dimension < MOST_DIMENSIONS; dimension++)
        into[dimension] = narrow(numbers[dimension]);
    return numbers == NULL ? NULL : into;
}
PUBLIC cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *from_size, long long from_step,
                                       long long from_distance, long long *to_size, long long to_step, long long to_distance,
                                       cufftType type, long long batch, size_t *work_bytes) {
    int sizes[3][MOST_DIMENSIONS];
    return cufftMakePlanMany(plan, rank, narrow_all(sizes[0], n, rank), narrow_all(sizes[1], from_size, rank), narrow(from_step),
                             narrow(from_distance), narrow_all(sizes[2], to_size, rank), narrow(to_step), narrow(to_distance), type,
                             narrow(batch), work_bytes);
}
static const struct {
    cudaDataType from, to;
    cufftType type;
} typed[] = {{CUDA_C_32F, CUDA_C_32F, CUFFT_C2C}, {CUDA_R_32F, CUDA_C_32F, CUFFT_R2C}, {CUDA_C_32F, CUDA_R_32F, CUFFT_C2R},
             {CUDA_C_64F, CUDA_C_64F, CUFFT_Z2Z}, {CUDA_R_64F, CUDA_C_64F, CUFFT_D2Z}, {CUDA_C_64F, CUDA_R_64F, CUFFT_Z2D}};
PUBLIC cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *from_size, long long from_step,
                                       long long from_distance, cudaDataType from_type, long long *to_size, long long to_step,
                                       long long to_distance, cudaDataType to_type, long long batch, size_t *work_bytes,
                                       cudaDataType computed_type) {
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++)
        if (typed[i].from == from_type && typed[i].to == to_type)
            return cufftMakePlanMany64(plan, rank, n, from_size, from_step, from_distance, to_size, to_step, to_distance,
                                       typed[i].type, batch, work_bytes);
    return refuse_call("cufftXtMakePlanMany of other types than float and double");
}
PUBLIC cufftResult cufftXtExec(cufftHandle plan, void *from, void *to, int direction) {
    pthread_mutex_lock(&plans_lock);
    cufftType type = find_plan(plan) == NULL ? CUFFT_C2C : find_plan(plan)->type;
    pthread_mutex_unlock(&plans_lock);
    int is_real = type == CUFFT_R2C || type == CUFFT_D2Z ? CUFFT_FORWARD : type == CUFFT_C2R || type == CUFFT_Z2D ? CUFFT_INVERSE : 0;
    const char *function = type == CUFFT_C2C   ? "cufftExecC2C"
                           : type == CUFFT_R2C ? "cufftExecR2C"
                           : type == CUFFT_C2R ? "cufftExecC2R"
                           : type == CUFFT_Z2Z ? "cufftExecZ2Z"
                           : type == CUFFT_D2Z ? "cufftExecD2Z"
                                               : "cufftExecZ2D";
    return execute(plan, function, type, from, to, is_real != 0 ? is_real : direction);
}

PUBLIC cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
    pthread_mutex_lock(&plans_lock);
    struct plan *found = find_plan(plan);
    if (found != NULL)
        found->stream = stream;
    pthread_mutex_unlock(&plans_lock);
    return found == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
PUBLIC cufftResult cufftGetSize(cufftHandle plan, size_t *work_bytes) {
    REFUSE_IF(work_bytes == NULL, CUFFT_INVALID_VALUE);
    *work_bytes = 0;
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
/* What a plan would need: the same as one that is made. */
static cufftResult estimate(int rank, int z, int y, int x, cufftType type, int batch, size_t *work_bytes) {
    int n[] = {z, y, x};
    cufftHandle plan;
    REFUSE_IF(work_bytes == NULL, CUFFT_INVALID_VALUE);
    *work_bytes = 0;
    cufftResult result = cufftPlanMany(&plan, rank, n + MOST_DIMENSIONS - rank, NULL, 1, 0, NULL, 1, 0, type, batch);
    return result == CUFFT_SUCCESS ? cufftDestroy(plan) : result;
}
PUBLIC cufftResult cufftEstimate1d(int x, cufftType type, int batch, size_t *work_bytes) {
    return estimate(1, 1, 1, x, type, batch, work_bytes);
}
PUBLIC cufftResult cufftEstimate2d(int y, int x, cufftType type, size_t *work_bytes) { return estimate(2, 1, y, x, type, 1, work_bytes); }
PUBLIC cufftResult cufftEstimate3d(int z, int y, int x, cufftType type, size_t *work_bytes) {
    return estimate(3, z, y, x, type, 1, work_bytes);
}
PUBLIC cufftResult cufftGetSize1d(cufftHandle plan, int x, cufftType type, int batch, size_t *work_bytes) {
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : estimate(1, 1, 1, x, type, batch, work_bytes);
}
PUBLIC cufftResult cufftGetSize2d(cufftHandle plan, int y, int x, cufftType type, size_t *work_bytes) {
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : estimate(2, 1, y, x, type, 1, work_bytes);
}
PUBLIC cufftResult cufftGetSize3d(cufftHandle plan, int z, int y, int x, cufftType type, size_t *work_bytes) {
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : estimate(3, z, y, x, type, 1, work_bytes);
}
PUBLIC cufftResult cufftSetWorkArea(cufftHandle plan, void *work) {
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
PUBLIC cufftResult cufftSetAutoAllocation(cufftHandle plan, int is_automatic) {
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
GIVE_VERSION(cufftResult, cufft, CUFFT, CUFFT_INVALID_VALUE)
