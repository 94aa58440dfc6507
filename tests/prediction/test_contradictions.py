"""Predictions of the fixtures' kernels contradict neither themselves nor what was counted in the same run."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.foundation.errors import InputError
from tests.conftest import ROOT

CUBINS = sorted((ROOT / "fixtures" / "cubins" / "sm_80").glob("*.cubin"))
SETTINGS = replace(DEFAULT_PREDICTION, budget=Budget(seconds=6.0), traced_warp_instructions=20_000)


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.stem)
def test_no_fixture_is_predicted_against_itself(path: Path, tmp_path: Path) -> None:
    try:
        text = write_templates(path)
    except InputError as error:
        pytest.skip(str(error))
    # In the ragged launch the last block has a warp of three threads.
    for name, threads, machine in (("whole", "512", "A100 SXM4 40GB"), ("ragged", "515", "V100 PCIe")):
        described = tmp_path / f"{name}.launch.toml"
        described.write_text(text.replace("threads = 1048576", f"threads = {threads}"))
        settings = replace(SETTINGS, machine=machine)
        found = predict_code(path, launches=LaunchChoice(path=described), settings=settings)
        assert found.kernels
        assert [one.contradictions for one in found.kernels if one.contradictions] == []
