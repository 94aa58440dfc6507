"""Time from a source's text to its prediction, warm, by stage; and peak memory for each limit that the emulator gets.

Usage: ``python -m tests.bench.predicting [--times N]``. The sources are three kernels of the emulator's truth tests' kind: one that streams, a
stencil and a tiled transposition, each launched over arrays of 64 MiB. Peak memory is that of a process of its own for each setting.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.model import CompilerChoice, CompileSettings
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Sampling, SamplingKind, TraceSettings
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.exploration.subjects import prepare_exploration
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION, EDITOR_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.static_source import choose_product, choose_volume_device
from gpa_lsp.execution.volumes.from_trace import find_launch_shape, list_probe_blocks, recover_expressions
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.foundation.errors import GpaError, Problem
from tests.bench import time_work

NVRTC = CompileSettings(choice=CompilerChoice.NVRTC, keeps_units=False)
KEPT = CompileSettings(choice=CompilerChoice.NVRTC)
N = 4096
_MEMORY_SETTINGS = (256 << 20, 512 << 20, 1 << 30)

SOURCE = """\
__global__ void stream(float* out, const float* in, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * n + x] = 2.0f * in[y * n + x];
}
__global__ void stencil(float* out, const float* in, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    out[y * n + x] = in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] + in[(y + 1) * n + x];
}
__global__ void transpose(float* out, const float* in, int n)
{
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""
BLOCKS = {"stream": "[256, 1]", "stencil": "[32, 8]", "transpose": "[32, 32]"}
LAUNCH = """\
[[launch]]
kernel = "{kernel}"
threads = [{n}, {n}]
block = {block}
arguments = [
  {{ name = "out", type = "float", count = {count} }},
  {{ name = "in", type = "float", count = {count} }},
  {{ name = "n", type = "int", value = {n} }},
]
"""


def write_project(folder: Path) -> Path:
    """The source and its description."""
    source = folder / "bench.cu"
    source.write_text(SOURCE)
    launches = [LAUNCH.format(kernel=name, block=block, n=N, count=N * N) for name, block in BLOCKS.items()]
    (folder / "bench.launch.toml").write_text("\n".join(launches))
    return source


def print_stages(source: Path, kernel: str, times: int) -> None:
    """One row per stage of source → volumes, and their sum."""
    unit = compile_source(source, settings=NVRTC)
    assert unit.ptx is not None
    ptx = unit.ptx
    module = parse_ptx(ptx, name="bench")
    described = source.with_suffix(".launch.toml")
    launch = next(one for one in read_launches(described) if one.kernel == kernel)
    blocks = Sampling(kind=SamplingKind.CHOSEN, blocks=list_probe_blocks(launch.grid))

    def probe() -> object:
        return emulate(module, launch, sampling=blocks, trace=TraceSettings(branches=False), check_races=False)

    trace = emulate(module, launch, sampling=blocks, trace=TraceSettings(branches=False), check_races=False).trace
    assert trace is not None
    kernel_accesses = recover_expressions(trace)
    shape = find_launch_shape(kernel_accesses, launch.block, launch.grid)
    device = choose_volume_device(choose_product(None, unit.compute_capability), DEFAULT_PREDICTION.mode)
    assert not isinstance(device, Problem)
    stages: tuple[tuple[str, Callable[[], object]], ...] = (
        ("compile (NVRTC)", lambda: compile_source(source, settings=NVRTC)),
        ("parse PTX", lambda: parse_ptx(ptx, name="bench")),
        ("read launches", lambda: read_launches(described)),
        ("probe", probe),
        ("recover", lambda: recover_expressions(trace)),
        ("model", lambda: predict_volumes(kernel_accesses, shape, device, registers=16)),
    )
    total_ms = 0.0
    for name, work in stages:
        spent_ms = 1e3 * time_work(work, times)[1]
        total_ms += spent_ms
        print(f"{kernel:10} {name:24} {spent_ms:9.2f} ms")
    print(f"{kernel:10} {'source to volumes':24} {total_ms:9.2f} ms   (aim: 100 ms)")


def print_whole(source: Path, kernel: str, times: int) -> None:
    """Print the time of a prediction with all that an editor asks for: static checks, a wave emulated and every analysis."""

    def predict() -> object:
        return predict_code(source, kernel=kernel, settings=EDITOR_PREDICTION, compile_settings=KEPT)

    print(f"{kernel:10} {'whole, as in an editor':24} {1e3 * time_work(predict, min(times, 3))[1]:9.2f} ms")


def print_configurations(source: Path, kernel: str, times: int) -> None:
    """One configuration of an exploration: so short that many turns are needed for a median that stands."""
    subject = prepare_exploration(source, kernel=kernel, compile_settings=KEPT)
    spent_ms = 1e3 * time_work(lambda: subject.evaluate(subject.current), 10 * times)[1]
    print(f"{kernel:10} {'a configuration':24} {spent_ms:9.2f} ms   (aim: 10 ms)")


def measure_peak(source: Path, memory_bytes: int) -> None:
    """Print peak memory with an emulator of limited memory, and the peak before it; run in a process of its own."""
    before_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    budget = Budget(seconds=20.0, memory_bytes=memory_bytes, trace_bytes=memory_bytes // 4)
    try:
        found = predict_code(
            source, kernel="stream", settings=replace(DEFAULT_PREDICTION, budget=budget), compile_settings=KEPT
        )
        words = f"{found.kernels[0].execution.executed_blocks:,} blocks" if found.kernels else "refused"
    except GpaError as error:
        words = str(error)
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    mib = 1 << 20
    print(
        f"--memory {memory_bytes // mib:5} MiB: peak {peak_bytes / mib:7.0f} MiB, {before_bytes / mib:.0f} MiB of it before; "
        f"{(peak_bytes - before_bytes) / memory_bytes:.2f} of the setting; {words}"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--peak", nargs=2, metavar=("SOURCE", "BYTES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        measure_peak(Path(arguments.peak[0]), int(arguments.peak[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        source = write_project(Path(folder))
        for kernel in BLOCKS:
            print_stages(source, kernel, arguments.times)
            print_whole(source, kernel, arguments.times)
            print_configurations(source, kernel, arguments.times)
        for memory_bytes in _MEMORY_SETTINGS:
            command = [sys.executable, "-m", "tests.bench.predicting", "--peak", str(source), str(memory_bytes)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
