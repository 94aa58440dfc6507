"""A source with a few kernels and the description of their launches, for tests of predictions; compiled by NVRTC once per process."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from gpa_lsp.execution.compiler.model import CompilerChoice, CompileSettings
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import KernelPrediction, PredictionSettings, SourcePrediction
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.templates import write_templates

NVRTC = CompileSettings(choice=CompilerChoice.NVRTC)

SOURCE = """\
__global__ void saxpy(int n, float a, const float* __restrict__ x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
template <typename T, int TILE> __global__ void transpose(T* out, const T* in, int width)
{
    __shared__ T tile[TILE][TILE];
    tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * TILE + threadIdx.y) * width + blockIdx.x * TILE + threadIdx.x];
    __syncthreads();
    out[(blockIdx.x * TILE + threadIdx.y) * width + blockIdx.y * TILE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
template __global__ void transpose<float, 32>(float*, const float*, int);
__global__ void endless(volatile int* flag)
{
    while (*flag == 0)
        ;
}
__global__ void beyond(int* a)
{
    a[blockIdx.x * blockDim.x + threadIdx.x + 1] = 1;
}
__global__ void reversed(float* a, int n)
{
    extern __shared__ float s[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? a[i] : 0;
    __syncthreads();
    if (i < n)
        a[i] = s[blockDim.x - 1 - threadIdx.x];
}
"""

LAUNCHES = """\
[[launch]]
kernel = "saxpy"
threads = 4096
block = 256
arguments = [
  { name = "n", type = "int", value = 4096 },
  { name = "a", type = "float", value = 2.0 },
  { name = "x", type = "float", count = 4096 },
  { name = "y", type = "float", count = 4096 },
]
[[launch]]
kernel = "saxpy"
title = "ragged"
threads = 1000
block = 128
arguments = [
  { name = "n", type = "int", value = 1000 },
  { name = "a", type = "float", value = 2.0 },
  { name = "x", type = "float", count = 1000 },
  { name = "y", type = "float", count = 1000 },
]
[[launch]]
kernel = "transpose"
grid = [4, 4]
block = [32, 32]
arguments = [
  { name = "out", type = "float", count = 16384 },
  { name = "in", type = "float", count = 16384 },
  { name = "width", type = "int", value = 128 },
]
[[launch]]
kernel = "endless"
grid = 1
block = 32
arguments = [{ name = "flag", type = "int", count = 1 }]
[[launch]]
kernel = "beyond"
grid = 4
block = 32
arguments = [{ name = "a", type = "int", count = 128 }]
[[launch]]
kernel = "reversed"
threads = 10000
block = 128
shared_bytes = "block_x * 256"
arguments = [{ name = "a", type = "float", count = 10000 }, { name = "n", type = "int", value = 10000 }]
"""


def write_project(folder: Path) -> Path:
    """The source and its description in a folder; returns the source."""
    source = folder / "kernels.cu"
    source.write_text(SOURCE)
    (folder / "kernels.launch.toml").write_text(LAUNCHES)
    return source


@cache
def find_project() -> Path:
    """The source in a folder that all tests of a process share and none changes."""
    return write_project(Path(mkdtemp(prefix="gpa-lsp-predicted-")))


@cache
def predict(kernel: str) -> SourcePrediction:
    """The launches of one kernel, predicted with the default settings."""
    return predict_code(find_project(), kernel=kernel, compile_settings=NVRTC)


def predict_one(kernel: str) -> KernelPrediction:
    """The first launch of a kernel."""
    return predict(kernel).kernels[0]


def begin_description(path: Path, source: str, fits: PredictionSettings | None = None) -> str:
    """Write a source; the description that is begun for its launches, with sizes that fit these settings."""
    path.write_text(source)
    return write_templates(path, launches_text="", settings=NVRTC, fits=fits)


def predict_described(path: Path, text: str, settings: PredictionSettings) -> SourcePrediction:
    """The launches of a source as a text describes them, predicted."""
    choice = LaunchChoice(path=path.with_suffix(".launch.toml"), text=text)
    return predict_code(path, launches=choice, settings=settings, compile_settings=NVRTC)
