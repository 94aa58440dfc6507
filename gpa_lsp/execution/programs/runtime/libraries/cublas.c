/* cuBLAS on the CPU: what each function computes, in place, before it returns. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cuComplex.h>
#define cuComplex float complex /* as C has them; they look alike in memory */
#define cuDoubleComplex double complex
#include "cublas_v2.h"
#include "host_library.h"

int refuse_call(const char *name) {
    gpa_lsp_runtime.send_note(NOTE_UNSUPPORTED, name);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define CLONED __attribute__((target_clones("arch=haswell", "default"), optimize("O3")))
#else
#define CLONED
#endif

struct cublasContext {
    cudaStream_t stream;
    cublasPointerMode_t pointers;
    cublasAtomicsMode_t atomics;
    cublasMath_t math;
};

static int is_cublas(cublasHandle_t handle) { return gpa_lsp_runtime.is_handle(CUBLAS, handle); }

static cublasStatus_t begin(cublasHandle_t handle, const char *function) {
    if (!is_cublas(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    switch (begin_work(function, handle->stream)) {
    case READY: return CUBLAS_STATUS_SUCCESS;
    case IS_CAPTURED: return CUBLAS_STATUS_NOT_SUPPORTED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define BEGIN(name)                                                                                                    \
    static const char function[] = TEXT(name);                                                                         \
    BEGIN_NAMED(function)
#define BEGIN_NAMED(name)                                                                                              \
    cublasStatus_t status = begin(handle, name);                                                                       \
    if (status != CUBLAS_STATUS_SUCCESS)                                                                               \
    return status
#define NEED(condition)                                                                                                \
    if (!(condition))                                                                                                  \
    return CUBLAS_STATUS_INVALID_VALUE
/* From then on the operand is where it can be read and written here. */
#define REACH(operand, elements)                                                                                       \
    do {                                                                                                               \
        if (!can_reach(function, operand, elements, sizeof *(operand)))                                                \
            return CUBLAS_STATUS_EXECUTION_FAILED;                                                                     \
        operand = gpa_lsp_runtime.locate(operand);                                                                     \
    } while (0)
#define REACH_SCALAR(operand)                                                                                          \
    do                                                                                                                 \
        if (operand == NULL)                                                                                           \
            return CUBLAS_STATUS_INVALID_VALUE;                                                                        \
        else                                                                                                           \
            REACH(operand, handle->pointers == CUBLAS_POINTER_MODE_DEVICE);                                            \
    while (0)

static int is_form(cublasOperation_t form) { return form == CUBLAS_OP_N || form == CUBLAS_OP_T || form == CUBLAS_OP_C; }
static int is_side(cublasSideMode_t side) { return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT; }
static int is_triangle(cublasFillMode_t fill) { return fill == CUBLAS_FILL_MODE_LOWER || fill == CUBLAS_FILL_MODE_UPPER; }

/* Elements between the first and the last of a vector, both with it; of a matrix. */
static size_t span(int n, int step) { return n <= 0 ? 0 : 1 + (size_t)(n - 1) * (size_t)llabs((long long)step); }
static size_t area(int rows, int columns, int step) {
    return rows <= 0 || columns <= 0 ? 0 : (size_t)(columns - 1) * (size_t)step + (size_t)rows;
}
/* Where one of many matrices begins, which may be nowhere. */
static void *step_by(const void *base, long long number, long long step, size_t element_bytes) {
    return (void *)((uintptr_t)base + (uintptr_t)number * (uintptr_t)step * element_bytes);
}
/* Where a vector begins: one with a negative step, at its end. */
static ptrdiff_t first(int n, ptrdiff_t step) { return step < 0 ? (1 - (ptrdiff_t)n) * step : 0; }

#define T float
#define R float
#define WIDE double
#define FN(name) cublasS##name##_v2
#define FN_PLAIN(name) cublasS##name
#define FN_REAL(name) cublasS##name##_v2
#define FN_INDEX(name) cublasIs##name##_v2
#define LOCAL(name) s_##name
#define IS_COMPLEX 0
#define CONJ(x) (x)
#define REAL(x) (x)
#define IMAGINARY(x) 0
#define MAGNITUDE(x) fabsf(x)
#include "blas_routines.h"

#define T double
#define R double
#define WIDE double
#define FN(name) cublasD##name##_v2
#define FN_PLAIN(name) cublasD##name
#define FN_REAL(name) cublasD##name##_v2
#define FN_INDEX(name) cublasId##name##_v2
#define LOCAL(name) d_##name
#define IS_COMPLEX 0
#define CONJ(x) (x)
#define REAL(x) (x)
#define IMAGINARY(x) 0
#define MAGNITUDE(x) fabs(x)
#include "blas_routines.h"

#define T float complex
#define R float
#define WIDE double complex
#define FN(name) cublasC##name##_v2
#define FN_PLAIN(name) cublasC##name
#define FN_REAL(name) cublasSc##name##_v2
#define FN_INDEX(name) cublasIc##name##_v2
#define LOCAL(name) c_##name
#define IS_COMPLEX 1
#define CONJ(x) conjf(x)
#define REAL(x) crealf(x)
#define IMAGINARY(x) cimagf(x)
#define MAGNITUDE(x) (fabsf(crealf(x)) + fabsf(cimagf(x)))
#include "blas_routines.h"

#define T double complex
#define R double
#define WIDE double complex
#define FN(name) cublasZ##name##_v2
#define FN_PLAIN(name) cublasZ##name
#define FN_REAL(name) cublasDz##name##_v2
#define FN_INDEX(name) cublasIz##name##_v2
#define LOCAL(name) z_##name
#define IS_COMPLEX 1
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#define IMAGINARY(x) cimag(x)
#define MAGNITUDE(x) (fabs(creal(x)) + fabs(cimag(x)))
#include "blas_routines.h"

#define PRODUCTS(P, letter, type, part, is_conjugate)                                                                  \
    PUBLIC cublasStatus_t cublas##P##dot##letter##_v2(cublasHandle_t handle, int n, const type *x, int incx, const type *y, int incy, \
                                                      type *result) {                                                  \
        return part##_dot(handle, TEXT(cublas##P##dot##letter), is_conjugate, n, x, incx, y, incy, result);            \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublas##P##ger##letter##_v2(cublasHandle_t handle, int m, int n, const type *alpha, const type *x, \
                                                      int incx, const type *y, int incy, type *a, int lda) {           \
        return part##_ger(handle, TEXT(cublas##P##ger##letter), is_conjugate, m, n, alpha, x, incx, y, incy, a, lda);  \
    }
PRODUCTS(S, , float, s, 0)
PRODUCTS(D, , double, d, 0)
PRODUCTS(C, u, float complex, c, 0)
PRODUCTS(C, c, float complex, c, 1)
PRODUCTS(Z, u, double complex, z, 0)
PRODUCTS(Z, c, double complex, z, 1)

#define ROTATION(P, type)                                                                                              \
    PUBLIC cublasStatus_t cublas##P##rot_v2(cublasHandle_t handle, int n, type *x, int incx, type *y, int incy, const type *c, \
                                            const type *s) {                                                           \
        BEGIN(cublas##P##rot_v2);                                                                                      \
        REACH(x, span(n, incx));                                                                                       \
        REACH(y, span(n, incy));                                                                                       \
        REACH_SCALAR(c);                                                                                               \
        REACH_SCALAR(s);                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                            \
            type *one = x + first(n, incx) + i * incx, *other = y + first(n, incy) + i * incy, kept = *one;            \
            *one = *c * kept + *s * *other;                                                                            \
            *other = *c * *other - *s * kept;                                                                          \
        }                                                                                                              \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
ROTATION(S, float)
ROTATION(D, double)

/* Complex numbers by a real one. */
#define SCALE(P, type)                                                                                                 \
    PUBLIC cublasStatus_t cublas##P##scal_v2(cublasHandle_t handle, int n, const type *alpha, type complex *x, int incx) { \
        BEGIN(cublas##P##scal_v2);                                                                                     \
        REACH(x, n > 0 && incx > 0 ? span(n, incx) : 0);                                                               \
        REACH_SCALAR(alpha);                                                                                           \
        for (int i = 0; i < n && incx > 0; i++)                                                                        \
            x[(size_t)i * incx] *= *alpha;                                                                             \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
SCALE(Cs, float)
SCALE(Zd, double)

/* --- Matrices of mixed types: turned into float or double, multiplied, and turned back. --- */
static double read_half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double found = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -found : found;
}
/* To the nearest, halfway cases to the even one. */
static uint16_t write_half(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7fff;
    if (size >= 65520)
        return sign | 0x7c00;
    int exponent = -14; /* also of zero */
    if (size > 0)
        frexp(size, &exponent);
    int scale = exponent < -13 ? 24 : 11 - exponent; /* below 2^-14 steps stay as they are */
    int steps = (int)nearbyint(ldexp(size, scale));  /* 1024 to 2048 where it is normal; 2048 carries into the exponent */
    return sign | (uint16_t)(scale == 24 ? steps : ((25 - scale) << 10) + steps - 1024);
}
static double read_bfloat(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float found;
    memcpy(&found, &wide, sizeof found);
    return found;
}
static uint16_t write_bfloat(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (isnan(narrow))
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static size_t size_of(cudaDataType type) {
    switch (type) {
    case CUDA_R_8I: return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F:
    case CUDA_R_32I: return 4;
    case CUDA_R_64F:
    case CUDA_C_32F: return 8;
    default: return 16;
    }
}
static double complex read_one(cudaDataType type, const void *from, size_t place) {
    switch (type) {
    case CUDA_R_8I: return ((const int8_t *)from)[place];
    case CUDA_R_16F: return read_half(((const uint16_t *)from)[place]);
    case CUDA_R_16BF: return read_bfloat(((const uint16_t *)from)[place]);
    case CUDA_R_32F: return ((const float *)from)[place];
    case CUDA_R_32I: return ((const int32_t *)from)[place];
    case CUDA_R_64F: return ((const double *)from)[place];
    case CUDA_C_32F: return ((const float complex *)from)[place];
    default: return ((const double complex *)from)[place];
    }
}
static void write_one(cudaDataType type, void *into, size_t place, double complex value) {
    switch (type) {
    case CUDA_R_8I: ((int8_t *)into)[place] = (int8_t)fmin(fmax(nearbyint(creal(value)), -128), 127); return;
    case CUDA_R_16F: ((uint16_t *)into)[place] = write_half(creal(value)); return;
    case CUDA_R_16BF: ((uint16_t *)into)[place] = write_bfloat(creal(value)); return;
    case CUDA_R_32F: ((float *)into)[place] = (float)creal(value); return;
    case CUDA_R_32I: ((int32_t *)into)[place] = (int32_t)(uint32_t)(int64_t)creal(value); return; /* sums wrap */
    case CUDA_R_64F: ((double *)into)[place] = creal(value); return;
    case CUDA_C_32F: ((float complex *)into)[place] = (float complex)value; return;
    default: ((double complex *)into)[place] = value; return;
    }
}

struct matrix {
    void *elements;
    cudaDataType type;
    int step, rows, columns;
};
/* Its elements, one column behind the other; NULL where there is no room. */
static double *read_reals(const struct matrix *matrix) {
    double *found = malloc(multiply_sizes(sizeof(double), (size_t)matrix->rows * matrix->columns + 1));
    for (size_t j = 0; found != NULL && j < (size_t)matrix->columns; j++)
        for (size_t i = 0; i < (size_t)matrix->rows; i++)
            found[i + j * matrix->rows] = creal(read_one(matrix->type, matrix->elements, i + j * matrix->step));
    return found;
}
static double complex *read_complexes(const struct matrix *matrix) {
    double complex *found = malloc(multiply_sizes(sizeof(double complex), (size_t)matrix->rows * matrix->columns + 1));
    for (size_t j = 0; found != NULL && j < (size_t)matrix->columns; j++)
        for (size_t i = 0; i < (size_t)matrix->rows; i++)
            found[i + j * matrix->rows] = read_one(matrix->type, matrix->elements, i + j * matrix->step);
    return found;
}

static cublasStatus_t multiply_mixed(const char *function, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n, int k,
                                     double complex alpha, struct matrix *a, struct matrix *b, double complex beta,
                                     struct matrix *c) {
    struct matrix *all[] = {a, b, c};
    int is_complex = 0, is_single = 1;
    NEED(is_form(a_form) && is_form(b_form) && m >= 0 && n >= 0 && k >= 0);
    for (int one = 0; one < 3; one++) {
        size_t bytes = size_of(all[one]->type);
        NEED(all[one]->step >= (all[one]->rows > 1 ? all[one]->rows : 1));
        int is_read = one == 2 || alpha != 0;
        if (is_read && !can_reach(function, all[one]->elements, area(all[one]->rows, all[one]->columns, all[one]->step), bytes))
            return CUBLAS_STATUS_EXECUTION_FAILED;
        all[one]->elements = gpa_lsp_runtime.locate(all[one]->elements);
        is_complex |= all[one]->type == CUDA_C_32F || all[one]->type == CUDA_C_64F;
        is_single &= all[one]->type == CUDA_R_32F;
    }
    if (is_single)
        return s_multiply(a_form, b_form, m, n, k, (float)creal(alpha), a->elements, a->step, b->elements, b->step, (float)creal(beta),
                          c->elements, c->step)
                   ? CUBLAS_STATUS_SUCCESS
                   : CUBLAS_STATUS_ALLOC_FAILED;
    if (alpha == 0) /* then nothing of them is read */
        a->columns = b->columns = 0;
    void *left = is_complex ? (void *)read_complexes(a) : read_reals(a), *right = is_complex ? (void *)read_complexes(b) : read_reals(b),
         *found = is_complex ? (void *)read_complexes(c) : read_reals(c);
    int is_done = left != NULL && right != NULL && found != NULL &&
                  (is_complex ? z_multiply(a_form, b_form, m, n, k, alpha, left, a->rows, right, b->rows, beta, found, m)
                              : d_multiply(a_form, b_form, m, n, k, creal(alpha), left, a->rows, right, b->rows, creal(beta), found, m));
    for (size_t j = 0; is_done && j < (size_t)n; j++)
        for (size_t i = 0; i < (size_t)m; i++)
            write_one(c->type, c->elements, i + j * c->step,
                      is_complex ? ((double complex *)found)[i + j * m] : ((double *)found)[i + j * m]);
    free(left);
    free(right);
    free(found);
    return is_done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
static struct matrix make_matrix(const void *elements, cudaDataType type, int step, int rows, int columns) {
    return (struct matrix){(void *)elements, type, step, rows, columns};
}
static cudaDataType scale_type(cublasComputeType_t computing, cudaDataType c_type) {
    switch (computing) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC: return CUDA_R_32I;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: return c_type == CUDA_C_64F ? CUDA_C_64F : CUDA_R_64F;
    default: return c_type == CUDA_C_32F ? CUDA_C_32F : CUDA_R_32F;
    }
}
/* Whether matrices of some types are multiplied in another one; a and b have the same. */
static int is_combined(cudaDataType scale, cudaDataType a_type, cudaDataType c_type) {
    switch (scale) {
    case CUDA_R_16F: return a_type == CUDA_R_16F && c_type == CUDA_R_16F;
    case CUDA_R_32I: return a_type == CUDA_R_8I && c_type == CUDA_R_32I;
    case CUDA_R_32F:
        return (c_type == CUDA_R_32F && (a_type == CUDA_R_8I || a_type == CUDA_R_16F || a_type == CUDA_R_16BF || a_type == CUDA_R_32F)) ||
               (a_type == c_type && (a_type == CUDA_R_16F || a_type == CUDA_R_16BF));
    default: return a_type == scale && c_type == scale;
    }
}
static cublasStatus_t multiply_batch(cublasHandle_t handle, const char *function, cublasOperation_t a_form, cublasOperation_t b_form,
                                     int m, int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,
                                     long long a_step, const void *b, cudaDataType b_type, int ldb, long long b_step,
                                     const void *beta, void *c, cudaDataType c_type, int ldc, long long c_step, int count,
                                     cudaDataType scale) {
    BEGIN_NAMED(function);
    NEED(count >= 0);
    if (a_type != b_type || !is_combined(scale, a_type, c_type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const char *scalar = alpha, *other = beta;
    REACH_SCALAR(scalar);
    REACH_SCALAR(other);
    double complex factor = read_one(scale, scalar, 0), kept = read_one(scale, other, 0);
    for (long long one = 0; one < count && status == CUBLAS_STATUS_SUCCESS; one++) {
        struct matrix left = make_matrix(step_by(a, one, a_step, size_of(a_type)), a_type, lda,
                                         a_form == CUBLAS_OP_N ? m : k, a_form == CUBLAS_OP_N ? k : m);
        struct matrix right = make_matrix(step_by(b, one, b_step, size_of(b_type)), b_type, ldb,
                                          b_form == CUBLAS_OP_N ? k : n, b_form == CUBLAS_OP_N ? n : k);
        struct matrix into = make_matrix(step_by(c, one, c_step, size_of(c_type)), c_type, ldc, m, n);
        status = multiply_mixed(function, a_form, b_form, m, n, k, factor, &left, &right, kept, &into);
    }
    return status;
}
PUBLIC cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n, int k,
                                   const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b, cudaDataType b_type,
                                   int ldb, const void *beta, void *c, cudaDataType c_type, int ldc, cublasComputeType_t computing,
                                   cublasGemmAlgo_t algorithm) {
    (void)algorithm;
    return multiply_batch(handle, "cublasGemmEx", a_form, b_form, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type,
                          ldc, 0, 1, scale_type(computing, c_type));
}
PUBLIC cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m,
                                                 int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,
                                                 long long a_step, const void *b, cudaDataType b_type, int ldb, long long b_step,
                                                 const void *beta, void *c, cudaDataType c_type, int ldc, long long c_step, int count,
                                                 cublasComputeType_t computing, cublasGemmAlgo_t algorithm) {
    (void)algorithm;
    return multiply_batch(handle, "cublasGemmStridedBatchedEx", a_form, b_form, m, n, k, alpha, a, a_type, lda, a_step, b, b_type, ldb,
                          b_step, beta, c, c_type, ldc, c_step, count, scale_type(computing, c_type));
}
PUBLIC cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n, int k,
                                    const float *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                                    cudaDataType b_type, int ldb, const float *beta, void *c, cudaDataType c_type, int ldc) {
    return multiply_batch(handle, "cublasSgemmEx", a_form, b_form, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                          c_type, ldc, 0, 1, CUDA_R_32F);
}
PUBLIC cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n, int k,
                                  const void *alpha, const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc) {
    return multiply_batch(handle, "cublasHgemm", a_form, b_form, m, n, k, alpha, a, CUDA_R_16F, lda, 0, b, CUDA_R_16F, ldb, 0, beta, c,
                          CUDA_R_16F, ldc, 0, 1, CUDA_R_16F);
}
PUBLIC cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n,
                                                int k, const void *alpha, const void *a, int lda, long long a_step, const void *b,
                                                int ldb, long long b_step, const void *beta, void *c, int ldc, long long c_step,
                                                int count) {
    return multiply_batch(handle, "cublasHgemmStridedBatched", a_form, b_form, m, n, k, alpha, a, CUDA_R_16F, lda, a_step, b, CUDA_R_16F,
                          ldb, b_step, beta, c, CUDA_R_16F, ldc, c_step, count, CUDA_R_16F);
}

/* --- Handles --- */
PUBLIC cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    if (handle == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cudaFree(NULL) != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = gpa_lsp_runtime.make_handle(CUBLAS, sizeof **handle);
    return *handle == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    return gpa_lsp_runtime.destroy_handle(CUBLAS, handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
PUBLIC cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    (void)handle;
    NEED(version != NULL);
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
    NEED(value != NULL && type >= MAJOR_VERSION && type <= PATCH_LEVEL);
    *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }

static const struct {
    cublasStatus_t status;
    const char *name, *words;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "it was done"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "there is no handle"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "there is not enough memory"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an argument is invalid"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the GPU cannot do this"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "memory cannot be copied"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "it failed"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an error inside"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "this is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "there is no licence"},
};
PUBLIC const char *cublasGetStatusName(cublasStatus_t status) {
    for (size_t one = 0; one < sizeof statuses / sizeof *statuses; one++)
        if (statuses[one].status == status)
            return statuses[one].name;
    return "unknown status";
}
PUBLIC const char *cublasGetStatusString(cublasStatus_t status) {
    for (size_t one = 0; one < sizeof statuses / sizeof *statuses; one++)
        if (statuses[one].status == status)
            return statuses[one].words;
    return "unknown status";
}

#define PROPERTY(Name, field, type)                                                                                    \
    PUBLIC cublasStatus_t cublasSet##Name(cublasHandle_t handle, type value) {                                         \
        if (!is_cublas(handle))                                                                                        \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        handle->field = value;                                                                                         \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublasGet##Name(cublasHandle_t handle, type *value) {                                        \
        if (!is_cublas(handle))                                                                                        \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        NEED(value != NULL);                                                                                           \
        *value = handle->field;                                                                                        \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
PROPERTY(Stream_v2, stream, cudaStream_t)
PROPERTY(PointerMode_v2, pointers, cublasPointerMode_t)
PROPERTY(AtomicsMode, atomics, cublasAtomicsMode_t)
PROPERTY(MathMode, math, cublasMath_t)
PUBLIC cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes) {
    (void)workspace, (void)bytes;
    return !is_cublas(handle) ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

/* --- Copies between the host and the device --- */
static cublasStatus_t copy_matrix(int rows, int columns, int bytes, const void *from, int from_rows, void *to, int to_rows,
                                  enum cudaMemcpyKind kind, cudaStream_t stream, int is_waited_for) {
    if (rows <= 0 || columns <= 0)
        return CUBLAS_STATUS_SUCCESS;
    NEED(bytes > 0 && from_rows >= rows && to_rows >= rows);
    size_t size = (size_t)bytes;
    cudaError_t error = cudaMemcpy2DAsync(to, to_rows * size, from, from_rows * size, rows * size, columns, kind, stream);
    if (error == cudaSuccess && is_waited_for)
        error = cudaStreamSynchronize(stream);
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}
#define COPIES(Name, kind)                                                                                             \
    PUBLIC cublasStatus_t cublas##Name##Vector(int n, int bytes, const void *from, int from_step, void *to, int to_step) { \
        return copy_matrix(1, n, bytes, from, from_step, to, to_step, kind, NULL, 1);                                  \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublas##Name##VectorAsync(int n, int bytes, const void *from, int from_step, void *to, int to_step, \
                                                    cudaStream_t stream) {                                             \
        return copy_matrix(1, n, bytes, from, from_step, to, to_step, kind, stream, 0);                                \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublas##Name##Matrix(int rows, int columns, int bytes, const void *from, int from_rows, void *to, \
                                               int to_rows) {                                                          \
        return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, kind, NULL, 1);                         \
    }                                                                                                                  \
    PUBLIC cublasStatus_t cublas##Name##MatrixAsync(int rows, int columns, int bytes, const void *from, int from_rows, void *to, \
                                                    int to_rows, cudaStream_t stream) {                                \
        return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, kind, stream, 0);                       \
    }
COPIES(Set, cudaMemcpyHostToDevice)
COPIES(Get, cudaMemcpyDeviceToHost)
