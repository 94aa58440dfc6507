"""Few warps: emulation and whole predictions, and what analyses cost beside the trace.

Usage: ``python -m tests.bench.few_warps [--times N]``; needs NVRTC. Rates are by processor time.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.prediction.predict_launch import LaunchSubject, predict_launch
from tests.bench.emulating import Sink, build_launch, floats, number
from tests.emulator.kernels.compiling import SOURCES, compile_ptx

_BICG = """
extern "C" __global__ void bicg(int rows, int columns, const float* a, const float* p, float* q)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) {
        q[i] = 0.0f;
        for (int j = 0; j < columns; ++j)
            q[i] += a[i * columns + j] * p[j];
    }
}
"""
_SIZE = 1024
_HEAT = 360


def list_works() -> list[tuple[PtxModule, LaunchDescription]]:
    """32 warps of a matrix times a vector, each lane a row; and a stencil of 900 blocks."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "bicg.cu"
        source.write_text(_BICG, encoding="utf-8")
        bicg = parse_ptx(compile_ptx(source, 80), name="bicg.cu")
    hotspot = parse_ptx(compile_ptx(SOURCES / "hotspot.cu", 80), name="hotspot.cu")
    blocks = -(-_HEAT // 12)
    heat = [floats(name, _HEAT * _HEAT) for name in ("power", "heat", "out")]
    rest = number("size", _HEAT), number("share", 0.125, ScalarType.F32), number("ambient", 80.0, ScalarType.F32)
    vectors = floats("a", _SIZE * _SIZE), floats("p", _SIZE), floats("q", _SIZE)
    sizes = number("rows", _SIZE), number("columns", _SIZE)
    return [
        (bicg, build_launch("bicg", (_SIZE // 256, 1), (256, 1), *sizes, *vectors)),
        (hotspot, build_launch("hotspot", (blocks, blocks), (16, 16), *heat, *rest)),
    ]


def list_tasks(module: PtxModule, launch: LaunchDescription) -> dict[str, Callable[[], int]]:
    """Tasks to time on a launch; each returns the number of warp instructions executed."""
    subject = LaunchSubject(
        module=module,
        launch=launch,
        kernel=launch.kernel,
        name=launch.kernel,
        statics=None,
        compute_capability=(8, 0),
    )
    return {
        "plain": lambda: emulate(module, launch, check_races=False).warp_instructions,
        "checked": lambda: emulate(module, launch).warp_instructions,
        "traced": lambda: emulate(module, launch, trace=TraceSettings(), sink=Sink()).warp_instructions,
        "predicted": lambda: predict_launch(subject, DEFAULT_PREDICTION).execution.warp_instructions,
    }


def measure(run: Callable[[], int], times: int) -> float:
    """Million warp instructions a second, at best."""
    best = 0.0
    for _ in range(times):
        begin = time.process_time()
        best = max(best, run() / (time.process_time() - begin) / 1e6)
    return best


def main() -> None:
    """Print one row per kernel and what is done with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    print("million warp instructions/s       rate   of plain")
    for module, launch in list_works():
        rates = {name: measure(run, options.times) for name, run in list_tasks(module, launch).items()}
        for name, rate in rates.items():
            print(f"{launch.kernel:10} {name:16} {rate:11.2f} {rate / rates['plain']:9.2f}x")
        analyses = rates["traced"] / rates["predicted"] - 1
        print(f"{launch.kernel:10} {'analyses/trace':16} {analyses:11.2f}    times of processor time")


if __name__ == "__main__":
    main()
