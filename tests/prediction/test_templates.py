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


FOLDS = """\
template <typename T, int size> __global__ void fold(const T* in, T* out)
{
    __shared__ T held[size];
    held[threadIdx.x] = in[blockIdx.x * size + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = held[size - 1];
}
void run(float* in, float* out, int threads)
{
    switch (threads) {
    case 256: fold<float, 256><<<8, threads>>>(in, out); break;
    case 64: fold<float, 64><<<8, threads>>>(in, out); break;
    }
}
template __global__ void fold<float, 32>(const float*, float*);
int main() { float *in, *out; cudaMalloc(&in, 8192); cudaMalloc(&out, 32); run(in, out, 256); }
"""


def test_each_instance_of_a_template_gets_its_own_launches(tmp_path: Path) -> None:
    path = tmp_path / "folds.cu"
    path.write_text(FOLDS)
    text = write_templates(path, launches_text="", settings=NVRTC, fits=SETTINGS)
    parts = {one.split('"')[1]: one.partition("arguments")[0] for one in text.split("[[launch]]")[1:]}
    assert len(parts) == 3
    (large,) = [one for name, one in parts.items() if "Li256E" in name]
    (small,) = [one for name, one in parts.items() if "Li64E" in name]
    (other,) = [one for name, one in parts.items() if "Li32E" in name]
    assert "block = 256\ngrid = 8" in large and "block = 64\ngrid = 8" in small and "grid = 8" not in other
    assert text.count("The host code chooses another case or branch.") == 1
    choice = LaunchChoice(path=tmp_path / "folds.launch.toml", text=text)
    found = predict_source(path, launches=choice, settings=SETTINGS, compile_settings=NVRTC)
    assert [(one.faults, one.volumes is not None) for one in found.kernels[:2]] == [((), True), ((), True)]


def test_a_launch_of_nobody_knows_which_instance_is_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "folds.cu"
    unknown = FOLDS.partition("void run(")[0]
    unknown += (
        "void run(float* in, float* out) { cudaMalloc(&out, 32); fold<float, NOBODY_KNOWS><<<8, 64>>>(in, out); }\n"
    )
    unknown += "template __global__ void fold<float, 32>(const float*, float*);\ntemplate __global__ void fold<float, 64>(const float*, float*);\n"
    unknown += "template __global__ void fold<double, 64>(const double*, double*);\n"
    path.write_text(unknown)
    text = write_templates(path, launches_text="", settings=NVRTC)
    assert text.count("It may be one of another instance of the kernel: a guess.") == 2
    assert text.count("The launch at line") == 2


def test_a_fragment_has_the_launches_of_the_file_that_includes_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    kernels, _, host = FOLDS.partition("void run(")
    path = tmp_path / "folds_kernel.cu"
    path.write_text(kernels)
    (tmp_path / "folds.cu").write_text(f'#include "folds_kernel.cu"\nvoid run({host}')
    text = write_templates(path, launches_text="", settings=NVRTC)
    assert "block = 256\ngrid = 8" in text and "block = 64\ngrid = 8" in text
    assert text.count("count = 2048") == 2 and "# allocated at line 10 of folds.cu" in text
