"""Resources and occupancy of fixtures against what their sources and NVIDIA's rules say."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.code.binary.cubin import CompiledLimits, read_compiled_limits
from gpa_lsp.diagnosis.analyses.static.kernel_statics import find_kernel_statics
from gpa_lsp.diagnosis.analyses.static.model import (
    BlockOrigin,
    KernelStatics,
    KnownBlock,
    describe_block,
    describe_occupancy,
    describe_resources,
)
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, OccupancyLimit, find_occupancy
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.kernel.model import Kernel

CUBINS = Path(__file__).parents[3] / "fixtures" / "cubins"


def read(name: str) -> tuple[Kernel, CompiledLimits]:
    (cubin,) = find_cubins(CUBINS / f"{name}.cubin")
    (kernel,) = list_unmeasured_kernels(cubin, with_text=False)[0]
    return kernel, read_compiled_limits(cubin)[kernel.mangled_name]


def examine(name: str, *blocks: KnownBlock) -> KernelStatics:
    kernel, limits = read(name)
    return find_kernel_statics(kernel, limits=limits, blocks=blocks)


def test_resources_are_those_of_the_image() -> None:
    statics = examine("sm_80/local_array_improved")
    assert (statics.registers, statics.shared_static_bytes, statics.local_bytes) == (22, 16 * 128 * 4, 0)
    assert (statics.most_threads, statics.block) == (128, KnownBlock(threads=128, origin=BlockOrigin.BOUND))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
def test_the_drivers_part_is_no_static_shared_memory(architecture: str) -> None:
    """Images from sm_90 on count 1,024 bytes of the driver's as the kernel's own."""
    assert examine(f"{architecture}/local_array_improved").shared_static_bytes == 8192


def test_occupancy_of_a_launch_bound_is_what_the_rules_say() -> None:
    """64 registers × 1,024 threads are all 65,536 registers of an SM of 8.0: one block, 32 of 64 warps."""
    statics = examine("sm_80/register_spill_original")
    assert (statics.occupancy.blocks_per_sm, statics.occupancy.warps_per_sm, statics.occupancy.ratio) == (1, 32, 0.5)
    assert statics.occupancy.limiters == (OccupancyLimit.REGISTERS,)
    assert describe_resources(statics) == "64 registers · occupancy 50 % (registers)"
    assert statics.next_step.startswith("32 registers per thread instead of 64: 32 warps more, 64 of 64")
    assert "spill" in statics.next_step_remedy


def test_the_next_step_is_true() -> None:
    """Registers and warps of the sentence fit into an SM; with one register more they do not."""
    architecture = find_architecture((8, 0))
    statics = examine("sm_80/register_spill_improved", KnownBlock(threads=256, origin=BlockOrigin.SOURCE))
    assert statics.next_step.startswith("80 registers per thread instead of 116: 8 warps more, 24 of 64")
    found = [
        find_occupancy(architecture, BlockShape(threads=256, registers_per_thread=count, shared_bytes=0)).warps_per_sm
        for count in (80, 81, 116)
    ]
    assert found == [24, 16, 16]


def test_without_a_block_size_there_is_a_table_and_no_single_answer() -> None:
    statics = examine("sm_80/local_array_original")
    assert (statics.block, statics.occupancy, statics.next_step) == (None, None, "")
    assert describe_occupancy(statics) == ""
    assert describe_resources(statics) == "22 registers · occupancy up to 100 % (blocks of 64)"
    ratios = {threads: one.ratio for threads, one in statics.by_block}
    assert ratios[32] == 0.5  # 32 blocks of one warp are the most
    assert ratios[1024] == 1.0
    assert list(ratios) == sorted(ratios)


def test_the_surest_origin_of_a_block_counts() -> None:
    launched = KnownBlock(threads=96, origin=BlockOrigin.SOURCE, line=12)
    described = KnownBlock(threads=64, origin=BlockOrigin.DESCRIPTION)
    measured = KnownBlock(threads=160, origin=BlockOrigin.PROFILE)
    name = "sm_80/register_spill_improved"
    assert examine(name).block == KnownBlock(threads=256, origin=BlockOrigin.BOUND)
    assert examine(name, launched).block == launched
    assert examine(name, launched, described).block == described
    assert examine(name, launched, described, measured).block == measured
    assert describe_block(launched) == "blocks of 96 threads (as launched in line 12)"
    kernel, limits = read(name)
    required = find_kernel_statics(kernel, limits=replace(limits, is_block_required=True), blocks=(measured,))
    assert required.block == KnownBlock(threads=256, origin=BlockOrigin.REQUIRED)
    assert [threads for threads, _ in required.by_block] == [256]
    assert "Blocks of" not in required.next_step


def test_dynamic_shared_memory_counts() -> None:
    plain = examine("sm_80/local_array_original", KnownBlock(threads=128, origin=BlockOrigin.SOURCE))
    heavy = examine(
        "sm_80/local_array_original",
        KnownBlock(threads=128, origin=BlockOrigin.SOURCE, dynamic_shared_bytes=64 << 10),
    )
    assert plain.occupancy is not None and heavy.occupancy is not None
    assert plain.occupancy.ratio == 1.0
    assert heavy.occupancy.blocks_per_sm == 2
    assert describe_occupancy(heavy) == "Occupancy 12 % (shared memory)"


def test_senseless_blocks_give_no_answer_and_no_error() -> None:
    for threads in (0, -5):
        statics = examine("sm_80/local_array_original", KnownBlock(threads=threads, origin=BlockOrigin.SOURCE))
        assert statics.occupancy is None
    huge = examine("sm_80/local_array_original", KnownBlock(threads=100_000, origin=BlockOrigin.SOURCE))
    assert huge.occupancy is not None and huge.occupancy.blocks_per_sm == 0
    assert "No block fits" in describe_occupancy(huge)


def test_an_architecture_without_a_table_still_has_resources() -> None:
    kernel, limits = read("sm_80/register_spill_original")
    statics = find_kernel_statics(replace(kernel, architecture=None), limits=limits)
    assert (statics.registers, statics.occupancy, statics.by_block) == (64, None, ())
    assert describe_resources(statics) == "64 registers"
