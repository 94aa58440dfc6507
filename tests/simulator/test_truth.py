"""The machine code of the emulator's own test kernels leaves the memory that their PTX leaves."""

from pathlib import Path

import pytest

from gpa_lsp.execution.launches.read_launches import read_launches
from tests.emulator.kernels.compiling import read_source
from tests.simulator.walking import build, find_differences, walk_all

SOURCES = Path(__file__).parents[1] / "emulator" / "kernels" / "sources"
OWN = Path(__file__).parent / "sources"
CHOSEN = (
    "atomics_integer", "atomics_returned", "atomics_wide", "bicg", "bit_tricks", "constant_memory", "divisions",
    "dynamic_shared", "early_returns", "histogram", "reduce_shuffle", "scan_chained", "vector_accesses",
)  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_the_same_memory(name: str) -> None:
    source = next(path for folder in (OWN, SOURCES) if (path := folder / f"{name}.cu").is_file())
    built = build(source, max(80, read_source(source).least))
    for launch in read_launches(source.with_suffix(".launch.toml")):
        assert walk_all(built, launch).not_simulated == ()
        assert find_differences(built, launch) == []


def test_what_cannot_be_walked_says_why_and_where() -> None:
    source = SOURCES / "textures.cu"
    built = build(source, 80)
    for launch in read_launches(source.with_suffix(".launch.toml")):
        walk = walk_all(built, launch)
        (problem, *_) = walk.not_simulated
        assert " is not simulated: the driver decides how a texture lies in memory" in problem.reason
        assert problem.row is not None and problem.block == 0 and problem.warp == 0
        assert built.kernels[walk.kernel].rows.opcode(problem.row).memory is not None
        assert walk.walks == ()
