"""Loops over the lanes of warp-level accesses, compiled: shapes of rows, their order by keys, and the memory that each touches."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.execution.accesses.lane_addresses import LINE_SHIFT, SECTOR_SHIFT, WORD_SHIFT, LaneColumns, LanePattern
from gpa_lsp.foundation.machine_code.loops import compiled, part

Integers = npt.NDArray[np.int64]

MOST_STARTS = WARP_LANES * (256 >> WORD_SHIFT)  # Words of all lanes of a row of local memory

MIX = -7046029254386353131  # Odd, with bits as if drawn by lot
_LOCAL = int(Space.LOCAL)
_WORD_BYTES = 1 << WORD_SHIFT
_LANE_BITS = (WARP_LANES - 1).bit_length()
_KEY_BITS = 32  # Of the number of a shape
_SINGLE, _BROADCAST, _CONTIGUOUS, _STRIDED, _PIECES, _GROUPS, _STEPS, _SCATTERED = (int(one) for one in LanePattern)


class Shapes(NamedTuple):
    """Room for the shapes of n rows, by number."""

    slots: "npt.NDArray[np.int32]"  # int32[power of two, at least 2 n], all -1: shapes by hash
    lasts: "npt.NDArray[np.int32]"  # int32[instructions], all -1: the shape of the last row of each
    first: Integers  # int64[n], the first row of each
    hashes: Integers  # int64[n]
    reaches: Integers  # int64[2, n], bytes from the base to the lowest and to the highest address


@compiled
def number_shapes(
    lanes: LaneColumns, instructions: "npt.NDArray[np.uint32]", known: Shapes, shapes: Integers, keys: Integers
) -> int:
    """Number the shapes of rows by first appearance; how many there are. Rows of an instruction are mostly of the shape that its last row had.

    Args:
        shapes: int64[n], room for those of rows.
        keys: int64[n], room for what rows of one kind have in common: instruction, shape, and place of the base in its line.
    """
    slots, first, hashes, reaches = known.slots, known.first, known.hashes, known.reaches
    count = 0
    for row in range(len(lanes.mask)):
        instruction, base = np.int64(instructions[row]), lanes.address[lanes.first[row]]
        shape = np.int64(known.lasts[instruction])
        if shape < 0 or not _is_alike(lanes, row, first[shape]):
            mixed = _mix_shape(lanes, row)
            slot = mixed & (len(slots) - 1)
            while slots[slot] >= 0 and (hashes[slots[slot]] != mixed or not _is_alike(lanes, row, first[slots[slot]])):
                slot = (slot + 1) & (len(slots) - 1)
            if slots[slot] < 0:
                slots[slot], first[count], hashes[count] = count, row, mixed
                reaches[0, count] = reaches[1, count] = 0
                for place in range(lanes.first[row], lanes.first[row] + count_bits(np.int64(lanes.mask[row]))):
                    reaches[0, count] = min(reaches[0, count], lanes.address[place] - base)
                    reaches[1, count] = max(reaches[1, count], lanes.address[place] - base)
                count += 1
            shape = np.int64(slots[slot])
            known.lasts[instruction] = shape
        shapes[row] = shape
        keys[row] = (instruction << _KEY_BITS | shape) << LINE_SHIFT | base & ((1 << LINE_SHIFT) - 1)
    return count


@part
def _is_alike(lanes: LaneColumns, row: int, other: int) -> bool:
    is_alike = lanes.mask[row] == lanes.mask[other] and lanes.width[row] == lanes.width[other]
    differs = np.int64(not is_alike or lanes.space[row] != lanes.space[other])
    # What is unsigned needs no look whether it counts from the end, which keeps a loop from becoming vector instructions
    one, known = np.uint64(lanes.first[row]), np.uint64(lanes.first[other])
    apart = lanes.address[one] - lanes.address[known]
    for lane in range(np.uint64(count_bits(np.int64(lanes.mask[row])) if differs == 0 else 0)):
        differs |= (lanes.address[one + lane] - lanes.address[known + lane]) ^ apart
    return bool(differs == 0)


@part
def _mix_shape(lanes: LaneColumns, row: int) -> np.int64:
    first, apart = lanes.first[row], np.int64(0)
    for lane in range(1, count_bits(np.int64(lanes.mask[row]))):
        apart += (lanes.address[first + lane] - lanes.address[first]) * (MIX + 2 * lane)
    mixed = np.int64(lanes.mask[row]) << 16 | np.int64(lanes.width[row]) << 8 | np.int64(lanes.space[row])
    mixed = (mixed ^ apart ^ (apart >> 29)) * MIX
    return mixed ^ (mixed >> 32)


@compiled
def find_ends(numbers: Integers, lowest: Integers, highest: Integers, counts: Integers, ends: Integers) -> None:
    """Add up how many rows have each number, and fill the lowest and the highest of what they have.

    Args:
        counts: int64[numbers], all 0.
        ends: int64[2, numbers], room.
    """
    for row in range(len(numbers)):
        number = numbers[row]
        is_known = counts[number] > 0
        ends[0, number] = min(ends[0, number], lowest[row]) if is_known else lowest[row]
        ends[1, number] = max(ends[1, number], highest[row]) if is_known else highest[row]
        counts[number] += 1


@part
def _list_starts(lanes: LaneColumns, row: int, starts: Integers) -> int:
    """Fill the first byte of each piece that lanes of a row touch, ascending; how many there are."""
    mask, first = np.int64(lanes.mask[row]), np.uint64(lanes.first[row])
    count = count_bits(mask)
    if lanes.space[row] != _LOCAL:
        for lane in range(np.uint64(count)):
            starts[lane] = lanes.address[first + lane]
    else:
        count = _list_words(lanes, row, starts)
    falls = False
    for place in range(1, count):
        falls |= starts[place] < starts[place - 1]
    for place in range(1, count if falls else 0):
        start, before = starts[place], place
        while before > 0 and starts[before - 1] > start:
            starts[before] = starts[before - 1]
            before -= 1
        starts[before] = start
    return count


@part
def _list_words(lanes: LaneColumns, row: int, starts: Integers) -> int:
    """:func:`_list_starts` of local memory, which is interleaved: word ``w`` of lane ``l`` lies at byte ``128·w + 4·l`` of the warp's frame, so
    that lanes which access the same offset touch one line.

    Source: CUDA C++ Programming Guide, "Device Memory Accesses", Local Memory.
    """
    words, count = np.int64(lanes.width[row]) >> WORD_SHIFT, 0
    for word in range(words if words > 1 else 1):
        place = lanes.first[row]
        for lane in range(WARP_LANES):
            if np.int64(lanes.mask[row]) >> lane & 1:
                address = lanes.address[place]
                in_frame = ((address >> WORD_SHIFT) + word << _LANE_BITS) + lane << WORD_SHIFT
                starts[count] = in_frame + (address & (_WORD_BYTES - 1))
                place, count = place + 1, count + 1
    return count


@part
def _find_width(lanes: LaneColumns, row: int) -> int | np.int64:
    """Bytes of each piece that a lane touches."""
    width = np.int64(lanes.width[row])
    return _WORD_BYTES if lanes.space[row] == _LOCAL and width > _WORD_BYTES else width


@compiled
def measure_rows(lanes: LaneColumns, rows: Integers, starts: Integers, found: Integers) -> None:
    """Fill active lanes, lines, sectors, bytes, distinct first bytes, pattern and stride of rows.

    Because the pieces of a row are of one length and ascending, a piece adds what lies beyond the one before it; no set is built.

    Args:
        starts: int64[MOST_STARTS], room.
        found: int64[7, rows].
    """
    for place in range(len(rows)):
        row = rows[place]
        count, width = _list_starts(lanes, row, starts), _find_width(lanes, row)
        before, end_before = starts[0], starts[0] + width - 1
        lines = (end_before >> LINE_SHIFT) - (before >> LINE_SHIFT) + 1
        sectors = (end_before >> SECTOR_SHIFT) - (before >> SECTOR_SHIFT) + 1
        used, distinct = width, 1
        for one in range(1, count):
            start, end = starts[one], starts[one] + width - 1
            lines += (end >> LINE_SHIFT) - max(end_before >> LINE_SHIFT, (start >> LINE_SHIFT) - 1)
            sectors += (end >> SECTOR_SHIFT) - max(end_before >> SECTOR_SHIFT, (start >> SECTOR_SHIFT) - 1)
            used += min(start - before, width)
            distinct += start != before
            before, end_before = start, end
        found[0, place] = count_bits(np.int64(lanes.mask[row]))
        found[1, place], found[2, place], found[3, place], found[4, place] = lines, sectors, used, distinct
        found[5, place], found[6, place] = _find_pattern(lanes, row)


@part
def _find_pattern(lanes: LaneColumns, row: int) -> tuple[int, int | np.int64]:
    """The pattern of a row and its stride.

    Distances are taken between active lanes that follow each other and divided by the lanes between them, so that a stride is not lost where a mask
    has holes. Lanes that lie side by side whatever is between them are contiguous, and of two lanes one is a stride from the other.
    """
    mask, width, first = np.int64(lanes.mask[row]), np.int64(lanes.width[row]), lanes.first[row]
    place, before, address, stride, equal, beside = np.uint64(first), 0, lanes.address[first], np.int64(0), 0, 0
    for lane in range(WARP_LANES):
        if mask >> lane & 1:
            distance, address = lanes.address[place] - address, lanes.address[place]
            if place == first + 1:
                stride = distance // (lane - before)
            if place > first:
                equal += distance == stride * (lane - before)
                beside += distance == width
            place, before = place + np.uint64(1), lane
    count = np.int64(place) - first
    is_beside = count > 1 and beside == count - 1
    if is_beside:
        stride = width
    elif count == 2:
        stride = lanes.address[first + 1] - lanes.address[first]
    is_all, is_most = is_beside or count == 2 or equal == count - 1, 2 * equal >= count - 1
    if count == 1:
        pattern = _SINGLE
    elif is_all:
        pattern = _BROADCAST if stride == 0 else _CONTIGUOUS if stride == width else _STRIDED
    elif is_most:
        pattern = _PIECES if stride == width else _GROUPS if stride == 0 else _STEPS
    else:
        pattern = _SCATTERED
    return pattern, stride if pattern in (_CONTIGUOUS, _STRIDED, _PIECES, _STEPS) else 0


@compiled
def list_units(lanes: LaneColumns, rows: Integers, shift: int, sizes: Integers, units: Integers) -> int:
    """Fill the units of ``2**shift`` bytes that rows touch, ascending in each, and how many each touches; how many all do.

    Args:
        units: int64, room for two for each word of each lane, and for MOST_STARTS more.
    """
    starts = units[len(units) - MOST_STARTS :]
    end = 0
    for place in range(len(rows)):
        count, width, begin = _list_starts(lanes, rows[place], starts), _find_width(lanes, rows[place]), end
        for one in range(count):
            unit, last = starts[one] >> shift, (starts[one] + width - 1) >> shift
            if one > 0:
                unit = max(unit, units[end - 1] + 1)
            while unit <= last:
                units[end] = unit
                unit, end = unit + 1, end + 1
        sizes[place] = end - begin
    return end


DIGIT_BITS = 11  # Of a key that one pass of a sort looks at


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
            mixed = ((mixed ^ (mixed >> 32)) + columns[column, row]) * MIX
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


@part
def count_bits(word: int | np.int64) -> int:
    """Bits of 32 that are set."""
    word -= word >> 1 & 0x55555555
    word = (word & 0x33333333) + (word >> 2 & 0x33333333)
    word = word + (word >> 4) & 0x0F0F0F0F
    return int((word * 0x01010101 & 0xFFFFFFFF) >> 24)
