"""cuBLAS's functions on the host: what each computes, by numpy, in place.

A function's parameters are those of the function in the library, in order and without the handle; their annotations say their types in C, from which
:mod:`~gpa_lsp.execution.programs.library_calls` writes the functions that a program calls. To add a routine, add a function here.

Source: the cuBLAS documentation; Lawson et al., Basic Linear Algebra Subprograms for Fortran usage (1979), and its levels 2 and 3.
"""

# ruff: noqa: D103, PLR0917  (what a routine does, and its parameters, are the library's)

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.programs.library_calls import (
    PIECE,
    Algorithm,
    BlasCall,
    ComputeType,
    DataType,
    Diagonal,
    Fill,
    Form,
    In,
    IndexResult,
    Int,
    Long,
    ManyIn,
    ManyOut,
    Out,
    RealResult,
    RealScalar,
    Refusal,
    RefusedCall,
    Result,
    Routine,
    Scalar,
    Side,
    Values,
    enter_routine,
    read_values,
    write_values,
)
from gpa_lsp.execution.programs.messages import Argument

ROUTINES: dict[str, Routine] = {}  # by the function's name
_routine = partial(enter_routine, ROUTINES)
_MOST_STEPS = 1 << 31  # multiplications between two looks at the time
_BLOCK = 64  # rows of a triangle that are solved one by one
_N, _C = 0, 2  # cublasOperation_t; 1 transposes
_LEFT, _UPPER, _UNIT = 0, 1, 1


# --- Forms ---


def _is_form(*forms: int) -> bool:
    return all(one in (0, 1, 2) for one in forms)


def _is_flag(*flags: int) -> bool:
    """Whether the values are sides, or triangles."""
    return all(one in (0, 1) for one in flags)


def _apply(form: int, a: Values) -> Values:
    return a if form == _N else a.T.conj() if form == _C else a.T


def _turn(form: int, rows: int, columns: int) -> tuple[int, int]:
    """Shape of a stored matrix whose op() has the given rows and columns."""
    return (rows, columns) if form == _N else (columns, rows)


def _mask(fill: int, n: int) -> npt.NDArray[np.bool_]:
    mask = np.tri(n, dtype=bool)
    return mask.T if fill == _UPPER else mask


def _triangle(a: Values, fill: int, form: int, diagonal: int) -> Values:
    """op() of a triangular matrix, with zeros in the other triangle."""
    whole = np.where(_mask(fill, len(a)), a, a.dtype.type(0))
    if diagonal == _UNIT:
        np.fill_diagonal(whole, 1)
    return _apply(form, whole)


def _mirror(a: Values, fill: int) -> Values:
    """A symmetric matrix, from one of its triangles."""
    return np.where(_mask(fill, len(a)), a, a.T)


# --- Vectors ---


def _sizes(x: Values) -> Values:
    """Absolute values as BLAS measures elements: |re| + |im|."""
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else abs(x)


def _put_index(call: BlasCall, n: int, x: int, incx: int, result: Argument, sign: int) -> None:
    """The first of the largest elements, or of the smallest; NaN is neither, unless it comes first."""
    values = call.vector(x, n if incx > 0 else 0, incx)
    put = call.base.place_result(result, "i4")
    sizes = sign * _sizes(values)
    is_number = ~np.isnan(sizes)
    put(0 if not len(sizes) else 1 + int(np.where(is_number, sizes, -np.inf).argmax()) if is_number[0] else 1)


@_routine("I{i}amax_v2")
def amax(call: BlasCall, n: Int, x: In, incx: Int, result: IndexResult) -> None:
    _put_index(call, n, x, incx, result, 1)


@_routine("I{i}amin_v2")
def amin(call: BlasCall, n: Int, x: In, incx: Int, result: IndexResult) -> None:
    _put_index(call, n, x, incx, result, -1)


@_routine("{N}nrm2_v2")
def nrm2(call: BlasCall, n: Int, x: In, incx: Int, result: RealResult) -> None:
    """Sums squares in extended precision, in which no double overflows."""
    values = call.vector(x, n if incx > 0 else 0, incx)
    put = call.base.place_result(result, call.real)
    total = np.longdouble(0)
    for part in call.split(len(values)):
        for one in (values[part].real, values[part].imag)[: 1 + (values.dtype.kind == "c")]:
            total += np.square(one, dtype="f8" if call.real == "f4" else np.longdouble).sum()
    put(np.sqrt(total))


@_routine("{N}asum_v2")
def asum(call: BlasCall, n: Int, x: In, incx: Int, result: RealResult) -> None:
    values = call.vector(x, n if incx > 0 else 0, incx)
    put = call.base.place_result(result, call.real)
    put(sum(float(_sizes(values[part]).sum(dtype="f8")) for part in call.split(len(values))))


@_routine("{P}copy_v2")
def copy(call: BlasCall, n: Int, x: In, incx: Int, y: Out, incy: Int) -> None:
    for one, other in call.pairs(call.vector(x, n, incx), call.vector(y, n, incy)):
        other[...] = one


@_routine("{P}swap_v2")
def swap(call: BlasCall, n: Int, x: Out, incx: Int, y: Out, incy: Int) -> None:
    for one, other in call.pairs(call.vector(x, n, incx), call.vector(y, n, incy)):
        kept = one.copy()
        one[...] = other
        other[...] = kept


@_routine("{P}scal_v2")
def scal(call: BlasCall, n: Int, alpha: Scalar, x: Out, incx: Int) -> None:
    values = call.vector(x, n if incx > 0 else 0, incx)
    values *= call.scalar(alpha)


@_routine("{P}{r}scal_v2", "CZ")
def scale_complex(call: BlasCall, n: Int, alpha: RealScalar, x: Out, incx: Int) -> None:
    values = call.vector(x, n if incx > 0 else 0, incx)
    factor = call.base.scalar(alpha, call.real)
    values.real *= factor
    values.imag *= factor


@_routine("{P}axpy_v2")
def axpy(call: BlasCall, n: Int, alpha: Scalar, x: In, incx: Int, y: Out, incy: Int) -> None:
    one, other = call.vector(x, n, incx), call.vector(y, n, incy)
    factor = call.scalar(alpha)
    for some, into in call.pairs(one, other) if factor != 0 else ():
        np.add(into, factor * some, out=into)


@_routine("{P}dot_v2", "SD")
@_routine("{P}dotu_v2", "CZ")
@_routine("{P}dotc_v2", "CZ")
def dot(call: BlasCall, n: Int, x: In, incx: Int, y: In, incy: Int, result: Result) -> None:
    one, other = call.vector(x, n, incx), call.vector(y, n, incy)
    put = call.base.place_result(result, call.dtype)
    total = np.dtype(call.wide).type(0)
    for part in call.split(len(one)):
        left, right = one[part].astype(call.wide), other[part].astype(call.wide)
        total += (left.conj() if call.is_conjugated else left) @ right
    put(total)


@_routine("{P}rot_v2", "SD")
def rot(call: BlasCall, n: Int, x: Out, incx: Int, y: Out, incy: Int, c: RealScalar, s: RealScalar) -> None:
    one, other = call.vector(x, n, incx), call.vector(y, n, incy)
    cosine, sine = call.scalar(c), call.scalar(s)
    for left, right in call.pairs(one, other):
        kept = left.copy()
        left[...] = cosine * kept + sine * right
        right[...] = cosine * right - sine * kept


# --- A matrix and vectors ---


@_routine("{P}ger_v2", "SD")
@_routine("{P}geru_v2", "CZ")
@_routine("{P}gerc_v2", "CZ")
def ger(call: BlasCall, m: Int, n: Int, alpha: Scalar, x: In, incx: Int, y: In, incy: Int, a: Out, lda: Int) -> None:
    call.need(m >= 0 and n >= 0 and incx != 0 and incy != 0 and lda >= max(m, 1))
    rows, columns, into = call.vector(x, m, incx), call.vector(y, n, incy), call.matrix(a, m, n, lda)
    factor = call.scalar(alpha)
    for part in call.split(n, PIECE // max(m, 1)) if factor != 0 else ():
        factors = columns[part].conj() if call.is_conjugated else columns[part]
        into[:, part] += rows[:, None] * (factor * factors)


@_routine("{P}gemv_v2")
def gemv(
    call: BlasCall, form: Form, m: Int, n: Int, alpha: Scalar, a: In, lda: Int, x: In, incx: Int, beta: Scalar, y: Out,
    incy: Int,
) -> None:  # fmt: skip
    call.need(_is_form(form) and m >= 0 and n >= 0 and incx != 0 and incy != 0 and lda >= max(m, 1))
    factor, kept = call.scalar(alpha), call.scalar(beta)
    if m == 0 or n == 0:
        return
    rows, columns = _turn(form, m, n)
    if factor == 0:
        _multiply(call, factor, None, None, kept, call.vector(y, rows, incy)[:, None])
        return
    left, right = call.matrix(a, m, n, lda), call.vector(x, columns, incx)
    _multiply(call, factor, _apply(form, left), right[:, None], kept, call.vector(y, rows, incy)[:, None])


@_routine("{P}symv_v2")
def symv(
    call: BlasCall, fill: Fill, n: Int, alpha: Scalar, a: In, lda: Int, x: In, incx: Int, beta: Scalar, y: Out, incy: Int
) -> None:  # fmt: skip
    call.need(_is_flag(fill) and n >= 0 and incx != 0 and incy != 0 and lda >= max(n, 1))
    left, right, into = call.matrix(a, n, n, lda), call.vector(x, n, incx), call.vector(y, n, incy)
    factor, kept = call.scalar(alpha), call.scalar(beta)
    _multiply(call, factor, _mirror(left, fill), right[:, None], kept, into[:, None])


@_routine("{P}trmv_v2")
def trmv(
    call: BlasCall, fill: Fill, form: Form, diagonal: Diagonal, n: Int, a: In, lda: Int, x: Out, incx: Int
) -> None:
    call.need(_is_flag(fill) and _is_form(form) and n >= 0 and incx != 0 and lda >= max(n, 1))
    left, values = call.matrix(a, n, n, lda), call.vector(x, n, incx)
    values[...] = _triangle(left, fill, form, diagonal) @ values


@_routine("{P}trsv_v2")
def trsv(
    call: BlasCall, fill: Fill, form: Form, diagonal: Diagonal, n: Int, a: In, lda: Int, x: Out, incx: Int
) -> None:
    call.need(_is_flag(fill) and _is_form(form) and n >= 0 and incx != 0 and lda >= max(n, 1))
    left, values = call.matrix(a, n, n, lda), call.vector(x, n, incx)
    _solve(call, _apply(form, left), (fill == _UPPER) == (form == _N), diagonal, values[:, None])


# --- Matrices ---


def _multiply(
    call: BlasCall,
    alpha: Any,
    a: Values | None,
    b: Values | None,
    beta: Any,
    c: Values,
    *,
    wide: str | None = None,
    where: Values | None = None,
) -> None:
    """c = alpha a b + beta c; c is not read where beta is 0, nor are a and b, None then, where alpha is.

    Args:
        wide: what is computed in; None for the type of the elements.
        where: the elements of c that are written; None for all.
    """
    has_product = alpha != 0 and a is not None and b is not None and a.shape[1] > 0
    steps = a.shape[0] * a.shape[1] if has_product and a is not None else c.shape[0]
    left = read_values(a, wide) if has_product and a is not None else None
    for part in call.split(c.shape[1], _MOST_STEPS // max(steps, 1)):
        into = c[:, part]
        if left is not None and b is not None:
            right = read_values(b[:, part], wide)
            right = right if alpha == 1 else alpha * right
            found = (right.T @ left.T).T  # column-major, as c is
            if beta != 0:
                found += beta * read_values(into, wide)
        else:
            found = beta * read_values(into, wide) if beta != 0 else np.zeros(into.shape, wide or c.dtype)
        write_values(into, found, True if where is None else where[:, part])


class _Product(Struct, frozen=True, kw_only=True):
    """c = alpha op(a) op(b) + beta c, of one matrix or many."""

    forms: tuple[int, int]
    size: tuple[int, int, int]
    alpha: Any
    beta: Any
    steps: tuple[int, int, int]  # from column to column
    dtypes: tuple[str, str]  # of a and b, and of c
    wide: str | None  # what is computed in; None for the type of the elements

    def compute(self, call: BlasCall, a: int, b: int, c: int) -> None:
        m, n, k = self.size
        a_form, b_form = self.forms
        a_size, b_size = _turn(a_form, m, k), _turn(b_form, k, n)
        call.need(_is_form(*self.forms) and min(self.size) >= 0)
        rows = (a_size[0], b_size[0], m)
        call.need(all(step >= max(one, 1) for step, one in zip(self.steps, rows, strict=True)))
        if m == 0 or n == 0:
            return
        left = right = None
        if self.alpha != 0:
            left = _apply(a_form, call.base.matrix(a, *a_size, self.steps[0], self.dtypes[0]))
            right = _apply(b_form, call.base.matrix(b, *b_size, self.steps[1], self.dtypes[0]))
        into = call.base.matrix(c, m, n, self.steps[2], self.dtypes[1])
        _multiply(call, self.alpha, left, right, self.beta, into, wide=self.wide)


def _make_product(
    call: BlasCall, forms: tuple[int, int], size: tuple[int, int, int], alpha: Argument, beta: Argument,
    steps: tuple[int, int, int],
) -> _Product:  # fmt: skip
    is_half = call.dtype == "f2"
    return _Product(
        forms=forms, size=size, alpha=call.scalar(alpha), beta=call.scalar(beta), steps=steps,
        dtypes=(call.dtype, call.dtype), wide=call.wide if is_half else None,
    )  # fmt: skip


@_routine("{P}gemm_v2")
@_routine("{P}gemm", "H")
def gemm(
    call: BlasCall, a_form: Form, b_form: Form, m: Int, n: Int, k: Int, alpha: Scalar, a: In, lda: Int, b: In, ldb: Int,
    beta: Scalar, c: Out, ldc: Int,
) -> None:  # fmt: skip
    _make_product(call, (a_form, b_form), (m, n, k), alpha, beta, (lda, ldb, ldc)).compute(call, a, b, c)


@_routine("{P}gemmBatched")
def gemm_batched(
    call: BlasCall, a_form: Form, b_form: Form, m: Int, n: Int, k: Int, alpha: Scalar, a: ManyIn, lda: Int, b: ManyIn,
    ldb: Int, beta: Scalar, c: ManyOut, ldc: Int, count: Int,
) -> None:  # fmt: skip
    call.need(count >= 0)
    places = [call.base.vector(one, count, 1, "u8").tolist() for one in (a, b, c)]
    product = _make_product(call, (a_form, b_form), (m, n, k), alpha, beta, (lda, ldb, ldc))
    for left, right, into in zip(*places, strict=True):
        call.check_time()
        product.compute(call, left, right, into)


def _compute_strided(
    call: BlasCall, product: _Product, places: tuple[int, int, int], steps: tuple[int, int, int], count: int
) -> None:
    """Compute a product for each of *count* matrices, *steps* elements apart."""
    a, b, c = (np.dtype(product.dtypes[which]).itemsize * step for which, step in zip((0, 0, 1), steps, strict=True))
    for one in range(count):
        call.check_time()
        product.compute(call, places[0] + one * a, places[1] + one * b, places[2] + one * c)


@_routine("{P}gemmStridedBatched", "SDCZH")
def gemm_strided_batched(
    call: BlasCall, a_form: Form, b_form: Form, m: Int, n: Int, k: Int, alpha: Scalar, a: In, lda: Int, a_step: Long,
    b: In, ldb: Int, b_step: Long, beta: Scalar, c: Out, ldc: Int, c_step: Long, count: Int,
) -> None:  # fmt: skip
    call.need(count >= 0)
    product = _make_product(call, (a_form, b_form), (m, n, k), alpha, beta, (lda, ldb, ldc))
    _compute_strided(call, product, (a, b, c), (a_step, b_step, c_step), count)


# cudaDataType; ``u2`` stands for bfloat16
_R_32F, _R_64F, _R_16F, _R_8I, _C_32F, _C_64F, _R_32I, _R_16BF = 0, 1, 2, 3, 4, 5, 10, 14
_DTYPES = {
    _R_32F: "f4", _R_64F: "f8", _R_16F: "f2", _R_8I: "i1", _C_32F: "c8", _C_64F: "c16", _R_32I: "i4", _R_16BF: "u2",
}  # fmt: skip
# types of scalars, of a and b, and of c, that go together
_COMBINED = {
    (_R_16F, _R_16F, _R_16F), (_R_32I, _R_8I, _R_32I), (_R_64F, _R_64F, _R_64F), (_C_64F, _C_64F, _C_64F),
    (_C_32F, _C_32F, _C_32F), (_R_32F, _R_16F, _R_16F), (_R_32F, _R_16BF, _R_16BF),
    *((_R_32F, one, _R_32F) for one in (_R_8I, _R_16F, _R_16BF, _R_32F)),
}  # fmt: skip


def _find_scale(computing: int, c_type: int) -> int:
    """The type of scalars, by ``cublasComputeType_t``."""
    if computing in (64, 65):
        return _R_16F
    if computing in (72, 73):
        return _R_32I
    if computing in (70, 71):
        return _C_64F if c_type == _C_64F else _R_64F
    return _C_32F if c_type == _C_32F else _R_32F


@_routine("GemmStridedBatchedEx", "", scalar_bytes="scale_bytes(computing, c_type)")
def gemm_strided_batched_mixed(
    call: BlasCall, a_form: Form, b_form: Form, m: Int, n: Int, k: Int, alpha: Scalar, a: In, a_type: DataType, lda: Int,
    a_step: Long, b: In, b_type: DataType, ldb: Int, b_step: Long, beta: Scalar, c: Out, c_type: DataType, ldc: Int,
    c_step: Long, count: Int, computing: ComputeType, algorithm: Algorithm,
) -> None:  # fmt: skip
    """Multiplies all types but float in double precision, and rounds the result."""
    del algorithm
    call.need(count >= 0)
    scale = _find_scale(computing, c_type)
    if a_type != b_type or (scale, a_type, c_type) not in _COMBINED:
        raise RefusedCall(Refusal.NOT_SUPPORTED)
    is_single, is_complex = a_type == _R_32F, a_type in (_C_32F, _C_64F)
    wide = None if is_single else "c16" if is_complex else "f8"
    product = _Product(
        forms=(a_form, b_form),
        size=(m, n, k),
        alpha=call.base.scalar(alpha, _DTYPES[scale]).astype(wide or "f4"),
        beta=call.base.scalar(beta, _DTYPES[scale]).astype(wide or "f4"),
        steps=(lda, ldb, ldc),
        dtypes=(_DTYPES[a_type], _DTYPES[c_type]),
        wide=wide,
    )
    _compute_strided(call, product, (a, b, c), (a_step, b_step, c_step), count)


@_routine("GemmEx", "", scalar_bytes="scale_bytes(computing, c_type)")
def gemm_mixed(
    call: BlasCall, a_form: Form, b_form: Form, m: Int, n: Int, k: Int, alpha: Scalar, a: In, a_type: DataType, lda: Int,
    b: In, b_type: DataType, ldb: Int, beta: Scalar, c: Out, c_type: DataType, ldc: Int, computing: ComputeType,
    algorithm: Algorithm,
) -> None:  # fmt: skip
    gemm_strided_batched_mixed(
        call, a_form, b_form, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1,
        computing, algorithm,
    )  # fmt: skip


@_routine("SgemmEx", "", scalar_bytes="sizeof(float)")
def gemm_mixed_single(
    call: BlasCall, a_form: Form, b_form: Form, m: Int, n: Int, k: Int, alpha: RealScalar, a: In, a_type: DataType,
    lda: Int, b: In, b_type: DataType, ldb: Int, beta: RealScalar, c: Out, c_type: DataType, ldc: Int,
) -> None:  # fmt: skip
    if c_type == _C_32F:
        raise RefusedCall(Refusal.NOT_SUPPORTED)
    gemm_mixed(call, a_form, b_form, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, 68, -1)


@_routine("{P}symm_v2")
def symm(
    call: BlasCall, side: Side, fill: Fill, m: Int, n: Int, alpha: Scalar, a: In, lda: Int, b: In, ldb: Int, beta: Scalar,
    c: Out, ldc: Int,
) -> None:  # fmt: skip
    order = m if side == _LEFT else n
    call.need(_is_flag(side, fill) and m >= 0 and n >= 0 and lda >= max(order, 1) and min(ldb, ldc) >= max(m, 1))
    factor, kept = call.scalar(alpha), call.scalar(beta)
    if factor == 0:
        _multiply(call, factor, None, None, kept, call.matrix(c, m, n, ldc))
        return
    left, right, into = call.matrix(a, order, order, lda), call.matrix(b, m, n, ldb), call.matrix(c, m, n, ldc)
    whole = _mirror(left, fill)
    one, other = (whole, right) if side == _LEFT else (right, whole)
    _multiply(call, factor, one, other, kept, into)


@_routine("{P}syrk_v2")
def syrk(
    call: BlasCall, fill: Fill, form: Form, n: Int, k: Int, alpha: Scalar, a: In, lda: Int, beta: Scalar, c: Out, ldc: Int
) -> None:  # fmt: skip
    rows, columns = _turn(form, n, k)
    call.need(_is_flag(fill) and _is_form(form) and n >= 0 and k >= 0 and lda >= max(rows, 1) and ldc >= max(n, 1))
    call.need(call.dtype not in ("c8", "c16") or form != _C)  # what is conjugated is herk's
    factor, kept = call.scalar(alpha), call.scalar(beta)
    left = None if factor == 0 else _apply(min(form, 1), call.matrix(a, rows, columns, lda))
    right = None if left is None else left.T
    into = call.matrix(c, n, n, ldc)
    _multiply(call, factor, left, right, kept, into, where=_mask(fill, n))


@_routine("{P}trmm_v2")
def trmm(
    call: BlasCall, side: Side, fill: Fill, form: Form, diagonal: Diagonal, m: Int, n: Int, alpha: Scalar, a: In,
    lda: Int, b: In, ldb: Int, c: Out, ldc: Int,
) -> None:  # fmt: skip
    """Computes out of place, unlike BLAS; c may be b."""
    order = m if side == _LEFT else n
    call.need(_is_flag(side, fill) and _is_form(form) and m >= 0 and n >= 0)
    call.need(lda >= max(order, 1) and min(ldb, ldc) >= max(m, 1))
    factor = call.scalar(alpha)
    if factor == 0:
        call.matrix(c, m, n, ldc)[...] = 0
        return
    left, right, into = call.matrix(a, order, order, lda), call.matrix(b, m, n, ldb), call.matrix(c, m, n, ldc)
    whole = _triangle(left, fill, form, diagonal)
    one, other = (whole, right) if side == _LEFT else (right, whole)
    found = np.empty_like(into, order="F")
    _multiply(call, factor, one, other, 0, found)
    into[...] = found


def _divide(x: Values, by: Any) -> Any:
    """Quotients; complex ones by infinity or 0 are NaN, as on a GPU. Source: ``cuCdiv`` of ``cuComplex.h``."""
    if x.dtype.kind != "c":
        return x / by
    scale = by.real.dtype.type(1) / _sizes(by)
    scaled = by * scale
    return x * scale * scaled.conj() / (scaled * scaled.conj()).real


def _solve(call: BlasCall, a: Values, is_upper: bool, diagonal: int, x: Values) -> None:
    """Solve a y = x for the columns of x, in place; the other triangle of a is not read.

    Rows of a block are done one by one, and what they leave to the others by a product.
    """
    n = len(a)
    firsts = range(0, n, _BLOCK)
    for first in reversed(firsts) if is_upper else firsts:
        call.check_time()
        last = min(first + _BLOCK, n)
        for row in reversed(range(first, last)) if is_upper else range(first, last):
            rest = slice(first, row) if is_upper else slice(row + 1, last)
            if diagonal != _UNIT:
                x[row] = _divide(x[row], a[row, row])
            x[rest] -= a[rest, row, None] * x[row]
        rest = slice(0, first) if is_upper else slice(last, n)
        x[rest] -= a[rest, first:last] @ x[first:last]


@_routine("{P}trsm_v2")
def trsm(
    call: BlasCall, side: Side, fill: Fill, form: Form, diagonal: Diagonal, m: Int, n: Int, alpha: Scalar, a: In,
    lda: Int, b: Out, ldb: Int,
) -> None:  # fmt: skip
    order = m if side == _LEFT else n
    call.need(_is_flag(side, fill) and _is_form(form) and m >= 0 and n >= 0)
    call.need(lda >= max(order, 1) and ldb >= max(m, 1))
    factor = call.scalar(alpha)
    if factor == 0:
        call.matrix(b, m, n, ldb)[...] = 0
        return
    left, into = _apply(form, call.matrix(a, order, order, lda)), call.matrix(b, m, n, ldb)
    is_upper = (fill == _UPPER) == (form == _N)
    found = np.ascontiguousarray(factor * (into if side == _LEFT else into.T))
    if side == _LEFT:
        _solve(call, left, is_upper, diagonal, found)
    else:  # the transposed equation
        _solve(call, left.T, not is_upper, diagonal, found)
    into[...] = found if side == _LEFT else found.T


@_routine("{P}geam")
def geam(
    call: BlasCall, a_form: Form, b_form: Form, m: Int, n: Int, alpha: Scalar, a: In, lda: Int, beta: Scalar, b: In,
    ldb: Int, c: Out, ldc: Int,
) -> None:  # fmt: skip
    a_size, b_size = _turn(a_form, m, n), _turn(b_form, m, n)
    call.need(_is_form(a_form, b_form) and m >= 0 and n >= 0 and ldc >= max(m, 1))
    call.need(lda >= max(a_size[0], 1) and ldb >= max(b_size[0], 1))
    # In place nothing is turned, nor do columns move.
    call.need(c != a or (a_form == _N and lda == ldc))
    call.need(c != b or (b_form == _N and ldb == ldc))
    parts = ((call.scalar(alpha), a_form, a, a_size, lda), (call.scalar(beta), b_form, b, b_size, ldb))
    found = [factor * _apply(form, call.matrix(one, *size, ld)) for factor, form, one, size, ld in parts if factor != 0]
    call.matrix(c, m, n, ldc)[...] = sum(found)


@_routine("{P}dgmm")
def dgmm(call: BlasCall, side: Side, m: Int, n: Int, a: In, lda: Int, x: In, incx: Int, c: Out, ldc: Int) -> None:
    call.need(_is_flag(side) and m >= 0 and n >= 0 and min(lda, ldc) >= max(m, 1))
    left, factors = call.matrix(a, m, n, lda), call.vector(x, m if side == _LEFT else n, incx)
    call.matrix(c, m, n, ldc)[...] = left * (factors[:, None] if side == _LEFT else factors)
