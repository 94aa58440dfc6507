"""A simulated time claims the error of the launches that were checked only where the launch is like these."""

import re
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.document.sampling_words import describe_simulation, describe_time
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_code
from gpa_lsp.report.pipeline import analyse
from tests.prediction.kernels import NVRTC

_SOURCE = """\
__global__ void copy(float* out, const float* in, int width)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    out[y * width + x] = in[y * width + x];
}
__global__ void turn(float* out, const float* in, int width)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    out[x * width + y] = in[y * width + x];
}
__global__ void fill(float* out, int width)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    out[y * width + x] = 1.0f;
}
__global__ void multiply(float* out, const float* a, const float* b, int width)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < width; ++k)
        sum += a[y * width + k] * b[k * width + x];
    out[y * width + x] = sum;
}
"""


def _describe_launch(kernel: str, width: int) -> str:
    inputs = {"fill": (), "multiply": ("a", "b")}.get(kernel, ("in",))
    arrays = "".join(
        f'  {{ name = "{name}", type = "float", count = {width * width} }},\n' for name in ("out", *inputs)
    )
    blocks = width // 16
    return (
        f'[[launch]]\nkernel = "{kernel}"\ngrid = [{blocks}, {blocks}]\nblock = [16, 16]\narguments = [\n{arrays}'
        f'  {{ name = "width", type = "int", value = {width} }},\n]\n'
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    path = tmp_path / "regimes.cu"
    path.write_text(_SOURCE)
    return path


@pytest.mark.parametrize(
    ("kernel", "width", "reason"),
    [
        ("copy", 1024, ""),
        ("turn", 1024, ""),
        ("fill", 1024, "it stores and reads next to nothing"),
        ("multiply", 1024, ""),
    ],
)
def test_launches_unlike_those_that_were_checked_are_told_apart(
    source: Path, kernel: str, width: int, reason: str
) -> None:
    source.with_suffix(".launch.toml").write_text(_describe_launch(kernel, width))
    settings = SimulationSettings(machine="T4")
    (launch,) = simulate_code(source, settings=settings, compile_settings=NVRTC).launches
    assert launch.simulated.unchecked == reason
    assert ("outside of what was checked" in launch.time) == bool(reason)


def test_no_error_is_claimed_of_what_was_not_checked(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = re.compile(r"times the simulated time|4 in 5 launches|how far off launches")
    for kernel, is_checked in (("copy", True), ("fill", False)):
        source.with_suffix(".launch.toml").write_text(_describe_launch(kernel, 512))
        profile = source.with_name(f"{kernel}.gpa-profile.json")
        assert main(["predict", "stalls", str(source), "--machine", "T4", "-o", str(profile)]) == 0
        printed = capsys.readouterr().out
        report = analyse([profile])
        (shown,) = report.kernels
        words = (printed, describe_simulation(shown), "".join(one.message for one in report.problems))
        assert [bool(claim.search(text)) for text in words] == [is_checked] * 3
        told = (printed, describe_simulation(shown), describe_time(shown, shown.duration_ns))
        assert ["outside of what was checked" in text for text in told] == [not is_checked] * 3
