"""Sectors and lines of blocks and warps, and cycles of L1, against enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.requests import count_request_cycles
from gpa_lsp.execution.volumes.block_volumes import (
    Blocks,
    count_block,
    count_cycles,
    count_paper_cycles,
    count_warp_sectors,
    find_warp_shape,
)
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    BlockBox,
    KernelAccesses,
    LaunchShape,
    LoopTerm,
)
from gpa_lsp.execution.volumes.groups import ArrayGroups, group_accesses
from tests.conftest import examples
from tests.volumes.enumeration import enumerate_addresses, enumerate_sectors

_SHAPES = st.sampled_from([(32, 2, 1), (8, 4, 2), (4, 16, 1), (2, 2, 8), (64, 1, 1), (1, 32, 1)])


@st.composite
def entries(draw: st.DrawFn) -> ArrayGroups:
    steps = st.sampled_from([0, 4, 8, 16, 32, 120, 128, 1000, 4096])
    step = (draw(steps), draw(steps), draw(steps))
    width = draw(st.sampled_from([4, 8, 16]))
    loops = (LoopTerm(step_bytes=draw(steps), trips=3),) if draw(st.booleans()) else ()
    accesses = tuple(
        AccessExpression(
            array=0,
            kind=AccessKind.LOAD,
            element_bytes=width,
            constant_bytes=width * start,
            global_bytes=step,
            loops=loops,
        )
        for start in draw(st.lists(st.integers(0, 200), min_size=1, max_size=3, unique=True))
    )
    array = AccessedArray(name="a", base_bytes=8 * draw(st.integers(0, 40)))
    return group_accesses(KernelAccesses(name="k", arrays=(array,), accesses=accesses))[0]


def list_accesses(entry: ArrayGroups) -> list[AccessExpression]:
    return [
        AccessExpression(
            array=0,
            kind=AccessKind.LOAD,
            element_bytes=group.element_bytes,
            constant_bytes=int(constant),
            global_bytes=group.global_bytes,
            loops=group.loops,
        )
        for group in entry.groups
        for constant in group.constants_bytes
    ]


@examples(60)
@given(entries(), _SHAPES, st.tuples(st.integers(1, 4), st.integers(1, 2), st.just(1)))
def test_block_footprint(entry: ArrayGroups, block: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
    x, y, z = (size * count for size, count in zip(block, grid, strict=True))
    launch = LaunchShape(block=block, grid=grid, updates=(x, y, z))
    sectors_of_block, lines_of_block, is_whole = count_block(
        entry, entry.groups, Blocks(block=block, count=grid, threads=block)
    )
    sectors = lines = 0
    for place in np.ndindex(*grid):
        box = BlockBox(low=place, high=tuple(at + 1 for at in place))  # type: ignore[arg-type]
        touched = enumerate_sectors(list_accesses(entry), launch, box, launch.region, entry.array.base_bytes)
        sectors += len(touched)
        lines += len({sector // 4 for sector in touched})
    assert is_whole
    assert sectors_of_block == pytest.approx(sectors / math.prod(grid))
    assert lines_of_block == pytest.approx(lines / math.prod(grid))


@examples(60)
@given(entries(), _SHAPES)
def test_warp_sectors_and_cycles(entry: ArrayGroups, block: tuple[int, int, int]) -> None:
    """Each warp's box of threads taken as a block of its own and enumerated."""
    shape = find_warp_shape(block, 32)
    blocks = Blocks(block=block, count=(1, 1, 1), threads=block)
    warps = tuple(size // part for size, part in zip(block, shape, strict=True))
    launch = LaunchShape(block=shape, grid=warps, updates=block)  # type: ignore[arg-type]
    group = entry.groups[0]
    sectors, cycles = [], []
    for access in list_accesses(entry):
        for place in np.ndindex(*warps):
            box = BlockBox(low=place, high=tuple(at + 1 for at in place))  # type: ignore[arg-type]
            addresses = np.array(list(enumerate_addresses(access, launch, box, launch.region))) + entry.array.base_bytes
            for request in addresses.reshape(-1, group.trips).T:
                first, last = request // 32, (request + group.element_bytes - 1) // 32
                sectors.append(len(set(first) | set(last)))
                cycles.append(count_one(request, group.element_bytes))
    count = len(group.constants_bytes)
    expected = np.mean(sectors) * math.prod(warps) * count
    assert count_warp_sectors(entry, group, blocks) == pytest.approx(expected)
    assert count_cycles(entry, group, blocks) == pytest.approx(np.mean(cycles) * count)


def count_one(addresses: np.ndarray, width: int) -> int:
    """The later rule for one request, in plain words."""
    banks: dict[int, set[int]] = {}
    for address in addresses.tolist():
        banks.setdefault(address // width % (128 // width), set()).add(address // width)
    lines = {address // 128 for address in addresses.tolist()}
    return max(*map(len, banks.values()), 0, math.ceil((len(lines) + 2) / 4), 32 * width // 128)


@pytest.mark.parametrize(("step", "expected"), [(8, 2), (16, 4), (128, 32), (0, 2), (8 * 640, 32)])
def test_published_examples(step: int, expected: int) -> None:
    """Consecutive, every other, one bank, all the same; section 4.2 counts half-warps."""
    access = AccessExpression(
        array=0, kind=AccessKind.LOAD, element_bytes=8, constant_bytes=0, global_bytes=(step, 0, 0)
    )
    kernel = KernelAccesses(name="k", arrays=(AccessedArray(name="a"),), accesses=(access,))
    entry = group_accesses(kernel)[0]
    blocks = Blocks(block=(128, 1, 1), count=(1, 1, 1), threads=(128, 1, 1))
    assert count_paper_cycles(entry, entry.groups[0], blocks) == expected


def test_far_lines_cost_tags_by_the_later_rule() -> None:
    """32 lanes with 4 bytes each in lines of their own but in banks of their own: tags take 9 cycles, banks 1."""
    addresses = np.arange(32)[np.newaxis] * (4096 + 4)
    assert count_request_cycles(addresses, 4).tolist() == [math.ceil(34 / 4)]
