"""What atomic operations make of the value they find, of PTX and of SASS: typed Python."""

from gpa_lsp.foundation.machine_code.types import as_bits, as_float, s32, s64, u32, u64

ADD, AND, OR, XOR, EXCHANGE, COMPARE_AND_SWAP, INCREMENT, DECREMENT, MIN, MAX, MIN_SIGNED, MAX_SIGNED, ADD_FLOAT = (
    range(13)
)


def combine(what: s32, size: s32, old: u64, value: u64, other: u64) -> u64:
    """The new value.

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
    return u64(join(what, size == 4, old, value))


def add_floats(size: s32, old: u64, value: u64) -> u64:
    """The bits of a sum."""
    if size == 4:
        found = as_float(u32(old)) + as_float(u32(value))
        return u64(as_bits(found)) if found == found else 0x7FFFFFFF
    return u64(as_bits(as_float(old) + as_float(value)))


def join(what, is_narrow, old, value):
    """The lesser, the greater, or the bits of both."""
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
