/* cuFFT on the CPU, in double precision whatever the type. Source: the cuFFT documentation for layouts; Cooley and Tukey, An algorithm for the machine
   calculation of complex Fourier series (1965); for lengths with large prime factors Bluestein, A linear filtering approach to the computation of the
   discrete Fourier transform (1970). */
#include <complex.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cuComplex.h>
#define cuComplex float complex /* as C has them; they look alike in memory */
#define cuDoubleComplex double complex
#include "cufft.h"
#include "host_library.h"

int refuse_call(const char *name) {
    gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, name);
    return CUFFT_NOT_SUPPORTED;
}

#define MOST_PLANS 1024
#define MOST_DIMENSIONS 3
#define LARGEST_RADIX 64

/* Where the elements of one side of a transform are. */
struct layout {
    int size[MOST_DIMENSIONS]; /* of the array they stand in; the first does not matter */
    long long step, distance;  /* from one element to the next, from one transform to the next */
};
struct plan {
    cudaStream_t stream;
    cufftType type;
    int rank, n[MOST_DIMENSIONS], batch; /* n of the last dimension varies fastest; batch is 0 until it is made */
    int is_packed;                       /* no layout was given */
    struct layout from, to;
};
static struct plan *plans[MOST_PLANS];
static pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- One dimension --- */
static int find_radix(int n) {
    if (n % 4 == 0)
        return 4;
    for (int factor = 2; factor <= LARGEST_RADIX; factor++)
        if (n % factor == 0)
            return factor;
    return 0;
}
static int has_small_factors(int n) {
    for (int radix; n > 1; n /= radix)
        if ((radix = find_radix(n)) == 0)
            return 0;
    return 1;
}
/* roots: exp(sign 2 pi i k / whole), of which every root_step-th is one of the n-th. */
static void transform_part(const double complex *from, size_t step, double complex *to, int n, const double complex *roots, size_t root_step) {
    if (n == 1) {
        *to = *from;
        return;
    }
    int radix = find_radix(n), part = n / radix;
    for (int one = 0; one < radix; one++)
        transform_part(from + one * step, step * radix, to + (size_t)one * part, part, roots, root_step * radix);
    for (int k = 0; k < part; k++) {
        double complex turned[LARGEST_RADIX];
        for (int one = 0; one < radix; one++)
            turned[one] = to[(size_t)one * part + k] * roots[(size_t)one * k * root_step];
        for (int other = 0; other < radix; other++) {
            double complex sum = turned[0];
            for (int one = 1; one < radix; one++)
                sum += turned[one] * roots[(size_t)(one * other % radix) * part * root_step];
            to[(size_t)other * part + k] = sum;
        }
    }
}
static double complex *make_roots(int n, int direction) {
    double complex *roots = malloc(multiply_sizes(sizeof *roots, n));
    for (int k = 0; roots != NULL && k < n; k++)
        roots[k] = cexp(direction * 2 * M_PI * I * k / n);
    return roots;
}

/* What is the same for all transforms of a length. */
struct length {
    int n, padded; /* padded is 0 where all factors are small */
    double complex *roots, *padded_roots, *chirp, *filter, *work;
};
static void free_length(struct length *length) {
    free(length->roots);
    free(length->padded_roots);
    free(length->chirp);
    free(length->filter);
    free(length->work);
}
static int prepare(struct length *length, int n, int direction) {
    length->n = n;
    if (has_small_factors(n)) {
        length->roots = make_roots(n, direction);
        length->work = malloc(multiply_sizes(sizeof *length->work, n));
        return length->roots != NULL && length->work != NULL;
    }
    if (n > 1 << 29)
        return 0;
    int padded = 1;
    while (padded < 2 * n - 1)
        padded *= 2;
    length->padded = padded;
    length->padded_roots = make_roots(padded, -1);
    length->chirp = malloc(multiply_sizes(sizeof *length->chirp, n));
    length->filter = malloc(multiply_sizes(sizeof *length->filter, padded));
    length->work = calloc(3 * (size_t)padded, sizeof *length->work);
    if (length->padded_roots == NULL || length->chirp == NULL || length->filter == NULL || length->work == NULL)
        return 0;
    for (long long k = 0; k < n; k++)
        length->chirp[k] = cexp(direction * M_PI * I * (double)(k * k % (2LL * n)) / n);
    for (int k = 0; k < n; k++)
        length->work[k] = length->work[(padded - k) % padded] = conj(length->chirp[k]);
    transform_part(length->work, 1, length->filter, padded, length->padded_roots, 1);
    return 1;
}
/* One line of elements, in place. */
static void transform_line(const struct length *length, double complex *line, size_t step) {
    int n = length->n, padded = length->padded;
    double complex *work = length->work, *turned = work + padded;
    if (padded == 0) {
        transform_part(line, step, work, n, length->roots, 1);
        for (int k = 0; k < n; k++)
            line[k * step] = work[k];
        return;
    }
    memset(work, 0, sizeof *work * padded);
    for (int k = 0; k < n; k++)
        work[k] = line[k * step] * length->chirp[k];
    transform_part(work, 1, turned, padded, length->padded_roots, 1);
    for (int k = 0; k < padded; k++)
        turned[k] = conj(turned[k] * length->filter[k]); /* the way back is the conjugate of the way there */
    transform_part(turned, 1, turned + padded, padded, length->padded_roots, 1);
    for (int k = 0; k < n; k++)
        line[k * step] = conj(turned[padded + k]) / padded * length->chirp[k];
}

/* --- All dimensions --- */
static void transform_all(const struct plan *plan, const struct length *lengths, double complex *elements, size_t count) {
    size_t step = 1;
    for (int dimension = plan->rank - 1; dimension >= 0; dimension--) {
        size_t n = plan->n[dimension];
        for (size_t first = 0; first < count; first += step * n)
            for (size_t place = 0; place < step; place++)
                transform_line(&lengths[dimension], elements + first + place, step);
        step *= n;
    }
}

/* Offset of an element, whose indices are those of a place among all elements; mirrored: of the one whose value is the conjugate. */
static long long find_offset(const struct plan *plan, const struct layout *layout, size_t place, int is_mirrored) {
    int index[MOST_DIMENSIONS] = {0};
    for (int dimension = plan->rank - 1; dimension >= 0; dimension--) {
        int n = plan->n[dimension], at = (int)(place % n);
        index[dimension] = is_mirrored ? (n - at) % n : at;
        place /= n;
    }
    long long offset = index[0];
    for (int dimension = 1; dimension < plan->rank; dimension++)
        offset = offset * layout->size[dimension] + index[dimension];
    return offset * layout->step;
}
static int is_real(cufftType type, int is_input) {
    return is_input ? type == CUFFT_R2C || type == CUFFT_D2Z : type == CUFFT_C2R || type == CUFFT_Z2D;
}
static int is_double(cufftType type) { return type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D; }

/* Elements of one side, from its first to behind its last; as many as there can be where there are more. */
static size_t count_elements(const struct plan *plan, const struct layout *layout, int is_input) {
    int is_half = is_real(plan->type, !is_input); /* of a spectrum half of the last dimension is kept */
    __int128 offset = 0;
    for (int dimension = 0; dimension < plan->rank; dimension++) {
        int last = plan->n[dimension] - 1;
        offset = offset * layout->size[dimension] + (is_half && dimension == plan->rank - 1 ? plan->n[dimension] / 2 : last);
    }
    offset = offset * layout->step + (__int128)(plan->batch - 1) * layout->distance + 1;
    return offset < 1 || offset > LLONG_MAX ? SIZE_MAX : (size_t)offset;
}
static size_t element_bytes(cufftType type, int is_input) { return (is_double(type) ? 8 : 4) * (is_real(type, is_input) ? 1 : 2); }

static double complex read_element(cufftType type, const void *from, long long place) {
    if (is_real(type, 1))
        return is_double(type) ? ((const double *)from)[place] : ((const float *)from)[place];
    return is_double(type) ? ((const double complex *)from)[place] : (double complex)((const float complex *)from)[place];
}
static void write_element(cufftType type, void *to, long long place, double complex value) {
    if (is_real(type, 0) && is_double(type))
        ((double *)to)[place] = creal(value);
    else if (is_real(type, 0))
        ((float *)to)[place] = (float)creal(value);
    else if (is_double(type))
        ((double complex *)to)[place] = value;
    else
        ((float complex *)to)[place] = (float complex)value;
}

static cufftResult execute(cufftHandle handle, const char *function, cufftType type, const void *from, void *to, int direction) {
    pthread_mutex_lock(&plans_lock);
    struct plan plan = {0};
    if (handle >= 0 && handle < MOST_PLANS && plans[handle] != NULL)
        plan = *plans[handle];
    pthread_mutex_unlock(&plans_lock);
    if (plan.batch == 0 || plan.type != type)
        return CUFFT_INVALID_PLAN;
    if ((direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) || from == NULL || to == NULL)
        return CUFFT_INVALID_VALUE;
    if (begin_work(function, plan.stream) != READY)
        return CUFFT_EXEC_FAILED;
    int last = plan.rank - 1, padded = 2 * (plan.n[last] / 2 + 1);
    struct layout *real = is_real(type, 1) ? &plan.from : &plan.to;
    if (plan.is_packed && from == to && (is_real(type, 1) || is_real(type, 0))) { /* in place, real rows are as long as those of the spectrum */
        real->distance = real->distance / plan.n[last] * padded;
        real->size[last] = padded;
    }
    if (!can_reach(function, from, count_elements(&plan, &plan.from, 1), element_bytes(type, 1)) ||
        !can_reach(function, to, count_elements(&plan, &plan.to, 0), element_bytes(type, 0)))
        return CUFFT_EXEC_FAILED;
    from = gpa_lsp_runtime.locate(from);
    to = gpa_lsp_runtime.locate(to);
    size_t count = 1;
    for (int dimension = 0; dimension < plan.rank; dimension++)
        count = multiply_sizes(count, plan.n[dimension]);
    double complex *elements = malloc(multiply_sizes(sizeof *elements, count));
    struct length lengths[MOST_DIMENSIONS] = {{0}};
    int is_done = elements != NULL, half = plan.n[last] / 2;
    for (int dimension = 0; is_done && dimension < plan.rank; dimension++)
        is_done = prepare(&lengths[dimension], plan.n[dimension], direction);
    for (long long one = 0; is_done && one < plan.batch; one++) {
        for (size_t place = 0; place < count; place++) {
            int is_mirrored = is_real(type, 0) && (int)(place % plan.n[last]) > half;
            double complex value = read_element(type, from, one * plan.from.distance + find_offset(&plan, &plan.from, place, is_mirrored));
            elements[place] = is_mirrored ? conj(value) : value;
        }
        transform_all(&plan, lengths, elements, count);
        for (size_t place = 0; place < count; place++)
            if (!is_real(type, 1) || (int)(place % plan.n[last]) <= half)
                write_element(type, to, one * plan.to.distance + find_offset(&plan, &plan.to, place, 0), elements[place]);
    }
    free(elements);
    for (int dimension = 0; dimension < plan.rank; dimension++)
        free_length(&lengths[dimension]);
    return is_done ? CUFFT_SUCCESS : CUFFT_ALLOC_FAILED;
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
    if (plan == NULL)
        return CUFFT_INVALID_VALUE;
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

/* Elements of one side: of a real transform the spectrum has half of the last dimension. */
static void lay_out(const struct plan *plan, struct layout *layout, int is_input, const int *size, int step, int distance) {
    *layout = (struct layout){.step = step, .distance = distance};
    for (int dimension = 0; dimension < plan->rank; dimension++)
        layout->size[dimension] = size != NULL ? size[dimension] : plan->n[dimension];
    if (size != NULL)
        return;
    if (is_real(plan->type, !is_input))
        layout->size[plan->rank - 1] = plan->n[plan->rank - 1] / 2 + 1;
    layout->step = layout->distance = 1;
    for (int dimension = 0; dimension < plan->rank; dimension++)
        layout->distance *= layout->size[dimension];
}
PUBLIC cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *from_size, int from_step, int from_distance, int *to_size,
                                     int to_step, int to_distance, cufftType type, int batch, size_t *work_bytes) {
    if (type != CUFFT_C2C && type != CUFFT_R2C && type != CUFFT_C2R && type != CUFFT_Z2Z && type != CUFFT_D2Z && type != CUFFT_Z2D)
        return CUFFT_INVALID_TYPE;
    if (rank < 1 || rank > MOST_DIMENSIONS || n == NULL || batch < 1)
        return CUFFT_INVALID_SIZE;
    long long room = 1LL << 40; /* for elements: no product below overflows */
    for (int dimension = 0; dimension < rank; dimension++) {
        if (n[dimension] < 1 || n[dimension] > room)
            return CUFFT_INVALID_SIZE;
        room /= n[dimension];
    }
    int is_given = from_size != NULL && to_size != NULL;
    if (is_given && (from_step < 1 || to_step < 1 || from_distance < 0 || to_distance < 0))
        return CUFFT_INVALID_SIZE;
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
        found->is_packed = from_size == NULL || to_size == NULL;
        lay_out(found, &found->from, 1, found->is_packed ? NULL : from_size, from_step, from_distance);
        lay_out(found, &found->to, 0, found->is_packed ? NULL : to_size, to_step, to_distance);
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
PUBLIC cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
    pthread_mutex_lock(&plans_lock);
    struct plan *found = find_plan(plan);
    if (found != NULL)
        found->stream = stream;
    pthread_mutex_unlock(&plans_lock);
    return found == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
PUBLIC cufftResult cufftGetSize(cufftHandle plan, size_t *work_bytes) {
    if (work_bytes == NULL)
        return CUFFT_INVALID_VALUE;
    *work_bytes = 0;
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
/* What a plan would need: the same as one that is made. */
static cufftResult estimate(int rank, int z, int y, int x, cufftType type, int batch, size_t *work_bytes) {
    int n[] = {z, y, x};
    cufftHandle plan;
    if (work_bytes == NULL)
        return CUFFT_INVALID_VALUE;
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
    (void)work;
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
PUBLIC cufftResult cufftSetAutoAllocation(cufftHandle plan, int is_automatic) {
    (void)is_automatic;
    return find_plan(plan) == NULL ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
PUBLIC cufftResult cufftGetVersion(int *version) {
    if (version == NULL)
        return CUFFT_INVALID_VALUE;
    *version = CUFFT_VERSION;
    return CUFFT_SUCCESS;
}
PUBLIC cufftResult cufftGetProperty(libraryPropertyType type, int *value) {
    if (value == NULL)
        return CUFFT_INVALID_VALUE;
    *value = type == MAJOR_VERSION ? CUFFT_VER_MAJOR : type == MINOR_VERSION ? CUFFT_VER_MINOR : CUFFT_VER_PATCH;
    return CUFFT_SUCCESS;
}
