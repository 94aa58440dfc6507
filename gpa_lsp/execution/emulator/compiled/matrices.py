"""Products of matrices by one warp: typed Python.

Products of f64 are fused with C one by one, in the order of the depth. Those of narrower numbers are exact in double precision; they are summed there
in the order of the depth (all but always exactly), then C is added, and the result is rounded once, to nearest. Integers are exact, modulo 2^32 or
clamped. Tensor cores cut intermediate sums off in ways NVIDIA does not document; results differ from theirs in the last bits.
"""

from typing import Literal

from gpa_lsp.execution.emulator.compiled.addresses import operand
from gpa_lsp.execution.emulator.compiled.model import LANES
from gpa_lsp.execution.emulator.compiled.transfers import blend
from gpa_lsp.execution.emulator.semantics.floats import NEAREST, canonical, narrow_double, widen
from gpa_lsp.execution.emulator.semantics.matrix_products import MOST_ELEMENTS, MOST_NUMBERS
from gpa_lsp.foundation.machine_code.types import (
    Array,
    Pointer,
    Struct,
    all_lanes,
    as_bits,
    as_float,
    f32,
    f64,
    fill,
    fma,
    lanes,
    local,
    put,
    s32,
    s64,
    u8,
    u32,
    u64,
    unrolled,
    view,
)


class Layout(Struct):
    """A product, as :mod:`~gpa_lsp.execution.emulator.semantics.matrix_products` describes it.

    Behind it stand the elements of A by rows, of B by columns, of C by rows, each a place in a register of a lane (1024 register + 32 lane + bit);
    then which one of C each lane of D's registers has.
    """

    rows: s32
    columns: s32
    depth: s32
    registers: Array[s32, Literal[3]]  # how many of A, B and C; of D
    results: s32
    bits: Array[s32, Literal[2]]  # of A and B
    is_signed: Array[s32, Literal[2]]
    is_clamped: s32  # sums are clamped
    counts_different: s32  # ones of exclusive or are summed, not products


def unpack(
    elements: Pointer[s32], count: s64, places: Pointer[s32], frame: Pointer[u8], constants: Pointer[u8], bits: s32, is_signed: s32,
    values: Pointer[s32],
) -> None:  # fmt: skip
    """The elements of a matrix, from the registers at some places."""
    unused = 32 - bits
    for number in range(count):
        element = elements[number]
        register = view(operand(frame, constants, places[element >> 10]), u32)
        value = register[element >> 5 & 31] >> u32(element & 31) << u32(unused)
        values[number] = s32(value) >> unused if is_signed != 0 else s32(value >> u32(unused))


def combine_row(row: Pointer[s32], column: Pointer[s32], depth: s32, counts_different: s32) -> s32:
    """A row times a column, eight numbers side by side; there are no fewer in any product."""
    sums, found = local(s32, 8), s32(0)
    fill(sums, 0, 4 * 8)
    for first in range(0, s64(depth), 8):
        for part in unrolled(8):
            one, other = row[first + part], column[first + part]
            sums[part] = sums[part] + (one ^ other if counts_different != 0 else one * other)
    for part in unrolled(8):
        found += sums[part]
    return found


def add_product(addend: s32, product: s32, is_clamped: s32) -> s32:
    """A sum, which is clamped or wraps."""
    found = s64(addend) + s64(product)
    if is_clamped == 0:
        return s32(found)
    below = s64(0x7FFFFFFF) if found > 0x7FFFFFFF else found
    return s32(s64(-0x80000000) if below < -0x80000000 else below)


def multiply_matrices(
    described: Pointer[u8], places: Pointer[s32], frame: Pointer[u8], constants: Pointer[u8], written: u32, adds: u32
) -> None:
    """D = A B + C, or A B where it does not add; places are those of D's, A's, B's and C's registers."""
    layout = view(described, Layout)[0]
    depth, rows, columns = s64(layout.depth), s64(layout.rows), s64(layout.columns)
    left, right = local(s32, MOST_ELEMENTS), local(s32, MOST_ELEMENTS)
    sums, results = local(s32, MOST_ELEMENTS), local(u32, LANES)
    elements = view(described + LAYOUT_BYTES, s32)
    of_a = places + layout.results
    of_b = of_a + layout.registers[0]
    unpack(elements, rows * depth, of_a, frame, constants, layout.bits[0], layout.is_signed[0], left)
    elements = elements + rows * depth
    unpack(elements, depth * columns, of_b, frame, constants, layout.bits[1], layout.is_signed[1], right)
    elements = elements + depth * columns
    unpack(elements, rows * columns, of_b + layout.registers[1], frame, constants, 32, 1, sums)
    if adds == 0:
        fill(sums, 0, 4 * rows * columns)
    elements = elements + rows * columns
    for row in range(rows):
        for column in range(columns):
            number = row * columns + column
            product = combine_row(left + row * depth, right + column * depth, layout.depth, layout.counts_different)
            sums[number] = add_product(sums[number], product, layout.is_clamped)
    for result in range(s64(layout.results)):
        for lane in range(LANES):
            results[lane] = u32(sums[elements[result * LANES + lane]])
        blend(view(frame + places[result], u32), lanes(results), written)


LAYOUT_BYTES = 4 * (4 + 3 + 2 + 2 + 2)


COLUMNS_AT_ONCE = 8


class FloatLayout(Struct):
    """A product of floating-point numbers.

    Behind it stand the elements of A, of B and of C by rows, each a place (32 element + lane) among those that lanes hold; then which one of C each
    element of each lane of D is.
    """

    rows: s32
    columns: s32
    depth: s32
    rows_each: s32  # rows that are multiplied by one B; by the next ones, those that follow
    left: s32  # registers of A, B, C and D
    right: s32
    addend: s32
    results: s32


def read_numbers(word, of, places, count, frame, constants, held):
    """The elements that lanes hold in the registers at some places, as f64."""
    for register in range(s64(count)):
        bits = lanes(view(operand(frame, constants, places[register]), word))
        to = held + register * (word.bits // of.bits * LANES)
        if of.bits == 64:
            put(to, as_float(bits))
        elif of.bits == 32:
            put(to, f64(as_float(bits)))
        elif of.bits == 19:
            put(to, f64(widen(bits >> 13, of)))
        else:
            for part in unrolled(word.bits // of.bits):
                put(to + part * LANES, f64(widen(bits >> (of.bits * part) & ((1 << of.bits) - 1), of)))


def order_numbers(held: Pointer[f64], elements: Pointer[s32], count: s64, values: Pointer[f64]) -> None:
    """A matrix of what lanes hold."""
    for number in range(count):
        values[number] = held[elements[number]]


def multiply_numbers(layout, left, right, sums, is_fused):
    """Add the product to the sums."""
    depth, columns = s64(layout.depth), s64(layout.columns)
    for row in range(s64(layout.rows)):
        factors = left + row * depth
        others = right + row // s64(layout.rows_each) * depth * columns
        for first in range(0, columns, 8):
            to = sums + (row * columns + first)
            total = local(f64, COLUMNS_AT_ONCE)
            for column in unrolled(8):
                total[column] = to[column] if is_fused else 0.0
            for step in range(depth):
                factor, beside = factors[step], others + (step * columns + first)
                for column in unrolled(8):
                    if is_fused:
                        total[column] = fma(factor, beside[column], total[column])
                    else:
                        total[column] = total[column] + factor * beside[column]
            for column in unrolled(8):
                to[column] = total[column] if is_fused else total[column] + to[column]


def write_numbers(of, results, elements, sums, places, frame, written):
    """The results as registers."""
    chosen = local(f64, LANES)
    for result in range(s64(results)):
        packed = all_lanes(u64(0))
        for part in unrolled(2 if of.bits == 16 else 1):
            for lane in range(LANES):
                chosen[lane] = sums[elements[(result * (2 if of.bits == 16 else 1) + part) * LANES + lane]]
            if of.bits == 64:
                packed = as_bits(lanes(chosen))
            elif of.bits == 32:
                packed = u64(as_bits(canonical(f32(lanes(chosen)))))
            else:
                packed = packed | narrow_double(lanes(chosen), of, NEAREST, 0) << (16 * part)
        if of.bits == 64:
            blend(view(frame + places[result], u64), packed, written)
        else:
            blend(view(frame + places[result], u32), u32(packed), written)


def multiply_floats(described, places, frame, constants, written, adds, word, of_result, of_left, of_right, of_addend):
    """D = A B + C of floating-point numbers, or A B where it does not add.

    Args:
        word: u64 for f64, else u32.
        of_result: format of D.
        of_left: of A.
        of_right: of B.
        of_addend: of C.
    """
    layout = view(described, FloatLayout)[0]
    held = local(f64, MOST_NUMBERS)
    left, right, sums = local(f64, MOST_NUMBERS), local(f64, MOST_NUMBERS), local(f64, MOST_NUMBERS)
    rows, columns, depth = s64(layout.rows), s64(layout.columns), s64(layout.depth)
    elements, given = view(described + FLOAT_LAYOUT_BYTES, s32), places + layout.results
    read_numbers(word, of_left, given, layout.left, frame, constants, held)
    order_numbers(held, elements, rows * depth, left)
    elements, given = elements + rows * depth, given + layout.left
    read_numbers(word, of_right, given, layout.right, frame, constants, held)
    count = rows // s64(layout.rows_each) * depth * columns
    order_numbers(held, elements, count, right)
    elements, given = elements + count, given + layout.right
    read_numbers(word, of_addend, given, layout.addend, frame, constants, held)
    order_numbers(held, elements, rows * columns, sums)
    if adds == 0:
        fill(sums, 0, 8 * rows * columns)
    elements = elements + rows * columns
    multiply_numbers(layout, left, right, sums, 1 if of_result.bits == 64 else 0)
    write_numbers(of_result, layout.results, elements, sums, places, frame, written)


FLOAT_LAYOUT_BYTES = 4 * 8


# Matrices of warp groups in shared memory, by descriptor: the start, two strides, a base offset, and the mode of the swizzle.
#
# Eight lines of 16 · w bytes make an *atom*; w is 1, 8, 4 or 2 by the mode. Atoms follow one another at the two strides. Within an atom, the three
# bits of an address above those of a unit of 16 bytes are exchanged (exclusive or) with the low bits of the atom's line, which are those of the
# address above the lowest seven. Source: PTX ISA 9.0, section 9.7.15.5.1.2.2 (matrix descriptor format).


def find_unit(descriptors, units, is_turned):
    """Addresses in shared memory of units of matrices, by their descriptors: u64."""
    leading, stride = (descriptors >> 16 & 0x3FFF) << 4, (descriptors >> 32 & 0x3FFF) << 4
    beside = 4 - (descriptors >> 62) & 3  # w is 1 << beside
    is_plain = beside == 0
    line = all_lanes(u64(16)) << beside
    if is_turned:
        eight, depth = units >> 4, units & 15
        place = (eight & (line >> 4) - 1) << 4
        place = place + (eight >> beside) * (stride if is_plain else leading)
        place = place + (depth & 7) * line + (depth >> 3) * (leading if is_plain else stride)
    else:
        place = (units >> 1 & 7) * line + (units >> 4) * stride + (units & 1) * (leading if is_plain else u64(16))
    place = place + ((descriptors & 0x3FFF) << 4)
    return place ^ (place >> 3 & line - 16)


def are_shared(machine, descriptors, ranks, is_register):
    """Whether the descriptor of each lane is that of the first lane of its warp group."""
    of_first = s64(0)
    if is_register:
        of_first = s64(ranks[0] & 3) * machine.frame_bytes
    return lanes(view(descriptors, u64)) == view(descriptors - of_first, u64)[0]


def have_no_offset(descriptors):
    """Whether matrices begin with an atom, or have none."""
    return ((descriptors >> 49 & 7) == 0) | ((descriptors >> 62) == 0)
