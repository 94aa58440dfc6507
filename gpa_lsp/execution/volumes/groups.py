"""Accesses that differ by a constant only, taken together: :class:`AccessGroup`. A stencil's loads are one group.

Everything that is counted is counted for whole groups, with one numpy column for the constants.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    BlockBox,
    KernelAccesses,
    LaunchShape,
    LoopTerm,
    ThreadRegion,
    Triple,
)
from gpa_lsp.foundation.records import ColumnRecord

Integers = npt.NDArray[np.int64]


class AccessGroup(ColumnRecord, frozen=True, kw_only=True):
    """n accesses of one array that differ by their constant only."""

    array: int  # index in :attr:`KernelAccesses.arrays`
    is_load: bool  # they read what may lie in DRAM
    is_store: bool  # they write
    # they read through L1, which keeps it; atomics do not, nor do loads with a cache operator that says so
    is_cached: bool
    element_bytes: int  # that one thread accesses at once
    constants_bytes: Integers  # int64[n], address of thread 0 relative to the array's first byte
    global_bytes: Triple  # as in :class:`AccessExpression`, like the fields below
    thread_bytes: Triple  # see there
    block_bytes: Triple  # see there
    loops: tuple[LoopTerm, ...]  # see there
    region: ThreadRegion | None  # see there
    executions: float  # see there

    @property
    def trips(self) -> int:
        """Iterations of all loops around the accesses."""
        return prod(loop.trips for loop in self.loops)

    def find_thread_steps(self) -> Triple:
        """Bytes from one thread of a block to the next."""
        x, y, z = (of_all + own for of_all, own in zip(self.global_bytes, self.thread_bytes, strict=True))
        return (x, y, z)

    def find_block_steps(self, block: Triple) -> Triple:
        """Bytes from one block to the next, for blocks of that size."""
        parts = zip(self.global_bytes, block, self.block_bytes, strict=True)
        x, y, z = (of_all * size + own for of_all, size, own in parts)
        return (x, y, z)


class ArrayGroups(Struct, frozen=True, kw_only=True):
    """All groups of one array."""

    array: AccessedArray  # the array
    index: int  # its index
    groups: tuple[AccessGroup, ...]  # at least one

    def select(self, *, loads: bool) -> tuple[AccessGroup, ...]:
        """Groups that read, or groups that write; atomics are in both."""
        return tuple(group for group in self.groups if (group.is_load if loads else group.is_store))

    def select_cached(self) -> tuple[AccessGroup, ...]:
        """Groups that read through L1."""
        return tuple(group for group in self.groups if group.is_cached)

    def select_bypassing(self) -> tuple[AccessGroup, ...]:
        """Groups of loads that L1 does not keep; no atomics."""
        return tuple(group for group in self.groups if not group.is_store and not group.is_cached)


@lru_cache(maxsize=64)
def group_accesses(kernel: KernelAccesses) -> tuple[ArrayGroups, ...]:
    """The groups of a kernel by array, in the arrays' order; arrays without affine accesses are left out."""
    found: dict[tuple[object, ...], list[AccessExpression]] = {}
    for access in kernel.accesses:
        key = (
            access.array, access.kind, access.element_bytes, access.global_bytes, access.thread_bytes, access.block_bytes,
            access.loops, access.region, access.executions, access.bypasses_l1,
        )  # fmt: skip
        found.setdefault(key, []).append(access)
    groups = [_build_group(accesses) for accesses in found.values()]
    by_array = [
        ArrayGroups(array=array, index=index, groups=tuple(group for group in groups if group.array == index))
        for index, array in enumerate(kernel.arrays)
    ]
    return tuple(entry for entry in by_array if entry.groups)


def _build_group(accesses: list[AccessExpression]) -> AccessGroup:
    first = accesses[0]
    return AccessGroup(
        array=first.array,
        is_load=first.is_load,
        is_store=first.is_store,
        is_cached=not first.is_store and not first.bypasses_l1,
        element_bytes=first.element_bytes,
        constants_bytes=np.array([access.constant_bytes for access in accesses], dtype=np.int64),
        global_bytes=first.global_bytes,
        thread_bytes=first.thread_bytes,
        block_bytes=first.block_bytes,
        loops=first.loops,
        region=first.region,
        executions=first.executions,
    )


def list_distinct(values: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """The distinct values of an array of any shape, ascending: ``np.unique`` by sorting.

    From numpy 2.3 on ``np.unique`` hashes integers, which takes up to thirty times as long as sorting them.

    >>> list_distinct(np.array([[3, 1], [1, 2]])).tolist(), list_distinct(np.zeros(0, np.int64)).tolist()
    ([1, 2, 3], [])
    """
    ordered = np.sort(values, axis=None)
    if len(ordered) < 2:
        return ordered
    is_new = np.empty(len(ordered), dtype=np.bool_)
    is_new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    distinct: npt.NDArray[Any] = ordered[is_new]
    return distinct


_FOLDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
# Offsets within a row are no longer than this part of it, on either side; longer ones mean that a stride is a multiple of the row
_NEAR_RATIO = 0.25


class Variable(Struct, frozen=True):
    """An integer that an address depends on."""

    step_bytes: int  # its coefficient
    first: int  # smallest value
    count: int  # values, one apart; 0 when there are none


def list_variables(group: AccessGroup, launch: LaunchShape, blocks: BlockBox, region: ThreadRegion) -> list[Variable]:
    """Variables of a group's addresses, over the threads of some blocks that are in a region.

    A global index is one variable, cut to the region. Where block and thread have coefficients of their own they are two, and the region cuts
    whole axes only: threads outside it in part of the blocks are counted, an approximation.
    """
    if group.region is not None:
        region = region.meet(group.region)
    variables: list[Variable] = []
    for axis in range(3):
        size = launch.block[axis]
        low = max(region.low[axis], blocks.low[axis] * size)
        high = min(region.high[axis], blocks.high[axis] * size)
        step, own, of_block = group.global_bytes[axis], group.thread_bytes[axis], group.block_bytes[axis]
        if own == 0 and of_block == 0:
            variables.append(Variable(step, low, max(0, high - low)))
            continue
        threads = max(0, min(size, high - low))
        first_block, last_block = low // size, (high - 1) // size
        variables.append(Variable(step + own, 0, threads))
        variables.append(Variable(step * size + of_block, first_block, max(0, last_block - first_block + 1)))
    variables.extend(Variable(loop.step_bytes, 0, loop.trips) for loop in group.loops)
    return variables


def find_strides(groups: Sequence[AccessGroup], launch: LaunchShape, region: ThreadRegion) -> tuple[int, ...]:
    """Strides of the outer dimensions of an array in bytes, ascending; empty when all is one dimension.

    An array's dimensions are not known from the code; they show in the coefficients. The smallest belongs to the innermost dimension; a coefficient
    that steps farther than the threads have covered so far starts another one. So a stencil's ``8, 8·width, 8·width·height`` become three dimensions,
    and the tile of a matrix product two.
    """
    whole = BlockBox(low=(0, 0, 0), high=launch.grid)
    steps: dict[int, int] = {}
    for group in groups:
        for variable in list_variables(group, launch, whole, region):
            size = abs(variable.step_bytes)
            if size and variable.count > 1:
                steps[size] = max(steps.get(size, 0), variable.count)
    strides: list[int] = []
    unit, reach = 1, max(group.element_bytes for group in groups)
    for size in sorted(steps):
        is_inner = not strides and size <= SECTOR_BYTES
        if is_inner or (size % unit == 0 and size <= reach):
            reach = max(reach, reach + size * (steps[size] - 1))
            continue
        strides.append(size)
        unit, reach = size, size * steps[size]
    constants = np.concatenate([group.constants_bytes for group in groups])
    return _refine(strides, constants)


def _refine(strides: list[int], constants: Integers) -> tuple[int, ...]:
    """Strides as one row, where they span several: threads that make several updates step over more than a row."""
    refined: list[int] = []
    rest = constants
    for stride in sorted(strides, reverse=True):
        best = stride
        for fold in _FOLDS:
            row = stride // fold
            if stride % fold == 0 and row > SECTOR_BYTES and _measure_offsets(rest, row) <= _NEAR_RATIO:
                best = row
                break
        refined.append(best)
        rest = _split(rest, best)[1]
    return tuple(sorted(set(refined)))


def _measure_offsets(constants: Integers, row: int) -> float:
    """Longest offset within a row, as a part of it."""
    return float(np.abs(_split(constants, row)[1]).max()) / row


def _split(values: Integers, stride: int) -> tuple[Integers, Integers]:
    """Whole strides, rounded to the nearest, and the rest."""
    whole = (values + stride // 2) // stride
    return whole, values - whole * stride


class Axis(ColumnRecord, frozen=True):
    """A dimension of a placed group: coordinates ``constants[i] + Σ step · value``."""

    constants: Integers  # int64[n]
    variables: list[Variable]  # with ``step_bytes`` in units of the dimension


def place_group(
    group: AccessGroup, variables: Sequence[Variable], strides: Sequence[int], base_bytes: int
) -> list[Axis] | None:
    """A group's coordinates, the outermost dimension first and bytes last; None when a variable moves along several dimensions."""
    ordered = sorted(strides, reverse=True)
    left, axes = group.constants_bytes, []
    for stride in ordered:
        whole, left = _split(left, stride)
        axes.append(Axis(whole, []))
    axes.append(Axis(left + base_bytes, []))
    for variable in variables:
        parts = list(_split_step(variable.step_bytes, ordered))
        if len(parts) > 1:
            return None
        # A variable without effect still says whether there are threads at all.
        where, step = parts[0] if parts else (len(ordered), 0)
        axes[where].variables.append(Variable(step, variable.first, variable.count))
    return axes


def _split_step(step: int, ordered: Sequence[int]) -> Iterator[tuple[int, int]]:
    for index, stride in enumerate(ordered):
        whole = (step + stride // 2) // stride
        if whole:
            yield index, whole
            step -= whole * stride
    if step:
        yield len(ordered), step


def find_span(groups: Sequence[AccessGroup], strides: Sequence[int], axis: int) -> int | None:
    """Places along an array's dimension that a thread's accesses span, where threads along an axis step: 9 for a stencil of range 4.

    Returns:
        None where nothing is reused from one thread to the next: the accesses span no more than one step, or the axis has none.
    """
    ordered = sorted(strides, reverse=True)
    lows, highs, widest = [], [], 0
    for group in groups:
        parts = list(_split_step(group.global_bytes[axis] + group.thread_bytes[axis], ordered))
        if len(parts) != 1 or parts[0][0] == len(ordered):
            continue
        where, step = parts[0]
        left = group.constants_bytes
        for stride in ordered[: where + 1]:
            whole, left = _split(left, stride)
        lows.append(int(whole.min()))
        highs.append(int(whole.max()))
        widest = max(widest, abs(step))
    if not lows:
        return None
    span = max(highs) - min(lows) + 1
    return span if span > widest else None
