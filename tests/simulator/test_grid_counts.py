"""Executions over a grid are counted where blocks begin to do something else."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.simulator.walk_kernel import MOST_BLOCKS, Counts, WalkSettings, count_grid, walk_kernel
from tests.patience import LIMIT_S
from tests.simulator.walking import build, walk_all

SOURCE = """\
__global__ void strided(const float* from, float* to, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = 2.0f * from[i];
}
"""
LAUNCH = """\
[[launch]]
kernel = "strided"
grid = 500
block = 64
arguments = [
  { name = "from", type = "float", count = 100100 },
  { name = "to", type = "float", count = 100100 },
  { name = "n", type = "int", value = 100100 },
]
"""


def looking(counts: Callable[[int], float], seen: list[int]) -> Callable[[Sequence[int]], dict[int, Counts]]:
    def look(blocks: Sequence[int]) -> dict[int, Counts]:
        seen.extend(blocks)
        return {block: np.full((2, 1), counts(block)) for block in blocks}

    return look


@pytest.mark.parametrize("change", [1, 2, 777, 62_480, 65_534])
def test_the_block_at_which_less_is_executed_is_found(change: int) -> None:
    seen: list[int] = []
    total = count_grid(65_535, {}, looking(lambda block: 18.0 if block < change else 17.0, seen))
    assert total is not None
    assert total.tolist() == [[17.0 * 65_535 + change]] * 2
    assert len(seen) == len(set(seen)) < 30


def test_what_is_known_is_not_looked_at_again() -> None:
    seen: list[int] = []
    known = {block: np.ones((2, 1)) for block in (0, 50, 99)}
    total = count_grid(100, known, looking(lambda block: 1.0, seen))
    assert (seen, total is not None and total.tolist()) == ([], [[100.0], [100.0]])


def test_what_changes_everywhere_is_taken_to_change_evenly() -> None:
    seen: list[int] = []
    total = count_grid(10_001, {}, looking(float, seen))
    assert total is not None
    assert total[0, 0] == pytest.approx(10_001 * 5_000)
    assert len(seen) <= MOST_BLOCKS


def test_without_the_ends_nothing_is_said() -> None:
    assert count_grid(100, {50: np.ones((2, 1))}, lambda blocks: {}) is None


def test_a_few_blocks_tell_what_all_execute(tmp_path: Path) -> None:
    path = tmp_path / "strided.cu"
    path.write_text(SOURCE)
    (tmp_path / "strided.launch.toml").write_text(LAUNCH)
    built = build(path, 80)
    (launch,) = read_launches(tmp_path / "strided.launch.toml")
    kernel, named = built.find(launch)
    few = walk_kernel(kernel, built.module, named, WalkSettings(blocks=(7, 250), seconds=LIMIT_S, counts_grid=True))
    every = walk_all(built, launch)
    assert few.sampled_blocks == (7, 250)
    assert few.executed.tolist() == every.executed.tolist()
    assert len(set(every.executed.tolist())) > 2  # the last turn is one of some blocks
