"""Floating-point numbers of 32 lanes: PTX's rules, any format and any rounding: typed Python.

Source: PTX ISA 9.0, sections 5.2.3 (alternate formats) and 9.7.3: NaN results of f32 are 0x7FFFFFFF; ``.ftz`` flushes subnormal operands and results
to zeros of the same sign; ``.sat`` clamps to [0, 1] and makes NaN +0. IEEE 754-2019, section 4.3 (rounding).
"""

from msgspec import Struct

from gpa_lsp.foundation.machine_code.types import (
    LANES,
    as_bits,
    as_float,
    f32,
    f64,
    fma,
    lanes,
    leading_zeros,
    local,
    put,
    s32,
    s64,
    sqrt,
    u32,
    u64,
    u128,
)

NEAREST, TOWARDS_ZERO, DOWN, UP, AWAY = range(5)


class Format(Struct, frozen=True):
    """A binary floating-point format."""

    bits: int  # of all of it
    stored: int  # bits of the fraction
    lowest: int  # exponent of the least normal number
    most: int  # bits of the largest finite number; those of infinity are one more
    has_infinity: bool  # False: what is too large becomes NaN
    nan: int  # the canonical NaN; where there is none, what stands for it


SINGLE = Format(32, 23, -126, 0x7F7FFFFF, True, 0x7FFFFFFF)
DOUBLE = Format(64, 52, -1022, 0x7FEFFFFFFFFFFFFF, True, 0x7FF8000000000000)
F16 = Format(16, 10, -14, 0x7BFF, True, 0x7FFF)
BF16 = Format(16, 7, -126, 0x7F7F, True, 0x7FFF)
TF32 = Format(19, 10, -126, 0x3FBFF, True, 0x3FFFF)  # the high bits of 32
E4M3 = Format(8, 3, -6, 0x7E, False, 0x7F)
E5M2 = Format(8, 2, -14, 0x7B, True, 0x7F)
E2M3 = Format(6, 3, 0, 0x1F, False, 0x1F)
E3M2 = Format(6, 2, -2, 0x1F, False, 0x1F)
E2M1 = Format(4, 1, 0, 0x7, False, 0x7)


# Rules of arithmetic


def canonical(value):
    """Every NaN of single precision has these bits."""
    return value if value == value else as_float(u32(0x7FFFFFFF))


def flush(value):
    """Subnormal numbers of single precision become zero."""
    bits = as_bits(value)
    return as_float(bits & 0x80000000) if (bits & 0x7F800000) == 0 else value


def flush_double(value):
    """Subnormal numbers of double precision become zero."""
    bits = as_bits(value)
    return as_float(bits & 0x8000000000000000) if (bits & 0x7FF0000000000000) == 0 else value


def cut_low_word(value):
    """``.approx.ftz.f64``: only the upper 32 bits count, and subnormal numbers are zeros."""
    return as_float(as_bits(flush_double(value)) & 0xFFFFFFFF00000000)


def keep_high_word(value):
    """:func:`cut_low_word` of an operand; NaN stays."""
    return cut_low_word(value) if value == value else value


def saturate(value):
    """Clamp to [0, 1]; NaN becomes +0, and so does −0."""
    above = value if value > 0.0 else 0.0
    return above if above < 1.0 else 1.0


def clip_negative(value):
    """``.relu``: negative numbers and −0 become +0; NaN stays."""
    return 0.0 if value <= 0.0 else value


def keep_nan(first, result):
    """A result; where the first operand is NaN, that one, made quiet: LLVM swaps the operands of sums and products."""
    return result if first == first else as_float(as_bits(first) | 1 << 51)


def high_bit(bits):
    """The highest bit of a word."""
    return ~(~(bits & 0) >> 1)


def magnitude(value):
    """Magnitude of a number."""
    return as_float(as_bits(value) << 1 >> 1)


def negate(value):
    """A number or NaN with the other sign."""
    return as_float(as_bits(value) ^ high_bit(as_bits(value)))


def least(a, b):
    """The lesser; of zeros the negative one, a number rather than NaN, and of two NaNs the first."""
    chosen = a if b != b else b if a != a else a if a < b else b
    return as_float(as_bits(a) | as_bits(b)) if a == b else chosen


def greatest(a, b):
    """The greater; of zeros the positive one, a number rather than NaN, and of two NaNs the first."""
    chosen = a if b != b else b if a != a else a if a > b else b
    return as_float(as_bits(a) & as_bits(b)) if a == b else chosen


def or_nan(a, b, result):
    """``.NaN``: NaN, the first one, where an operand is."""
    return a if a != a else b if b != b else result


def copy_sign(value, sign):
    """A number with the sign that the highest of some bits is."""
    top = high_bit(sign)
    return as_float((as_bits(value) & ~top) | (sign & top))


# Rounding


def round_magnitude(word, significand, exponent, top, is_negative, stored, lowest, mode):
    """The bits, but for the sign, that a format has for significand · 2^exponent; what is too large gives a larger number than any of it.

    Args:
        word: unsigned type of the significand and of what is given; twice as many bits as the significand has are not needed.
        exponent: s32 or s64.
        top: the significand's highest bit that may be set; lower where the exponent is the lowest of the format that it comes from.
    """
    short = lowest - top - exponent  # by how much it is below normal numbers
    below = 0 if short < 0 else stored + 2 if short > stored + 2 else short
    shift = word(below) + word(top - stored)
    kept = significand >> shift
    rest = significand - (kept << shift)
    half = word(1) << (shift - 1)
    is_up = word(is_negative == 0) if mode == UP else word(is_negative != 0) if mode == DOWN else word(0)
    ups = word(rest != 0) & is_up
    ups = word(rest + (kept & 1) > half) if mode == NEAREST else word(rest >= half) if mode == AWAY else ups
    return kept + ups + (word(0 if short > 0 else -short) << word(stored))


def narrow(value, of, word, signed, to, mode, saturates):
    """A number of a wider format as one of a narrower: its bits, in an unsigned integer of as many bits as the wider has.

    Args:
        of: SINGLE or DOUBLE.
        word: u32 or u64.
        signed: s32 or s64.
        to: the narrower format.
        saturates: what is too large becomes the largest finite number.
    """
    bits = as_bits(value)
    sign = bits >> (of.bits - 1)
    size = bits & ((1 << of.bits - 1) - 1)
    field = signed(size >> of.stored)
    fraction = size & ((1 << of.stored) - 1)
    significand = fraction if field == 0 else fraction | (1 << of.stored)
    exponent = (1 if field == 0 else field) + (of.lowest - of.stored - 1)
    found = round_magnitude(word, significand, exponent, of.stored, sign, to.stored, to.lowest, mode)
    instead = sign * 0 + to.most + 1
    if saturates:
        instead = sign * 0 + to.most
    elif not to.has_infinity:
        instead = sign * 0 + to.nan
    elif mode == TOWARDS_ZERO:
        instead = word(to.most) + word(size == of.most + 1)
    elif mode == DOWN:
        instead = word(to.most) + (word(size == of.most + 1) | sign)
    elif mode == UP:
        instead = word(to.most) + (word(size == of.most + 1) | (sign ^ 1))
    kept = found if found <= to.most else instead
    is_nan = size > of.most + 1
    if not saturates and not to.has_infinity:
        is_nan = is_nan or found > to.most
    return (sign * 0 + to.nan) if is_nan else kept | sign << (to.bits - 1)


def narrow_single(value, to, mode, saturates):
    """:func:`narrow` of f32: u32."""
    return narrow(value, SINGLE, u32, s32, to, mode, saturates)


def narrow_double(value, to, mode, saturates):
    """:func:`narrow` of f64: u64."""
    return narrow(value, DOUBLE, u64, s64, to, mode, saturates)


def flush_bits(bits, of):
    """Bits of a format, of subnormal numbers those of zero."""
    exponent = (1 << of.bits - 1) - (1 << of.stored)
    return bits & (1 << of.bits - 1) if (bits & exponent) == 0 else bits


def widen(bits, of):
    """Bits (u32) of a format as f32, which holds all its numbers. NaNs are canonical, but those of bf16 and tf32."""
    moved = (bits & ((1 << of.bits - 1) - 1)) << (23 - of.stored)
    sign = bits >> (of.bits - 1) << 31
    if of.lowest == -126:
        return as_float(moved | sign)
    found = as_bits(as_float(moved) * (2.0 ** (126 + of.lowest))) | sign
    if of.has_infinity:
        found = (sign | 0x7F800000) if moved == ((of.most + 1) << (23 - of.stored)) else found
    limit = (of.most + (1 if of.has_infinity else 0)) << (23 - of.stored)
    return as_float(u32(0x7FFFFFFF) if moved > limit else found)


# Exact arithmetic, rounded once as it is asked for: one lane at a time


def find_significand(value: f64) -> u64:
    """Significand of a finite double as an integer: its magnitude is significand · 2^exponent."""
    size = as_bits(value) & 0x7FFFFFFFFFFFFFFF
    fraction = size & 0xFFFFFFFFFFFFF
    return fraction if size >> 52 == 0 else fraction | 0x10000000000000


def find_exponent(value: f64) -> s64:
    """Exponent of the integer significand of a finite double."""
    field = s64(as_bits(value) >> 52 & 0x7FF)
    return (1 if field == 0 else field) - 1075


def is_finite(value: f64) -> u32:
    """Whether a number is neither infinite nor NaN."""
    return u32((as_bits(value) >> 52 & 0x7FF) != 0x7FF)


def round_exact(significand: u128, exponent: s64, is_negative: u64, mode: s32, single: u32) -> u64:
    """The bits of significand · 2^exponent, which is not 0 and below 2^126, in double precision or in single."""
    up = s64(leading_zeros(significand)) - 2
    moved, low = significand << u128(up), exponent - up
    stored, lowest, most = s64(52), s64(-1022), u64(0x7FEFFFFFFFFFFFFF)
    if single != 0:
        stored, lowest, most = s64(23), s64(-126), u64(0x7F7FFFFF)
    found = round_magnitude(u128, moved, low, 125, is_negative, stored, lowest, mode)
    if found > u128(most):
        goes_in = mode == TOWARDS_ZERO or (mode == DOWN and is_negative == 0) or (mode == UP and is_negative != 0)
        found = u128(most) + (u128(0) if goes_in else u128(1))
    return u64(found) | is_negative << u64(31 if single != 0 else 63)


def as_result(value: f64, single: u32) -> u64:
    """The bits of a number that is one of either precision, or NaN."""
    if single == 0:
        return as_bits(value)
    return u64(as_bits(f32(value)))


def fuse_exactly(a: f64, b: f64, c: f64, mode: s32, single: u32) -> u64:
    """a · b + c."""
    if is_finite(a) == 0 or is_finite(b) == 0 or is_finite(c) == 0:
        return as_result(keep_nan(a, keep_nan(b, fma(a, b, c))), single)
    sign, other_sign = (as_bits(a) ^ as_bits(b)) >> 63, as_bits(c) >> 63
    product, low = u128(find_significand(a)) * u128(find_significand(b)), find_exponent(a) + find_exponent(b)
    addend, other_low = u128(find_significand(c)), find_exponent(c)
    if product == 0 and addend == 0:
        zero = sign if sign == other_sign else u64(1 if mode == DOWN else 0)
        return zero << u64(31 if single != 0 else 63)
    if product == 0:
        return round_exact(addend, other_low, other_sign, mode, single)
    if addend == 0:
        return round_exact(product, low, sign, mode, single)
    up, other_up = s64(leading_zeros(product)) - 3, s64(leading_zeros(addend)) - 3
    product, low, addend, other_low = product << u128(up), low - up, addend << u128(other_up), other_low - other_up
    if low < other_low:
        product, addend, low, other_low, sign, other_sign = addend, product, other_low, low, other_sign, sign
    distance = low - other_low
    if distance > 126:
        addend = u128(1)
    else:
        cut = addend >> u128(distance)
        addend = cut | u128((cut << u128(distance)) != addend)
    total = product + addend
    if sign != other_sign:
        total = product - addend
        if product < addend:
            total, sign = addend - product, other_sign
    if total == 0:
        return u64(1 if mode == DOWN else 0) << u64(31 if single != 0 else 63)
    return round_exact(total, low, sign, mode, single)


def multiply_exactly(a: f64, b: f64, c: f64, mode: s32, single: u32) -> u64:
    """A product: with an addend of 0 that has its sign."""
    return fuse_exactly(a, b, as_float((as_bits(a) ^ as_bits(b)) & 0x8000000000000000), mode, single)


def divide_exactly(a: f64, b: f64, c: f64, mode: s32, single: u32) -> u64:
    """A quotient."""
    if is_finite(a) == 0 or is_finite(b) == 0 or a == 0.0 or b == 0.0:
        return as_result(keep_nan(a, keep_nan(b, a / b)), single)
    rest, divisor = find_significand(a), find_significand(b)
    up, other_up = s64(leading_zeros(rest)) - 11, s64(leading_zeros(divisor)) - 11
    rest, divisor = rest << u64(up), divisor << u64(other_up)
    quotient = u64(0)
    for _ in range(58):
        quotient = quotient << 1
        if rest >= divisor:
            rest -= divisor
            quotient |= 1
        rest = rest << 1
    low = find_exponent(a) - up - find_exponent(b) + other_up - 58
    return round_exact(u128(quotient << 1 | u64(rest != 0)), low, (as_bits(a) ^ as_bits(b)) >> 63, mode, single)


def root_exactly(a: f64, b: f64, c: f64, mode: s32, single: u32) -> u64:
    """A square root."""
    if is_finite(a) == 0 or a <= 0.0:
        return as_result(keep_nan(a, sqrt(a)), single)
    found, low = u128(find_significand(a)), find_exponent(a)
    up = s64(leading_zeros(found)) - 14
    up = up + (low - up & 1)
    found, low = found << u128(up), low - up
    root = u64(0)
    for bit in range(57, -1, -1):
        more = root | u64(1) << u64(bit)
        if u128(more) * u128(more) <= found:
            root = more
    is_cut = u128(root) * u128(root) != found
    return round_exact(u128(root) << 1 | u128(is_cut), low // 2 - 1, u64(0), mode, single)


def round_integer(value: u64, is_negative: u64, mode: s32, single: u32) -> u64:
    """An integer, given without its sign, as the bits of a floating-point number; 0 is +0."""
    return u64(0) if value == 0 else round_exact(u128(value), s64(0), is_negative, mode, single)


def each_integer(value, is_negative, mode, single):
    """Integers without their sign (u64), lane by lane: bits as u64."""
    one, two, found = local(u64, LANES), local(u64, LANES), local(u64, LANES)
    put(one, value)
    put(two, is_negative)
    for lane in range(LANES):
        found[lane] = round_integer(one[lane], two[lane], mode, single)
    return lanes(found)


def each_exactly(function, a, b, c, mode, single):
    """Exact arithmetic of f64 lane by lane: u64."""
    one, two, three, found = local(f64, LANES), local(f64, LANES), local(f64, LANES), local(u64, LANES)
    put(one, a)
    put(two, b)
    put(three, c)
    for lane in range(LANES):
        found[lane] = function(one[lane], two[lane], three[lane], mode, single)
    return lanes(found)


def each(function, a):
    """A function of one double, lane by lane."""
    found = local(f64, LANES)
    put(found, a)
    for lane in range(LANES):
        found[lane] = function(found[lane])
    return lanes(found)
