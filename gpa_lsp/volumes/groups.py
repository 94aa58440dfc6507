"""Accesses that differ by a constant only, taken together: :class:`AccessGroup`. A stencil's loads are one group.

Everything that is counted is counted for whole groups, with one numpy column for the constants.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    KernelAccesses,
    LoopTerm,
    ThreadRegion,
    Triple,
)

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessGroup:
    """n accesses of one array that differ by their constant only.

    Attributes:
        array: index in :attr:`KernelAccesses.arrays`.
        is_load: they read what may lie in DRAM.
        is_store: they write.
        is_cached: they read through L1, which keeps it; atomics do not, nor do loads with a cache operator that says so.
        element_bytes: that one thread accesses at once.
        constants_bytes: int64[n], address of thread 0 relative to the array's first byte.
        global_bytes: as in :class:`AccessExpression`, like the fields below.
        thread_bytes: see there.
        block_bytes: see there.
        loops: see there.
        region: see there.
        executions: see there.
    """

    array: int
    is_load: bool
    is_store: bool
    is_cached: bool
    element_bytes: int
    constants_bytes: Integers
    global_bytes: Triple
    thread_bytes: Triple
    block_bytes: Triple
    loops: tuple[LoopTerm, ...]
    region: ThreadRegion | None
    executions: float

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayGroups:
    """All groups of one array.

    Attributes:
        array: the array.
        index: its index.
        groups: at least one.
    """

    array: AccessedArray
    index: int
    groups: tuple[AccessGroup, ...]

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
