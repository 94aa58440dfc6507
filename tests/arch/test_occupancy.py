"""Occupancy against known values of NVIDIA's calculator, and against curves that Nsight Compute puts into real reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, OccupancyLimit, find_occupancy
from gpa_lsp.gpu.arch.occupancy_steps import find_next_steps
from gpa_lsp.profile.model import Launch
from tests.real_reports import REPORTS, read_launches

KNOWN = [
    # capability, threads, registers, shared bytes → blocks, warps, what limits
    ((7, 0), 128, 64, 0, 8, 32, {"registers"}),
    ((7, 0), 128, 32, 0, 16, 64, set()),
    ((7, 0), 32, 16, 0, 32, 32, {"blocks"}),
    ((7, 0), 64, 16, 98304, 1, 2, {"shared memory"}),
    ((7, 5), 256, 32, 0, 4, 32, set()),
    ((7, 5), 256, 64, 32768, 2, 16, {"shared memory"}),
    ((8, 0), 256, 40, 0, 6, 48, {"registers"}),
    ((8, 0), 128, 108, 24576, 4, 16, {"registers"}),
    ((8, 0), 128, 255, 92672, 1, 4, {"shared memory"}),
    ((8, 0), 1024, 64, 0, 1, 32, {"registers"}),
    ((8, 0), 1024, 65, 0, 0, 0, {"registers"}),
    ((8, 6), 1024, 32, 0, 1, 32, {"warps"}),
    ((8, 6), 768, 80, 76896, 1, 24, {"registers", "shared memory"}),
    ((8, 6), 1, 32, 0, 16, 16, {"blocks"}),
    ((8, 6), 96, 40, 101376, 1, 3, {"shared memory"}),
    ((8, 6), 96, 40, 101377, 0, 0, {"shared memory"}),
    ((8, 9), 64, 24, 0, 24, 48, set()),
    ((9, 0), 256, 56, 0, 4, 32, {"registers"}),
    ((9, 0), 384, 168, 232448, 1, 12, {"registers", "shared memory"}),
    ((10, 0), 256, 32, 0, 8, 64, set()),
    ((12, 0), 256, 32, 0, 6, 48, set()),
    ((12, 0), 32, 32, 0, 24, 24, {"blocks"}),
]


@pytest.mark.parametrize("known", KNOWN)
def test_values_of_the_vendors_calculator(known):
    capability, threads, registers, shared, blocks, warps, limiters = known
    shape = BlockShape(threads=threads, registers_per_thread=registers, shared_bytes=shared)
    found = find_occupancy(find_architecture(capability), shape)
    assert (found.blocks_per_sm, found.warps_per_sm) == (blocks, warps)
    assert {limiter.value for limiter in found.limiters} == limiters


def test_registers_are_given_out_per_sub_partition():
    """45 warps of 1,408 registers would fit into 65,536 as a whole; into four quarters fit 11 each."""
    shape = BlockShape(threads=32 * 9, registers_per_thread=44, shared_bytes=0)
    found = find_occupancy(find_architecture((9, 0)), shape)
    assert found.registers_per_warp == 1536
    assert found.limit_of(OccupancyLimit.REGISTERS) == 40 // 9


def test_barriers_limit_only_where_the_architecture_counts_them():
    shape = BlockShape(threads=32, registers_per_thread=16, shared_bytes=0, barriers=5)
    assert find_occupancy(find_architecture((12, 0)), shape).limiters == (OccupancyLimit.BARRIERS,)
    assert find_occupancy(find_architecture((8, 6)), shape).limit_of(OccupancyLimit.BARRIERS) is None


def test_a_smaller_carve_out_holds_fewer_blocks():
    shape = BlockShape(threads=32, registers_per_thread=16, shared_bytes=4096)
    architecture = find_architecture((8, 6))
    assert find_occupancy(architecture, shape, 16384).limit_of(OccupancyLimit.SHARED_MEMORY) == 3
    assert find_occupancy(architecture, shape).limit_of(OccupancyLimit.SHARED_MEMORY) == 20


@pytest.mark.parametrize(
    "wrong", [{"threads": 0}, {"registers_per_thread": -1}, {"shared_bytes": -1}, {"barriers": -1}]
)
def test_what_is_no_block_is_refused(wrong):
    shape = replace(BlockShape(threads=32, registers_per_thread=16, shared_bytes=0), **wrong)
    with pytest.raises(ValueError, match="no block has"):
        find_occupancy(find_architecture((8, 0)), shape)


shapes = st.builds(
    BlockShape,
    threads=st.integers(1, 1024),
    registers_per_thread=st.integers(1, 255),
    shared_bytes=st.integers(0, 240_000) | st.integers(0, 12_000),
    barriers=st.integers(0, 16),
)
architectures = st.sampled_from(list_architectures()).map(find_architecture)


@given(architectures, shapes)
def test_what_is_resident_fits(architecture: Architecture, shape: BlockShape):
    found = find_occupancy(architecture, shape)
    rules = architecture.occupancy
    assert 0 <= found.warps_per_sm <= rules.max_warps_per_sm.value
    assert 0 <= found.blocks_per_sm <= rules.max_blocks_per_sm.value
    assert found.warps_per_sm * found.registers_per_warp <= rules.registers_per_sm.value
    assert found.blocks_per_sm * found.shared_per_block_bytes <= rules.shared_per_sm_bytes.value
    assert (found.limiters == ()) == (found.warps_per_sm == rules.max_warps_per_sm.value)


@given(architectures, shapes)
def test_asking_for_less_never_holds_fewer(architecture: Architecture, shape: BlockShape):
    now = find_occupancy(architecture, shape).warps_per_sm
    fewer = replace(
        shape, registers_per_thread=max(1, shape.registers_per_thread - 3), shared_bytes=shape.shared_bytes // 2
    )
    assert find_occupancy(architecture, fewer).warps_per_sm >= now


@given(architectures, shapes)
def test_a_step_gains_what_it_says_and_is_the_smallest(architecture: Architecture, shape: BlockShape):
    now = find_occupancy(architecture, shape)
    for step in find_next_steps(architecture, shape):
        assert step.occupancy == find_occupancy(architecture, step.block)
        assert step.gained_warps == step.occupancy.warps_per_sm - now.warps_per_sm > 0
        if step.resources == (OccupancyLimit.REGISTERS,):
            one_more = replace(step.block, registers_per_thread=step.block.registers_per_thread + 1)
            assert find_occupancy(architecture, one_more).warps_per_sm <= now.warps_per_sm
        if step.resources == (OccupancyLimit.SHARED_MEMORY,):
            one_more = replace(step.block, shared_bytes=step.block.shared_bytes + 1)
            assert find_occupancy(architecture, one_more).warps_per_sm < step.occupancy.warps_per_sm
        if len(step.resources) == 2:
            for kept in ("registers_per_thread", "shared_bytes"):
                alone = replace(step.block, **{kept: getattr(shape, kept)})
                assert find_occupancy(architecture, alone).warps_per_sm <= now.warps_per_sm


def test_the_steps_of_a_block_that_two_resources_limit_are_taken_together():
    shape = BlockShape(threads=256, registers_per_thread=128, shared_bytes=60_000)
    architecture = find_architecture((8, 0))
    assert len(find_occupancy(architecture, shape).limiters) == 2
    (joint,) = find_next_steps(architecture, shape)
    assert joint.resources == (OccupancyLimit.REGISTERS, OccupancyLimit.SHARED_MEMORY)
    assert joint.block.registers_per_thread == 80
    assert joint.block.shared_bytes == 167936 // 3 // 128 * 128 - 1024
    assert joint.gained_warps == 8


def test_blocks_of_one_warp_are_told_to_grow():
    shape = BlockShape(threads=32, registers_per_thread=24, shared_bytes=0)
    (step,) = find_next_steps(find_architecture((8, 6)), shape)
    assert step.block.threads == 96
    assert step.occupancy.warps_per_sm == 48


def test_blocks_whose_shared_memory_is_the_limit_are_not_told_to_grow():
    """Blocks of 1,024 threads would fit twice with the same 60,000 bytes, but tiles grow with their blocks."""
    shape = BlockShape(threads=256, registers_per_thread=32, shared_bytes=60_000)
    (step,) = find_next_steps(find_architecture((8, 0)), shape)
    assert step.resources == (OccupancyLimit.SHARED_MEMORY,)
    assert (step.block.shared_bytes, step.gained_warps) == (54_912, 8)


def test_nothing_is_to_gain_when_all_warps_are_resident():
    shape = BlockShape(threads=256, registers_per_thread=32, shared_bytes=0)
    assert find_next_steps(find_architecture((8, 0)), shape) == ()


@pytest.mark.corpus
def test_curves_over_barriers_are_those_of_real_reports():
    """Other figures of occupancy in reports are compared with what the question answers (``tests/analyses``)."""
    points = 0
    for launch in (launch for name in REPORTS for launch in read_launches(name)):
        assert launch.device.compute_capability is not None
        curve = launch.metrics.get("launch__occupancy_per_barrier_count")
        shape = BlockShape(
            threads=launch.block[0] * launch.block[1] * launch.block[2],
            registers_per_thread=read_count(launch, "launch__registers_per_thread"),
            shared_bytes=read_count(launch, "launch__shared_mem_per_block_static")
            + read_count(launch, "launch__shared_mem_per_block_dynamic"),
        )
        for count, warps in zip(curve.instance_ids, curve.instance_values, strict=True) if curve else ():
            block = replace(shape, barriers=int(count))
            found = find_occupancy(
                find_architecture(launch.device.compute_capability),
                block,
                read_count(launch, "launch__shared_mem_config_size") or None,
            )
            assert found.warps_per_sm == warps, f"{launch.index}: {count} barriers"
            points += 1
    assert points > 100


def read_count(launch: Launch, metric: str) -> int:
    value = launch.read_number(metric)
    assert value is not None, metric
    return round(value)
