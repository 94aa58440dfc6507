"""Sizes that nobody knows, fitted."""

from pathlib import Path

import pytest

from gpa_lsp.emulator.model import Budget
from gpa_lsp.prediction.launch_sources import LaunchChoice
from gpa_lsp.prediction.model import PredictionSettings
from gpa_lsp.prediction.predict import predict_source
from gpa_lsp.prediction.templates import write_templates
from tests.prediction.kernels import NVRTC

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SETTINGS = PredictionSettings(budget=Budget(seconds=60.0, warp_instructions=40_000_000))
PITCHED = """\
__global__ void spread(const float* in, float* out, int rows, int pitch)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) out[row * pitch + 3] = in[row + rows];
}
"""
TILED = """\
__global__ void tile(const float* in, float* out, int width)
{
    __shared__ float held[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    held[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    out[x * width + y] = held[threadIdx.x][threadIdx.y];
}
"""
GUARDED = """\
__global__ void eliminate(float* a, float* b, int size, int step)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size - 1 - step || y >= size - step) return;
    a[size * (x + 1 + step) + y] -= a[size * step + y];
    if (y == 0) b[x + 1 + step] -= b[step];
}
"""
INDIRECT = """\
__global__ void gather(const int* first, const int* column, const float* value, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = first[row]; k < first[row + 1]; ++k) sum += value[column[k]];
    out[row] = sum;
}
"""
DYNAMIC = """\
__global__ void fold(const int* in, int* out, int n)
{
    extern __shared__ int held[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    held[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = held[blockDim.x - 1];
}
"""


def describe(folder: Path, text: str) -> str:
    path = folder / "kernels.cu"
    path.write_text(text)
    return write_templates(path, launches_text="", settings=NVRTC, fits=SETTINGS)


@pytest.mark.parametrize("text", [PITCHED, TILED, GUARDED, INDIRECT, DYNAMIC])
def test_what_is_described_has_volumes_and_no_fault(text: str, tmp_path: Path) -> None:
    choice = LaunchChoice(path=tmp_path / "kernels.launch.toml", text=describe(tmp_path, text))
    found = predict_source(tmp_path / "kernels.cu", launches=choice, settings=SETTINGS, compile_settings=NVRTC)
    (kernel,) = found.kernels
    assert kernel.faults == () and kernel.volumes is not None


def test_arrays_are_as_large_as_what_is_touched(tmp_path: Path) -> None:
    text = describe(tmp_path, PITCHED)
    lines = {line.split('"')[1]: line for line in text.splitlines() if line.startswith("  {")}
    assert 'value = "threads_x"' in lines["rows"] and "value = 16" in lines["pitch"]
    assert f"count = {2 * 65536}, " in lines["in"] and lines["in"].endswith("# fitted: as much as is touched")
    assert f"count = {65535 * 16 + 4} " in lines["out"]


def test_blocks_of_tiles_have_two_axes(tmp_path: Path) -> None:
    text = describe(tmp_path, TILED)
    assert "\nblock = [16, 16]" in text and "\nthreads = [256, 256]" in text


def test_dynamic_shared_memory_is_what_is_touched(tmp_path: Path) -> None:
    assert "\nshared_bytes = 1024  # fitted" in describe(tmp_path, DYNAMIC)
