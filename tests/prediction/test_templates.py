"""Descriptions that are begun with sizes that can be emulated."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpa_lsp.emulator.model import Budget
from gpa_lsp.prediction.launch_sources import LaunchChoice
from gpa_lsp.prediction.model import EDITOR_PREDICTION
from gpa_lsp.prediction.predict import predict_source
from gpa_lsp.prediction.templates import write_templates
from tests.prediction.kernels import NVRTC

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void forces(const float* x, float* f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += x[j] - x[i];
    f[i] = sum;
}
__global__ void copy(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""
SETTINGS = replace(EDITOR_PREDICTION, budget=Budget(seconds=240.0, warp_instructions=400_000))


def describe(folder: Path, kernel: str) -> str:
    path = folder / "pairs.cu"
    path.write_text(SOURCE)
    return write_templates(path, kernel=kernel, launches_text="", settings=NVRTC, fits=SETTINGS)


def test_work_that_grows_with_the_square_is_described_so_small_that_it_ends(tmp_path: Path) -> None:
    text = describe(tmp_path, "forces")
    (line,) = [one for one in text.splitlines() if one.startswith("threads = ")]
    assert line.endswith(
        "# 65,536 would take too long to emulate; the grid is threads / block, rounded up; or give grid = …"
    )
    assert int(line.split()[2]) in (256, 1024, 4096)
    choice = LaunchChoice(path=tmp_path / "pairs.launch.toml", text=text)
    found = predict_source(tmp_path / "pairs.cu", launches=choice, settings=SETTINGS, compile_settings=NVRTC)
    (kernel,) = found.kernels
    assert kernel.execution.is_complete and kernel.faults == () and kernel.volumes is not None


def test_other_work_keeps_the_usual_size(tmp_path: Path) -> None:
    assert "\nthreads = 65536  # the grid is" in describe(tmp_path, "copy")
