"""Curves of occupancy: every point between two jumps, and those that Nsight Compute puts into real reports."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.arch.occupancy_steps import build_block_size_curve, build_register_curve, build_shared_curve
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile
from tests.arch.occupancy_strategies import architectures, pick_carveout, shapes
from tests.conftest import find_corpus

CORPUS = find_corpus()
numbers = st.integers(0, 100)


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


@cache
def launches_with_curves() -> tuple[tuple[str, Launch], ...]:
    assert CORPUS is not None
    paths = sorted((CORPUS / "ncu").glob("*.ncu-rep"))
    return tuple(
        (f"{path.name} {launch.index}", launch)
        for path in paths
        for launch in read_profile(path).launches
        if launch.failure is None and "launch__occupancy_per_shared_mem_size" in launch.metrics
    )


def read_count(launch: Launch, metric: str) -> int:
    value = launch.read_number(metric)
    assert value is not None, metric
    return round(value)


def points_over_shared_memory(launch: Launch) -> Iterator[tuple[int, int]]:
    metric = launch.metrics["launch__occupancy_per_shared_mem_size"]
    for size, warps in zip(metric.instance_ids, metric.instance_values, strict=True):
        yield int(size), int(warps)


@pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand")
@pytest.mark.corpus
def test_curves_over_shared_memory_are_those_of_real_reports():
    """The profiler's sizes include the driver's part, and its curves end where a block would need an opt-in that the kernel does not have:
    at 48 KiB where the block has no static shared memory and not more dynamic one, else at the most a block can have."""
    points = 0
    for name, launch in launches_with_curves():
        assert launch.device.compute_capability is not None
        architecture = find_architecture(launch.device.compute_capability)
        rules = architecture.occupancy
        reserved = rules.shared_reserved_per_block_bytes.value
        static = read_count(launch, "launch__shared_mem_per_block_static")
        dynamic = read_count(launch, "launch__shared_mem_per_block_dynamic")
        block = BlockShape(
            threads=read_count(launch, "launch__block_size"),
            registers_per_thread=read_count(launch, "launch__registers_per_thread"),
            shared_bytes=static + dynamic,
            barriers=round(launch.read_number("launch__barrier_count") or 0),
        )
        carveout = None if "2020.3" in name else read_count(launch, "launch__shared_mem_config_size")
        has_opt_in = static > 0 or dynamic > rules.default_shared_per_block_bytes.value
        end = rules.max_shared_per_block_bytes.value if has_opt_in else rules.default_shared_per_block_bytes.value
        curve = build_shared_curve(architecture, block, carveout)
        for size, warps in points_over_shared_memory(launch):
            ours = curve.at(max(0, size - reserved)).warps_per_sm if size <= end else 0
            assert ours == warps, f"{name}: {size} bytes"
            points += 1
    assert points > 5_000
