"""Functions of words, in registers and in memory, and atomic operations on them, for PTX and SASS: typed Python."""

from gpa_lsp.foundation.machine_code.types import as_bits, as_float, s32, s64, u8, u16, u32, u64, unrolled, view


def take(source, size):
    """An unsigned number of 1, 2, 4 or 8 bytes: u64."""
    if size == 8:
        return view(source, u64)[0]
    if size == 4:
        return u64(view(source, u32)[0])
    if size == 2:
        return u64(view(source, u16)[0])
    return u64(view(source, u8)[0])


def give(to, value, size):
    """Write a number of 1, 2, 4 or 8 bytes."""
    if size == 8:
        view(to, u64)[0] = value
    elif size == 4:
        view(to, u32)[0] = u32(value)
    elif size == 2:
        view(to, u16)[0] = u16(value)
    else:
        view(to, u8)[0] = u8(value)


def combine_bits(a, b, c, table):
    """LOP3: a logical function of three bits, by its truth table of eight."""
    found = a & 0
    for term in unrolled(8):
        if table >> term & 1:
            found |= (a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c)
    return found


def funnel(low, high, amount, left, wraps):
    """The high or low word of two words shifted together."""
    both = u64(high) << 32 | u64(low)
    by = (amount & 31) if wraps else amount if amount < 32 else 32
    return u32(both << by >> 32) if left else u32(both >> by)


def permute(low, high, selector):
    """Four bytes chosen from eight; selectors with bit 3 replicate the byte's sign."""
    both = u64(high) << 32 | u64(low)
    found = low & 0
    for place in unrolled(4):
        nibble = selector >> 4 * place & 15
        byte = u32(both >> 8 * (nibble & 7)) & 255
        found |= ((byte >> 7) * 255 if (nibble & 8) != 0 else byte) << 8 * place
    return found


# Atomic operations
ADD, AND, OR, XOR, EXCHANGE, COMPARE_AND_SWAP, INCREMENT, DECREMENT, MIN, MAX, MIN_SIGNED, MAX_SIGNED, ADD_FLOAT = (
    range(13)
)


def change_word(what: s32, size: s32, old: u64, value: u64, other: u64) -> u64:
    """New value of a word by an atomic operation.

    Args:
        what: the operation.
        size: bytes of the value.
        old: what it finds.
        value: what it brings, or compares with.
        other: what it swaps in.
    """
    if what == ADD:
        return old + value
    if what == EXCHANGE:
        return value
    if what == COMPARE_AND_SWAP:
        return other if old == value else old
    if what == INCREMENT:
        return 0 if old >= value else old + 1
    if what == DECREMENT:
        return value if old == 0 or old > value else old - 1
    if what == ADD_FLOAT:
        return add_floats(size, old, value)
    return u64(join_words(what, size == 4, old, value))


def add_floats(size: s32, old: u64, value: u64) -> u64:
    """The bits of a floating-point sum."""
    if size == 4:
        found = as_float(u32(old)) + as_float(u32(value))
        return u64(as_bits(found)) if found == found else 0x7FFFFFFF
    return u64(as_bits(as_float(old) + as_float(value)))


def join_words(what, is_narrow, old, value):
    """The lesser, the greater, or a bitwise combination of two words."""
    if what == AND:
        return old & value
    if what == OR:
        return old | value
    if what == XOR:
        return old ^ value
    if what == MIN:
        return old if old < value else value
    if what == MAX:
        return old if old > value else value
    signed_old = s64(s32(old)) if is_narrow else s64(old)
    signed_value = s64(s32(value)) if is_narrow else s64(value)
    if what == MIN_SIGNED:
        return old if signed_old < signed_value else value
    return old if signed_old > signed_value else value
