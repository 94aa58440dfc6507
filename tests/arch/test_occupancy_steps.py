"""Curves of occupancy, what is free before warps are lost, and what gives way for more warps: as little as it says."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, OccupancyLimit, find_occupancy
from gpa_lsp.gpu.arch.occupancy_steps import (
    build_block_size_curve,
    build_register_curve,
    build_shared_curve,
    find_free_registers,
    find_free_shared,
    find_needed_carveout,
    list_register_steps,
    list_steps_up,
)
from tests.arch.test_occupancy import architectures, shapes


def pick_carveout(architecture: Architecture, number: int) -> int | None:
    """One of the sizes the SM can be set to, or None."""
    sizes = (None, *architecture.occupancy.shared_carveouts_bytes.value)
    return sizes[number % len(sizes)]


numbers = st.integers(0, 100)


def test_one_register_less_helps_where_the_step_of_eight_ends():
    """33 registers are given out as 40: 6 blocks of 8 warps on a GPU that holds 8. With 32 all 8 fit."""
    block = BlockShape(threads=256, registers_per_thread=33, shared_bytes=0)
    (registers,) = list_steps_up(find_architecture((8, 0)), block)
    assert registers.block.registers_per_thread == 32
    assert registers.gained_warps == 16


def test_a_carve_out_that_is_too_small_is_the_first_step():
    """8,192 bytes and the driver's 1,024 go three times into 32 KiB and seven times into 64 KiB."""
    block = BlockShape(threads=256, registers_per_thread=32, shared_bytes=8192)
    architecture = find_architecture((8, 0))
    assert find_occupancy(architecture, block, 32768).blocks_per_sm == 3
    carveout, shared = list_steps_up(architecture, block, 32768)
    assert (carveout.occupancy.carveout_bytes, carveout.gained_warps) == (65536, 32)
    assert carveout.block == block
    # 32,768 / 4 is 8,192, of which the driver takes 1,024.
    assert (shared.block.shared_bytes, shared.gained_warps) == (7168, 8)


def test_the_carve_out_follows_where_it_is_not_what_limits():
    """Four blocks by registers and four by shared memory as it is set: the driver raises it when a fifth block fits by registers."""
    block = BlockShape(threads=128, registers_per_thread=108, shared_bytes=24576)
    architecture = find_architecture((8, 0))
    now = find_occupancy(architecture, block, 102400)
    assert set(now.limiters) == {OccupancyLimit.REGISTERS, OccupancyLimit.SHARED_MEMORY}
    registers = list_steps_up(architecture, block, 102400)[0]
    assert (registers.block.registers_per_thread, registers.gained_warps) == (96, 4)
    assert find_needed_carveout(architecture, registers.occupancy) == 135168


@given(architectures, shapes, numbers)
def test_a_step_up_gains_what_it_says_and_one_less_change_does_not_help(
    architecture: Architecture, shape: BlockShape, number: int
):
    carveout = pick_carveout(architecture, number)
    now = find_occupancy(architecture, shape, carveout).warps_per_sm
    sizes = architecture.occupancy.shared_carveouts_bytes.value
    steps = list_steps_up(architecture, shape, carveout)
    for step in steps:
        size = step.occupancy.carveout_bytes
        assert step.occupancy == find_occupancy(architecture, step.block, size)
        assert step.gained_warps == step.occupancy.warps_per_sm - now > 0
        if step.block == shape:
            smaller = [other for other in sizes if other < size and (carveout is None or other >= carveout)]
            assert all(find_occupancy(architecture, shape, other).warps_per_sm <= now for other in smaller)
        elif step.resources == (OccupancyLimit.REGISTERS,):
            one_more = replace(step.block, registers_per_thread=step.block.registers_per_thread + 1)
            assert find_occupancy(architecture, one_more, size).warps_per_sm <= now
        elif step.resources == (OccupancyLimit.SHARED_MEMORY,):
            one_more = replace(step.block, shared_bytes=step.block.shared_bytes + 1)
            assert find_occupancy(architecture, one_more, size).warps_per_sm <= now


@given(architectures, shapes)
def test_the_needed_carve_out_holds_what_is_resident(architecture: Architecture, shape: BlockShape):
    found = find_occupancy(architecture, shape)
    needed = find_needed_carveout(architecture, found)
    assert find_occupancy(architecture, shape, needed).blocks_per_sm == found.blocks_per_sm


@given(architectures, shapes)
def test_register_steps_are_all_counts_that_hold_more_warps_than_the_one_before(
    architecture: Architecture, shape: BlockShape
):
    most = find_occupancy(architecture, shape).warps_per_sm
    expected = []
    for count in range(shape.registers_per_thread - 1, 0, -1):
        warps = find_occupancy(architecture, replace(shape, registers_per_thread=count)).warps_per_sm
        if warps > most:
            most = warps
            expected.append((count, warps))
    found = list_register_steps(architecture, shape)
    assert [(step.block.registers_per_thread, step.occupancy.warps_per_sm) for step in found] == expected


def test_free_registers_end_where_the_next_one_costs_warps():
    block = BlockShape(threads=128, registers_per_thread=108, shared_bytes=24576)
    room = find_free_registers(find_architecture((8, 0)), block, 102400)
    assert room is not None and room.after is not None
    assert (room.spare, room.most, room.after.warps_per_sm) == (20, 128, 12)


def test_the_last_block_has_all_registers_free():
    room = find_free_registers(
        find_architecture((9, 0)), BlockShape(threads=128, registers_per_thread=130, shared_bytes=150_000)
    )
    assert (room.most, room.after) == (255, None)


def test_nothing_is_free_where_nothing_fits():
    block = BlockShape(threads=1024, registers_per_thread=128, shared_bytes=0)
    assert find_free_registers(find_architecture((8, 0)), block) is None
    assert find_free_shared(find_architecture((8, 0)), block) is None


@given(architectures, shapes, numbers)
def test_what_is_free_costs_nothing_and_one_more_does(architecture: Architecture, shape: BlockShape, number: int):
    carveout = pick_carveout(architecture, number)
    now = find_occupancy(architecture, shape, carveout).warps_per_sm
    for room, field in (
        (find_free_registers(architecture, shape, carveout), "registers_per_thread"),
        (find_free_shared(architecture, shape, carveout), "shared_bytes"),
    ):
        if room is None:
            assert now == 0
            continue
        assert room.spare >= 0
        assert find_occupancy(architecture, replace(shape, **{field: room.most}), carveout).warps_per_sm == now
        if room.after is None:
            continue
        one_more = find_occupancy(architecture, replace(shape, **{field: room.most + 1}), carveout)
        assert one_more == room.after
        assert one_more.warps_per_sm < now


def test_a_tile_that_grows_with_its_block_keeps_the_number_of_warps():
    """16 KiB for 128 threads: 128 bytes per thread, of which a GPU with 164 KiB has for 1,280 threads, however they are cut into blocks."""
    block = BlockShape(threads=128, registers_per_thread=32, shared_bytes=16384)
    architecture = find_architecture((8, 0))
    as_it_is = build_block_size_curve(architecture, block)
    scaled = build_block_size_curve(architecture, block, scaled_bytes=16384)
    assert [as_it_is.at(threads).warps_per_sm for threads in (64, 128, 256, 512)] == [18, 36, 64, 64]
    assert [scaled.at(threads).warps_per_sm for threads in (64, 128, 256, 512)] == [36, 36, 32, 32]


def test_a_curve_has_ends():
    curve = build_register_curve(
        find_architecture((8, 0)), BlockShape(threads=32, registers_per_thread=1, shared_bytes=0)
    )
    assert curve.at(255).warps_per_sm == 8
    for outside in (0, 256):
        with pytest.raises(ValueError, match="goes from 1 to 255"):
            curve.at(outside)


@given(architectures, shapes, numbers, st.tuples(st.integers(1, 255), st.integers(0, 60_000), st.integers(1, 1024)))
def test_every_point_is_that_of_the_rules(
    architecture: Architecture, shape: BlockShape, number: int, point: tuple[int, int, int]
):
    carveout = pick_carveout(architecture, number)
    registers, shared, threads = point

    def ask(**changed: int) -> tuple[int, int]:
        found = find_occupancy(architecture, replace(shape, **changed), carveout)
        return found.blocks_per_sm, found.warps_per_sm

    by_registers = build_register_curve(architecture, shape, carveout).at(registers)
    assert (by_registers.blocks_per_sm, by_registers.warps_per_sm) == ask(registers_per_thread=registers)
    by_shared = build_shared_curve(architecture, shape, carveout).at(shared)
    assert (by_shared.blocks_per_sm, by_shared.warps_per_sm) == ask(shared_bytes=shared)
    by_size = build_block_size_curve(architecture, shape, carveout).at(threads)
    assert (by_size.blocks_per_sm, by_size.warps_per_sm) == ask(threads=threads)


@given(architectures, shapes, numbers)
def test_more_registers_or_shared_memory_never_raise_occupancy(
    architecture: Architecture, shape: BlockShape, number: int
):
    carveout = pick_carveout(architecture, number)
    for build in (build_register_curve, build_shared_curve):
        parts = build(architecture, shape, carveout).list_jumps()
        warps = [found.warps_per_sm for _, _, found in parts]
        assert warps == sorted(set(warps), reverse=True)
        assert all(last + 1 == following for (_, last, _), (following, _, _) in pairwise(parts))
