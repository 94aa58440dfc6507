"""Exact arithmetic by opcode and rounding, in single and in double precision: :data:`SINGLE` and :data:`DOUBLE`."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tests.emulator.oracle import directed
from tests.emulator.oracle.directed import fuse_exactly, round_to_odd, two_sum
from tests.emulator.oracle.lanes import over_lanes

# Fused multiply-add with rounding to nearest, fast: :func:`fuse_single`, :func:`fuse_double`.
#
# Single precision goes through double: the product is exact there, and adding is wrong only where the double sum is
# itself inexact and falls on the middle between two single-precision numbers. Those lanes are found by their bits and
# rounded again from a sum rounded to odd.
#
# Double precision takes numpy's product of complex numbers, (a + ci)(1 + bi), whose imaginary part is a·b + c·1 and is
# computed with a fused multiply-add on processors that have one. Whether it is, here, is tried once on cases that
# tell; if not, error-free transformations do it, several times slower.

Function = Callable[..., Any]


class ExactArithmetic(Struct, frozen=True, kw_only=True):
    """``add sub mul div sqrt fma`` of one precision."""

    fuse: Function  # the fused multiply-add, rounded to nearest
    # by opcode, what gives the function of a mode of rounding; ``sub`` is an addition
    directed: Mapping[str, Callable[[str], Function]]

    def find(self, opcode: str, mode: str) -> tuple[Function, int]:
        """The function, before ``.ftz`` and ``.sat``, and how many operands it takes.

        Args:
            opcode: ``add sub mul div sqrt fma``.
            mode: of rounding, ``rn rz rm rp``.
        """
        nearest, count = (self.fuse, 3) if opcode == "fma" else _NEAREST[opcode]
        if mode == "rn":
            return nearest, count
        if opcode == "sub":
            add = over_lanes(self.directed["add"](mode))
            return lambda a, b: add(a, np.negative(b)), 2
        return over_lanes(self.directed[opcode](mode)), count


_NEAREST: dict[str, tuple[Function, int]] = {
    "add": (np.add, 2),
    "sub": (np.subtract, 2),
    "mul": (np.multiply, 2),
    "div": (np.divide, 2),
    "sqrt": (np.sqrt, 1),
}

_LOW_28 = np.uint64(36)
_LOW_29 = np.uint64(35)
_NONE = np.uint64(0)
_HALF = np.uint64(1 << 63)
_SMALLEST_NORMAL = np.float64(2.0**-126)


def fuse_single(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of float32 with one rounding to nearest; arrays or scalars. NaNs are not canonical yet."""
    total: Any = np.multiply(a, b, dtype=np.float64)
    total = np.add(total, c, out=total) if type(total) is np.ndarray else np.add(total, c, dtype=np.float64)
    result = total.astype(np.float32)
    # A middle between two numbers, also between two subnormal ones, has its low 28 bits clear.
    if np.equal(np.left_shift(total.view(np.uint64), _LOW_28), _NONE).any():
        return _settle_middles(a, b, c, total, result)
    return result


def _settle_middles(a: Any, b: Any, c: Any, total: Any, result: Any) -> Any:
    middle = np.equal(np.left_shift(total.view(np.uint64), _LOW_29), _HALF)
    magnitude = np.abs(total)
    middle = np.logical_or(middle, np.logical_and(magnitude <= _SMALLEST_NORMAL, magnitude > 0))
    if not middle.any():
        return result
    if type(total) is not np.ndarray:
        product = np.multiply(a, b, dtype=np.float64)
        return round_to_odd(*two_sum(product, np.float64(c))).astype(np.float32)
    lanes = np.nonzero(middle)[0]
    a, b, c = (part[lanes] if type(part) is np.ndarray else part for part in (a, b, c))
    terms = np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64)
    result[lanes] = round_to_odd(*two_sum(*terms)).astype(np.float32)
    return result


def fuse_double(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of float64 with one rounding to nearest; arrays or scalars."""
    lanes = max(np.size(a), np.size(b), np.size(c))
    is_scalar = not (np.ndim(a) or np.ndim(b) or np.ndim(c))
    if not is_scalar and min(np.size(a), np.size(b), np.size(c)) == 0:
        return np.empty(0)
    if _multiplies_fused():
        result = _fuse_complex(a, b, c, lanes)
    else:
        left, right, addend = (np.broadcast_to(np.asarray(part, np.float64), lanes) for part in (a, b, c))
        result = fuse_exactly(left, right, addend)
    return result[0] if is_scalar else result


def _fuse_complex(a: Any, b: Any, c: Any, lanes: int) -> npt.NDArray[np.float64]:
    left, right = np.empty((2, max(lanes, 2)), np.complex128)  # numpy has no fused product of a single number
    left.real, left.imag = a, c
    right.real, right.imag = 1.0, b
    return np.ascontiguousarray(np.multiply(left, right, out=left).imag[:lanes])


@cache
def _multiplies_fused() -> bool:
    """Whether numpy's complex product is fused here, in arrays of any length."""
    random = np.random.Generator(np.random.PCG64(20))
    with np.errstate(all="ignore"):
        for lanes in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 1000):
            a, b = random.standard_normal((2, lanes))
            c = -(a * b) * (1.0 + random.integers(-1, 2, lanes) * 2.0**-52)  # almost cancels: only the rest is left
            if not np.array_equal(_fuse_complex(a, b, c, lanes), fuse_exactly(a, b, c)):
                return False
            if not np.array_equal(_fuse_complex(a, b, a, lanes), fuse_exactly(a, b, a)):
                return False
    return True


SINGLE = ExactArithmetic(
    fuse=fuse_single,
    directed={
        "add": directed.add_single,
        "mul": directed.multiply_single,
        "div": directed.divide_single,
        "sqrt": directed.root_single,
        "fma": directed.fuse_single,
    },
)
DOUBLE = ExactArithmetic(
    fuse=fuse_double,
    directed={
        "add": directed.add_double,
        "mul": directed.multiply_double,
        "div": directed.divide_double,
        "sqrt": directed.root_double,
        "fma": lambda mode: partial(directed.fuse_exactly, mode=mode),
    },
)
