"""What the programs' kernels are predicted to move agrees with itself and with what was counted in the same run."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.programs.examine import examine_recorded
from tests.programs.built import MACHINE, build, run
from tests.programs.test_fixture_programs import PROGRAMS

SETTINGS = replace(DEFAULT_PREDICTION, machine=MACHINE, budget=Budget(seconds=6.0), traced_warp_instructions=100_000)


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_no_recorded_launch_is_predicted_against_itself(source: Path, tmp_path: Path) -> None:
    found, _ = run(build(source, tmp_path), records=tmp_path / "records")
    examined = examine_recorded(found, SETTINGS)
    predicted = [one.prediction for one in examined if one.prediction is not None]
    assert predicted
    assert {one.name: one.contradictions for one in predicted if one.contradictions} == {}
