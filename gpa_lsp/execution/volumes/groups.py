"""Accesses that differ by a constant only, taken together: :class:`AccessGroup`. A stencil's loads are one group.

Everything that is counted is counted for whole groups, with one numpy column for the constants.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    KernelAccesses,
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
        trips = 1
        for loop in self.loops:
            trips *= loop.trips
        return trips

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
        """Those that read, or those that write; atomics are in both."""
        return tuple(group for group in self.groups if (group.is_load if loads else group.is_store))

    def select_cached(self) -> tuple[AccessGroup, ...]:
        """Those that read through L1."""
        return tuple(group for group in self.groups if group.is_cached)

    def select_bypassing(self) -> tuple[AccessGroup, ...]:
        """Loads that L1 does not keep; no atomics."""
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
