"""Functions of words of 32 bits, of PTX and of SASS: typed Python."""

from gpa_lsp.foundation.machine_code.types import u32, u64, unrolled


def combine_bits(a, b, c, table):
    """LOP3: a logical function of three bits, by its truth table of eight."""
    found = a & 0
    for term in unrolled(8):
        if table >> term & 1:
            found |= (a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c)
    return found


def funnel(low, high, amount, left, wraps):
    """A word of two that were shifted together."""
    both = u64(high) << 32 | u64(low)
    by = (amount & 31) if wraps else amount if amount < 32 else 32
    return u32(both << by >> 32) if left else u32(both >> by)


def permute(low, high, selector):
    """Four bytes of eight; or of each, in eight bits, its sign."""
    both = u64(high) << 32 | u64(low)
    found = low & 0
    for place in unrolled(4):
        nibble = selector >> 4 * place & 15
        byte = u32(both >> 8 * (nibble & 7)) & 255
        found |= ((byte >> 7) * 255 if (nibble & 8) != 0 else byte) << 8 * place
    return found
