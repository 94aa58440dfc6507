"""Sectors that the threads of some blocks touch in one array, as boxes: :func:`build_boxes`."""

from collections.abc import Sequence
from contextlib import suppress
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import BlockBox, LaunchShape, ThreadRegion
from gpa_lsp.execution.volumes.groups import (
    AccessGroup,
    ArrayGroups,
    Axis,
    Integers,
    Variable,
    find_strides,
    list_distinct,
    list_variables,
    place_group,
)
from gpa_lsp.foundation.records import ColumnRecord

# Intervals that one group of accesses may be taken apart into; beyond, the hull of what is left is taken
MOST_INTERVALS = 1 << 18
_MOST_COPIES = 64  # Boxes that one access may be taken apart into where its threads leave gaps


class _Reach(ColumnRecord, frozen=True):
    """Coordinates ``low + shift + step · 0, 1 … count-1`` of a dimension, for each of ``shifts``."""

    low: int
    step: int
    count: int
    shifts: Integers


def find_array_strides(entry: ArrayGroups, launch: LaunchShape, region: ThreadRegion) -> tuple[int, ...]:
    """Strides of an array's outer dimensions in bytes: those that were given, else those found."""
    if entry.array.strides_bytes is not None:
        return tuple(stride for stride in entry.array.strides_bytes if stride > SECTOR_BYTES)
    return find_strides(entry.groups, launch, region)


class Place(Struct, frozen=True, kw_only=True):
    """Launch and array that a footprint is taken of."""

    launch: LaunchShape  # blocks and grid
    region: ThreadRegion  # threads with work
    base_bytes: int  # the array's alignment
    strides: tuple[int, ...] = ()  # of its outer dimensions, ascending


class Overlaps(Struct, frozen=True, kw_only=True):
    """Footprint of some blocks in one array, and how much of it blocks before them touched; all in sectors."""

    current: float  # distinct sectors
    before: tuple[float, ...]  # distinct sectors of each set before
    shared: tuple[float, ...]  # sectors of ``current`` that this set touched and none of those listed in front of it


def measure_overlaps(groups: Sequence[AccessGroup], place: Place, sets: Sequence[BlockBox]) -> Overlaps:
    """Footprint of the first set of blocks, and what the others share with it, each counted once."""
    if not groups:
        nothing = (0,) * (len(sets) - 1)
        return Overlaps(current=0, before=nothing, shared=nothing)
    boxes = []
    for blocks in sets:
        found = build_boxes(groups, place, blocks)
        if found is None:
            break
        boxes.append(found)
    else:
        with suppress(TooManyCellsError):
            return _measure_intervals(boxes) if boxes[0].shape[1] == 1 else _measure(boxes)
    return _measure_intervals([build_intervals(groups, place, blocks) for blocks in sets])


def _measure(boxes: Sequence[Integers]) -> Overlaps:
    canvas = Canvas(boxes)
    left = canvas.paint(boxes[0])
    current = canvas.measure(left)
    before, shared = [], []
    for others in boxes[1:]:
        if not len(others):
            before.append(0)
            shared.append(0)
            continue
        mask = canvas.paint(others)
        before.append(canvas.measure(mask))
        shared.append(canvas.measure(left & mask))
        left = left & ~mask
    return Overlaps(current=current, before=tuple(before), shared=tuple(shared))


def _measure_intervals(sets: Sequence[Integers]) -> Overlaps:
    """Overlaps of sets of intervals: what several share follows from the sizes of unions."""
    first, *others = [intervals[:, 0] for intervals in sets]
    current, joined, common = measure_union(first), first[:0], 0
    before, shared = [], []
    for intervals in others:
        before.append(measure_union(intervals))
        if not len(intervals):
            shared.append(0)
            continue
        joined = np.concatenate([joined, intervals])
        known, common = common, current + measure_union(joined) - measure_union(np.concatenate([first, joined]))
        shared.append(common - known)
    return Overlaps(current=current, before=tuple(before), shared=tuple(shared))


def build_boxes(groups: Sequence[AccessGroup], place: Place, blocks: BlockBox) -> Integers | None:
    """Boxes int64[n, axes, 2] of the sectors some blocks touch; None when they are no boxes.

    An outer dimension in which threads step over several places gives two axes: place within the step, and step. The last axis counts sectors.
    """
    placed = [
        (
            group,
            place_group(
                group, list_variables(group, place.launch, blocks, place.region), place.strides, place.base_bytes
            ),
        )
        for group in groups
    ]
    steps = [1] * len(place.strides)
    for index in range(len(place.strides)):
        found = {
            abs(variable.step_bytes)
            for _, axes in placed
            if axes is not None
            for variable in axes[index].variables
            if variable.step_bytes
        }
        # The smallest step: the larger ones are multiples of it or leave gaps.
        steps[index] = min(found, default=1)
    parts = []
    for group, axes in placed:
        if axes is None:
            return None
        built = _build_group_boxes(group, axes, steps)
        if built is None:
            return None
        parts.append(built)
    return np.concatenate(parts)


def _build_group_boxes(group: AccessGroup, axes: Sequence[Axis], steps: Sequence[int]) -> Integers | None:
    count = len(group.constants_bytes)
    columns: list[Integers] = []
    if any(variable.count == 0 for axis in axes for variable in axis.variables):
        return np.zeros((0, sum(2 if step > 1 else 1 for step in steps) + 1, 2), dtype=np.int64)
    copies: list[Integers] = []
    for axis, step in zip(axes[:-1], steps, strict=True):
        reach = _find_reach(axis.variables, 1)
        if reach is None or (reach.count > 1 and reach.step != step):
            return None
        lows = axis.constants + reach.low
        copies.append(reach.shifts)
        columns.append(np.stack([lows, lows + reach.step * (reach.count - 1) + 1], axis=1))
    inner = _find_reach(axes[-1].variables, SECTOR_BYTES)
    if inner is None:
        return None
    lows = axes[-1].constants + inner.low
    columns.append(np.stack([lows, lows + inner.step * (inner.count - 1) + group.element_bytes], axis=1))
    copies.append(inner.shifts)
    boxes = np.stack(columns, axis=1).reshape(count, len(columns), 2)
    copied = _copy_boxes(boxes, copies)
    return None if copied is None else _cut_steps(copied, steps)


def _copy_boxes(boxes: Integers, copies: Sequence[Integers]) -> Integers | None:
    """Every box at every combination of shifts."""
    if np.prod([len(shifts) for shifts in copies], dtype=np.float64) > _MOST_COPIES:
        return None
    for axis, shifts in enumerate(copies):
        if len(shifts) == 1 and shifts[0] == 0:
            continue
        moved = np.repeat(boxes[np.newaxis], len(shifts), axis=0)
        moved[:, :, axis] += shifts[:, np.newaxis, np.newaxis]
        boxes = moved.reshape(-1, *boxes.shape[1:])
    return boxes


def _cut_steps(boxes: Integers, steps: Sequence[int]) -> Integers:
    """Axes of steps as two, and bytes as sectors."""
    columns: list[Integers] = []
    for axis, step in enumerate(steps):
        low, high = boxes[:, axis, 0], boxes[:, axis, 1]
        if step == 1:
            columns.append(boxes[:, axis])
            continue
        place = low % step
        columns.append(np.stack([place, place + 1], axis=1))
        columns.append(np.stack([low // step, (high - 1) // step + 1], axis=1))
    inner = boxes[:, -1]
    columns.append(np.stack([inner[:, 0] // SECTOR_BYTES, (inner[:, 1] - 1) // SECTOR_BYTES + 1], axis=1))
    return np.stack(columns, axis=1)


def _find_reach(variables: Sequence[Variable], gap: int) -> _Reach | None:
    """Coordinates that variables reach together; those that leave gaps become shifts."""
    low = sum(variable.step_bytes * variable.first for variable in variables)
    moving = sorted(
        (v for v in variables if v.step_bytes and v.count > 1), key=lambda variable: abs(variable.step_bytes)
    )
    low += sum(v.step_bytes * (v.count - 1) for v in moving if v.step_bytes < 0)
    shifts = np.zeros(1, dtype=np.int64)
    step, length = 1, 1
    for variable in moving:
        size = abs(variable.step_bytes)
        if length == 1:
            step, length = size, variable.count
        elif size % step == 0 and size <= max(gap, step * (length - 1) + max(step, gap)):
            length = (step * (length - 1) + size * (variable.count - 1)) // step + 1
        elif len(shifts) * variable.count <= _MOST_COPIES:
            added = size * np.arange(variable.count, dtype=np.int64)
            shifts = (shifts[:, np.newaxis] + added).ravel()
        else:
            return None
        if gap > 1 and step <= gap:
            step, length = 1, step * (length - 1) + 1
    if gap > 1 and step > gap and length > 1:
        if len(shifts) * length > _MOST_COPIES:
            return None
        added = step * np.arange(length, dtype=np.int64)
        return _Reach(low, 1, 1, (shifts[:, np.newaxis] + added).ravel())
    return _Reach(low, step, length, shifts)


def build_intervals(groups: Sequence[AccessGroup], place: Place, blocks: BlockBox) -> Integers:
    """Intervals int64[n, 1, 2] of the linear sectors some blocks touch: any affine access can be taken apart so.

    Variables whose steps leave no gaps lengthen the interval; the others are enumerated, from the smallest up to :data:`MOST_INTERVALS`, beyond
    which the hull of what is left is taken: an upper bound.
    """
    parts = [_build_group_intervals(group, place, blocks) for group in groups]
    return np.concatenate(parts) if parts else np.zeros((0, 1, 2), dtype=np.int64)


def count_exactly(groups: Sequence[AccessGroup], place: Place, blocks: BlockBox) -> int | None:
    """Distinct sectors of some blocks, wherever rows of the array begin; None where too many intervals would have to be looked at.

    Boxes take it that all rows begin at the same place of a sector, which they do not where the pitch is no whole number of sectors.
    """
    if count_starts(groups, place, blocks) > MOST_INTERVALS:
        return None
    return measure_union(build_intervals(groups, place, blocks)[:, 0])


def count_starts(groups: Sequence[AccessGroup], place: Place, blocks: BlockBox) -> int:
    """Number of intervals without gaps that some accesses are taken apart into, at most."""
    starts = 0
    for group in groups:
        variables = list_variables(group, place.launch, blocks, place.region)
        steps = (max(1, one.count) for one in variables if abs(one.step_bytes) > SECTOR_BYTES)
        starts += len(group.constants_bytes) * prod(steps)
    return starts


def _build_group_intervals(group: AccessGroup, place: Place, blocks: BlockBox) -> Integers:
    variables = list_variables(group, place.launch, blocks, place.region)
    if any(variable.count == 0 for variable in variables):
        return np.zeros((0, 1, 2), dtype=np.int64)
    start = place.base_bytes + sum(variable.step_bytes * variable.first for variable in variables)
    starts, length = list_distinct(group.constants_bytes) + start, group.element_bytes
    moving = sorted(
        (v for v in variables if v.step_bytes and v.count > 1), key=lambda variable: abs(variable.step_bytes)
    )
    for variable in moving:
        size, extent = abs(variable.step_bytes), abs(variable.step_bytes) * (variable.count - 1)
        if variable.step_bytes < 0:
            starts = starts - extent
        if size <= max(SECTOR_BYTES, length) or len(starts) * variable.count > MOST_INTERVALS:
            length += extent
            continue
        added = size * np.arange(variable.count, dtype=np.int64)
        starts = (starts[:, np.newaxis] + added).ravel()
    sectors = np.stack([starts // SECTOR_BYTES, (starts + length - 1) // SECTOR_BYTES + 1], axis=1)
    return sectors[:, np.newaxis, :]


# Sizes of unions and intersections of boxes of cache sectors: :class:`Canvas`; of unions of intervals:
# :func:`measure_union`.
#
# Every axis is cut at the boxes' edges only; what lies between two cuts is one cell, in a box or not as a whole. So
# the cost depends on how many different edges there are, and not on how large the boxes are: a whole layer of a grid
# costs as much as a block.
#
# With one axis, boxes are intervals, of which there may be hundreds of thousands: their ends are sorted, and nothing
# is painted.
#
# Source: Ernst et al. (2022), section 4.4.1, for what is measured; they use sets of the Integer Set Library.

Mask = npt.NDArray[np.bool_]

MOST_CELLS = 1 << 22  # Cells a canvas may have; see :class:`TooManyCellsError`


class TooManyCellsError(Exception):
    """The boxes have too many different edges; the caller takes intervals instead."""


class Canvas:
    """Cells between the edges of the boxes it was made for.

    Args:
        boxes: each int64[n, axes, 2], from (included) and to (excluded) in sectors or elements.

    Raises:
        TooManyCellsError: see :data:`MOST_CELLS`.
    """

    def __init__(self, boxes: Sequence[Integers]) -> None:
        every = np.concatenate(boxes) if boxes else np.zeros((0, 1, 2), dtype=np.int64)
        self._edges = [list_distinct(every[:, axis]) for axis in range(every.shape[1])]
        self.shape = tuple(max(0, len(edges) - 1) for edges in self._edges)
        if np.prod(self.shape, dtype=np.float64) > MOST_CELLS:
            raise TooManyCellsError
        self._sizes = [np.diff(edges) for edges in self._edges]

    def paint(self, boxes: Integers) -> Mask:
        """Cells in at least one of the boxes: bool of the canvas' shape."""
        places = [np.searchsorted(edges, boxes[:, axis]) for axis, edges in enumerate(self._edges)]
        mask = np.zeros(self.shape, dtype=np.bool_)
        corners = np.stack(places, axis=1).tolist() if len(boxes) else []
        for corner in corners:
            mask[tuple(slice(low, high) for low, high in corner)] = True
        return mask

    def measure(self, mask: Mask) -> int:
        """Sectors in the cells of a mask."""
        total: npt.NDArray[np.generic] = mask
        for sizes in reversed(self._sizes):
            total = total @ sizes
        return int(total)


def measure_union(intervals: Integers) -> int:
    """Sectors in at least one of the intervals int64[n, 2], from (included) and to (excluded).

    Where the i-th smallest end lies before the next larger start, i intervals have ended, no other one has begun, and there is a gap.

    >>> measure_union(np.array([[4, 6], [0, 2], [5, 9], [1, 2]]))
    7
    """
    if not len(intervals):
        return 0
    starts, ends = np.sort(intervals[:, 0]), np.sort(intervals[:, 1])
    return int(ends[-1] - starts[0] - np.maximum(starts[1:] - ends[:-1], 0).sum())
