"""Numbers of a type: whether they fit it, and their bytes."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.errors import InputError


def check_scalar(value: int | float, kind: ScalarType) -> int | float:
    """The number as the type holds it: integers for integer types, floats for others.

    Raises:
        InputError: it does not fit.

    >>> check_scalar(3, ScalarType.F32), check_scalar(4.0, ScalarType.S32)
    (3.0, 4)
    """
    if kind.is_float:
        try:
            return float(value)
        except OverflowError:
            raise _refuse(value, kind) from None
    if isinstance(value, float):
        if not value.is_integer():
            raise InputError(
                f"{value} is not an integer, but the type is {kind.value}", remedy="give an integer, or another type"
            )
        value = int(value)
    bits = 8 * kind.bytes
    least = -(1 << (bits - 1)) if kind.value[0] in "sb" else 0
    most = (1 << (bits - 1)) - 1 if kind.value[0] == "s" else (1 << bits) - 1
    if not least <= value <= most:
        raise _refuse(value, kind)
    return value


def _refuse(value: int | float, kind: ScalarType) -> InputError:
    return InputError(f"{value} does not fit {kind.value}", remedy="give a smaller number, or a wider type")


def pack_scalar(value: int | float, kind: ScalarType) -> bytes:
    """The number's bytes, little-endian, rounded to the nearest; too large ones become infinite.

    >>> pack_scalar(-1, ScalarType.S16), pack_scalar(1.0, ScalarType.BF16), pack_scalar(1.0, ScalarType.F16)
    (b'\\xff\\xff', b'\\x80?', b'\\x00<')
    """
    if kind.is_float:
        return round_floats(np.array([value], dtype=np.float64), kind).tobytes()
    return (int(value) & ((1 << (8 * kind.bytes)) - 1)).to_bytes(kind.bytes, "little")


def round_floats(values: npt.NDArray[np.float64], kind: ScalarType) -> npt.NDArray[np.generic]:
    """Numbers in the natural dtype of a floating-point type: ``f16`` and ``bf16`` as the bits they have; rounded to the nearest, ties to even."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if kind == ScalarType.F16:
            return values.astype(np.float16).view(np.uint16)
        if kind == ScalarType.BF16:
            return _round_to_bfloat16(values)
        return values.astype(kind.natural_dtype)


def _round_to_bfloat16(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    """Rounded once: the double's own bits decide, not those of a float between."""
    bits = np.abs(values).astype(np.float32).view(np.uint32).astype(np.int64)
    # The float may have been rounded onto a tie; one unit is taken back or added so that the tie goes to the side the double is on.
    nearest = np.abs(values).astype(np.float32).astype(np.float64)
    bits = 2 * bits + np.where(nearest > np.abs(values), -1, np.where(nearest < np.abs(values), 1, 0))
    kept = bits >> 17
    rest = bits & 0x1FFFF
    rounded = kept + ((rest > 0x10000) | ((rest == 0x10000) & (kept & 1 == 1)))
    rounded = np.where(np.isinf(nearest), 0x7F80, np.where(np.isnan(values), 0x7FFF, rounded))
    return (rounded | np.where(np.signbit(values) & ~np.isnan(values), 0x8000, 0)).astype(np.uint16)
