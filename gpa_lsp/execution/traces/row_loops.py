"""Loops over rows of a trace, compiled: which are equal, and their order by keys."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.foundation.machine_code.loops import compiled

Integers = npt.NDArray[np.int64]

DIGIT_BITS = 11  # Of a key that one pass of a sort looks at
_MIX = -7046029254386353131  # Odd, with bits as if drawn by lot


def open_slots(count: int) -> "npt.NDArray[np.int32]":
    """Room for so many numbers by hash."""
    return np.full(1 << (2 * count).bit_length(), -1, np.int32)


@compiled
def number_rows(
    columns: Integers, slots: "npt.NDArray[np.int32]", numbers: Integers, first: Integers, before: Integers
) -> int:
    """Number rows by first appearance, equal ones as one; how many numbers there are.

    Args:
        columns: int64[width, n].
        slots: int32[power of two, at least 2 n], all -1: the last row of each number, by hash.
        first: int64[n], room for the first row of each number.
        before: int64[n], room for the last row before each with the same number; -1 for none.
    """
    count = 0
    for row in range(columns.shape[1]):
        mixed = np.int64(0)
        for column in range(columns.shape[0]):
            mixed = ((mixed ^ (mixed >> 32)) + columns[column, row]) * _MIX
        slot = (mixed ^ (mixed >> 32)) & (len(slots) - 1)
        while slots[slot] >= 0:
            column = 0
            while column < columns.shape[0] and columns[column, row] == columns[column, slots[slot]]:
                column += 1
            if column == columns.shape[0]:
                break
            slot = (slot + 1) & (len(slots) - 1)
        before[row] = slots[slot]
        if slots[slot] < 0:
            first[count] = row
            count += 1
        numbers[row] = count - 1 if slots[slot] < 0 else numbers[slots[slot]]
        slots[slot] = row
    return count


@compiled
def sort_digit(keys: Integers, shift: int, order: Integers, starts: Integers, found: Integers) -> None:
    """Fill the order of rows by a digit of their keys, equal ones as they were.

    Args:
        order: int64[n], the order before.
        starts: int64[digits + 1], all 0.
    """
    mask = len(starts) - 2
    for row in range(len(keys)):
        starts[(keys[row] >> shift & mask) + 1] += 1
    for digit in range(mask):
        starts[digit + 1] += starts[digit]
    for row in order:
        digit = keys[row] >> shift & mask
        found[starts[digit]] = row
        starts[digit] += 1


@compiled
def count_marked(
    numbers: "npt.NDArray[np.int32]", marks: "npt.NDArray[np.bool_]", counts: Integers, found: Integers
) -> None:
    """Fill how many marked rows of the same number come before each.

    Args:
        counts: int64[numbers], all 0.
    """
    for row in range(len(numbers)):
        found[row] = counts[numbers[row]]
        counts[numbers[row]] += marks[row]
