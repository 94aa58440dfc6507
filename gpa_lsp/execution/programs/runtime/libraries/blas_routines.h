/* The routines of cuBLAS for one type of elements; included once for each. T: the type; R: the real one; FN(name): a function's name with the type's
   letter; FN_REAL(name): of one whose result is real; FN_INDEX(name): of one whose result is an index; NAME(function): the same as text;
   CONJ(x), MAGNITUDE(x): |re| + |im|, as BLAS measures elements; LOCAL(name): of what is ours; IS_COMPLEX.
   Source: the cuBLAS documentation; Lawson et al., Basic Linear Algebra Subprograms for Fortran usage (1979), and its levels 2 and 3. */

/* y += x0 * f0 + x1 * f1 + x2 * f2 + x3 * f3 */
CLONED static void LOCAL(add_four)(int n, const T *restrict x, size_t step, const T *factors, T *restrict y) {
    const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;
    T f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
    for (int i = 0; i < n; i++)
        y[i] += x[i] * f0 + x1[i] * f1 + x2[i] * f2 + x3[i] * f3;
}

/* y += x * factor */
CLONED static void LOCAL(add_one)(int n, const T *restrict x, T factor, T *restrict y) {
    for (int i = 0; i < n; i++)
        y[i] += x[i] * factor;
}

/* c = alpha op(a) op(b) + beta c, in blocks of a that stay in a cache. c is not read where beta is 0. */
static int LOCAL(multiply)(cublasOperation_t a_form, cublasOperation_t b_form, int m, int n, int k, T alpha, const T *a, size_t lda,
                           const T *b, size_t ldb, T beta, T *c, size_t ldc) {
    enum { ROWS = 256, DEPTH = 128 };
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            c[i + j * ldc] = beta == 0 ? 0 : beta * c[i + j * ldc];
    if (alpha == 0 || k == 0)
        return 1;
    T *block = malloc(sizeof(T) * ROWS * DEPTH);
    if (block == NULL)
        return 0;
    for (int l0 = 0; l0 < k; l0 += DEPTH)
        for (int i0 = 0; i0 < m; i0 += ROWS) {
            int depth = k - l0 < DEPTH ? k - l0 : DEPTH, rows = m - i0 < ROWS ? m - i0 : ROWS, padded = (depth + 3) & ~3;
            memset(block, 0, sizeof(T) * ROWS * padded);
            for (int l = 0; l < depth; l++)
                for (int i = 0; i < rows; i++) {
                    T one = a_form == CUBLAS_OP_N ? a[i0 + i + (l0 + l) * lda] : a[l0 + l + (i0 + i) * lda];
                    block[l * ROWS + i] = a_form == CUBLAS_OP_C ? CONJ(one) : one;
                }
            for (int j = 0; j < n; j++)
                for (int l = 0; l < padded; l += 4) {
                    T factors[4] = {0, 0, 0, 0};
                    for (int step = 0; step < 4 && l + step < depth; step++) {
                        size_t row = l0 + l + step;
                        T one = b_form == CUBLAS_OP_N ? b[row + j * ldb] : b[j + row * ldb];
                        factors[step] = alpha * (b_form == CUBLAS_OP_C ? CONJ(one) : one);
                    }
                    LOCAL(add_four)(rows, block + l * ROWS, ROWS, factors, c + i0 + j * ldc);
                }
        }
    free(block);
    return 1;
}

/* A square matrix whose one triangle counts, whole, with the operation done; NULL where there is no room.
   is_symmetric: the other triangle mirrors it, else it is zero. */
static T *LOCAL(expand)(cublasFillMode_t fill, cublasOperation_t form, int has_unit_diagonal, int is_symmetric, int n, const T *a,
                        size_t lda) {
    T *whole = calloc((size_t)n * n + 1, sizeof(T));
    for (int j = 0; whole != NULL && j < n; j++)
        for (int i = 0; i < n; i++) {
            int is_there = fill == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
            T one = is_there ? a[i + j * lda] : is_symmetric ? a[j + i * lda] : 0;
            if (i == j && has_unit_diagonal)
                one = 1;
            if (form == CUBLAS_OP_C)
                one = CONJ(one);
            whole[form == CUBLAS_OP_N ? i + (size_t)j * n : j + (size_t)i * n] = one;
        }
    return whole;
}

/* Solve whole * x = x, in place; whole is a triangle. */
static void LOCAL(solve)(int n, int is_upper, const T *whole, T *x) {
    for (int turn = 0; turn < n; turn++) {
        int j = is_upper ? n - 1 - turn : turn, next = is_upper ? 0 : j + 1;
        const T *column = whole + (size_t)j * n;
        x[j] /= column[j];
        LOCAL(add_one)(is_upper ? j : n - next, column + next, -x[j], x + next);
    }
}
/* Solve x * whole = x, in place, for x of m rows. */
static void LOCAL(solve_right)(int m, int n, int is_upper, const T *whole, T *x, size_t ldx) {
    for (int turn = 0; turn < n; turn++) {
        int j = is_upper ? turn : n - 1 - turn;
        const T *column = whole + (size_t)j * n;
        for (int l = is_upper ? 0 : j + 1; l < (is_upper ? j : n); l++)
            LOCAL(add_one)(m, x + l * ldx, -column[l], x + j * ldx);
        for (int i = 0; i < m; i++)
            x[i + j * ldx] /= column[j];
    }
}

/* --- Vectors --- */
PUBLIC cublasStatus_t FN_INDEX(amax)(cublasHandle_t handle, int n, const T *x, int incx, int *result) {
    BEGIN(FN_INDEX(amax));
    REACH(x, n > 0 && incx > 0 ? span(n, incx) : 0);
    REACH_SCALAR(result);
    int best = 0;
    for (int i = 1; i < n && incx > 0; i++)
        if (MAGNITUDE(x[(size_t)i * incx]) > MAGNITUDE(x[(size_t)best * incx]))
            best = i;
    *result = n > 0 && incx > 0 ? best + 1 : 0;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN_INDEX(amin)(cublasHandle_t handle, int n, const T *x, int incx, int *result) {
    BEGIN(FN_INDEX(amin));
    REACH(x, n > 0 && incx > 0 ? span(n, incx) : 0);
    REACH_SCALAR(result);
    int best = 0;
    for (int i = 1; i < n && incx > 0; i++)
        if (MAGNITUDE(x[(size_t)i * incx]) < MAGNITUDE(x[(size_t)best * incx]))
            best = i;
    *result = n > 0 && incx > 0 ? best + 1 : 0;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN_REAL(nrm2)(cublasHandle_t handle, int n, const T *x, int incx, R *result) {
    BEGIN(FN_REAL(nrm2));
    REACH(x, n > 0 && incx > 0 ? span(n, incx) : 0);
    REACH_SCALAR(result);
    long double sum = 0; /* no square overflows */
    for (int i = 0; i < n && incx > 0; i++) {
        T one = x[(size_t)i * incx];
        sum += (long double)REAL(one) * REAL(one) + (long double)IMAGINARY(one) * IMAGINARY(one);
    }
    *result = (R)sqrtl(sum);
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN_REAL(asum)(cublasHandle_t handle, int n, const T *x, int incx, R *result) {
    BEGIN(FN_REAL(asum));
    REACH(x, n > 0 && incx > 0 ? span(n, incx) : 0);
    REACH_SCALAR(result);
    double sum = 0;
    for (int i = 0; i < n && incx > 0; i++)
        sum += MAGNITUDE(x[(size_t)i * incx]);
    *result = (R)sum;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN(copy)(cublasHandle_t handle, int n, const T *x, int incx, T *y, int incy) {
    BEGIN(FN(copy));
    REACH(x, span(n, incx));
    REACH(y, span(n, incy));
    const T *from = x + first(n, incx);
    T *to = y + first(n, incy);
    for (ptrdiff_t i = 0; i < n; i++)
        to[i * incy] = from[i * incx];
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN(swap)(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy) {
    BEGIN(FN(swap));
    REACH(x, span(n, incx));
    REACH(y, span(n, incy));
    T *one = x + first(n, incx), *other = y + first(n, incy);
    for (ptrdiff_t i = 0; i < n; i++) {
        T kept = one[i * incx];
        one[i * incx] = other[i * incy];
        other[i * incy] = kept;
    }
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN(scal)(cublasHandle_t handle, int n, const T *alpha, T *x, int incx) {
    BEGIN(FN(scal));
    REACH(x, n > 0 && incx > 0 ? span(n, incx) : 0);
    REACH_SCALAR(alpha);
    for (int i = 0; i < n && incx > 0; i++)
        x[(size_t)i * incx] *= *alpha;
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN(axpy)(cublasHandle_t handle, int n, const T *alpha, const T *x, int incx, T *y, int incy) {
    BEGIN(FN(axpy));
    REACH(x, span(n, incx));
    REACH(y, span(n, incy));
    REACH_SCALAR(alpha);
    const T *from = x + first(n, incx);
    T *to = y + first(n, incy), factor = *alpha;
    for (ptrdiff_t i = 0; i < n && factor != 0; i++)
        to[i * incy] += factor * from[i * incx];
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t LOCAL(dot)(cublasHandle_t handle, const char *function, int is_conjugate, int n, const T *x, int incx,
                                 const T *y, int incy, T *result) {
    BEGIN_NAMED(function);
    REACH(x, span(n, incx));
    REACH(y, span(n, incy));
    REACH_SCALAR(result);
    const T *one = x + first(n, incx), *other = y + first(n, incy);
    WIDE sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += (WIDE)(is_conjugate ? CONJ(one[i * incx]) : one[i * incx]) * other[i * incy];
    *result = (T)sum;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t LOCAL(ger)(cublasHandle_t handle, const char *function, int is_conjugate, int m, int n, const T *alpha,
                                 const T *x, int incx, const T *y, int incy, T *a, int lda) {
    BEGIN_NAMED(function);
    NEED(m >= 0 && n >= 0 && incx != 0 && incy != 0 && lda >= (m > 1 ? m : 1));
    REACH(x, span(m, incx));
    REACH(y, span(n, incy));
    REACH(a, area(m, n, lda));
    REACH_SCALAR(alpha);
    const T *rows = x + first(m, incx), *columns = y + first(n, incy);
    for (ptrdiff_t j = 0; j < n && *alpha != 0; j++) {
        T factor = *alpha * (is_conjugate ? CONJ(columns[j * incy]) : columns[j * incy]);
        for (ptrdiff_t i = 0; i < m; i++)
            a[i + j * (size_t)lda] += factor * rows[i * incx];
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* --- A matrix and a vector --- */
static void LOCAL(multiply_vector)(cublasOperation_t form, int m, int n, T alpha, const T *a, size_t lda, const T *x, ptrdiff_t incx,
                                   T beta, T *y, ptrdiff_t incy) {
    int rows = form == CUBLAS_OP_N ? m : n, columns = form == CUBLAS_OP_N ? n : m;
    const T *from = x + first(columns, incx);
    T *to = y + first(rows, incy);
    for (ptrdiff_t i = 0; i < rows; i++)
        to[i * incy] = beta == 0 ? 0 : beta * to[i * incy];
    if (alpha == 0)
        return;
    if (form == CUBLAS_OP_N)
        for (ptrdiff_t j = 0; j < n; j++) {
            T factor = alpha * from[j * incx];
            for (ptrdiff_t i = 0; i < m; i++)
                to[i * incy] += factor * a[i + j * lda];
        }
    else
        for (ptrdiff_t j = 0; j < n; j++) {
            T sum = 0;
            for (ptrdiff_t i = 0; i < m; i++)
                sum += (form == CUBLAS_OP_C ? CONJ(a[i + j * lda]) : a[i + j * lda]) * from[i * incx];
            to[j * incy] += alpha * sum;
        }
}
PUBLIC cublasStatus_t FN(gemv)(cublasHandle_t handle, cublasOperation_t form, int m, int n, const T *alpha, const T *a, int lda,
                               const T *x, int incx, const T *beta, T *y, int incy) {
    BEGIN(FN(gemv));
    NEED(is_form(form) && m >= 0 && n >= 0 && incx != 0 && incy != 0 && lda >= (m > 1 ? m : 1));
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    if (m == 0 || n == 0)
        return CUBLAS_STATUS_SUCCESS;
    if (*alpha != 0) {
        REACH(a, area(m, n, lda));
        REACH(x, span(form == CUBLAS_OP_N ? n : m, incx));
    }
    REACH(y, span(form == CUBLAS_OP_N ? m : n, incy));
    LOCAL(multiply_vector)(form, m, n, *alpha, a, lda, x, incx, *beta, y, incy);
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN(symv)(cublasHandle_t handle, cublasFillMode_t fill, int n, const T *alpha, const T *a, int lda, const T *x,
                               int incx, const T *beta, T *y, int incy) {
    BEGIN(FN(symv));
    NEED(is_triangle(fill) && n >= 0 && incx != 0 && incy != 0 && lda >= (n > 1 ? n : 1));
    REACH(a, area(n, n, lda));
    REACH(x, span(n, incx));
    REACH(y, span(n, incy));
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    T *whole = LOCAL(expand)(fill, CUBLAS_OP_N, 0, 1, n, a, lda);
    if (whole == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    LOCAL(multiply_vector)(CUBLAS_OP_N, n, n, *alpha, whole, n, x, incx, *beta, y, incy);
    free(whole);
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN(trmv)(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t form, cublasDiagType_t diagonal, int n,
                               const T *a, int lda, T *x, int incx) {
    BEGIN(FN(trmv));
    NEED(is_triangle(fill) && is_form(form) && n >= 0 && incx != 0 && lda >= (n > 1 ? n : 1));
    REACH(a, area(n, n, lda));
    REACH(x, span(n, incx));
    T *whole = LOCAL(expand)(fill, form, diagonal == CUBLAS_DIAG_UNIT, 0, n, a, lda), *found = malloc(sizeof(T) * ((size_t)n + 1));
    if (whole == NULL || found == NULL) {
        free(whole);
        free(found);
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    LOCAL(multiply_vector)(CUBLAS_OP_N, n, n, 1, whole, n, x, incx, 0, found, 1);
    for (ptrdiff_t i = 0; i < n; i++)
        x[first(n, incx) + i * incx] = found[i];
    free(whole);
    free(found);
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN(trsv)(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t form, cublasDiagType_t diagonal, int n,
                               const T *a, int lda, T *x, int incx) {
    BEGIN(FN(trsv));
    NEED(is_triangle(fill) && is_form(form) && n >= 0 && incx != 0 && lda >= (n > 1 ? n : 1));
    REACH(a, area(n, n, lda));
    REACH(x, span(n, incx));
    T *whole = LOCAL(expand)(fill, form, diagonal == CUBLAS_DIAG_UNIT, 0, n, a, lda), *found = malloc(sizeof(T) * ((size_t)n + 1));
    if (whole == NULL || found == NULL) {
        free(whole);
        free(found);
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    T *place = x + first(n, incx);
    for (ptrdiff_t i = 0; i < n; i++)
        found[i] = place[i * incx];
    LOCAL(solve)(n, (fill == CUBLAS_FILL_MODE_UPPER) == (form == CUBLAS_OP_N), whole, found);
    for (ptrdiff_t i = 0; i < n; i++)
        place[i * incx] = found[i];
    free(whole);
    free(found);
    return CUBLAS_STATUS_SUCCESS;
}

/* --- Matrices --- */
static cublasStatus_t LOCAL(gemm)(const char *function, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n, int k, T alpha,
                                  const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc) {
    int a_rows = a_form == CUBLAS_OP_N ? m : k, b_rows = b_form == CUBLAS_OP_N ? k : n;
    NEED(is_form(a_form) && is_form(b_form) && m >= 0 && n >= 0 && k >= 0);
    NEED(lda >= (a_rows > 1 ? a_rows : 1) && ldb >= (b_rows > 1 ? b_rows : 1) && ldc >= (m > 1 ? m : 1));
    if (m == 0 || n == 0)
        return CUBLAS_STATUS_SUCCESS;
    if (alpha != 0) {
        REACH(a, area(a_rows, a_form == CUBLAS_OP_N ? k : m, lda));
        REACH(b, area(b_rows, b_form == CUBLAS_OP_N ? n : k, ldb));
    }
    REACH(c, area(m, n, ldc));
    int is_done = LOCAL(multiply)(a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return is_done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
PUBLIC cublasStatus_t FN(gemm)(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n, int k,
                               const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {
    BEGIN(FN(gemm));
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    return LOCAL(gemm)(function, a_form, b_form, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}
PUBLIC cublasStatus_t FN_PLAIN(gemmBatched)(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n,
                                            int k, const T *alpha, const T *const a[], int lda, const T *const b[], int ldb,
                                            const T *beta, T *const c[], int ldc, int count) {
    BEGIN(FN_PLAIN(gemmBatched));
    NEED(count >= 0);
    REACH(a, (size_t)count);
    REACH(b, (size_t)count);
    REACH(c, (size_t)count);
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    for (int one = 0; one < count && status == CUBLAS_STATUS_SUCCESS; one++)
        status = LOCAL(gemm)(function, a_form, b_form, m, n, k, *alpha, a[one], lda, b[one], ldb, *beta, c[one], ldc);
    return status;
}
PUBLIC cublasStatus_t FN_PLAIN(gemmStridedBatched)(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m,
                                                   int n, int k, const T *alpha, const T *a, int lda, long long a_step, const T *b,
                                                   int ldb, long long b_step, const T *beta, T *c, int ldc, long long c_step,
                                                   int count) {
    BEGIN(FN_PLAIN(gemmStridedBatched));
    NEED(count >= 0);
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    for (int one = 0; one < count && status == CUBLAS_STATUS_SUCCESS; one++)
        status = LOCAL(gemm)(function, a_form, b_form, m, n, k, *alpha, step_by(a, one, a_step, sizeof *a), lda,
                             step_by(b, one, b_step, sizeof *b), ldb, *beta, step_by(c, one, c_step, sizeof *c), ldc);
    return status;
}
PUBLIC cublasStatus_t FN(symm)(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, int m, int n, const T *alpha,
                               const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {
    BEGIN(FN(symm));
    int order = side == CUBLAS_SIDE_LEFT ? m : n;
    NEED(is_side(side) && is_triangle(fill) && m >= 0 && n >= 0);
    NEED(lda >= (order > 1 ? order : 1) && ldb >= (m > 1 ? m : 1) && ldc >= (m > 1 ? m : 1));
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    if (*alpha == 0)
        return LOCAL(gemm)(function, CUBLAS_OP_N, CUBLAS_OP_N, m, n, 0, 0, NULL, ldc, NULL, ldc, *beta, c, ldc);
    REACH(a, area(order, order, lda));
    REACH(b, area(m, n, ldb));
    REACH(c, area(m, n, ldc));
    T *whole = LOCAL(expand)(fill, CUBLAS_OP_N, 0, 1, order, a, lda);
    int is_done = whole != NULL &&
                  (side == CUBLAS_SIDE_LEFT
                       ? LOCAL(multiply)(CUBLAS_OP_N, CUBLAS_OP_N, m, n, m, *alpha, whole, m, b, ldb, *beta, c, ldc)
                       : LOCAL(multiply)(CUBLAS_OP_N, CUBLAS_OP_N, m, n, n, *alpha, b, ldb, whole, n, *beta, c, ldc));
    free(whole);
    return is_done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
PUBLIC cublasStatus_t FN(syrk)(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t form, int n, int k, const T *alpha,
                               const T *a, int lda, const T *beta, T *c, int ldc) {
    BEGIN(FN(syrk));
    int rows = form == CUBLAS_OP_N ? n : k;
    NEED(is_triangle(fill) && is_form(form) && n >= 0 && k >= 0 && lda >= (rows > 1 ? rows : 1) && ldc >= (n > 1 ? n : 1));
    NEED(!IS_COMPLEX || form != CUBLAS_OP_C); /* what is conjugated is herk's */
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    if (*alpha != 0)
        REACH(a, area(rows, form == CUBLAS_OP_N ? k : n, lda));
    REACH(c, area(n, n, ldc));
    T *whole = malloc(multiply_sizes(sizeof(T), (size_t)n * n + 1));
    cublasOperation_t other = form == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
    int is_done = whole != NULL && LOCAL(multiply)(form, other, n, n, k, *alpha, a, lda, a, lda, 0, whole, n);
    for (int j = 0; is_done && j < n; j++)
        for (int i = 0; i < n; i++)
            if (fill == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j) {
                T *one = &c[i + (size_t)j * ldc];
                *one = whole[i + (size_t)j * n] + (*beta == 0 ? 0 : *beta * *one);
            }
    free(whole);
    return is_done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
PUBLIC cublasStatus_t FN(trmm)(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t form,
                               cublasDiagType_t diagonal, int m, int n, const T *alpha, const T *a, int lda, const T *b, int ldb, T *c,
                               int ldc) {
    BEGIN(FN(trmm));
    int order = side == CUBLAS_SIDE_LEFT ? m : n;
    NEED(is_side(side) && is_triangle(fill) && is_form(form) && m >= 0 && n >= 0);
    NEED(lda >= (order > 1 ? order : 1) && ldb >= (m > 1 ? m : 1) && ldc >= (m > 1 ? m : 1));
    REACH_SCALAR(alpha);
    if (*alpha == 0)
        return LOCAL(gemm)(function, CUBLAS_OP_N, CUBLAS_OP_N, m, n, 0, 0, NULL, ldc, NULL, ldc, 0, c, ldc);
    REACH(a, area(order, order, lda));
    REACH(b, area(m, n, ldb));
    REACH(c, area(m, n, ldc));
    T *whole = LOCAL(expand)(fill, form, diagonal == CUBLAS_DIAG_UNIT, 0, order, a, lda);
    T *found = malloc(multiply_sizes(sizeof(T), (size_t)m * n + 1)); /* b and c may be the same */
    int is_done = whole != NULL && found != NULL &&
                  (side == CUBLAS_SIDE_LEFT
                       ? LOCAL(multiply)(CUBLAS_OP_N, CUBLAS_OP_N, m, n, m, *alpha, whole, m, b, ldb, 0, found, m)
                       : LOCAL(multiply)(CUBLAS_OP_N, CUBLAS_OP_N, m, n, n, *alpha, b, ldb, whole, n, 0, found, m));
    for (int j = 0; is_done && j < n; j++)
        memcpy(c + (size_t)j * ldc, found + (size_t)j * m, sizeof(T) * m);
    free(whole);
    free(found);
    return is_done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
PUBLIC cublasStatus_t FN(trsm)(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t form,
                               cublasDiagType_t diagonal, int m, int n, const T *alpha, const T *a, int lda, T *b, int ldb) {
    BEGIN(FN(trsm));
    int order = side == CUBLAS_SIDE_LEFT ? m : n;
    NEED(is_side(side) && is_triangle(fill) && is_form(form) && m >= 0 && n >= 0);
    NEED(lda >= (order > 1 ? order : 1) && ldb >= (m > 1 ? m : 1));
    REACH_SCALAR(alpha);
    if (*alpha == 0)
        return LOCAL(gemm)(function, CUBLAS_OP_N, CUBLAS_OP_N, m, n, 0, 0, NULL, ldb, NULL, ldb, 0, b, ldb);
    REACH(a, area(order, order, lda));
    REACH(b, area(m, n, ldb));
    int is_upper = (fill == CUBLAS_FILL_MODE_UPPER) == (form == CUBLAS_OP_N);
    T *whole = LOCAL(expand)(fill, form, diagonal == CUBLAS_DIAG_UNIT, 0, order, a, lda);
    if (whole == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    for (size_t j = 0; j < (size_t)n; j++)
        for (size_t i = 0; i < (size_t)m; i++)
            b[i + j * ldb] *= *alpha;
    if (side == CUBLAS_SIDE_RIGHT)
        LOCAL(solve_right)(m, n, is_upper, whole, b, ldb);
    for (size_t one = 0; side == CUBLAS_SIDE_LEFT && one < (size_t)n; one++)
        LOCAL(solve)(m, is_upper, whole, b + one * ldb);
    free(whole);
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN_PLAIN(geam)(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m, int n,
                                     const T *alpha, const T *a, int lda, const T *beta, const T *b, int ldb, T *c, int ldc) {
    BEGIN(FN_PLAIN(geam));
    int a_rows = a_form == CUBLAS_OP_N ? m : n, b_rows = b_form == CUBLAS_OP_N ? m : n;
    NEED(is_form(a_form) && is_form(b_form) && m >= 0 && n >= 0 && ldc >= (m > 1 ? m : 1));
    NEED(lda >= (a_rows > 1 ? a_rows : 1) && ldb >= (b_rows > 1 ? b_rows : 1));
    /* In place nothing is turned, nor do columns move. */
    NEED((c != a || (a_form == CUBLAS_OP_N && lda == ldc)) && (c != b || (b_form == CUBLAS_OP_N && ldb == ldc)));
    REACH_SCALAR(alpha);
    REACH_SCALAR(beta);
    if (*alpha != 0)
        REACH(a, a_form == CUBLAS_OP_N ? area(m, n, lda) : area(n, m, lda));
    if (*beta != 0)
        REACH(b, b_form == CUBLAS_OP_N ? area(m, n, ldb) : area(n, m, ldb));
    REACH(c, area(m, n, ldc));
    for (size_t j = 0; j < (size_t)n; j++)
        for (size_t i = 0; i < (size_t)m; i++) {
            T one = *alpha == 0 ? 0 : a_form == CUBLAS_OP_N ? a[i + j * lda] : a[j + i * lda];
            T other = *beta == 0 ? 0 : b_form == CUBLAS_OP_N ? b[i + j * ldb] : b[j + i * ldb];
            c[i + j * ldc] = *alpha * (a_form == CUBLAS_OP_C ? CONJ(one) : one) + *beta * (b_form == CUBLAS_OP_C ? CONJ(other) : other);
        }
    return CUBLAS_STATUS_SUCCESS;
}
PUBLIC cublasStatus_t FN_PLAIN(dgmm)(cublasHandle_t handle, cublasSideMode_t side, int m, int n, const T *a, int lda, const T *x,
                                     int incx, T *c, int ldc) {
    BEGIN(FN_PLAIN(dgmm));
    int order = side == CUBLAS_SIDE_LEFT ? m : n;
    NEED(is_side(side) && m >= 0 && n >= 0 && lda >= (m > 1 ? m : 1) && ldc >= (m > 1 ? m : 1));
    REACH(a, area(m, n, lda));
    REACH(x, span(order, incx));
    REACH(c, area(m, n, ldc));
    const T *factors = x + first(order, incx);
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = 0; i < m; i++)
            c[i + j * ldc] = a[i + j * lda] * factors[(side == CUBLAS_SIDE_LEFT ? i : j) * incx];
    return CUBLAS_STATUS_SUCCESS;
}

#undef T
#undef R
#undef WIDE
#undef FN
#undef FN_PLAIN
#undef FN_REAL
#undef FN_INDEX
#undef LOCAL
#undef IS_COMPLEX
#undef CONJ
#undef REAL
#undef IMAGINARY
#undef MAGNITUDE
