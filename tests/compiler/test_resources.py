"""Registers, shared memory and spills of compiled kernels."""

from pathlib import Path

import pytest

from gpa_lsp.compiler.builds import read_build
from gpa_lsp.compiler.compile import compile_source
from gpa_lsp.compiler.resources import read_resources
from gpa_lsp.compiler.settings import CompileSettings
from tests.compiler.installed import require_nvrtc

SETTINGS = CompileSettings(keeps_units=False)


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (12, 0)])
def test_resources_are_those_the_assembler_tells(fixtures: Path, capability: tuple[int, int]) -> None:
    require_nvrtc()
    for name in ("register_spill", "shared_reduction", "local_array"):
        unit = compile_source(
            fixtures / f"kernels/{name}/original.cu", compute_capability=capability, settings=SETTINGS
        )
        reports = {one.function: one for one in unit.assembler_reports}
        [found] = read_resources(unit)
        report = reports[found.kernel]
        assert (found.registers, found.local_bytes) == (report.registers, report.stack_frame_bytes)
        assert (found.spill_store_bytes, found.spill_load_bytes) == (report.spill_store_bytes, report.spill_load_bytes)


def test_spills_and_local_arrays_are_told_apart(fixtures: Path) -> None:
    require_nvrtc()
    [spilling] = read_resources(compile_source(fixtures / "kernels/register_spill/original.cu", settings=SETTINGS))
    [array] = read_resources(compile_source(fixtures / "kernels/local_array/original.cu", settings=SETTINGS))
    assert spilling.spill_store_bytes
    assert spilling.spill_instructions
    assert (array.spill_store_bytes, array.spill_instructions) == (0, 0)
    assert array.local_bytes


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0), (12, 0)])
def test_shared_memory_is_what_the_source_declares(tmp_path: Path, capability: tuple[int, int]) -> None:
    require_nvrtc()
    source = tmp_path / "k.cu"
    source.write_text(
        "__global__ void __launch_bounds__(256, 3) uses(int* p) { __shared__ int s[100]; s[threadIdx.x] = p[0]; __syncthreads(); p[1] = s[3]; }\n"
        "__global__ void none(int* p) { p[0] = 1; }\n"
    )
    found = {
        one.kernel: one
        for one in read_resources(compile_source(source, compute_capability=capability, settings=SETTINGS))
    }
    uses, none = found["_Z4usesPi"], found["_Z4nonePi"]
    assert (uses.shared_static_bytes, uses.barriers, uses.most_threads, uses.fewest_blocks_per_sm) == (400, 1, 256, 3)
    assert (none.shared_static_bytes, none.barriers, none.most_threads, none.fewest_blocks_per_sm) == (0, 0, None, None)


def test_existing_builds_have_resources_without_the_assemblers_words(fixtures: Path) -> None:
    [unit] = read_build(fixtures / "containers/built/register_spill_nvrtc12.sm_70.cubin")
    [found] = read_resources(unit)
    assert found.registers == 64
    assert found.local_bytes
    assert found.spill_store_bytes is None
    assert found.spill_instructions


def test_a_unit_without_an_image_has_none(tmp_path: Path) -> None:
    require_nvrtc()
    source = tmp_path / "k.cu"
    source.write_text("broken")
    assert read_resources(compile_source(source, settings=SETTINGS)) == ()
