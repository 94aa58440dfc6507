"""Launches of a program are compared."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.programs.examine import examine_recorded
from tests.programs.built import MACHINE, SOURCES, build, run

SETTINGS = replace(DEFAULT_PREDICTION, machine=MACHINE, budget=Budget(seconds=6.0), traced_warp_instructions=100_000)


@pytest.mark.parametrize(("nodes", "kept"), [(40, range(1, 7)), (3000, range(1, 13, 2))])
def test_launches_at_even_distances_are_compared(nodes: int, kept: range, tmp_path: Path) -> None:
    """A search by levels: few nodes do something in its first and last launches, many between."""
    program = build(SOURCES / "frontier_search.cu", tmp_path)
    found, _ = run(program, str(nodes), records=tmp_path / "records", others=tmp_path / "others")
    (kernel,) = found.kernels
    assert kernel.launches == kept[-1] + kept.step - 1
    others = [one.number for one in kernel.others]
    assert sorted({*others, kernel.recorded.number}) == list(kept) and len(others) == len(kept) - 1
    assert not any(one.is_heaviest for one in kernel.others)
    (examined,) = examine_recorded(found, SETTINGS)
    assert examined.comparison.launches == len(kept)
    spreads = {one.measure: one for one in examined.comparison.spreads}
    requests = spreads["global loads: requests"]
    assert requests.least < requests.mean < requests.most
    alone = replace(kernel, others=(kernel.others[0],))
    (pair,) = examine_recorded(replace(found, kernels=(alone,)), SETTINGS)
    heaviest = {name: value for name, _, value in pair.prediction.measures}["global loads: requests"]
    (two,) = (one for one in pair.comparison.spreads if one.measure == "global loads: requests")
    assert two.most == heaviest and two.mean == (two.least + two.most) / 2 and two.deviation == two.most - two.mean
