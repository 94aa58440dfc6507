"""``gpa-lsp roofline calibrate``, on a simulated GPU and without one."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

import gpa_lsp.execution.calibration.calibrate
from gpa_lsp.cli.main import main
from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.foundation.files import DATA_VARIABLE
from gpa_lsp.gpu.device.roofs_file import find_kept_roofs, read_roofs
from tests.device.calibration.simulated_gpu import SimulatedGpu
from tests.device.calibration.test_sources import needs_compiler


class OpenedGpu(SimulatedGpu):
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A computer with the simulated GPU; its user's data folder."""
    monkeypatch.setattr(gpa_lsp.execution.calibration.calibrate, "CudaGpu", lambda index: OpenedGpu())
    monkeypatch.setattr(
        gpa_lsp.execution.calibration.calibrate, "compile_source", lambda source, compute_capability: source.encode()
    )
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data"


def test_roofs_are_kept_where_reports_of_the_gpu_find_them(simulated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", "calibrate", "--quick"]) == 0
    out, err = capsys.readouterr()
    path = find_kept_roofs("Simulated GPU")
    assert path is not None
    assert path.is_relative_to(simulated)
    assert str(path) in err
    assert {peak.kind.value for peak in read_roofs(path).peaks} >= {"FP32", "FP64", "INT32"}
    assert "Simulated GPU: compute capability 8.6, 80 SMs" in out
    rows = {line.strip().split("  ")[0]: line for line in out.splitlines()}
    assert "30.7 TFLOP/s" in rows["FP32"]  # 256 · 80 · 1.5 GHz
    assert "699 GB/s" in rows["DRAM"]  # launching costs 5 of 5,000 µs
    assert "FP8 tensor: compute capability 8.6 has no mma" in out


def test_a_file_of_ones_own(simulated: Path, tmp_path: Path) -> None:
    assert main(["roofline", "calibrate", "--quick", "-o", str(tmp_path / "mine.json")]) == 0
    written: dict[str, Any] = json.loads((tmp_path / "mine.json").read_text())
    assert written["format"] == "gpa-lsp/roofs/1"
    assert not simulated.exists()


def test_a_place_that_cannot_be_written(simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["roofline", "calibrate", "--quick", "-o", str(tmp_path / "file" / "mine.json")]) == 2
    assert "choose another place" in capsys.readouterr().err


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def open_gpu(index: int) -> None:
        raise MissingToolError("an NVIDIA driver", needed_for="measuring roofs", install="run it elsewhere")

    monkeypatch.setattr(gpa_lsp.execution.calibration.calibrate, "CudaGpu", open_gpu)
    assert main(["roofline", "calibrate"]) == 2
    assert capsys.readouterr().err == (
        "gpa-lsp: error: an NVIDIA driver is not installed: measuring roofs needs it; run it elsewhere\n"
    )


@needs_compiler
def test_the_plan_is_compiled_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", "calibrate", "--plan", "8.9"]) == 0
    out = capsys.readouterr().out
    assert "FP8 tensor: QMMA, 8,192 operations per warp instruction\n" in out
    assert "nothing was run" in out


@pytest.mark.parametrize("text", ["x", "8", "8.x", "", "8.6.1", "99999999.1"])
def test_a_senseless_plan_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", "calibrate", "--plan", text]) == 2
    assert "is not an architecture such as sm_86" in capsys.readouterr().err
