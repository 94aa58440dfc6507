"""What gives way for more warps: as little as it says."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, OccupancyLimit, find_occupancy
from gpa_lsp.gpu.arch.occupancy_steps import find_needed_carveout, list_register_steps, list_steps_up
from tests.arch.occupancy_strategies import architectures, pick_carveout, shapes

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
