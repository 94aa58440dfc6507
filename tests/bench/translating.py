"""Kernels that run for long: operation by operation, and by what is translated behind that.

Usage: ``python -m tests.bench.translating [--size N]``; needs NVRTC. Rates are by processor time, and without compiling.
"""

import argparse
import tempfile
import time
from pathlib import Path

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.compiled import translated
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.launches.launch import LaunchDescription
from tests.bench.emulating import build_launch, floats, number
from tests.emulator.kernels.compiling import compile_ptx

_SOURCE = """
#define PLACE const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y; if (i >= n || j >= n) return;
extern "C" __global__ void product(int n, const float* a, const float* b, float* c)
{
    PLACE
    for (int k = 0; k < n; ++k)
        c[i * n + j] += a[i * n + k] * b[k * n + j];
}
extern "C" __global__ void rank_update(int n, const float* a, const float* b, float* c)
{
    PLACE
    for (int k = 0; k < n; ++k)
        c[i * n + j] += 2 * a[i * n + k] * b[j * n + k] + 2 * b[i * n + k] * a[j * n + k];
}
extern "C" __global__ void row_sums(int n, const float* a, const float* b, float* c)
{
    PLACE
    if (j % 8 == 0)
        for (int k = 0; k < n; ++k)
            c[i * n + j] += a[j * n + k] * b[k];
}
"""
_KERNELS = ("product", "rank_update", "row_sums")
_BUDGET = Budget(seconds=30.0, memory_bytes=4 << 30)


def measure(module: PtxModule, launch: LaunchDescription) -> float:
    """Million warp instructions a second of a launch, or of what of it fits into the budget."""
    begin = time.process_time()
    return (
        emulate(module, launch, check_races=False, budget=_BUDGET).warp_instructions
        / 1e6
        / (time.process_time() - begin)
    )


def main() -> None:
    """Print a row per kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "long.cu"
        source.write_text(_SOURCE, encoding="utf-8")
        module = parse_ptx(compile_ptx(source, 80), name="long.cu")
    arrays = [floats(name, options.size * options.size) for name in "abc"]
    blocks = -(-options.size // 32), -(-options.size // 8)
    print("million warp instructions/s          single   whole   whole / single")
    for name in _KERNELS:
        launch = build_launch(name, blocks, (32, 8), number("n", options.size), *arrays)
        translated.HOT_WARP_INSTRUCTIONS = 1 << 62
        interpreted = measure(module, launch)
        executed = emulate(module, launch, check_races=False, budget=_BUDGET).warp_instructions
        translated.HOT_WARP_INSTRUCTIONS = executed // 4  # where accesses go is known then
        measure(module, launch)
        translated.TRANSLATIONS.wait()
        rate = measure(module, launch)
        print(f"{name:27} {interpreted:14.1f} {rate:7.1f} {rate / interpreted:12.1f}x")


if __name__ == "__main__":
    main()
