"""Sectors that warps request are those of every warp, one by one."""

from itertools import product
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    BlockBox,
    KernelAccesses,
    LaunchShape,
    LoopTerm,
    ThreadRegion,
)
from gpa_lsp.execution.volumes.groups import group_accesses
from gpa_lsp.execution.volumes.traffic import count_requested_sectors
from tests.conftest import examples

steps = st.integers(-70, 70)
triples = st.tuples(steps, steps, steps)


@st.composite
def accesses(draw, count: int = 2):  # type: ignore[no-untyped-def]
    """An access of any affine form, with a guard or without."""
    low = draw(st.tuples(*[st.integers(0, 20)] * 3))
    high = draw(st.tuples(*[st.integers(1, 40)] * 3))
    return AccessExpression(
        array=draw(st.integers(0, count - 1)),
        kind=draw(st.sampled_from([AccessKind.LOAD, AccessKind.STORE])),
        element_bytes=draw(st.sampled_from([1, 4, 8, 16, 64])),
        constant_bytes=draw(st.integers(10_000, 10_100)),
        global_bytes=draw(triples),
        thread_bytes=draw(st.just((0, 0, 0)) | triples),
        block_bytes=draw(st.just((0, 0, 0)) | triples),
        loops=tuple(
            LoopTerm(step_bytes=draw(steps), trips=draw(st.integers(1, 40))) for _ in range(draw(st.integers(0, 2)))
        ),
        region=draw(st.none() | st.just(ThreadRegion(low=low, high=high))),
    )


launches = st.builds(
    lambda block, grid: LaunchShape(
        block=block, grid=grid, updates=tuple(b * g for b, g in zip(block, grid, strict=True))
    ),
    st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2)),
)


def enumerate_requests(access: AccessExpression, launch: LaunchShape, base: int) -> int:
    """The same sectors warp by warp and lane by lane."""
    total = 0
    for block in product(*(range(count) for count in launch.grid)):
        for counters in product(*(range(loop.trips) for loop in access.loops)):
            looped = sum(loop.step_bytes * at for loop, at in zip(access.loops, counters, strict=True))
            asked: dict[int, set[int]] = {}
            for number in range(prod(launch.block)):
                x, y, _ = launch.block
                thread = (number % x, number // x % y, number // (x * y))
                place = [b * size + t for b, size, t in zip(block, launch.block, thread, strict=True)]
                if access.region is not None and any(
                    not low <= at < high
                    for at, low, high in zip(place, access.region.low, access.region.high, strict=True)
                ):
                    continue
                address = base + access.constant_bytes + looped
                address += int(np.dot(access.global_bytes, place) + np.dot(access.thread_bytes, thread))
                address += int(np.dot(access.block_bytes, block))
                asked.setdefault(number // 32, set()).update(
                    range(address // 32, (address + access.element_bytes - 1) // 32 + 1)
                )
            total += sum(map(len, asked.values()))
    return total


@given(access=accesses(), launch=launches, base=st.integers(0, 64))
@examples(10)
def test_requests_are_those_of_every_warp(access: AccessExpression, launch: LaunchShape, base: int) -> None:
    kernel = KernelAccesses(name="k", arrays=(AccessedArray(name="a"), AccessedArray(name="b")), accesses=(access,))
    ((entry,), region) = group_accesses(kernel), launch.region
    (group,) = entry.groups
    whole = BlockBox(low=(0, 0, 0), high=launch.grid)
    found = count_requested_sectors(group, base, launch, region, whole)
    assert found == enumerate_requests(access, launch, base)
