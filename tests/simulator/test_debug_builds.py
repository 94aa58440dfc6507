"""Machine code that was built for debugging (``-G``) is walked as well: it asks where its stack and its generic addresses lie."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from tests.simulator.walking import Built, build, build_for_debugging, find_differences

SOURCE = Path(__file__).parent / "sources" / "spaces.cu"
KERNELS = Path(__file__).parents[1] / "emulator" / "kernels" / "sources"
ARCHITECTURES = (75, 80, 90, 100, 120)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("compile_source", [build, build_for_debugging])
@pytest.mark.parametrize("launch", read_launches(SOURCE.with_suffix(".launch.toml")), ids=lambda one: one.kernel)
def test_every_memory_is_found(
    launch: LaunchDescription, compile_source: Callable[[Path, int], Built], architecture: int
) -> None:
    assert find_differences(compile_source(SOURCE, architecture), launch) == []


@pytest.mark.parametrize(
    "name", ["atomics_integer", "constant_memory", "local_arrays", "reduce_atomic", "transpose", "warp_shuffles"]
)
def test_the_same_memory(name: str) -> None:
    source = KERNELS / f"{name}.cu"
    built = build_for_debugging(source, 80)
    for launch in read_launches(source.with_suffix(".launch.toml")):
        assert find_differences(built, launch) == [], launch.kernel


LAST_BITS = "out: 115 of 2816 differ"
"""What ``__float2half_rz`` gives: conversions round to the nearest number, as only what decides is followed."""


def test_halves_are_compared() -> None:
    source = SOURCE.with_name("half_arithmetic.cu")
    built = build_for_debugging(source, 80)
    for launch in read_launches(source.with_suffix(".launch.toml")):
        assert set(find_differences(built, launch)) <= {LAST_BITS}, launch.kernel
