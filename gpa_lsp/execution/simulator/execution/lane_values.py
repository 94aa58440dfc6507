"""Results of SASS instructions other than sums, products and logic, for 32 lanes: :data:`VALUES` and :data:`TRUTHS`. Typed Python.

Values decide branches and addresses only, so that a last bit may differ from the hardware's: special functions are those of the C library, and
subnormal numbers are kept.
"""

from gpa_lsp.execution.emulator.semantics import floats
from gpa_lsp.execution.emulator.semantics.floats import (
    F16,
    NEAREST,
    canonical,
    each,
    each_integer,
    greatest,
    least,
    narrow_double,
    widen,
)
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpa_lsp.execution.simulator.execution.memory_spaces import DISTRIBUTED, MemorySpace
from gpa_lsp.foundation.machine_code import types
from gpa_lsp.foundation.machine_code.translate import Written, read_functions
from gpa_lsp.foundation.machine_code.types import (
    as_bits,
    as_float,
    ceil,
    cos,
    exp2,
    f32,
    f64,
    floor,
    leading_zeros,
    log2,
    round_even,
    s32,
    s64,
    sin,
    sqrt,
    tanh,
    truncate,
    u32,
    u64,
)

TO_NEAREST, TOWARDS_ZERO, DOWN, UP, NOT_ROUNDED = range(5)  # How a number becomes an integral one
RECIPROCAL, RECIPROCAL_ROOT, ROOT, EXPONENTIAL, LOGARITHM, SINE, COSINE, HYPERBOLIC = range(8)
# How two numbers compare: bits of a table
LESS, EQUAL, MORE, SECOND_IS_NAN, FIRST_IS_NAN, BOTH_ARE_NAN = (1 << bit for bit in range(6))
SECOND_TRUTH = 6  # Where the table of the other predicate begins
ONES = 12  # Where what stands for a truth of halves begins


def single(word):
    """A float."""
    return as_float(u32(word))


def double(pair):
    """A double."""
    return as_float(pair)


def half(word):
    """The lower half of a word as a double."""
    return f64(widen(u32(word) & 0xFFFF, F16))


def word_of(value):
    """A float, every NaN the same one."""
    return u64(as_bits(canonical(f32(value))))


def half_of(value):
    """A double as one of half precision."""
    return narrow_double(f64(value), F16, NEAREST, False)


def extend(value, count, is_signed):
    """The ``count`` low bits, extended by zeros or by their sign."""
    kept = count & 0xFFFFFFFF
    gap = 32 - (kept if kept < 32 else 32)
    moved = value << gap & 0xFFFFFFFF
    found = moved >> gap
    if is_signed:
        found = u64(s64(s32(u32(moved))) >> s64(gap))
    return found


def find_size(word):
    """Magnitude of a signed word."""
    number = s32(u32(word))
    return u64(u32(-number if number < 0 else number))


def fold(word, is_signed):
    """A word; of a negative number its complement."""
    bits = u32(word)
    if is_signed:
        bits = ~bits if s32(bits) < 0 else bits
    return bits


def find_leading_one(word, from_top, is_signed):
    """The place of the highest bit that is set, or how far it is from the top; all ones without any."""
    bits = fold(word, is_signed)
    zeros = leading_zeros(bits)
    place = 31 - zeros
    if from_top:
        place = zeros
    return u64(u32(0xFFFFFFFF) if bits == 0 else place)


def make_mask(place, count):
    """``count`` ones from a place on."""
    start, width = u32(place), u32(count)
    least_start, least_width = u64(start if start < 32 else 32), u64(width if width < 32 else 32)
    return ((u64(1) << least_width) - 1) << least_start


def choose_sum(a, b, c, takes_less, is_signed):
    """The lesser or the greater of a sum and a number."""
    total, other = u32(a + b), u32(c)
    is_less = total < other
    if is_signed:
        is_less = s32(total) < s32(other)
    low, high = total if is_less else other, other if is_less else total
    return u64(low if takes_less != 0 else high)


def apply(value, function):
    """A special function of doubles."""
    found = value
    if function == RECIPROCAL:
        found = 1.0 / value
    elif function == RECIPROCAL_ROOT:
        found = 1.0 / sqrt(value)
    elif function == ROOT:
        found = sqrt(value)
    elif function == EXPONENTIAL:
        found = each(exp2, value)
    elif function == LOGARITHM:
        found = each(log2, value)
    elif function == SINE:
        found = each(sin, value * 6.283185307179586)
    elif function == COSINE:
        found = each(cos, value * 6.283185307179586)
    else:
        found = each(tanh, value)
    return found


def round_number(value, how):
    """A double rounded to an integral number, or left."""
    found = value
    if how == TO_NEAREST:
        found = round_even(value)
    elif how == TOWARDS_ZERO:
        found = truncate(value)
    elif how == DOWN:
        found = floor(value)
    elif how == UP:
        found = ceil(value)
    return found


def to_integer(value, how, bits, is_signed):
    """A double as an integer of ``bits`` bits, clamped; NaN gives 0, of 64 bits the highest bit."""
    rounded = round_number(value, how)
    found = u64(s64(rounded if rounded > -4611686018427387904.0 and rounded < 4611686018427387904.0 else 0.0))
    if bits == 64:
        if is_signed:
            high = u64(0x7FFFFFFFFFFFFFFF)
            inside = u64(s64(rounded if rounded >= -9223372036854775808.0 and rounded < 9223372036854775808.0 else 0.0))
            found = inside if rounded < 9223372036854775808.0 else high
            found = found if rounded >= -9223372036854775808.0 else u64(0x8000000000000000)
        else:
            inside = u64(rounded if rounded >= 0.0 and rounded < 18446744073709551616.0 else 0.0)
            found = inside if rounded < 18446744073709551616.0 else ~u64(0)
        return found if value == value else u64(0x8000000000000000)
    most = s64(1) << bits
    if is_signed:
        most = most >> 1
    low = s64(0) - most if is_signed else s64(0)
    below = s64(found) if rounded < f64(most) else most - 1
    kept = below if rounded >= f64(low) else low
    return u64(kept if value == value else s64(0))


def from_integer(value, bits, is_signed, how, is_single):
    """The low ``bits`` bits as an integer, converted to a float or a double: its bits."""
    unused = u64(64 - bits)
    number = value << unused >> unused
    sign = number & 0
    if is_signed:
        extended = s64(value << unused) >> s64(unused)
        sign = u64(extended) >> 63
        number = u64(-extended) if extended < 0 else u64(extended)
    return each_integer(number, sign, how, is_single)


def pack_halves(low, high):
    """Two doubles as two of half precision."""
    return half_of(low) | half_of(high) << 16


def fuse(a, b, c):
    """A product and a sum of doubles that are exact in double precision, or nearly so."""
    return a * b + c


def compare(a, b, table):
    """Two truths of how numbers compare, as bits 0 and 1."""
    no_number = 4 if b == b else 5
    state = 0 if a < b else 1 if a == b else 2 if a > b else 3 if a == a else no_number
    shifted = u64(table) >> u64(state)
    return shifted & 1 | (shifted >> SECOND_TRUTH & 1) << 1


def compare_halves(a, b, table):
    """Truths of the two halves, as bits 0 and 1."""
    return (compare(half(a), half(b), table) & 1) | (compare(half(a >> 16), half(b >> 16), table) & 1) << 1


def mark_halves(truths, ones):
    """Bits in each half whose truth holds."""
    found = u64(ones)
    return (truths & 1) * found | (truths >> 1) * found << 16


def choose_half(a, b, takes_less):
    """The lesser or the greater of two lower halves."""
    return half_of(least(half(a), half(b)) if takes_less != 0 else greatest(half(a), half(b)))


def needs_slow_division(a, b):
    """FCHK: whether a quotient needs the slow path: exponents near the ends, or too far from each other.

    Approximation: the hardware's bounds are not published; these are where the fast path's intermediate results would leave the range.
    """
    above, below = s64(a >> 23 & 255), s64(b >> 23 & 255)
    distance = above - below
    is_odd = below == 0 or below >= 253 or above == 255 or above <= 24
    return u64(is_odd or distance >= 126 or distance <= -126)


def lies_in(address, space):
    """QSPC: whether generic addresses lie in a space."""
    in_shared, in_local = address - SHARED_WINDOW < WINDOW_BYTES, address - LOCAL_WINDOW < WINDOW_BYTES
    found = u64(in_shared)
    if space == MemorySpace.LOCAL:
        found = u64(in_local)
    elif space == MemorySpace.GLOBAL:
        found = u64(1) - u64(in_shared) - u64(in_local)
    elif space == DISTRIBUTED:
        found = u64(0)
    return found


# Expressions of a, b and c, the 64 bits that sources give; of p, 1 where the predicate holds; and of literal. Their 64 bits are the result.
VALUES = {
    "extend": "extend(a, b, literal)", "size": "find_size(a)", "count": "u64(popcount(u32(a)))", "reverse": "u64(reverse_bits(u32(a)))",
    "leading_one": "find_leading_one(a, literal & 2, literal & 1)", "mask_of_ones": "make_mask(a, b)",
    "choose_sum": "choose_sum(a, b, c, p, literal)", "choose": "a if p != 0 else b",
    "fma_saturated": "word_of(saturate(f32(fuse(f64(single(a)), f64(single(b)), f64(single(c))))))",
    "double_sum": "as_bits(double(a) + double(b) + double(c))", "double_product": "as_bits(double(a) * double(b))",
    "double_fma": "as_bits(fma(double(a), double(b), double(c)))",
    "extreme": "word_of(least(single(a), single(b)) if p != 0 else greatest(single(a), single(b)))",
    "double_extreme": "as_bits(least(double(a), double(b)) if p != 0 else greatest(double(a), double(b)))",
    "function": "word_of(apply(f64(single(a)), literal))", "high_function": "as_bits(apply(double(a << 32), literal)) >> 32",
    "half_to_integer": "to_integer(half(a), literal & 7, literal >> 4, literal & 8)",
    "single_to_integer": "to_integer(f64(single(a)), literal & 7, literal >> 4, literal & 8)",
    "double_to_integer": "to_integer(double(a), literal & 7, literal >> 4, literal & 8)",
    "integer_to_single": "from_integer(a, literal >> 4, literal & 8, s32(literal & 7), u32(1))",
    "integer_to_double": "from_integer(a, literal >> 4, literal & 8, s32(0), u32(0))",
    "half_to_half": "half_of(round_number(half(a), literal))", "half_to_single": "word_of(round_number(half(a), literal))",
    "half_to_double": "as_bits(round_number(half(a), literal))", "single_to_half": "half_of(round_number(f64(single(a)), literal))",
    "single_to_single": "word_of(round_number(f64(single(a)), literal))", "single_to_double": "as_bits(round_number(f64(single(a)), literal))",
    "double_to_half": "half_of(round_number(double(a), literal))", "double_to_single": "word_of(round_number(double(a), literal))",
    "double_to_double": "as_bits(round_number(double(a), literal))",
    "pack": "pack_halves(f64(single(b)), f64(single(a)))", "half_fma_to_single": "word_of(fuse(half(a), half(b), half(c)))",
    "half_fma": "pack_halves(fuse(half(a), half(b), half(c)), fuse(half(a >> 16), half(b >> 16), half(c >> 16)))",
    "half_fma_saturated": "pack_halves(saturate(fuse(half(a), half(b), half(c))), saturate(fuse(half(a >> 16), half(b >> 16), half(c >> 16))))",
    "compared_halves": "mark_halves(compare_halves(a, b, literal & 63) * p, literal >> ONES)",
    "half_extremes": "choose_half(a, b, p) | choose_half(a >> 16, b >> 16, p) << 16",
    "integer_to_half": "half_of(as_float(from_integer(a, literal >> 4, literal & 8, s32(0), u32(0))))",
    "fma": "word_of(fuse(f64(single(a)), f64(single(b)), f64(single(c))))",
}  # fmt: skip
# The same of predicates: bit 0 is the first one written, bit 1 the second
TRUTHS = {
    "compare_singles": "compare(single(a), single(b), literal)", "compare_doubles": "compare(double(a), double(b), literal)",
    "needs_slow_division": "needs_slow_division(a, b)", "lies_in": "lies_in(a, literal)",
    "compare_halves": "compare_halves(a, b, literal)",
}  # fmt: skip
NUMBERS = {name: number for number, name in enumerate((*VALUES, *TRUTHS))}


def read_value_functions() -> list[Written]:
    """Functions on places in memory: ``value_NAME(out, a, b, c, p, literal)``, all of u64[32]."""
    places = ", ".join(f"{one}: Pointer[u64]" for one in ("out", "x", "y", "z", "q"))
    given = "a, b, c, p = lanes(x), lanes(y), lanes(z), lanes(q)"
    text = "\n".join(
        f"def value_{name}({places}, literal: s64) -> s64:\n    {given}\n    put(out, {expression})\n    return 0\n"
        for name, expression in (VALUES | TRUTHS).items()
    )
    names = {name: one for name, one in globals().items() if not name.startswith("__")}
    written = read_functions(text, vars(types) | vars(floats) | names, "values of SASS")
    return [written[f"value_{name}"] for name in NUMBERS]
