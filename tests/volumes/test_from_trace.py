"""Expressions are recovered from a few traced blocks, and only what holds for every traced lane."""

import random
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.model import Sampling, SamplingKind, choose_blocks
from gpa_lsp.execution.volumes.devices import find_device
from gpa_lsp.execution.volumes.expressions import LoopTerm, ThreadRegion, Triple, cover_updates
from gpa_lsp.execution.volumes.from_trace import (
    find_launch_shape,
    find_miscounts,
    list_border_blocks,
    list_probe_blocks,
    recover_expressions,
)
from gpa_lsp.execution.volumes.groups import group_accesses
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.foundation.errors import InputError
from tests.conftest import examples
from tests.volumes.written_kernels import write_star
from tests.volumes.written_traces import SIZE, WrittenAccess, write_trace

BLOCK, GRID = (16, 4, 1), (5, 3, 2)


def probe(*accesses: WrittenAccess, block: Triple = BLOCK, grid: Triple = GRID):  # type: ignore[no-untyped-def]
    return write_trace(accesses, block=block, grid=grid, traced=list_probe_blocks(grid))


def place(thread: Triple, at: Triple, block: Triple = BLOCK) -> list[int]:
    return [b * size + t for b, size, t in zip(at, block, thread, strict=True)]


def test_global_index_and_guard() -> None:
    """The kernel is ``if (x < 70 && y < 11) a[1000·y + x + 3]``."""

    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, _ = place(thread, at)
        return [8 * (1000 * y + x + 3)] if x < 70 and y < 11 else []

    found = recover_expressions(probe(WrittenAccess(addresses=addresses)))
    (access,) = found.accesses
    assert found.sampled == ()
    assert (access.constant_bytes, access.global_bytes) == (24, (8, 8000, 0))
    assert (access.thread_bytes, access.block_bytes, access.loops) == ((0, 0, 0), (0, 0, 0), ())
    assert access.region == ThreadRegion(low=(0, 0, 0), high=(70, 11, 2))
    assert access.executions == 1.0
    assert find_launch_shape(found, BLOCK, GRID).updates == (70, 11, 2)


def test_lanes_that_come_at_different_times_ask_for_their_sectors_again() -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        return [8 * place(thread, at)[0]]

    trace = probe(WrittenAccess(addresses=addresses, kind=AccessKind.STORE, is_apart=True))
    found = recover_expressions(trace)
    assert [str(one.why) for one in found.sampled] == ["threads of a warp make it at different times"]
    assert find_miscounts(found, trace) == ()


def test_interior_guard_has_two_sides() -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, _ = place(thread, at)
        return [8 * (1000 * y + x)] if 1 <= x < 79 else []

    (access,) = recover_expressions(probe(WrittenAccess(addresses=addresses))).accesses
    assert access.region == ThreadRegion(low=(1, 0, 0), high=(79, 12, 2))


def test_tile_with_a_loop() -> None:
    """The kernel is ``a[n·(4·by + ty) + 16·k + tx]`` for k in 0..5."""

    def addresses(thread: Triple, at: Triple) -> list[int]:
        row = 4 * at[1] + thread[1]
        return [4 * (100 * row + 16 * k + thread[0]) for k in range(6)]

    (access,) = recover_expressions(probe(WrittenAccess(addresses=addresses, width=4))).accesses
    assert (access.global_bytes, access.thread_bytes, access.block_bytes) == ((0, 400, 0), (4, 0, 0), (0, 0, 0))
    assert access.loops == (LoopTerm(step_bytes=64, trips=6),)


def test_nested_loops_are_taken_apart() -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at)
        return [8 * (x + 80 * y + 960 * z) + 100_000 * i - 32 * j for i in range(3) for j in range(4)]

    (access,) = recover_expressions(
        probe(WrittenAccess(addresses=lambda t, a: [SIZE // 2 + o for o in addresses(t, a)]))
    ).accesses
    assert access.loops == (LoopTerm(step_bytes=-32, trips=4), LoopTerm(step_bytes=100_000, trips=3))


def test_gather_is_said_to_be_none_and_counted() -> None:
    table = [random.Random(index).randrange(0, 1 << 20) * 8 for index in range(1000)]

    def gather(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at)
        return [table[(x + 80 * y + 960 * z) % 1000]]

    trace = probe(WrittenAccess(addresses=gather), WrittenAccess(addresses=lambda t, a: [8 * place(t, a)[0]], array=1))
    found = recover_expressions(trace)
    assert [access.array for access in found.accesses] == [1]
    (sampled,) = found.sampled
    assert (sampled.instruction, sampled.array, sampled.requests_per_warp) == (0, 0, 1.0)
    assert 30 < sampled.sectors_per_request <= 32
    assert "not an affine function" in sampled.why
    launch = find_launch_shape(found, BLOCK, GRID)
    predicted = predict_volumes(found, launch, find_device("V100 PCIe"), registers=32)
    assert predicted.volumes.l1_load > 32.0
    assert any("affine" in note for note in predicted.notes)


def test_one_lane_off_is_not_affine() -> None:
    """Verified on every lane: a single deviation, far from what coefficients were solved from, counts."""

    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at)
        is_odd = (thread, at) == ((7, 3, 0), (2, 1, 1))
        return [8 * (x + 80 * y + 960 * z) + (8 if is_odd else 0)]

    found = recover_expressions(probe(WrittenAccess(addresses=addresses)))
    assert (len(found.accesses), len(found.sampled)) == (0, 1)


_WAYS = {
    "unrolled": lambda x, t: [8 * x + 800 * k + 8 for k in range(4)],
    "two loops": lambda x, t: [8 * x + 100_000 * i - 32 * j + 4096 for i in range(3) for j in range(4)],
    "some of the lanes": lambda x, t: [8 * x] if t[0] < 5 else [],
    "a warp that differs": lambda x, t: [8 * x + (8 if t[1] >= 2 else 0)],
    "trips that differ": lambda x, t: [8 * x + 800 * k for k in range(1 + t[0] % 2)],
    "another place in the second round": lambda x, t: [8 * x, 8 * x + 16 * (t[0] % 3)],
    "a gather": lambda x, t: [8 * (x * x % 977)],
}


@pytest.mark.parametrize("name", _WAYS)
def test_what_is_recovered_touches_what_was_traced(name: str) -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at)
        return _WAYS[name](x + 80 * y + 960 * z, thread)

    trace = probe(
        WrittenAccess(addresses=addresses),
        WrittenAccess(addresses=lambda t, a: [one + 64 for one in addresses(t, a)]),
        WrittenAccess(addresses=lambda t, a: [one + 64 * t[0] for one in addresses(t, a)], array=1),
    )
    found = recover_expressions(trace)
    assert len(found.accesses) + len(found.sampled) == 3
    assert find_miscounts(found, trace) == ()


def test_trips_that_differ_are_counted_as_they_are() -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at)
        return [8 * (x + 80 * y + 960 * z) + 8000 * k for k in range(2 if thread[0] < 8 else 4)]

    found = recover_expressions(probe(WrittenAccess(addresses=addresses)))
    (access,) = found.sampled
    assert (found.accesses, access.executions) == ((), 3.0)
    assert "trip counts of its loops differ" in access.why


def test_scattered_activity_is_counted_by_requests() -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at)
        return [8 * (x + 80 * y + 960 * z)] if x % 4 == 0 else []

    (access,) = recover_expressions(probe(WrittenAccess(addresses=addresses))).sampled
    assert (access.executions, access.requests_per_warp) == (0.25, 1.0)
    assert "do not lie side by side" in access.why


def test_steps_that_were_not_seen_are_not_guessed() -> None:
    trace = write_trace(
        [WrittenAccess(addresses=lambda t, a: [8 * place(t, a)[0]])], block=BLOCK, grid=GRID, traced=(0, 1)
    )
    found = recover_expressions(trace)
    assert found.accesses == ()
    assert "block y" in found.sampled[0].why


def test_addresses_in_two_arrays() -> None:
    found = recover_expressions(
        probe(WrittenAccess(addresses=lambda t, a: [8 * t[0] + (SIZE if t[0] % 2 else 0)], kind=AccessKind.STORE))
    )
    assert found.sampled[0].array is None


def test_shared_memory_counts_cycles_only() -> None:
    trace = probe(
        WrittenAccess(addresses=lambda t, a: [128 * t[0]], width=4, space=Space.SHARED),
        WrittenAccess(addresses=lambda t, a: [8 * place(t, a)[0]]),
    )
    found = recover_expressions(trace)
    assert len(found.accesses) == 1
    # 16 threads of a row in one bank, the second row of the warp reads the same words.
    assert found.shared_cycles_per_warp == 16.0


@pytest.mark.parametrize("is_gather", [False, True])
@pytest.mark.parametrize(
    ("text", "operator", "bypasses"),
    [
        ("ld.global.f64 %fd1, [%rd1]", "", False),
        ("ld.global.ca.f64 %fd1, [%rd1]", "ca", False),
        ("ld.global.cg.f64 %fd1, [%rd1]", "cg", True),
        ("ld.global.cv.f64 %fd1, [%rd1]", "cv", True),
        ("ld.volatile.global.f64 %fd1, [%rd1]", "", True),
        ("ld.relaxed.gpu.global.f64 %fd1, [%rd1]", "", True),
        ("ld.acquire.gpu.global.f64 %fd1, [%rd1]", "", True),
    ],
)
def test_loads_that_l1_does_not_keep_come_from_l2_each_time(
    text: str, operator: str, bypasses: bool, is_gather: bool
) -> None:
    """Five loads of one element by each thread: L2 is asked once, or five times where L1 keeps nothing."""

    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at)
        return [8 * (x + 80 * y + 960 * z ^ 16 * is_gather * (y % 2))]

    load = WrittenAccess(addresses=addresses, text=text, cache_operator=operator)
    found = recover_expressions(probe(*[load] * 5))
    accesses = found.sampled if is_gather else found.accesses
    assert [access.bypasses_l1 for access in accesses] == [bypasses] * 5
    launch = find_launch_shape(found, BLOCK, GRID)
    volumes = predict_volumes(found, launch, find_device("V100 PCIe"), registers=32).volumes
    assert volumes.l1_load == pytest.approx(40.0)
    assert volumes.l2_load_bypassing == pytest.approx(40.0 if bypasses else 0.0)
    if bypasses:
        assert volumes.l2_load == pytest.approx(40.0)
    elif not is_gather:
        assert volumes.l2_load == pytest.approx(8.0, rel=0.01)


def test_no_block_is_an_error() -> None:
    trace = probe(WrittenAccess(addresses=lambda t, a: [0]))
    with pytest.raises(InputError, match="no block"):
        recover_expressions(replace(trace, traced_blocks=trace.traced_blocks[:0]))


@pytest.mark.parametrize("block", [(32, 4, 2), (8, 8, 4), (1, 16, 16), (128, 1, 1)])
def test_recovered_stencil_is_predicted_as_the_written_one(block: Triple) -> None:
    written = write_star(2, (320, 256, 100), base_elements=0)
    launch = cover_updates((312, 248, 96), block)
    accesses = [
        WrittenAccess(
            addresses=lambda t, a, access=access: (
                [
                    SIZE // 2
                    + access.constant_bytes
                    + sum(s * p for s, p in zip(access.global_bytes, place(t, a, block), strict=True))
                ]
                if all(p < u for p, u in zip(place(t, a, block), launch.updates, strict=True))
                else []
            ),
            kind=access.kind,
            array=access.array,
        )
        for access in written.accesses
    ]
    trace = write_trace(accesses, block=block, grid=launch.grid, traced=list_probe_blocks(launch.grid))
    found = recover_expressions(trace, flops_per_thread=13.0)
    assert found.sampled == ()
    shape = find_launch_shape(found, block, launch.grid)
    assert shape == launch
    device = find_device("A100 SXM4 40GB")
    ours, theirs = (predict_volumes(kernel, launch, device, registers=32) for kernel in (found, written))
    assert ours.volumes == theirs.volumes
    assert ours.bounds == theirs.bounds


@examples(40)
@given(
    st.tuples(*[st.integers(-5000, 5000)] * 6),
    st.integers(1, 4),
    st.integers(-300, 300),
    st.tuples(st.integers(1, 40), st.integers(1, 4), st.integers(1, 3)),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)),
)
def test_any_affine_access_is_recovered(
    steps: tuple[int, ...], trips: int, loop_step: int, block: Triple, grid: Triple
) -> None:
    def address(thread: Triple, at: Triple, k: int) -> int:
        return SIZE // 2 + sum(s * v for s, v in zip(steps, (*thread, *at), strict=True)) + k * loop_step

    trace = probe(
        WrittenAccess(addresses=lambda t, a: [address(t, a, k) for k in range(trips)], width=1), block=block, grid=grid
    )
    recovered = recover_expressions(trace)
    (access,) = recovered.accesses
    ((group,),) = (entry.groups for entry in group_accesses(recovered))
    for axis in range(3):
        if block[axis] > 1:
            assert group.find_thread_steps()[axis] == steps[axis]
        if grid[axis] > 1:
            assert group.find_block_steps(block)[axis] == steps[axis + 3]
    assert access.constant_bytes == SIZE // 2
    if trips > 1:
        assert access.loops == (LoopTerm(step_bytes=loop_step, trips=trips),)


@pytest.mark.parametrize(
    ("grid", "block", "updates"),
    [
        ((10_240, 1, 1), (256, 1, 1), (10_000, 1, 1)),
        ((64, 64, 1), (32, 8, 1), (1_000, 255, 1)),
        ((16, 8, 40), (8, 8, 1), (128, 9, 23)),
        ((1 << 30, 1, 1), (64, 1, 1), (64 * 12_345_678, 1, 1)),
    ],
)
def test_a_grid_that_is_larger_than_its_work_is_traced_where_that_ends(
    grid: Triple, block: Triple, updates: Triple
) -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y, z = place(thread, at, block)
        return [8 * (x + 4096 * y)] if x < updates[0] and y < updates[1] and z < updates[2] else []

    blocks = list_probe_blocks(grid)
    for _ in range(12):
        written = [WrittenAccess(addresses=addresses)]
        trace = write_trace(written, block=block, grid=grid, traced=blocks, array_bytes=1 << 40)
        more = list_border_blocks(trace)
        if not more:
            break
        assert not set(more) & set(blocks)
        blocks = tuple(sorted({*blocks, *more}))
    assert not more and len(blocks) < 130
    assert find_launch_shape(recover_expressions(trace), block, grid).updates == updates


def test_what_does_nothing_here_and_there_has_no_border() -> None:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        return [8 * thread[0]] if at[0] % 3 else []

    trace = write_trace(
        [WrittenAccess(addresses=addresses)], block=(64, 1, 1), grid=(100, 1, 1), traced=(0, 1, 50, 98, 99)
    )
    assert list_border_blocks(trace) == ()


@pytest.mark.parametrize(
    "grid",
    [
        (2147483647, 65535, 65535),
        (65536, 32768, 5),
        (1 << 31, 1, 1),
        (1, 65535, 65535),
        (2147483647, 2, 1),
        (65536, 65536, 1),
    ],
)
def test_blocks_that_are_probed_can_be_executed(grid: tuple[int, int, int]) -> None:
    """A trace numbers blocks in 32 bits, and a grid may have more."""
    blocks = list_probe_blocks(grid)
    chosen = choose_blocks(prod(grid), Sampling(kind=SamplingKind.CHOSEN, blocks=blocks))
    assert list(blocks) == sorted(set(blocks)) == np.asarray(chosen).tolist()
    assert 1 in blocks and (grid[0] in blocks) == (grid[1] > 1)  # the first one's neighbours along x and y
