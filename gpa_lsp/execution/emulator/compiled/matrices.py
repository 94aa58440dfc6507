"""Products of matrices of small integers or bits, by one warp: typed Python, which the core consists of."""

from typing import Literal

from gpa_lsp.execution.emulator.compiled.addresses import (
    operand,
)
from gpa_lsp.execution.emulator.compiled.model import LANES
from gpa_lsp.execution.emulator.compiled.transfers import (
    blend,
)
from gpa_lsp.foundation.machine_code.types import Array, Pointer, Struct, lanes, local, s32, s64, u8, u32, view

MOST_ELEMENTS_OF_MATRIX = 4096
MOST_REGISTERS = 8


class Layout(Struct):
    """A product, as :mod:`~gpa_lsp.execution.emulator.compiled.instructions` describes it.

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
    """A row times a column."""
    found = s32(0)
    for step in range(s64(depth)):
        found += row[step] ^ column[step] if counts_different != 0 else row[step] * column[step]
    return found


def add_product(addend: s32, product: s32, is_clamped: s32) -> s32:
    """A sum, which is clamped or wraps."""
    found = s64(addend) + s64(product)
    if is_clamped == 0:
        return s32(found)
    below = s64(0x7FFFFFFF) if found > 0x7FFFFFFF else found
    return s32(s64(-0x80000000) if below < -0x80000000 else below)


def multiply_matrices(
    described: Pointer[u8], places: Pointer[s32], frame: Pointer[u8], constants: Pointer[u8], written: u32
) -> None:
    """D = A B + C; places are those of D's, A's, B's and C's registers."""
    layout = view(described, Layout)[0]
    depth, rows, columns = s64(layout.depth), s64(layout.rows), s64(layout.columns)
    left, right = local(s32, MOST_ELEMENTS_OF_MATRIX), local(s32, MOST_ELEMENTS_OF_MATRIX)
    sums, results = local(s32, MOST_ELEMENTS_OF_MATRIX), local(u32, LANES)
    elements = view(described + LAYOUT_BYTES, s32)
    of_a = places + layout.results
    of_b = of_a + layout.registers[0]
    unpack(elements, rows * depth, of_a, frame, constants, layout.bits[0], layout.is_signed[0], left)
    elements = elements + rows * depth
    unpack(elements, depth * columns, of_b, frame, constants, layout.bits[1], layout.is_signed[1], right)
    elements = elements + depth * columns
    unpack(elements, rows * columns, of_b + layout.registers[1], frame, constants, 32, 1, sums)
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
